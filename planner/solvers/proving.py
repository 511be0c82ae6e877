"""One prover after the other, until what they say settles the program, or time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from planner.errors import SolverError
from planner.programs.proofs import Proof, Vouched, Wanted, is_closed, vouched
from planner.solvers.solution import Effort, Status, Stop, relative_gap

Answer = TypeVar("Answer")

FIRST_SHARE = 0.6
"""Of the time that is left, that a prover may take while another one waits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Word(Generic[Answer]):
    """What one prover says.

    Args:
        answer: verified; None without one. Its value is the proof's.
        n_nodes: nodes of the search, branches or points, as the prover counts them.
        stopped_by: what ended the search early, "" when nothing did.
    """

    answer: Answer | None
    proof: Proof
    n_nodes: int = 0
    stopped_by: Stop = ""


Prover = Callable[[Effort], Word[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proved(Generic[Answer]):
    """The best answer of all provers, and what they vouch for.

    Args:
        status: `OPTIMAL` only where that is vouched for, `INFEASIBLE` too unless one prover was
            all that was wanted; `UNCONFIRMED` where one solver calls the answer optimal and
            nobody vouches for it.
        answer: None without one.
        objective: of it; inf without one.
        vouched: the proofs, and the bounds that they come to.
        wall_s: of all provers.
        n_nodes: of the first.
        stopped_by: what ended the search, where it did not end by itself.
    """

    status: Status
    answer: Answer | None
    objective: float
    vouched: Vouched
    wall_s: float
    n_nodes: int
    stopped_by: Stop

    @property
    def bound(self) -> float:
        """Nothing is better: vouched for; where nobody vouches, the best that one says."""
        if self.status in (Status.UNCONFIRMED, Status.INFEASIBLE):
            return self.vouched.alone
        by_nobody = self.vouched.bound == -math.inf
        return self.vouched.alone if by_nobody else self.vouched.bound

    @property
    def gap(self) -> float:
        return math.inf if self.answer is None else relative_gap(self.objective, self.bound)


def prove(
    provers: Sequence[Prover[Answer]],
    effort: Effort,
    *,
    wanted: Wanted = "two",
    own: Sequence[Proof] = (),
) -> Proved[Answer]:
    """Ask one prover after the other, until enough vouch for the best answer.

    A prover that fails, or whose word is refuted by an answer in hand, is refused and said to be;
    the next one is asked. So a solver that errs costs time, and never a proof.

    Args:
        provers: in the order in which they are asked; each may raise `SolverError`.
        effort: time limit, gap, threads, seed; the limit is of all provers together.
        wanted: `two` provers, or `one`.
        own: bounds that the project's own arithmetic has proved already.

    Raises:
        SolverError: no prover has an answer, and each one's word was refused.
    """
    began_s = time.perf_counter()
    words: list[Word[Answer]] = []
    for index, prover in enumerate(provers):
        is_last = index == len(provers) - 1 or wanted == "one"
        left = _share(effort, began_s, is_last=is_last)
        if words and left.time_limit_s is not None and left.time_limit_s <= 0.0:
            break
        words.append(prover(left))
        if words[-1].stopped_by == "interrupt" or _is_enough(words, own, effort.gap, wanted):
            break
    return _settled(words, own, effort.gap, wanted, time.perf_counter() - began_s)


def _share(effort: Effort, began_s: float, *, is_last: bool) -> Effort:
    """The effort of one prover: what is left of the time, or most of it."""
    if effort.time_limit_s is None:
        return effort
    left_s = effort.time_limit_s - (time.perf_counter() - began_s)
    return replace(effort, time_limit_s=left_s if is_last else left_s * FIRST_SHARE)


def _best(words: Sequence[Word[Answer]]) -> Word[Answer] | None:
    """The word with the best answer; of equals the first."""
    having = [word for word in words if word.answer is not None]
    return min(having, key=lambda word: word.proof.value, default=None)


def _weighed(words: Sequence[Word[Answer]], own: Sequence[Proof]) -> tuple[Vouched, float]:
    best = _best(words)
    value = math.inf if best is None else best.proof.value
    return vouched([*(word.proof for word in words), *own], value), value


def _is_enough(
    words: Sequence[Word[Answer]], own: Sequence[Proof], gap: float, wanted: Wanted
) -> bool:
    """Whether another prover could add nothing that is wanted."""
    weighed, value = _weighed(words, own)
    if is_closed(value, weighed.bound, gap):
        return True
    last_is_accepted = weighed.proofs[len(words) - 1].is_accepted
    return wanted == "one" and last_is_accepted


def _settled(
    words: Sequence[Word[Answer]],
    own: Sequence[Proof],
    gap: float,
    wanted: Wanted,
    wall_s: float,
) -> Proved[Answer]:
    """What all words come to.

    Raises:
        SolverError: there is no answer, and no word that stands.
    """
    weighed, value = _weighed(words, own)
    best = _best(words)
    if best is None and not any(proof.is_accepted for proof in weighed.proofs):
        said = "; ".join(f"{proof.prover}: {proof.note}" for proof in weighed.proofs)
        raise SolverError(f"no solver has an answer: {said}")
    if best is None:
        enough = weighed.bound if wanted == "two" else weighed.alone
        status = Status.INFEASIBLE if enough == math.inf else Status.UNKNOWN
    elif is_closed(value, weighed.bound, gap):
        status = Status.OPTIMAL
    elif is_closed(value, weighed.alone, gap):
        status = Status.UNCONFIRMED
    else:
        status = Status.FEASIBLE
    stops = [word.stopped_by for word in words if word.stopped_by]
    ended = status in (Status.OPTIMAL, Status.INFEASIBLE)
    return Proved(
        status=status,
        answer=None if best is None else best.answer,
        objective=value,
        vouched=weighed,
        wall_s=wall_s,
        n_nodes=words[0].n_nodes if words else 0,
        stopped_by="" if ended or not stops else stops[-1],
    )
