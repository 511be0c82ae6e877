"""From a posed program to a verified optimum, and to the plans that come after it.

The order is lexicographic: first the objective, then, among its optima, the cost per token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import SolverError
from planner.programs.deployment import PosedProgram
from planner.programs.layout import (
    RELATIVE_TOLERANCE,
    Assignment,
    LayoutProgram,
    Limit,
    lower_bounds,
    objective,
    restrict,
    violations,
)
from planner.programs.screens import Screening, screen
from planner.solvers import solve
from planner.solvers.solution import Progress, Solution, Status, relative_gap
from planner.specs.request import SolverOptions

N_ALTERNATIVES = 3
PRIMARY = "primary"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """What a search found, in the columns of the unscreened program.

    Args:
        solution: of the screened program; its objective is the primary one.
        assignment: the choice, in the unscreened program; `None` without one.
        alternatives: the next best, each with its primary objective.
        screened: what the screens left and rejected.
    """

    solution: Solution
    assignment: Assignment | None
    alternatives: tuple[tuple[Assignment, float], ...]
    screened: Screening


def search(
    posed: PosedProgram,
    options: SolverOptions,
    *,
    n_alternatives: int = N_ALTERNATIVES,
    on_progress: Callable[[Progress], None] | None = None,
) -> Found:
    """Screen, solve, break ties by cost, and solve again for the runners-up.

    Raises:
        SolverError: an answer fails `violations` on the unscreened program.
    """
    screened = screen(posed.program, n_best=1 + n_alternatives)
    solution = _solve(screened.program, options, on_progress)
    if solution.assignment is None:
        return _early(posed.program, screened, solution)
    best = screened.original(solution.assignment)
    _verify(posed.program, best)
    if solution.status is not Status.OPTIMAL:  # out of time: what is in hand goes out at once
        return Found(solution=solution, assignment=best, alternatives=(), screened=screened)
    alternatives = _alternatives(
        posed.program, screened, solution.assignment, options, n_alternatives
    )
    if posed.tie_breaker is not None:
        best = break_ties(posed, best, options)
    return Found(solution=solution, assignment=best, alternatives=alternatives, screened=screened)


def _early(program: LayoutProgram, screened: Screening, solution: Solution) -> Found:
    """Without an assignment: infeasible, or out of time with what the screens met on the way."""
    met = screened.incumbent
    if solution.status is not Status.UNKNOWN or met is None:
        return Found(solution=solution, assignment=None, alternatives=(), screened=screened)
    _verify(program, met)
    value = objective(program, met)
    least = float(lower_bounds(program).min())
    bound = min(value, max(solution.bound, least))
    known = replace(
        solution,
        status=Status.FEASIBLE,
        objective=value,
        bound=bound,
        gap=relative_gap(value, bound),
    )
    return Found(solution=known, assignment=met, alternatives=(), screened=screened)


def optimum(program: LayoutProgram, options: SolverOptions) -> float | None:
    """The least objective, or `None` when nothing satisfies the program.

    Raises:
        SolverError: the time limit came first.
    """
    solution = _solve(screen(program, n_best=1).program, options, None)
    if solution.status is Status.UNKNOWN:
        raise SolverError("the time limit ended before feasibility was known")
    return None if solution.assignment is None else solution.objective


def is_feasible(program: LayoutProgram, options: SolverOptions) -> bool:
    """Whether anything satisfies the program."""
    return optimum(program, options) is not None


def _solve(
    program: LayoutProgram,
    options: SolverOptions,
    on_progress: Callable[[Progress], None] | None,
) -> Solution:
    return solve(
        program,
        solver=options.solver,
        time_limit_s=options.time_limit_s,
        gap=options.gap,
        threads=options.threads,
        seed=options.seed,
        on_progress=on_progress,
    )


def _verify(program: LayoutProgram, assignment: Assignment) -> None:
    broken = violations(program, assignment)
    if broken:
        raise SolverError(f"the plan breaks what the screens should have kept: {broken}")


def break_ties(posed: PosedProgram, best: Assignment, options: SolverOptions) -> Assignment:
    """Among plans with the optimal objective, the cheapest; the optimum becomes a limit."""
    program = posed.program
    assert posed.tie_breaker is not None
    primary = Limit(
        name=PRIMARY,
        context=program.context_objective,
        column=program.column_objective,
        at_most=objective(program, best) * (1 + RELATIVE_TOLERANCE),
    )
    context, column = posed.quantities[posed.tie_breaker]
    second = replace(
        program,
        context_objective=context,
        column_objective=column,
        limits=(*program.limits, primary),
    )
    screened = screen(second, n_best=1)
    solution = _solve(screened.program, options, None)
    if solution.assignment is None:
        return best
    cheapest = screened.original(solution.assignment)
    _verify(second, cheapest)
    return cheapest


def _alternatives(
    program: LayoutProgram,
    screened: Screening,
    best: Assignment,
    options: SolverOptions,
    n_alternatives: int,
) -> tuple[tuple[Assignment, float], ...]:
    """The best plans in other contexts, one after the other, each context once."""
    left = np.arange(screened.program.n_contexts)
    used, found = best.context, []
    for _ in range(n_alternatives):
        left = left[left != used]
        columns = np.flatnonzero(np.isin(screened.program.column_context, left))
        if not len(left) or not len(columns):
            break
        rest = restrict(screened.program, contexts=left, columns=columns)
        solution = _solve(rest, options, None)
        if solution.assignment is None:
            break
        used = int(left[solution.assignment.context])
        chosen = Assignment(
            context=used, columns=tuple(int(columns[j]) for j in solution.assignment.columns)
        )
        assignment = screened.original(chosen)
        _verify(program, assignment)
        found.append((assignment, solution.objective))
    return tuple(found)
