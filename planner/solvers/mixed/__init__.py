"""Mixed programs solved, and proved by two: HiGHS in this process, SCIP in one of its own.

Multipliers of the linear relaxation, recounted, may be a third: they bound and never answer.

To add a solver: one file with `solve(program, effort)`, one line in `MIXED_SOLVERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedProgram
from planner.solvers.proving import Proved, Prover, Word, prove
from planner.solvers.solution import Effort
from planner.specs.targets import Wanted

MIXED_SOLVERS = {
    "highs": "planner.solvers.mixed.highs",
    "scip": "planner.solvers.mixed.scip",
    "cpsat": "planner.solvers.mixed.cpsat",  # rows of whole numbers only
    "multipliers": "planner.solvers.mixed.multipliers",
}

MixedBackend = Callable[[MixedProgram, Effort], Word[FloatArray]]


def solve_mixed(
    program: MixedProgram,
    effort: Effort,
    *,
    solvers: Sequence[str] = ("highs", "scip"),
    wanted: Wanted = "two",
    known: Sequence[Word[FloatArray]] = (),
) -> Proved[FloatArray]:
    """Solve a mixed program, and have the answer proved as far as is wanted.

    Args:
        effort: time limit, gap, threads, seed; the limit is of all solvers together.
        solvers: in the order in which they are asked, names in `MIXED_SOLVERS`.
        wanted: `two` provers, or `one`.
        known: answers in hand, and bounds that the project's own arithmetic has proved, such as
            `programs.mixed.safe_bound` of any multipliers.

    Raises:
        SolverError: every solver failed.
        KeyboardInterrupt: interrupted while SCIP worked.
    """
    provers = [_prover(program, name) for name in solvers]
    return prove(provers, effort, wanted=wanted, known=known, rows=lambda: program)


def solver_of(name: str) -> MixedBackend:
    """A solver of `MIXED_SOLVERS`, imported now."""
    backend: MixedBackend = import_module(MIXED_SOLVERS[name]).solve
    return backend


def _prover(program: MixedProgram, name: str) -> Prover[FloatArray]:
    return lambda effort: solver_of(name)(program, effort)
