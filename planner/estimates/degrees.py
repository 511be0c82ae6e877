"""Degrees that no mesh of a pool has, and the nearest that some mesh has."""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.errors import Problem, RequestError
from planner.estimates.steps import Machine
from planner.layouts.degrees import degrees_of
from planner.layouts.options import all_layouts
from planner.specs.request import Request
from planner.specs.targets import DEGREE_OPTIONS


def check_degrees(request: Request, machine: Machine) -> None:
    """Go on only if some mesh of the pool has the degrees that are fixed.

    Raises:
        RequestError: none has; its problems name the nearest degrees that can be had.
    """
    problems = degree_problems(request, machine)
    if problems:
        raise RequestError(problems)


def degree_problems(request: Request, machine: Machine) -> list[Problem]:
    """Fixed degrees that no mesh has, each by itself or all together."""
    fixed = request.targets.degrees.fixed()
    if not fixed:
        return []
    layouts = all_layouts(machine.meshes, moe=request.model.moe)
    found = degrees_of(request.model, layouts, machine.meshes)
    pool = f"`{request.cluster.name}`"
    alone = [
        _problem(name, degree, f"no mesh of {pool} has it", _nearest(found[name], degree))
        for name, degree in fixed.items()
        if not (found[name] == degree).any()
    ]
    if alone or _having(found, fixed).any():
        return alone
    return [_together(found, fixed, pool)]


def _together(found: dict[str, IntArray], fixed: dict[str, int], pool: str) -> Problem:
    """The last degree that no mesh has beside the ones before it."""
    names = list(fixed)
    for n_kept in range(1, len(names)):
        before = {name: fixed[name] for name in names[:n_kept]}
        name = names[n_kept]
        here = found[name][_having(found, before)]
        if not (here == fixed[name]).any():
            break
    others = " ".join(f"{DEGREE_OPTIONS[one]} {degree}" for one, degree in before.items())
    fact = f"no mesh of {pool} has it with `{others}`"
    return _problem(name, fixed[name], fact, _nearest(here, fixed[name]))


def _having(found: dict[str, IntArray], degrees: dict[str, int]) -> BoolArray:
    size = len(next(iter(found.values())))
    kept = np.ones(size, dtype=np.bool_)
    for name, degree in degrees.items():
        kept &= found[name] == degree
    return kept


def _nearest(found: IntArray, degree: int) -> tuple[int, ...]:
    """The next smaller and the next larger degree that there is."""
    known = {*found.tolist()}
    below, above = ([n for n in known if n < degree], [n for n in known if n > degree])
    return (*([max(below)] if below else []), *([min(above)] if above else []))


def _problem(name: str, degree: int, fact: str, nearest: tuple[int, ...]) -> Problem:
    option = DEGREE_OPTIONS[name]
    remedy = "nearest: " + " or ".join(f"`{option} {other}`" for other in nearest)
    return Problem(where=option, value=str(degree), fact=fact, remedy=remedy)
