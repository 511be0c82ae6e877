"""Cut a chain into stages: at the least sum directly, at the least maximum by bisection.

A program that minimises the slowest stage is the wrong one to hand to a mixed-integer solver:
its relaxation spreads every layer over all groups. Whether there is a cut within a given time is
a flow problem, and the times that can be the answer are finitely many: so they are bisected. One
solver bisects; that nothing is within the last time is what has to be vouched for.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import OutOfTimeError, SolverError
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import claim, enumeration, refusal, vouched
from planner.solvers.proving import Proved, Prover, prove
from planner.solvers.recording import solving_for
from planner.solvers.solution import Effort, Status, Word
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Proof
from planner_workshop.staging.cuts.program import (
    RELATIVE_TOLERANCE,
    Columns,
    Cut,
    Objective,
    StageProgram,
    bottleneck_ms,
    bottleneck_values,
    columns,
    latency_ms,
    violations,
)

STAGE_SOLVERS = ("highs", "cpsat", "exhaustive")
_THEN = {
    "highs": ("multipliers", "cpsat", "scip"),
    "cpsat": ("multipliers", "highs", "scip"),
    "scip": ("multipliers", "highs", "cpsat"),
    "exhaustive": (),
}
"""Whom to ask next: arithmetic first, then those of another lineage, the quicker one first."""


class CutSearch:
    """Solves of one program that share one time limit, and what comes of them.

    Args:
        found: a verified cut and its bound [ms], or the proof or the reason that there is none.
        n_solves: programs solved; `n_columns` of the largest.
    """

    found: Proved[Cut]

    def __init__(self, program: StageProgram, solver: str, effort: Effort, wanted: Provers) -> None:
        self.program, self.solver, self.effort, self.wanted = program, solver, effort, wanted
        self.began_s = time.perf_counter()
        self.n_solves = self.n_columns = 0
        self.refused: list[Proof] = []

    @solving_for("latency")
    def latency(self) -> Proved[Cut]:
        return self._proved()

    @solving_for("bottleneck")
    def bottleneck(self) -> Proved[Cut]:
        """Bisect the times that can be a bottleneck; then the least latency within it."""
        anything = self._proved(finding=True)
        if anything.answer is None:
            return anything
        values = bottleneck_values(self.program)
        best, is_stopped = anything.answer, False
        while True:
            best, low, last, is_stopped = self._bisected(values, best)
            if low < 0:
                proofs: tuple[Proof, ...] = (self._nothing_is_faster(float(values[0])),)
                break
            weighed = self._proved(at_most_ms=float(values[low]), known=last)
            if weighed.answer is None:
                proofs = self._as_bounds(weighed.vouched.proofs, values, low)
                break
            # a cut is where the solver found none: its word is worth nothing, another one bisects
            self.refused += [one for one in weighed.vouched.proofs if not one.is_accepted]
            self.solver, best = _THEN[self.solver][1], weighed.answer
        if not is_stopped:
            within = float(values[self._place(values, best)])
            polished = self._word(self.solver, self._left(), at_most_ms=within)
            best = self._quicker(best, polished.answer, within)
        return self._settled(best, (*self.refused, *proofs), is_stopped=is_stopped)

    @solving_for("whether a cut is that fast")
    def _bisected(
        self, values: FloatArray, best: Cut
    ) -> tuple[Cut, int, tuple[Word[Cut], ...], bool]:
        """The best cut; the last time within which the solver finds none, and its word of that."""
        low, high = -1, self._place(values, best)  # none within values[low], one within [high]
        last: tuple[Word[Cut], ...] = ()
        while high - low > 1:
            middle = (low + high) // 2
            word = self._word(self.solver, self._left(), at_most_ms=float(values[middle]))
            if word.answer is not None:
                best, high = word.answer, min(middle, self._place(values, word.answer))
            elif word.proof.outcome == "infeasible":
                low, last = middle, (word,)
            else:
                return best, low, last, True
        return best, low, last, False

    def _settled(self, best: Cut, proofs: tuple[Proof, ...], *, is_stopped: bool) -> Proved[Cut]:
        value = bottleneck_ms(self.program, best)
        weighed = vouched(proofs, value)
        near = value * (1.0 - RELATIVE_TOLERANCE * 10)
        status = Status.FEASIBLE
        if not is_stopped and weighed.alone >= near:
            status = Status.OPTIMAL if weighed.bound >= near else Status.UNCONFIRMED
        return Proved(
            status=status,
            answer=best,
            objective=value,
            vouched=weighed,
            n_nodes=0,
            stopped_by="time limit" if is_stopped else "",
        )

    def _as_bounds(
        self, proofs: tuple[Proof, ...], values: FloatArray, low: int
    ) -> tuple[Proof, ...]:
        """Words that no cut is within a time, as bounds: the next time that a stage can take."""
        program = f"no cut within {values[low]:.6g} ms, the next lower time that a stage can take"
        return tuple(
            replace(
                proof,
                outcome="optimal" if proof.outcome == "infeasible" else proof.outcome,
                bound=float(values[low + 1]) if proof.bound == math.inf else -math.inf,
                program=program,
            )
            for proof in proofs
        )

    def _nothing_is_faster(self, least_ms: float) -> Proof:
        return Proof(
            prover="least of all stages",
            outcome="optimal",
            value=least_ms,
            bound=least_ms,
            wall_s=0.0,
            program="no stage is faster",
        )

    def _place(self, values: FloatArray, cut: Cut) -> int:
        """Index of the least value that the cut is within."""
        slowest = bottleneck_ms(self.program, cut) * (1.0 - RELATIVE_TOLERANCE)
        return min(int(np.searchsorted(values, slowest)), len(values) - 1)

    def _quicker(self, best: Cut, other: Cut | None, within_ms: float) -> Cut:
        """The cut of less latency, both within the bottleneck."""
        if other is None or violations(self.program, other, at_most_ms=within_ms):
            return best
        is_quicker = latency_ms(self.program, other) < latency_ms(self.program, best)
        return other if is_quicker else best

    def _left(self) -> Effort:
        limit_s = self.effort.time_limit_s
        if limit_s is None:
            return self.effort
        left_s = max(0.0, limit_s - (time.perf_counter() - self.began_s))
        return replace(self.effort, time_limit_s=left_s)

    def _proved(
        self,
        *,
        at_most_ms: float = math.inf,
        known: tuple[Word[Cut], ...] = (),
        finding: bool = False,
    ) -> Proved[Cut]:
        """What all provers say of the least sum within a time.

        Args:
            known: the first one's word, if it was asked already.
            finding: whether any cut will do, and only its absence has to be vouched for.
        """
        names = (self.solver, *_THEN[self.solver])[bool(known) :]
        provers: list[Prover[Cut]] = [
            partial(self._word, name, at_most_ms=at_most_ms) for name in names
        ]
        if finding:
            first = provers.pop(0)(self._left())
            if first.answer is not None:
                return prove((), self.effort, known=(first,))
            known = (first,)
        rows = partial(_rows, self.program, at_most_ms)
        return prove(provers, self._left(), wanted=self.wanted, known=known, rows=rows)

    def _word(self, name: str, effort: Effort, *, at_most_ms: float = math.inf) -> Word[Cut]:
        """What one prover says, its cut verified."""
        posed = columns(self.program, at_most_ms=at_most_ms)
        self.n_solves += 1
        self.n_columns = max(self.n_columns, len(posed))
        if not len(posed):
            return Word(answer=None, proof=enumeration(0, math.inf))
        try:
            word = _backend(name)(self.program, posed, effort)
        except OutOfTimeError:
            return _unasked(name)
        if word.stopped_by == "interrupt":
            raise KeyboardInterrupt
        if word.answer is None:
            return word
        broken = violations(self.program, word.answer, at_most_ms=at_most_ms)
        if broken:
            note = f"its cut breaks {', '.join(broken)}"
            proof = refusal(word.proof.prover, note, word.proof.wall_s)
            return replace(word, answer=None, proof=proof)
        value = latency_ms(self.program, word.answer)
        return replace(word, proof=replace(word.proof, value=value))


def cut(
    program: StageProgram,
    objective: Objective,
    *,
    solver: str = "highs",
    effort: Effort | None = None,
    proof: Provers = "two",
) -> CutSearch:
    """Cut the chain at the least latency, or the least bottleneck, with proof.

    Of cuts with the least bottleneck one of the least latency is returned.

    Args:
        proof: how many have to vouch: `two`, or `one`.

    Raises:
        SolverError: no such solver; or no solver has an answer.
    """
    if solver not in STAGE_SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(STAGE_SOLVERS)}")
    search = CutSearch(program, solver, effort or Effort(), proof)
    search.found = search.latency() if objective == "latency" else search.bottleneck()
    return search


def _unasked(name: str) -> Word[Cut]:
    """Nothing, of a prover whose rows there was no time to write."""
    proof = claim(name, note="out of time")
    return Word(answer=None, proof=proof, stopped_by="time limit")


def _rows(program: StageProgram, at_most_ms: float) -> MixedProgram:
    from planner_workshop.staging.cuts.flow import flow

    return flow(program, columns(program, at_most_ms=at_most_ms))


def _backend(name: str) -> Callable[[StageProgram, Columns, Effort], Word[Cut]]:
    from planner_workshop.staging.cuts.flow import every_cut, word_of

    return every_cut if name == "exhaustive" else partial(word_of, name)
