"""Arrays in, what is proved out: a layout program by solvers of its rows, or by enumeration.

`mixed` solves rows of any kind; `placement`, `stages`, `experts` and `machines` state theirs.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.programs.layout import (
    Assignment,
    LayoutProgram,
    layout_rows,
    lower_bounds,
    objective,
    violations,
)
from planner.programs.mixed import MixedProgram, with_row
from planner.programs.proofs import claim
from planner.solvers.mixed import Formulation
from planner.solvers.proving import Proved, Prover, prove
from planner.solvers.solution import Effort, Word
from planner.specs.ask.targets import SOLVERS, Provers

_THEN = {"highs": ("cpsat", "scip"), "cpsat": ("highs", "scip"), "exhaustive": ()}
"""Whom to ask where enumeration cannot: those of another lineage, the quicker one first."""

LET_PASS = 1e-8
"""Excess of a row that a solver's absolute tolerance may let pass; for a right side far below 1
that is coarser than the 1e-9 of `violations`."""

LayoutSolution = Proved[Assignment]


def solve(
    program: LayoutProgram,
    *,
    solver: str = "highs",
    effort: Effort | None = None,
    proof: Provers = "two",
) -> LayoutSolution:
    """Choose a context and its columns at the least objective, with proof.

    Every assignment is looked at, where there are not too many, beside what the solver says; where
    there are, solvers of another lineage are asked. The same program, solver, threads and seed give
    the same solution. Among assignments within 1e-9 of the optimum the one with the smallest
    context, then the smallest columns, is returned, whatever the solver (see `answers.settle` for
    where that search ends).

    Args:
        program: what to choose from.
        solver: a name in `SOLVERS`.
        effort: time limit, gap, threads, seed; of all solvers together.
        proof: how many have to vouch: `two`, or `one`.

    Raises:
        SolverError: no such solver; or no solver has an answer.
    """
    effort, provers = effort or Effort(), provers_of(program, solver)
    known = [counted(program)]
    if proof == "two" and provers and solver != "exhaustive":
        known += enumerated(program)
    return prove(provers, effort, wanted=proof, known=known, rows=formulation(program).rows)


def enumerated(program: LayoutProgram, most: int | None = None) -> list[Word[Assignment]]:
    """What looking at every assignment says, where there are not too many of them.

    Args:
        most: assignments to look at; those of `exhaustive` if None.
    """
    from planner.solvers import exhaustive

    if not exhaustive.is_small(program, exhaustive.MOST_ASSIGNMENTS if most is None else most):
        return []
    return [_prover(program, "exhaustive")(Effort())]


def counted(program: LayoutProgram) -> Word[Assignment]:
    """What adding up the least of each slot says: a bound, or that nothing can be chosen."""
    least = float(lower_bounds(program).min(initial=math.inf))
    return Word(answer=None, proof=claim("least of each slot", least))


def formulation(program: LayoutProgram) -> Formulation[Assignment]:
    """The program as rows; a choice that a tolerance lets pass is cut off."""
    return Formulation(
        rows=partial(layout_rows, program),
        answer=partial(_chosen, program),
        violations=partial(violations, program),
        value=partial(objective, program),
        repaired=partial(_without, program),
    )


def _chosen(program: LayoutProgram, values: FloatArray) -> Assignment:
    """The assignment that the values of z and x are."""
    z, x = values[: program.n_contexts], values[program.n_contexts :]
    columns = np.flatnonzero(x > 0.5)
    columns = columns[np.argsort(program.column_slot[columns], kind="stable")]
    return Assignment(context=int(np.argmax(z)), columns=tuple(columns.tolist()))


def _without(
    program: LayoutProgram, rows: MixedProgram, chosen: Assignment, broken: Mapping[str, float]
) -> MixedProgram | None:
    """The rows with one choice cut off: not all of its columns together."""
    if max(broken.values()) > LET_PASS:
        return None
    columns = program.n_contexts + np.array(chosen.columns, dtype=np.int64)
    ones = np.ones(len(columns))
    return with_row(rows, columns, ones, len(columns) - 1.0, f"not_again[{rows.n_rows}]")


def provers_of(program: LayoutProgram, solver: str) -> list[Prover[Assignment]]:
    """Whom to ask of a program, in order: the solver, then those of other lineages.

    Raises:
        SolverError: no such solver.
    """
    if solver not in SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(SOLVERS)}")
    if counted(program).proof.bound == math.inf:
        return []
    return [_prover(program, name) for name in (solver, *_THEN[solver])]


def _prover(program: LayoutProgram, name: str) -> Prover[Assignment]:
    def ask(effort: Effort) -> Word[Assignment]:
        from planner.solvers import exhaustive
        from planner.solvers.answers import settle

        if name == "exhaustive":
            word = exhaustive.solve(program, effort)
            word = formulation(program).judged(word, word.answer, wall_s=word.proof.wall_s)
        else:
            word = formulation(program).word(name, effort)
        if word.answer is None or word.proof.outcome != "optimal":
            return word
        answer = settle(program, word.answer)
        proof = replace(word.proof, value=objective(program, answer))
        return replace(word, answer=answer, proof=proof)

    return ask


__all__ = ["SOLVERS", "LayoutSolution", "counted", "enumerated", "formulation", "solve"]
