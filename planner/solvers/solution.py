"""What a solver is asked beside the program, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, Literal, TypeVar

from planner.running.deadlines import solver_limit_s
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import Proof
from planner.specs.records.solving import Progress

Answer = TypeVar("Answer")

Stop = Literal["", "time limit", "interrupt"]


class Status(Enum):
    """How far a solver came."""

    OPTIMAL = "optimal"  # vouched for by two, or by our own arithmetic, within the gap asked for
    UNCONFIRMED = "unconfirmed"  # one solver calls it optimal, and nobody vouches for it
    FEASIBLE = "feasible"  # stopped early, with an assignment and a true bound
    INFEASIBLE = "infeasible"  # vouched for, unless one prover was all that was wanted
    UNKNOWN = "unknown"  # stopped early, with nothing in hand

    @property
    def is_final(self) -> bool:
        """Whether a solver ended by itself, and a longer search would change nothing."""
        return self in (Status.OPTIMAL, Status.UNCONFIRMED, Status.INFEASIBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How hard a solver may try.

    Args:
        time_limit_s: wall time, or None for as long as it takes.
        gap: relative distance between objective and bound that counts as optimal.
        threads: threads of the solver; one value is best kept for a whole process.
        seed: of the solver's own random numbers.
        on_progress: called with each piece of news, from the solver's thread.
    """

    time_limit_s: float | None = None
    gap: float = 0.0
    threads: int = 1
    seed: int = 0
    on_progress: Callable[[Progress], None] | None = None

    def tell(self, incumbent: float, bound: float, clock: Clock, n_nodes: int = 0) -> None:
        """Pass news on, where somebody wants them."""
        if self.on_progress is not None:
            ends = {"incumbent": incumbent, "bound": bound, "elapsed_s": clock.elapsed_s()}
            self.on_progress(Progress(**ends, n_nodes=n_nodes))

    def less(self, spent_s: float, *, least_s: float = 0.0) -> Effort:
        """The same with what is left of its time limit, and at least so much."""
        if self.time_limit_s is None:
            return self
        return replace(self, time_limit_s=max(self.time_limit_s - spent_s, least_s))

    def seconds(self) -> float | None:
        """What a solver may take that starts now: its limit, or less where a deadline is nearer."""
        limits = [limit for limit in (self.time_limit_s, solver_limit_s()) if limit is not None]
        return max(0.0, min(limits)) if limits else None


class Clock:
    """Wall time since its making [s]."""

    def __init__(self) -> None:
        self._began_s = time.perf_counter()

    def elapsed_s(self) -> float:
        return time.perf_counter() - self._began_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Word(Generic[Answer]):
    """What one prover says.

    Args:
        answer: verified; None without one. Its value is the proof's.
        n_nodes: nodes of the search, branches or points, as the prover counts them.
        stopped_by: what ended the search early, "" when nothing did.
        besides: what else is proved on the way, by the project's own arithmetic.
    """

    answer: Answer | None
    proof: Proof
    n_nodes: int = 0
    stopped_by: Stop = ""
    besides: tuple[Proof, ...] = ()


def effort_of(options: SolverOptions) -> Effort:
    """The effort that options leave, in the time that is left."""
    return Effort(
        time_limit_s=solver_limit_s(), gap=options.gap, threads=options.threads, seed=options.seed
    )


def relative_gap(objective: float, bound: float) -> float:
    """Distance between an objective and its bound, as a fraction of the objective."""
    if objective == bound:
        return 0.0
    return (objective - bound) / abs(objective) if objective else float("inf")
