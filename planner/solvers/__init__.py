"""Arrays in, `Solution` out: one file a backend, imported when it is asked for.

To add a backend: one file with `solve(program, effort)`, one line in `SOLVERS`. `placement` does
the same for programs of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from planner.errors import SolverError
from planner.programs.layout import LayoutProgram
from planner.solvers.solution import Effort, Progress, Solution

SOLVERS = {
    "highs": "planner.solvers.highs",  # mixed-integer program: Pyomo, HiGHS
    "cpsat": "planner.solvers.cpsat",  # constraint program: OR-Tools CP-SAT
    "exhaustive": "planner.solvers.exhaustive",  # every assignment of a small program
}


def solve(
    program: LayoutProgram,
    *,
    solver: str = "highs",
    time_limit_s: float | None = None,
    gap: float = 0.0,
    threads: int = 1,
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Choose a context and its columns at the least objective, with proof.

    The same program, solver, threads and seed give the same solution. Among assignments
    within 1e-9 of the optimum the one with the smallest context, then the smallest columns,
    is returned, whatever the solver (see `answers.settle` for where that search ends).

    Args:
        program: what to choose from.
        solver: a name in `SOLVERS`.
        time_limit_s, gap, threads, seed, on_progress: see `solution.Effort`.

    Raises:
        SolverError: no such solver; or the solver failed, or its answer fails verification.
    """
    if solver not in SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(SOLVERS)}")
    effort = Effort(
        time_limit_s=time_limit_s, gap=gap, threads=threads, seed=seed, on_progress=on_progress
    )
    backend: Callable[[LayoutProgram, Effort], Solution] = import_module(SOLVERS[solver]).solve
    return backend(program, effort)
