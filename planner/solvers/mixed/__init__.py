"""Mixed programs solved, and proved by two: HiGHS and CP-SAT here, SCIP in a process of its own.

Multipliers of the linear relaxation, recounted, may be a third: they bound and never answer.

To add a solver: one file with `solve(program, effort)`, one line in `MIXED_SOLVERS`. To have a
program solved by all of them: its `Formulation`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Generic

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedProgram, mixed_objective, mixed_violations
from planner.programs.proofs import refusal
from planner.solvers.proving import Proved, Prover, prove
from planner.solvers.solution import Answer, Clock, Effort, Stop, Word
from planner.specs.ask.targets import Provers
from planner.specs.records.certificates import Outcome, Proof

MIXED_SOLVERS = {
    "highs": "planner.solvers.mixed.highs",
    "scip": "planner.solvers.mixed.scip",
    "cpsat": "planner.solvers.mixed.cpsat",  # whole numbers, and what the objective settles
    "multipliers": "planner.solvers.mixed.multipliers",
}

MixedBackend = Callable[[MixedProgram, Effort], Word[FloatArray]]


def solve_mixed(
    program: MixedProgram,
    effort: Effort,
    *,
    solvers: Sequence[str] = ("highs", "scip"),
    wanted: Provers = "two",
) -> Proved[FloatArray]:
    """Solve a mixed program, and have the answer proved as far as is wanted.

    Args:
        effort: time limit, gap, threads, seed; the limit is of all solvers together.
        solvers: in the order in which they are asked, names in `MIXED_SOLVERS`.
        wanted: `two` provers, or `one`.

    Raises:
        SolverError: every solver failed.
        KeyboardInterrupt: interrupted while SCIP worked.
    """
    provers = [_prover(program, name) for name in solvers]
    return prove(provers, effort, wanted=wanted, rows=lambda: program)


def solver_of(name: str) -> MixedBackend:
    """A solver of `MIXED_SOLVERS`, imported now."""
    backend: MixedBackend = import_module(MIXED_SOLVERS[name]).solve
    return backend


def _prover(program: MixedProgram, name: str) -> Prover[FloatArray]:
    return lambda effort: solver_of(name)(program, effort)


LET_PASS = 1e-6
"""Excess of a row that an answer may have, as a share of its largest term: what is read off it is
whole numbers, and is judged by the program that was posed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawAnswer:
    """What a solver says in its own words, nothing of it judged.

    Args:
        values: of the columns (N,), or None.
        bound: its own; inf where it calls the program infeasible, −inf where it knows none.
    """

    outcome: Outcome
    values: FloatArray | None
    bound: float
    n_nodes: int = 0
    stopped_by: Stop = ""


def checked(
    program: MixedProgram, raw: RawAnswer, *, prover: str, wall_s: float
) -> Word[FloatArray]:
    """A raw answer, refused where it is none: rows broken, or called optimal without values.

    Its values (N,) are whole where columns are, and within their bounds.
    """
    values, value, note = None, math.inf, ""
    if raw.values is not None:
        values = np.where(program.is_whole, np.rint(raw.values), raw.values)
        values = np.clip(values, program.lower, program.upper)
        broken = mixed_violations(program, values, tolerance=LET_PASS)
        if broken:
            row, excess = max(broken.items(), key=lambda item: item[1])
            note = f"its answer breaks `{row}` by {excess:.3g}"
        else:
            value = mixed_objective(program, values)
    elif raw.outcome == "optimal":
        note = "it calls optimal what it does not have"
    if math.isnan(raw.bound):
        note = "its bound is no number"
    if note:
        return Word(answer=None, proof=refusal(prover, note, wall_s), n_nodes=raw.n_nodes)
    proof = Proof(
        prover=prover,
        outcome=raw.outcome,
        value=value,
        bound=raw.bound,
        wall_s=wall_s,
        note="out of time" if raw.stopped_by == "time limit" else raw.stopped_by,
    )
    return Word(answer=values, proof=proof, n_nodes=raw.n_nodes, stopped_by=raw.stopped_by)


MOST_REPAIRS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Formulation(Generic[Answer]):
    """A program as rows, and what values of their columns mean: whatever solves rows solves it.

    Args:
        rows: states the program, when somebody asks.
        answer: what values (N,) of the columns choose.
        violations: rows of the program that an answer breaks, by how much.
        value: what an answer comes to, in the program's unit.
        repaired: rows that let a choice that was broken by so much not pass again; None where
            there are none, and then the answer is refused.
        same_bound: share of a value by which the bound of a solver that calls it optimal may
            differ from it: rounding of the solver's own sums.
    """

    rows: Callable[[], MixedProgram]
    answer: Callable[[FloatArray], Answer]
    violations: Callable[[Answer], Mapping[str, float]]
    value: Callable[[Answer], float]
    repaired: Callable[[MixedProgram, Answer, Mapping[str, float]], MixedProgram | None] = (
        lambda rows, answer, broken: None
    )
    same_bound: float = 0.0

    def word(self, name: str, effort: Effort) -> Word[Answer]:
        """What a solver, a name in `MIXED_SOLVERS`, says; asked again of rows that were repaired.

        Its tolerance is absolute, and a row's side may be far below 1.
        """
        solve = solver_of(name)  # its import is nothing that the proof takes
        clock, rows = Clock(), self.rows()
        for _ in range(MOST_REPAIRS):
            word = solve(rows, effort.less(clock.elapsed_s()))
            answer = None if word.answer is None else self.answer(word.answer)
            broken = {} if answer is None else self.violations(answer)
            finer = self.repaired(rows, answer, broken) if answer is not None and broken else None
            if finer is None:
                break
            rows = finer
        return self.judged(word, answer, wall_s=clock.elapsed_s())

    def judged(self, word: Word[Any], answer: Answer | None, *, wall_s: float) -> Word[Answer]:
        """A word of the rows, or of whatever else a prover read, as one of the program.

        Args:
            answer: what its answer means; None without one. It counts only if it breaks nothing.
            wall_s: that stating and solving took.
        """
        proof = replace(word.proof, wall_s=wall_s)
        if answer is None:
            return replace(word, answer=None, proof=replace(proof, value=math.inf))
        broken = self.violations(answer)
        if broken:
            row, excess = max(broken.items(), key=lambda item: item[1])
            proof = refusal(proof.prover, f"its answer breaks `{row}` by {excess:.3g}", wall_s)
            return replace(word, answer=None, proof=proof)
        value = self.value(answer)
        is_same = abs(value - proof.bound) <= self.same_bound * max(1.0, abs(value))
        bound = value if is_same and proof.outcome == "optimal" else proof.bound
        return replace(word, answer=answer, proof=replace(proof, value=value, bound=bound))
