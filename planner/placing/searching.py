"""What a placement is chosen from, and the choice: ways, program, solution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.deadlines import is_over, share
from planner.placing.asking import Site
from planner.placing.columns import Way, ways_of
from planner.placing.dominance import undominated
from planner.placing.posing import Posed, Wanted, pose_placement
from planner.programs.placement import PlacementProgram
from planner.programs.proofs import Vouched
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Status, effort_of
from planner.specs.placement_request import PlacementRequest, Serve
from planner.specs.request import Request, SolverOptions
from planner.topology.inventory import Kind

WAYS_SHARE = 0.6
"""Of the time, that making the ways may take: what is left is for placing them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for a placement, with what is free and what is asked of each model's layout.

    Args:
        shapes: model, kind and shape of the ways that may be taken; None for all.
    """

    request: PlacementRequest
    site: Site
    requests: tuple[Request, ...]
    shapes: frozenset[Sort] | None = None

    @property
    def wanted(self) -> tuple[Serve, ...]:
        return self.request.models

    @property
    def objective(self) -> str:
        return self.request.objective

    @property
    def limits(self) -> Mapping[str, float]:
        return self.request.limits

    @property
    def options(self) -> SolverOptions:
        return self.request.options


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What there was to choose from, and what was chosen.

    Args:
        ways: all of them; `kept` those that no other stands for.
        is_cut: whether time ended before they were all made.
    """

    ways: tuple[Way, ...]
    kept: tuple[Way, ...]
    posed: Posed
    solution: PlacementSolution
    is_cut: bool


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
    for way in all_ways(asked)[0]:
        key = (way.model, way.kind)
        if key not in best or _worth(way, by_latency) > _worth(best[key], by_latency):
            best[key] = way
    return frozenset(map(sort_of, best.values()))


def _worth(way: Way, by_latency: bool) -> float:
    return -way.tpot_s if by_latency else way.output_tokens_per_s / way.n_devices


def all_ways(asked: Asked, *, several: Sequence[bool] | None = None) -> tuple[list[Way], bool]:
    """The ways of all models on all kinds, and whether time ended before they were all made."""
    ground = asked.site.ground
    several = several or [False] * len(asked.wanted)
    with share(WAYS_SHARE):
        ways = [
            way
            for model, request in enumerate(asked.requests)
            for kind in ground.inventory.kinds
            for way in ways_of(request, model, kind, ground, several=several[model])
        ]
        return ways, is_over()


def searched(asked: Asked) -> Search:
    """Evaluate the ways, pose the placement, solve it."""
    by_latency = asked.objective == "latency"
    several = [one.replicas is None and not by_latency for one in asked.wanted]
    if asked.shapes is None:
        ways, is_cut = all_ways(asked, several=several)
    else:
        ways, is_cut = all_ways(asked)
        ways = [way for way in ways if sort_of(way) in asked.shapes]
    kept = undominated(ways, several=np.array(several), by_latency=by_latency)
    posed = pose_asked(asked, kept)
    options = asked.options
    solution = solve_placement(
        posed.program, solver=options.solver, effort=effort_of(options), proof=options.proof
    )
    if is_cut:
        solution = unproved(solution, posed.program)
    return Search(ways=tuple(ways), kept=tuple(kept), posed=posed, solution=solution, is_cut=is_cut)


def unproved(solution: PlacementSolution, program: PlacementProgram) -> PlacementSolution:
    """A solution where not all columns there are were made: an answer, and no proof.

    What is never negative is at least zero, and that is all that is known.
    """
    is_positive = not program.is_for_share and bool((program.objective >= 0).all())
    bound = 0.0 if is_positive else -math.inf
    nobody = Vouched(proofs=(), bound=bound, alone=bound, by=())
    status = Status.UNKNOWN if solution.answer is None else Status.FEASIBLE
    return replace(solution, status=status, vouched=nobody)


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
