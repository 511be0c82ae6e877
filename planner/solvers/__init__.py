"""Arrays in, what is proved out: one file a backend, imported when it is asked for.

To add a backend: one file with `solve(program, effort)`, one line in `SOLVERS`. `placement` does
the same for programs of counts, `stages` for cuts, `mixed` for rows of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from planner.errors import SolverError
from planner.programs.layout import Assignment, LayoutProgram, lower_bounds, objective
from planner.programs.mixed import MixedProgram
from planner.programs.proofs import claim
from planner.solvers.kept import Rows
from planner.solvers.proving import Proved, Prover, prove
from planner.solvers.solution import Effort, Progress, Word
from planner.specs.ask.targets import Wanted

SOLVERS = {
    "highs": "planner.solvers.highs",  # mixed-integer program: HiGHS
    "cpsat": "planner.solvers.cpsat",  # constraint program: OR-Tools CP-SAT
    "exhaustive": "planner.solvers.exhaustive",  # every assignment of a small program
}
_THEN = {"highs": ("cpsat", "scip"), "cpsat": ("highs", "scip"), "exhaustive": ()}
"""Whom to ask where enumeration cannot: those of another lineage, the quicker one first."""

LayoutSolution = Proved[Assignment]


def solve(
    program: LayoutProgram,
    *,
    solver: str = "highs",
    time_limit_s: float | None = None,
    gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
    proof: Wanted = "two",
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
        time_limit_s, gap, threads, seed, on_progress: see `solution.Effort`.
        proof: how many have to vouch: `two`, or `one`.

    Raises:
        SolverError: no such solver; or no solver has an answer.
    """
    effort = Effort(
        time_limit_s=time_limit_s, gap=gap, threads=threads, seed=seed, on_progress=on_progress
    )
    provers = provers_of(program, solver)
    known = [counted(program)]
    if proof == "two" and provers and solver != "exhaustive":
        known += enumerated(program)
    return prove(provers, effort, wanted=proof, known=known, rows=rows_of(program))


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


def rows_of(program: LayoutProgram) -> Rows:
    """What makes the rows of a program, when somebody asks."""

    def rows() -> MixedProgram:
        from planner.solvers.highs import build

        return build(program)

    return rows


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
        from planner.solvers.answers import settle

        module = import_module(SOLVERS["highs" if name == "scip" else name])
        backend: Callable[[LayoutProgram, Effort], Word[Assignment]]
        backend = module.solve_by_scip if name == "scip" else module.solve
        word = backend(program, effort)
        if word.answer is None or word.proof.outcome != "optimal":
            return word
        answer = settle(program, word.answer)
        proof = replace(word.proof, value=objective(program, answer))
        return replace(word, answer=answer, proof=proof)

    return ask


__all__ = ["SOLVERS", "LayoutSolution", "counted", "enumerated", "provers_of", "rows_of", "solve"]
