"""Degrees and layouts that no mesh of a pool has, and what there is in their place."""

from dataclasses import replace

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.errors import Problem, RequestError
from planner.estimates.steps import Machine
from planner.layouts.degrees import degrees_of, have_degrees, have_name, names_of
from planner.layouts.geometry import LayoutTable
from planner.layouts.options import MICROBATCHES, all_layouts
from planner.specs.ask.request import Request
from planner.specs.ask.targets import DEGREE_OPTIONS

MOST_NAMED = 12
"""Names of layouts that a message lists."""


def check_degrees(request: Request, machine: Machine) -> None:
    """Go on only if some mesh of the pool has the degrees and the layouts that are fixed.

    Raises:
        RequestError: none has; its problems name what can be had.
    """
    RequestError.raise_if_any(degree_problems(request, machine))


def degree_problems(request: Request, machine: Machine) -> list[Problem]:
    """Fixed degrees that no mesh has, each by itself or all together, and so layouts."""
    fixed, named = request.targets.degrees.fixed(), request.targets.layouts.fixed()
    if not fixed and not named:
        return []
    parts = MICROBATCHES if named else (1,)
    layouts = all_layouts(machine.meshes, microbatches=parts, moe=request.model.moe)
    problems = _undivided(request, machine, layouts) if fixed else []
    if problems or not named:
        return problems
    kept = have_degrees(request.model, layouts, machine.meshes, request.targets.degrees)
    return _unnamed(request, machine, layouts.take(np.flatnonzero(kept)))


def _unnamed(request: Request, machine: Machine, layouts: LayoutTable) -> list[Problem]:
    """Layouts of phases that no mesh has with the degrees that are fixed."""
    names, _ = names_of(request.model, layouts, machine.meshes)
    known = sorted({name for name, _ in names})
    problems = []
    for phase, layout in request.targets.layouts.fixed().items():
        if have_name(request.model, layouts, machine.meshes, layout).any():
            continue
        fact = f"no layout of `{request.model.name}` on `{request.cluster.name}` is called so"
        remedy = f"there are {', '.join(f'`{one}`' for one in known[:MOST_NAMED])}"
        if len(known) > MOST_NAMED:
            remedy += f" and {len(known) - MOST_NAMED} more"
        if any(layout.is_met(*name) for name in names):
            fact = f"no pass of it is cut into {layout.n_microbatches} parts for a pipeline"
            remedy = f"{', '.join(str(n) for n in np.unique(layouts.n_microbatches))} can be"
        elif any(replace(layout, attention=None).is_met(*name) for name in names):
            fact, remedy = (
                "no layout of this name cuts attention so",
                "leave out what it is cut over",
            )
        value = f"{phase}={layout.text}"
        problems.append(Problem(where="--layout", value=value, fact=fact, remedy=remedy))
    return problems


def _undivided(request: Request, machine: Machine, layouts: LayoutTable) -> list[Problem]:
    fixed = request.targets.degrees.fixed()
    degrees = degrees_of(request.model, layouts, machine.meshes)
    pool = f"`{request.cluster.name}`"
    alone = [
        _problem(name, degree, f"no mesh of {pool} has it", _nearest(degrees[name], degree))
        for name, degree in fixed.items()
        if not (degrees[name] == degree).any()
    ]
    if alone or _having(degrees, fixed).any():
        return alone
    return [_together(degrees, fixed, pool)]


def _together(degrees: dict[str, IntArray], fixed: dict[str, int], pool: str) -> Problem:
    """The last degree that no mesh has beside the ones before it."""
    names = list(fixed)
    for n_kept in range(1, len(names)):
        before = {name: fixed[name] for name in names[:n_kept]}
        name = names[n_kept]
        here = degrees[name][_having(degrees, before)]
        if not (here == fixed[name]).any():
            break
    others = " ".join(f"{DEGREE_OPTIONS[one]} {degree}" for one, degree in before.items())
    fact = f"no mesh of {pool} has it with `{others}`"
    return _problem(name, fixed[name], fact, _nearest(here, fixed[name]))


def _having(values: dict[str, IntArray], degrees: dict[str, int]) -> BoolArray:
    size = len(next(iter(values.values())))
    kept = np.ones(size, dtype=np.bool_)
    for name, degree in degrees.items():
        kept &= values[name] == degree
    return kept


def _nearest(values: IntArray, degree: int) -> tuple[int, ...]:
    """The next smaller and the next larger degree that there is."""
    known = {*values.tolist()}
    below, above = ([n for n in known if n < degree], [n for n in known if n > degree])
    return (*([max(below)] if below else []), *([min(above)] if above else []))


def _problem(name: str, degree: int, fact: str, nearest: tuple[int, ...]) -> Problem:
    option = DEGREE_OPTIONS[name]
    remedy = "nearest: " + " or ".join(f"`{option} {other}`" for other in nearest)
    return Problem(where=option, value=str(degree), fact=fact, remedy=remedy)
