"""One prover after the other, until what they say settles the program, or time is up."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

from planner.errors import SolverError, UnsettledError
from planner.programs.proofs import Vouched, claim, is_closed, vouched
from planner.running.deadlines import is_over, is_set, out_of_time
from planner.solvers.recording import Rows, recorded_program
from planner.solvers.solution import Answer, Effort, Status, Stop, Word, relative_gap
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Proof

FIRST_SHARE = 0.6
"""Of the time that is left, that a prover may take while another one waits."""


def in_hand(answer: Answer, value: float, *, by: str = "quick search") -> Word[Answer]:
    """An answer that was met on the way, of which nothing is claimed."""
    proof = Proof(prover=by, outcome="stopped", value=value, bound=-math.inf, wall_s=0.0)
    return Word(answer=answer, proof=proof)


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
        n_nodes: of the first.
        stopped_by: what ended the search, where it did not end by itself.
    """

    status: Status
    answer: Answer | None
    objective: float
    vouched: Vouched
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

    def unsettled(self, bound: float = 0.0, dimension: str | None = None) -> BaseException:
        """Why it is not known whether there is an answer, or which is the best: what to raise.

        It is time only where there is a limit; Ctrl-C; or that no prover confirms another's word.

        Args:
            bound, dimension: see `OutOfTimeError`.
        """
        if self.stopped_by == "interrupt":
            return KeyboardInterrupt()
        if is_set() and (self.stopped_by == "time limit" or is_over()):
            return out_of_time(bound, dimension)
        words = [
            f"{proof.prover}: {proof.outcome}" + (f", {proof.note}" if proof.note else "")
            for proof in self.vouched.proofs
            if not proof.is_own
        ]
        said = f": {'; '.join(words)}" if words else ""
        return UnsettledError(f"no prover's word is confirmed by another's{said}")


def prove(
    provers: Sequence[Prover[Answer]],
    effort: Effort,
    *,
    wanted: Provers = "two",
    known: Sequence[Word[Answer]] = (),
    rows: Rows | None = None,
) -> Proved[Answer]:
    """Ask one prover after the other, until enough vouch for the best answer.

    A prover that fails, or whose word is refuted by an answer in hand, is refused and said to be;
    the next one is asked. So a solver that errs costs time, and never a proof.

    Args:
        provers: in the order in which they are asked; each may raise `SolverError`.
        effort: time limit, gap, threads, seed; the limit is of all provers together.
        wanted: `two` provers, or `one`.
        known: what is known before any of them is asked: answers in hand, and bounds that the
            project's own arithmetic has proved.
        rows: makes the program's rows, for a bug report.

    Raises:
        SolverError: there is no answer, and each prover's word was refused.
    """
    began_s = time.perf_counter()
    words = list(known)
    with recorded_program(rows) as hear:
        for index, prover in enumerate(provers):
            is_last = index == len(provers) - 1 or wanted == "one"
            left = _share(effort, began_s, is_last=is_last)
            if index and left.time_limit_s is not None and left.time_limit_s <= 0.0:
                break
            try:
                words.append(prover(left))
            except KeyboardInterrupt:
                if not index or _best(words) is None:  # only a second proof has something to lose
                    raise
                words.append(_interrupted())
            if words[-1].stopped_by == "interrupt" or _is_enough(words, effort.gap, wanted):
                break
        hear(*_weighed(words))
    return _settled(words, effort.gap, wanted)


def _interrupted() -> Word[Any]:
    """Nothing, of a prover that Ctrl-C ended: what is in hand goes out."""
    proof = claim("second proof", note="interrupt")
    return Word(answer=None, proof=proof, stopped_by="interrupt")


def _share(effort: Effort, began_s: float, *, is_last: bool) -> Effort:
    """The effort of one prover: what is left of the time, or most of it."""
    if effort.time_limit_s is None:
        return effort
    left_s = effort.time_limit_s - (time.perf_counter() - began_s)
    return replace(effort, time_limit_s=left_s if is_last else left_s * FIRST_SHARE)


def _best(words: Sequence[Word[Answer]]) -> Word[Answer] | None:
    """The word with the best answer; of those that differ by rounding only, the first."""
    having = [word for word in words if word.answer is not None]
    least = min((word.proof.value for word in having), default=math.inf)
    return next((word for word in having if is_closed(word.proof.value, least, 0.0)), None)


def _weighed(words: Sequence[Word[Answer]]) -> tuple[Vouched, float]:
    best = _best(words)
    value = math.inf if best is None else best.proof.value
    proofs = [proof for word in words for proof in (*word.besides, word.proof)]
    return vouched(proofs, value), value


def _is_enough(words: Sequence[Word[Answer]], gap: float, wanted: Provers) -> bool:
    """Whether another prover could add nothing that is wanted."""
    weighed, value = _weighed(words)
    if is_closed(value, weighed.bound, gap):
        return True
    last = weighed.proofs[-1]
    has_ended = words[-1].answer is not None or last.outcome == "infeasible"
    return wanted == "one" and last.is_accepted and has_ended


def _settled(words: Sequence[Word[Answer]], gap: float, wanted: Provers) -> Proved[Answer]:
    """What all words come to.

    Raises:
        SolverError: there is no answer, and no word that stands.
    """
    weighed, value = _weighed(words)
    best = _best(words)
    proofs = [proof for proof in weighed.proofs if not proof.is_own]
    if best is None and proofs and not any(proof.is_accepted for proof in proofs):
        said = "; ".join(f"{proof.prover}: {proof.note}" for proof in proofs)
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
        n_nodes=next((word.n_nodes for word in words if word.n_nodes), 0),
        stopped_by="" if ended or not stops else stops[-1],
    )
