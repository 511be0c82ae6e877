"""The fewest moved bytes for an objective: the frontier between both, one program at a time.

The program is one of placement whose columns have bytes besides: nothing for what is kept,
the shards of the ranks that change devices for what is patched, all weights for what is new.

    point 1    the least bytes of all, and among these the best objective
    point i    the least bytes among choices that are better than point i - 1
    last       the best objective, and among these the least bytes

Each point is proved by the solver; between two of them lies no other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import OutOfTimeError
from planner.programs.placement import (
    Counts,
    PlacementLimit,
    PlacementProgram,
    keeping,
    placement_objective,
    serving,
)

STEP = 1e-6
"""Of the best objective, or of its unit: the least by which the next point is better."""
MOVED = "moved"

Solve = Callable[[PlacementProgram], Counts | None]
"""The best choice of a program, proved; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A choice, its moved amount, and its objective, to be minimised."""

    counts: Counts
    moved: float
    objective: float


def best_of(program: PlacementProgram, moved: FloatArray, solve: Solve) -> Point | None:
    """The best objective, and among its choices the least moved; None where nothing can be."""
    first = solve(replace(program, ties=()))
    if first is None:
        return None
    second = solve(keeping(replace(program, ties=(moved,)), first))
    return _point(program, moved, second or first)


def least_moved(
    program: PlacementProgram, moved: FloatArray, solve: Solve, *, at_most: float = np.inf
) -> Point | None:
    """The least moved of choices whose objective is at most so much, then the best of these."""
    counts = solve(_bounded(program, moved, at_most))
    if counts is None:
        return None
    amount = float(moved @ np.array(counts.copies))
    limit = PlacementLimit(name=MOVED, column=moved, at_most=amount)
    best = solve(replace(program, limits=(*program.limits, limit), ties=()))
    return _point(program, moved, best or counts)


def frontier(
    program: PlacementProgram, moved: FloatArray, solve: Solve, *, best: Point, most_points: int
) -> tuple[list[Point], bool]:
    """Points by moved amount, ascending, to the best; and whether they are all there are.

    Out of time, those that are known by then.
    """
    points: list[Point] = []
    at_most, step = np.inf, STEP * max(1.0, abs(best.objective))
    while len(points) < most_points - 1:
        try:
            point = least_moved(program, moved, solve, at_most=at_most)
        except OutOfTimeError:
            break
        if point is None or point.objective <= best.objective + step:
            return [*points, best], True
        points.append(point)
        at_most = point.objective - step
    return [*points, best], False


def _bounded(program: PlacementProgram, moved: FloatArray, at_most: float) -> PlacementProgram:
    """The program for the least moved, of objectives at most so much; a share is negative."""
    if program.is_for_share:
        share = 0.0 if np.isinf(at_most) else -at_most
        return replace(serving(program, share), objective=moved, ties=())
    limits = program.limits
    if np.isfinite(at_most):
        limits = (
            *limits,
            PlacementLimit(name="objective", column=program.objective, at_most=at_most),
        )
    return replace(program, objective=moved, limits=limits, ties=())


def _point(program: PlacementProgram, moved: FloatArray, counts: Counts) -> Point:
    return Point(
        counts=counts,
        moved=float(moved @ np.array(counts.copies)),
        objective=placement_objective(program, counts),
    )
