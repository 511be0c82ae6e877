"""Cut a chain into stages: at the least sum directly, at the least maximum by bisection.

To add a backend: one file with `least(program, columns, effort)`, one line in `STAGE_SOLVERS`.

A program that minimises the slowest stage is the wrong one to hand to a mixed-integer solver:
its relaxation spreads every layer over all groups. Whether there is a cut within a given time is
a flow problem, and the times that can be the answer are finitely many: so they are bisected.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.stages import (
    RELATIVE_TOLERANCE,
    Columns,
    Cut,
    Objective,
    StageProgram,
    bottleneck_ms,
    bottleneck_values,
    columns,
    value_ms,
    violations,
)
from planner.solvers.solution import Effort, Status

STAGE_SOLVERS = {
    "highs": "planner.solvers.stages.highs",  # mixed-integer program: HiGHS
    "cpsat": "planner.solvers.stages.cpsat",  # constraint program: OR-Tools CP-SAT
    "exhaustive": "planner.solvers.stages.exhaustive",  # every cut of a small program
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What a backend says of a program: the least sum over columns, or that there is none.

    Args:
        status: `UNKNOWN` if it stopped early with nothing in hand.
        cut: the best found.
        bound: no cut's sum is below this [ms].
    """

    status: Status
    cut: Cut | None
    bound: float


Backend = Callable[[StageProgram, Columns, Effort], Least]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSolution:
    """A verified cut, or the proof or the reason that there is none.

    Args:
        cut: verified by `programs.stages.violations`; None without one.
        objective: recomputed from the arrays [ms]; infinite without a cut.
        bound: no cut is better than this [ms].
        n_solves: programs solved; `n_columns` of the largest.
        proof: how the bound was proven, in words.
    """

    status: Status
    cut: Cut | None
    objective: float
    bound: float
    solver: str
    n_solves: int
    n_columns: int
    proof: str
    wall_s: float

    @property
    def gap(self) -> float:
        if self.cut is None:
            return math.inf
        return (self.objective - self.bound) / self.objective if self.objective else 0.0


def cut(
    program: StageProgram,
    objective: Objective,
    *,
    solver: str = "highs",
    effort: Effort | None = None,
) -> CutSolution:
    """Cut the chain at the least latency, or the least bottleneck, with proof.

    Of cuts with the least bottleneck one of the least latency is returned.

    Raises:
        SolverError: no such solver; or it failed, or its answer fails verification.
    """
    if solver not in STAGE_SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(STAGE_SOLVERS)}")
    backend: Backend = import_module(STAGE_SOLVERS[solver]).least
    search = _Search(program, solver, backend, effort or Effort())
    return search.latency() if objective == "latency" else search.bottleneck()


class _Search:
    """Solves of one program that share one time limit."""

    def __init__(
        self, program: StageProgram, solver: str, backend: Backend, effort: Effort
    ) -> None:
        self.program, self.solver, self.backend, self.effort = program, solver, backend, effort
        self.began_s = time.perf_counter()
        self.n_solves = self.n_columns = 0

    def latency(self) -> CutSolution:
        found = self._least()
        proof = f"{self.solver}: least sum over {self.n_columns} stages, bounded by its search"
        return self._solution("latency", found, bound=found.bound, proof=proof)

    def bottleneck(self) -> CutSolution:
        """Bisect the times that can be a bottleneck; then the least latency within it."""
        anything = self._least()
        if anything.cut is None:
            return self._solution("bottleneck", anything, bound=anything.bound, proof="")
        values = bottleneck_values(self.program)
        best = anything.cut
        low, high = -1, self._place(values, best)  # none within values[low], one within [high]
        stopped = False
        while high - low > 1 and not stopped:
            middle = (low + high) // 2
            found = self._least(at_most_ms=float(values[middle]))
            if found.cut is not None:
                best, high = found.cut, min(middle, self._place(values, found.cut))
            elif found.status is Status.INFEASIBLE:
                low = middle
            else:
                stopped = True
        polished = found = Least(status=Status.OPTIMAL, cut=best, bound=0.0)
        if not stopped:
            polished = self._least(at_most_ms=float(values[high]))
        found = polished if polished.cut is not None else found
        bound = float(values[low + 1])
        status = Status.FEASIBLE if stopped else Status.OPTIMAL
        below = f"no cut within {values[low]:.6g} ms" if low >= 0 else "no stage is faster"
        proof = f"{self.solver}: {below}, the next lower time that a stage can take"
        return self._solution("bottleneck", replace(found, status=status), bound=bound, proof=proof)

    def _place(self, values: FloatArray, cut: Cut) -> int:
        """Index of the least value that the cut is within."""
        slowest = bottleneck_ms(self.program, cut) * (1.0 - RELATIVE_TOLERANCE)
        return min(int(np.searchsorted(values, slowest)), len(values) - 1)

    def _least(self, *, at_most_ms: float = math.inf) -> Least:
        """Ask the backend, within the time that is left, and verify what it says."""
        posed = columns(self.program, at_most_ms=at_most_ms)
        self.n_solves += 1
        self.n_columns = max(self.n_columns, len(posed))
        limit = self.effort.time_limit_s
        left = None if limit is None else limit - (time.perf_counter() - self.began_s)
        if left is not None and left <= 0:
            return Least(status=Status.UNKNOWN, cut=None, bound=0.0)
        if not len(posed):
            return Least(status=Status.INFEASIBLE, cut=None, bound=math.inf)
        found = self.backend(self.program, posed, replace(self.effort, time_limit_s=left))
        if found.cut is not None:
            broken = violations(self.program, found.cut, at_most_ms=at_most_ms)
            if broken:
                raise SolverError(f"{self.solver} answered with a cut that breaks {broken}")
        return found

    def _solution(
        self, objective: Objective, found: Least, *, bound: float, proof: str
    ) -> CutSolution:
        value = math.inf
        if found.cut is not None:
            value = value_ms(self.program, found.cut, objective)
            least = bound if objective == "latency" else min(bound, value)
            if least > value * (1.0 + 1e-6):
                raise SolverError(f"{self.solver} bounds by {bound} ms what takes {value} ms")
            bound = min(least, value)
        return CutSolution(
            status=found.status,
            cut=found.cut,
            objective=value,
            bound=bound,
            solver=self.solver,
            n_solves=self.n_solves,
            n_columns=self.n_columns,
            proof=proof if found.cut is not None else "",
            wall_s=time.perf_counter() - self.began_s,
        )
