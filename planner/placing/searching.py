"""What a placement is chosen from, and the choice: ways, program, solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.placing.asking import Serve, Site
from planner.placing.columns import Way, ways_of
from planner.placing.dominance import undominated
from planner.placing.posing import Posed, Wanted, pose_placement
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Effort
from planner.specs.request import Request, SolverOptions
from planner.topology.inventory import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a placement, complete.

    Args:
        shapes: model, kind and shape of the ways that may be taken; None for all.
    """

    site: Site
    wanted: tuple[Serve, ...]
    requests: tuple[Request, ...]
    objective: str
    limits: dict[str, float]
    options: SolverOptions
    shapes: frozenset[Sort] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What there was to choose from, and what was chosen.

    Args:
        ways: all of them; `kept` those that no other stands for.
    """

    ways: tuple[Way, ...]
    kept: tuple[Way, ...]
    posed: Posed
    solution: PlacementSolution


Sort = tuple[int, Kind, tuple[int, int, int]]


def sort_of(way: Way) -> Sort:
    return way.model, way.kind, (way.n_inside, way.n_across, way.n_stages)


def chosen_first(asked: Asked) -> frozenset[Sort]:
    """The shape that each model would have on each kind by itself: the most of one device.

    With `latency` for an objective, the quickest. It is what a planner chooses that does not
    know what is free; the site of the request is then one where all is.
    """
    by_latency = asked.objective == "latency"
    best: dict[tuple[int, Kind], Way] = {}
    for way in all_ways(asked):
        key = (way.model, way.kind)
        if key not in best or _worth(way, by_latency) > _worth(best[key], by_latency):
            best[key] = way
    return frozenset(map(sort_of, best.values()))


def _worth(way: Way, by_latency: bool) -> float:
    return -way.tpot_s if by_latency else way.output_tokens_per_s / way.n_devices


def all_ways(asked: Asked, *, several: Sequence[bool] | None = None) -> list[Way]:
    """The ways of all models on all kinds."""
    ground = asked.site.ground
    several = several or [False] * len(asked.wanted)
    return [
        way
        for model, request in enumerate(asked.requests)
        for kind in ground.inventory.kinds
        for way in ways_of(request, model, kind, ground, several=several[model])
    ]


def searched(asked: Asked) -> Search:
    """Evaluate the ways, pose the placement, solve it."""
    by_latency = asked.objective == "latency"
    several = [one.replicas is None and not by_latency for one in asked.wanted]
    if asked.shapes is None:
        ways = all_ways(asked, several=several)
    else:
        ways = [way for way in all_ways(asked) if sort_of(way) in asked.shapes]
    kept = undominated(ways, several=np.array(several), by_latency=by_latency)
    posed = pose_asked(asked, kept)
    options = asked.options
    effort = Effort(
        time_limit_s=options.time_limit_s,
        gap=options.gap,
        threads=options.threads,
        seed=options.seed,
    )
    solution = solve_placement(
        posed.program, solver=options.solver, effort=effort, proof=options.proof
    )
    return Search(ways=tuple(ways), kept=tuple(kept), posed=posed, solution=solution)


def pose_asked(
    asked: Asked,
    ways: Sequence[Way],
    *,
    without: Sequence[str] = (),
    objective: str | None = None,
) -> Posed:
    """The program of a request, without some of its wishes: `demand x`, `replicas x`, limits."""
    wanted = [
        Wanted(
            name=one.model.name,
            demand_tokens_per_s=(
                None if f"demand {one.model.name}" in without else one.demand_tokens_per_s
            ),
            least=0 if f"replicas {one.model.name}" in without else one.replicas or 0,
            most=one.replicas,
        )
        for one in asked.wanted
    ]
    return pose_placement(
        ways,
        asked.site.ground.inventory,
        wanted,
        objective=objective or asked.objective,
        limits={name: value for name, value in asked.limits.items() if name not in without},
    )
