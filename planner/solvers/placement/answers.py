"""What a solver of placements answers, and what happens before it may."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.errors import SolverError
from planner.programs.layout import RELATIVE_TOLERANCE
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    is_hopeless,
    most_copies,
    placement_objective,
    violations,
)
from planner.solvers.answers import Clock
from planner.solvers.solution import Status, Stop, relative_gap


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSolution:
    """A verified choice of copies, or the proof or the reason that there is none.

    Args:
        status: how far the solver came.
        counts: the choice, verified by `programs.placement.violations`; None without one.
        objective: recomputed from the arrays; minimised, so a share counts negative.
        bound: no choice is better than this; never beyond `objective`.
        gap: relative distance between the two; inf without a choice.
        solver, version: who found it.
        wall_s: time of building and solving, ties included.
        n_nodes: nodes of the search, branches or points, as the solver counts them.
        stopped_by: what ended the search early, "" when nothing did.
        confirmed_by: the second solver that found nothing either, "" without one.
    """

    status: Status
    counts: Counts | None
    objective: float
    bound: float
    gap: float
    solver: str
    version: str
    wall_s: float
    n_nodes: int = 0
    stopped_by: Stop = ""
    confirmed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a backend's run ended, in its own numbers."""

    status: Status
    bound: float
    solver: tuple[str, str]
    n_nodes: int = 0
    stopped_by: Stop = ""


MOST_COPIES = 1 << 24
"""Of a column: with bounds of 2^40 HiGHS 1.13 has called optimal what was 2 % off."""

BOUND_SLACK = 1e-7
"""Of an objective: bounds beyond it by less are the rounding of solvers."""


def placed(
    program: PlacementProgram, counts: Counts | None, ending: Ending, clock: Clock
) -> PlacementSolution:
    """Verify, recompute the objective, and keep the bound honest.

    Raises:
        SolverError: the choice breaks a constraint, or the bound is beyond it.
    """
    value, bound = math.inf, ending.bound
    name, version = ending.solver
    if counts is not None:
        broken = violations(program, counts)
        if broken:
            raise SolverError(f"{name} {version} broke what it promised: {broken}")
        value = placement_objective(program, counts)
        if bound > value + max(BOUND_SLACK * abs(value), RELATIVE_TOLERANCE):
            raise SolverError(f"{name} claims that nothing is below {bound!r}, and found {value!r}")
        # within rounding of the solver's own sums the two are one number
        near = abs(value - bound) <= 10 * RELATIVE_TOLERANCE * max(1.0, abs(value))
        bound = value if near and ending.status is Status.OPTIMAL else min(bound, value)
    return PlacementSolution(
        status=ending.status,
        counts=counts,
        objective=value,
        bound=math.inf if ending.status is Status.INFEASIBLE else bound,
        gap=math.inf if counts is None else relative_gap(value, bound),
        solver=name,
        version=version,
        wall_s=clock.elapsed_s(),
        n_nodes=ending.n_nodes,
        stopped_by=ending.stopped_by,
    )


def trivial(
    program: PlacementProgram, solver: tuple[str, str], clock: Clock
) -> PlacementSolution | None:
    """The answer where there is nothing to search: a row that cannot hold, or no choice.

    Raises:
        SolverError: a column has no bound.
    """
    most = most_copies(program)
    if is_hopeless(program, most):
        ending = Ending(status=Status.INFEASIBLE, bound=math.inf, solver=solver)
        return placed(program, None, ending, clock)
    if (most > MOST_COPIES).any():
        raise SolverError("a column of a placement may have copies without end")
    if (most > 0).any():
        return None
    nothing = Counts(copies=(0,) * program.n_columns)
    value = placement_objective(program, nothing)
    ending = Ending(status=Status.OPTIMAL, bound=value, solver=solver)
    return placed(program, nothing, ending, clock)
