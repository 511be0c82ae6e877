"""Placement programs solved: the same backends, for counts of copies instead of one-of-many.

The objective first, then each of the program's ties among its optima, so that the answer of
one backend is always the same one. That nothing can be placed is asked of a second backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from planner.errors import SolverError
from planner.programs.placement import PlacementProgram, keeping
from planner.solvers.placement.answers import PlacementSolution
from planner.solvers.solution import Effort, Status

PLACEMENT_SOLVERS = {
    "highs": "planner.solvers.placement.highs",
    "cpsat": "planner.solvers.placement.cpsat",
    "narrowing": "planner.solvers.placement.narrowing",
    "exhaustive": "planner.solvers.placement.exhaustive",
}
_SECOND = {"highs": "cpsat", "cpsat": "highs", "narrowing": "highs"}
LEAST_TIME_S = 0.01
MOST_TIED = 100

Backend = Callable[[PlacementProgram, Effort], PlacementSolution]

__all__ = ["PLACEMENT_SOLVERS", "PlacementSolution", "solve_placement"]


def solve_placement(
    program: PlacementProgram, *, solver: str = "highs", effort: Effort | None = None
) -> PlacementSolution:
    """Place copies at the least objective, with proof; among optima, at the least ties.

    The certificate is of the objective. Where time runs out while a tie is broken, the choice
    that was in hand stays; and of a program of more than `MOST_TIED` columns ties are not
    broken, which may take longer than the proof: there the solver's own choice stays.

    Args:
        program: what to place, and on what.
        solver: a name in `PLACEMENT_SOLVERS`.
        effort: time limit, gap, threads, seed; of all solves together.

    Raises:
        SolverError: no such solver; or the solver failed, its answer fails verification, or
            a second one disagrees.
    """
    if solver not in PLACEMENT_SOLVERS:
        raise SolverError(f"no solver `{solver}`: there are {', '.join(PLACEMENT_SOLVERS)}")
    effort = effort or Effort()
    began_s = time.perf_counter()
    solution = _run(solver, program, effort)
    if solution.status is Status.INFEASIBLE:
        return _confirmed(program, solution, solver, effort)
    is_tied = bool(program.ties) and program.n_columns <= MOST_TIED
    if is_tied and solution.counts is not None and solution.status is Status.OPTIMAL:
        left = replace(effort, on_progress=None, gap=0.0)
        solution = _settled(program, solution, (solver, left, began_s))
    return replace(solution, wall_s=time.perf_counter() - began_s)


def _run(solver: str, program: PlacementProgram, effort: Effort) -> PlacementSolution:
    backend: Backend = import_module(PLACEMENT_SOLVERS[solver]).solve
    return backend(program, effort)


def _time_left(effort: Effort, began_s: float) -> Effort:
    if effort.time_limit_s is None:
        return effort
    left_s = effort.time_limit_s - (time.perf_counter() - began_s)
    return replace(effort, time_limit_s=max(left_s, LEAST_TIME_S))


def _settled(
    program: PlacementProgram, solution: PlacementSolution, how: tuple[str, Effort, float]
) -> PlacementSolution:
    """The same proof, for the first of the choices that are as good."""
    solver, effort, began_s = how
    best, counts = program, solution.counts
    assert counts is not None
    while best.ties:
        best = keeping(best, counts)
        found = _run(solver, best, _time_left(effort, began_s))
        if found.counts is None or found.status is not Status.OPTIMAL:
            break
        counts = found.counts
    return replace(solution, counts=counts)


def _confirmed(
    program: PlacementProgram, solution: PlacementSolution, solver: str, effort: Effort
) -> PlacementSolution:
    """That nothing can be placed, said by a second solver too.

    Raises:
        SolverError: the second one has a placement.
    """
    second = _SECOND.get(solver)
    if second is None:
        return solution
    other = _run(second, program, replace(effort, on_progress=None))
    if other.counts is not None:
        raise SolverError(f"{solution.solver} calls infeasible what {other.solver} places")
    if other.status is not Status.INFEASIBLE:  # no second word within the time
        return solution
    return replace(solution, confirmed_by=f"{other.solver} {other.version}")
