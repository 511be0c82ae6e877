"""Why nothing can be placed: wishes that cannot hold together, and what each could be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from planner.deadlines import solver_limit_s
from planner.errors import OutOfTimeError
from planner.explain import UNEXPLAINED
from planner.placement_results import PlacementConflict
from planner.placing.searching import Asked, Search, pose_asked
from planner.programs.placement import PlacementProgram, most_copies, served
from planner.results import Obstacle
from planner.solvers.placement import solve_placement
from planner.solvers.placement.answers import PlacementSolution
from planner.solvers.solution import Effort, Status
from planner.specs.placement_request import Serve


class AnyWay(Protocol):
    """What a replica costs, whatever the fabric."""

    @property
    def usd_per_hour(self) -> float: ...
    @property
    def n_devices(self) -> int: ...


def who_finds_none(solution: PlacementSolution) -> tuple[str, ...]:
    """Who finds no placement, in words; nothing where one was found."""
    by = solution.vouched.by
    if solution.status is not Status.INFEASIBLE:
        return ()
    if not by:
        alone = next(one.prover for one in solution.vouched.proofs if one.bound == math.inf)
        return (f"no placement, by {alone} alone: a second proof was not asked for",)
    return (f"no placement, by {' and '.join(by)}",)


def conflict_of(asked: Asked, search: Search) -> PlacementConflict:
    """The irreducible set of wishes that no placement grants together, by a deletion filter."""
    found = asked.site.ground.inventory
    unlimited = pose_asked(asked, search.kept, without=_wishes(asked))
    fits = most_copies(unlimited.program) > 0
    able = {int(m) for m in unlimited.program.column_model[fits]}
    obstacles = [_hopeless(asked, search, m, able) for m in range(len(asked.wanted))]
    none = [one for one in obstacles if one is not None]
    if not none and search.solution.answer is not None:
        n_before = len(unlimited.given) + len(unlimited.staged)
        fitting = zip(unlimited.taken, fits[n_before:], strict=True)
        none = narrow_limits(asked.limits, [way for (way, _), can in fitting if can])
    if not none:
        with suppress(OutOfTimeError):
            names = _irreducible(asked, search)
            none = [_obstacle(asked, search, name, names) for name in names]
    return PlacementConflict(
        pool=asked.site.name,
        n_free=found.n_free,
        n_devices=found.n_devices,
        obstacles=tuple(none),
        verified=(*who_finds_none(search.solution), *(() if none else UNEXPLAINED)),
    )


def _wishes(asked: Asked) -> list[str]:
    wished = []
    for one in asked.wanted:
        if one.demand_tokens_per_s is not None and asked.objective != "share":
            wished.append(f"demand {one.model.name}")
        if one.replicas is not None:
            wished.append(f"replicas {one.model.name}")
    return [*wished, *asked.limits]


def is_wanted(wish: Serve, solution: PlacementSolution) -> bool:
    """Whether a replica is asked for, if only because nothing at all was placed."""
    return solution.answer is not None or bool(wish.replicas or wish.demand_tokens_per_s)


def narrow_limits(limits: Mapping[str, float], ways: Sequence[AnyWay]) -> list[Obstacle]:
    """Limits that leave room for no replica at all, where nothing else forbids one.

    Args:
        limits: most `rent` [USD/h] and `devices` of all replicas.
        ways: that fit what is free and meet the targets.
    """
    least = {
        "rent": min((way.usd_per_hour for way in ways), default=math.inf),
        "devices": float(min((way.n_devices for way in ways), default=0)),
    }
    together = all(least[name] <= most for name, most in limits.items())
    return [
        Obstacle(
            name=name,
            asked=most,
            reachable=least[name],
            dimension={"rent": "USD/h"}.get(name, "1"),
            reason=f"the least {name} of one replica",
        )
        for name, most in limits.items()
        if together or least[name] > most
    ]


def _hopeless(asked: Asked, search: Search, m: int, able: set[int]) -> Obstacle | None:
    """A model of which no replica fits what is free, within its targets and without limits.

    Where all wishes are granted by nothing at all, none of the models has one that fits.
    """
    wish = asked.wanted[m]
    if not is_wanted(wish, search.solution) or m in able:
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


def settled(solution: PlacementSolution) -> PlacementSolution:
    """A solution that more time would not change.

    Raises:
        OutOfTimeError: time ended before it was settled.
        UnsettledError: the provers do not agree on it.
    """
    if not solution.status.is_final:
        raise solution.unsettled()
    return solution


def _solved(program: PlacementProgram) -> PlacementSolution:
    """Solved to the proof.

    Raises:
        OutOfTimeError: time ended before it.
    """
    effort = Effort(time_limit_s=solver_limit_s())
    return settled(solve_placement(program, solver="highs", effort=effort))


def _irreducible(asked: Asked, search: Search) -> list[str]:
    """Wishes none of which can be left out without making a placement possible."""
    kept = _wishes(asked)
    dropped: list[str] = []
    for name in list(kept):
        posed = pose_asked(asked, search.kept, without=[*dropped, name])
        if _solved(posed.program).status is Status.INFEASIBLE:
            dropped.append(name)
            kept.remove(name)
    return kept


def _obstacle(asked: Asked, search: Search, name: str, names: Sequence[str]) -> Obstacle:
    """What one wish could be, if the others of its conflict hold."""
    others = [wish for wish in _wishes(asked) if wish not in names]
    what, _, model = name.partition(" ")
    objective = {"demand": "throughput", "replicas": "devices"}.get(what, what)
    posed = pose_asked(asked, search.kept, without=[*others, name], objective=objective)
    solution = _solved(posed.program)
    reason = "with the others kept"
    if what in ("rent", "devices"):
        asked_for, unit = asked.limits[what], {"rent": "USD/h"}.get(what, "1")
        reach = solution.objective if solution.answer is not None else math.inf
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
        best = _solved(replace(program, objective=np.where(mine, -program.rate, 0.0), ties=()))
        reach = 0.0 if best.answer is None else float(served(program, best.answer)[m]) * 1e3
        return float(wanted.demand_tokens_per_s or 0.0), "token/s", reach
    unlimited = replace(
        program,
        objective=np.where(mine, -1.0, 0.0),
        most=np.where(np.arange(len(program.most)) == m, 1 << 40, program.most),
        ties=(),
    )
    most = _solved(unlimited)
    return float(wanted.replicas or 0), "1", 0.0 if most.answer is None else -most.objective
