"""Why nothing can be placed: wishes that cannot hold together, and what each could be."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.placement_results import PlacementConflict
from planner.placing.posing import Posed
from planner.placing.searching import Asked, Search, pose_asked
from planner.programs.placement import most_copies, served
from planner.results import Obstacle
from planner.solvers.placement import solve_placement
from planner.solvers.placement.answers import PlacementSolution
from planner.solvers.solution import Status

VERIFIED = "two solvers find no placement"


def conflict_of(asked: Asked, search: Search) -> PlacementConflict:
    """The irreducible set of wishes that no placement grants together, by a deletion filter."""
    found = asked.site.ground.inventory
    obstacles = [_hopeless(asked, search, m) for m in range(len(asked.wanted))]
    none = [one for one in obstacles if one is not None]
    if not none:
        names = _irreducible(asked, search)
        none = [_obstacle(asked, search, name, names) for name in names]
    by, first = search.solution.confirmed_by, search.solution
    return PlacementConflict(
        pool=asked.site.name,
        n_free=found.n_free,
        n_devices=found.n_devices,
        obstacles=tuple(none),
        verified=(f"{VERIFIED}: {first.solver} {first.version} and {by}",) if by else (),
    )


def _wishes(asked: Asked) -> list[str]:
    wished = []
    for one in asked.wanted:
        if one.demand_tokens_per_s is not None and asked.objective != "share":
            wished.append(f"demand {one.model.name}")
        if one.replicas is not None:
            wished.append(f"replicas {one.model.name}")
    return [*wished, *asked.limits]


def _hopeless(asked: Asked, search: Search, m: int) -> Obstacle | None:
    """A model of which no replica fits what is free, within its targets.

    Where all wishes are granted by nothing at all, none of the models has one that fits.
    """
    wish = asked.wanted[m]
    nothing_placed = search.solution.counts is not None
    is_wanted = nothing_placed or wish.replicas or wish.demand_tokens_per_s
    program = search.posed.program
    fits = (program.column_model == m) & (most_copies(program) > 0)
    if not is_wanted or fits.any():
        return None
    free = asked.site.ground.inventory.n_free
    return Obstacle(
        name=f"targets {wish.model.name}",
        asked=1.0,
        reachable=0.0,
        dimension="1",
        reason=f"no layout of one replica meets the targets and fits any of the {free} free "
        f"devices that can work together, at most {asked.site.ground.most_devices} of them",
    )


def _solved(posed: Posed) -> PlacementSolution:
    return solve_placement(posed.program, solver="highs")


def _irreducible(asked: Asked, search: Search) -> list[str]:
    """Wishes none of which can be left out without making a placement possible."""
    kept = _wishes(asked)
    dropped: list[str] = []
    for name in list(kept):
        posed = pose_asked(asked, search.kept, without=[*dropped, name])
        if _solved(posed).status is Status.INFEASIBLE:
            dropped.append(name)
            kept.remove(name)
    return kept


def _obstacle(asked: Asked, search: Search, name: str, names: Sequence[str]) -> Obstacle:
    """What one wish could be, if the others of its conflict hold."""
    others = [wish for wish in _wishes(asked) if wish not in names]
    what, _, model = name.partition(" ")
    objective = {"demand": "throughput", "replicas": "devices"}.get(what, what)
    posed = pose_asked(asked, search.kept, without=[*others, name], objective=objective)
    solution = _solved(posed)
    reason = "with the others kept"
    if what in ("rent", "devices"):
        asked_for, unit = asked.limits[what], {"rent": "USD/h"}.get(what, "1")
        reach = solution.objective if solution.counts is not None else math.inf
        reason = f"the least {what} of what is asked for"
    else:
        m = [one.model.name for one in asked.wanted].index(model)
        asked_for, unit, reach = _most_of(asked, search, (what, m), [*others, name])
    return Obstacle(name=name, asked=asked_for, reachable=reach, dimension=unit, reason=reason)


def _most_of(
    asked: Asked, search: Search, wish: tuple[str, int], without: Sequence[str]
) -> tuple[float, str, float]:
    """What was asked of a model, its unit, and the most that it could have."""
    from dataclasses import replace

    import numpy as np

    what, m = wish
    posed = pose_asked(asked, search.kept, without=without, objective="throughput")
    program = posed.program
    mine = program.column_model == m
    wanted = asked.wanted[m]
    if what == "demand":
        best = solve_placement(
            replace(program, objective=np.where(mine, -program.rate, 0.0), ties=())
        )
        reach = 0.0 if best.counts is None else float(served(program, best.counts)[m]) * 1e3
        return float(wanted.demand_tokens_per_s or 0.0), "token/s", reach
    unlimited = replace(
        program,
        objective=np.where(mine, -1.0, 0.0),
        most=np.where(np.arange(len(program.most)) == m, 1 << 40, program.most),
        ties=(),
    )
    most = solve_placement(unlimited)
    return float(wanted.replicas or 0), "1", 0.0 if most.counts is None else -most.objective
