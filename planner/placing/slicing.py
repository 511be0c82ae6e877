"""`place` on a torus: from its state to replicas on slices, described, verified, certified."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from planner.certificates import Certificate
from planner.certify import certified, screens_of
from planner.deadlines import is_over, out_of_time, share
from planner.errors import NoPlanError, OutOfTimeError, Problem, RequestError
from planner.explain import UNEXPLAINED
from planner.placement_results import (
    KindUse,
    Placement,
    PlacementConflict,
    Rank,
    Recipe,
    Replica,
    Served,
)
from planner.placing.conflicts import is_wanted, narrow_limits, settled, who_finds_none
from planner.placing.describing import deployment_of
from planner.placing.posing import Wanted
from planner.placing.searching import WAYS_SHARE, unproved
from planner.placing.tori import (
    LocatedSlice,
    PosedTorus,
    TorusWay,
    locate_slices,
    pose_torus,
    torus_state,
    torus_ways,
    without_tiled,
)
from planner.placing.totals import UNITS, in_si
from planner.placing.walking import walked
from planner.programs.layout import IntArray
from planner.programs.placement import served as served_by
from planner.results import Deployment, Obstacle
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Status, effort_of
from planner.specs.placement_request import PlacementRequest, Serve
from planner.specs.records import ClusterSpec, TorusFabric
from planner.specs.request import Request, SolverOptions
from planner.topology.graph import build_graph
from planner.topology.meshes import AXES
from planner.topology.openings import Openings, all_free, openings
from planner.topology.pools import with_state
from planner.verifier.tori import TorusStand

if TYPE_CHECKING:
    import networkx as nx

MOST_DIRECT = 100
"""Columns up to which the backend that was asked for sees all of them at once."""
SPAN = "torus"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTorus:
    """A request for a placement on a torus, with what is asked of each model's layout."""

    request: PlacementRequest
    requests: tuple[Request, ...]

    @property
    def cluster(self) -> ClusterSpec:
        assert isinstance(self.request.site, ClusterSpec)
        return self.request.site

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

    @property
    def fabric(self) -> TorusFabric:
        fabric = self.cluster.fabric
        assert isinstance(fabric, TorusFabric)
        return fabric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ground:
    """What there is to choose from: openings, and the ways of each model at them.

    Args:
        is_cut: whether time ended before all ways were made.
    """

    graph: nx.Graph[str]
    n_free: int
    openings: Openings
    offered: tuple[tuple[list[TorusWay], IntArray], ...]
    kept: tuple[tuple[list[TorusWay], IntArray], ...]
    is_cut: bool


def place_slices(asked: AskedTorus) -> Placement:
    """Choose slices and layouts together; see `planner.placing.planning.place`."""
    began_s = time.perf_counter()
    ground = ground_of(asked)
    posed = pose_asked(asked, ground)
    solution = solved(posed, asked.options)
    if ground.is_cut:
        solution = unproved(solution, posed.program)
    nothing = solution.answer is not None and not any(solution.answer.copies)
    if solution.status is Status.INFEASIBLE or nothing:
        raise out_of_time() if ground.is_cut else NoPlanError(_conflict(asked, ground, solution))
    if solution.answer is None:
        bound = in_si(asked.objective, solution.bound)
        raise out_of_time(bound) if ground.is_cut else solution.unsettled(bound)
    located = locate_slices(posed, solution.answer)
    return placement_of(asked, ground, (posed, solution, located), began_s=began_s)


def ground_of(asked: AskedTorus) -> Ground:
    """What is free, and what could run there.

    Raises:
        RequestError: nothing is free.
    """
    request = asked.request
    graph = with_state(build_graph(asked.cluster), request.state)
    state = torus_state(asked.fabric, graph)
    n_free = int(state.is_free.sum())
    if not n_free:
        fact = f"has no free device: all {asked.fabric.n_devices} are taken"
        remedy = "free some, or leave them out of the state"
        raise RequestError([Problem(where=asked.cluster.name, fact=fact, remedy=remedy)])
    found = openings(asked.fabric, state, aligned=request.aligned)
    if request.most_devices is not None:
        found = found.take(np.flatnonzero(found.n_devices <= request.most_devices))
    with share(WAYS_SHARE):
        offered = tuple(torus_ways(one, m, found) for m, one in enumerate(asked.requests))
        is_cut = is_over()
    if request.layout_first:
        offered = tuple(_of_label(one, _best_label(asked, m)) for m, one in enumerate(offered))
    by_latency = asked.objective == "latency"
    kept = tuple(
        without_tiled(one, several=wish.replicas is None and not by_latency)
        for one, wish in zip(offered, asked.wanted, strict=True)
    )
    return Ground(
        graph=graph, n_free=n_free, openings=found, offered=offered, kept=kept, is_cut=is_cut
    )


def _best_label(asked: AskedTorus, model: int) -> str:
    """The mesh that a planner chooses that does not know what is free: the most of one device."""
    everywhere = openings(asked.fabric, all_free(asked.fabric), aligned=True)
    ways, _ = torus_ways(asked.requests[model], model, everywhere)
    by_latency = asked.objective == "latency"
    best = max(
        ways,
        key=lambda way: -way.tpot_s if by_latency else way.output_tokens_per_s / way.n_devices,
        default=None,
    )
    return best.label if best else ""


def _of_label(
    offered: tuple[list[TorusWay], IntArray], label: str
) -> tuple[list[TorusWay], IntArray]:
    ways, of_opening = offered
    is_it = np.array([way.label == label for way in ways] + [False])
    return ways, np.where(is_it[of_opening], of_opening, -1)


def pose_asked(
    asked: AskedTorus, ground: Ground, *, without: Sequence[str] = (), objective: str = ""
) -> PosedTorus:
    """The program of a request, without some of its wishes: `demand x`, `replicas x`, limits."""
    wanted = [
        Wanted(
            name=one.model.name,
            demand_tokens_per_s=(
                None if f"demand {one.model.name}" in without else one.demand_tokens_per_s
            ),
            least=0 if f"replicas {one.model.name}" in without else one.replicas or 0,
            most=None if f"replicas {one.model.name}" in without else one.replicas,
        )
        for one in asked.wanted
    ]
    return pose_torus(
        ground.openings,
        ground.kept,
        wanted,
        objective=objective or asked.objective,
        limits={name: value for name, value in asked.limits.items() if name not in without},
    )


def solved(posed: PosedTorus, options: SolverOptions) -> PlacementSolution:
    """Solve; large programs are narrowed whatever the backend."""
    is_large = posed.program.n_columns > MOST_DIRECT
    solver = "narrowing" if is_large else options.solver
    return solve_placement(
        posed.program, solver=solver, effort=effort_of(options), proof=options.proof
    )


def placement_of(
    asked: AskedTorus,
    ground: Ground,
    found: tuple[PosedTorus, PlacementSolution, Sequence[LocatedSlice]],
    *,
    began_s: float,
) -> Placement:
    """Describe and certify; who asked for it has it judged."""
    posed, solution, located = found
    ways = list(dict.fromkeys(one.way for one in located))
    recipes = tuple(
        Recipe(
            model=asked.wanted[way.model].model.name,
            kind=asked.cluster.device.name,
            span=SPAN,
            speed_fraction=way.speed_fraction,
            counted_bytes_per_s=dict(zip(AXES, way.link_bytes_per_s, strict=True)),
            deployment=deployment_of(way, sum(one.way is way for one in located)),
        )
        for way in ways
    )
    numbers = [0] * len(asked.wanted)
    replicas = []
    for one in located:
        name = f"{asked.wanted[one.way.model].model.name}/{numbers[one.way.model]}"
        numbers[one.way.model] += 1
        channels = walked(ground.graph, asked.fabric, one)
        replicas.append(
            Replica(
                name=name,
                model=asked.wanted[one.way.model].model.name,
                recipe=ways.index(one.way),
                nodes=(),
                leaves=(),
                ranks=_ranks(one),
                channels=channels,
            )
        )
    served = tuple(_served(wish, recipes, replicas) for wish in asked.wanted)
    certificate = _certificate(asked, ground, (posed, solution), began_s)
    provenance = [
        *asked.cluster.provenance,
        *asked.cluster.device.provenance,
        *(value for one in asked.wanted for value in one.model.provenance),
    ]
    return Placement(
        request=asked.request,
        pool=asked.cluster.name,
        title=asked.cluster.title,
        recipes=recipes,
        replicas=tuple(replicas),
        served=served,
        kinds=(
            KindUse(
                kind=asked.cluster.device.name,
                device=asked.cluster.device.name,
                n_devices=asked.fabric.n_devices,
                n_free=ground.n_free,
                n_used=sum(one.way.n_devices for one in located),
            ),
        ),
        certificate=certificate,
        provenance=tuple(dict.fromkeys(provenance)),
    )


def _ranks(one: LocatedSlice) -> tuple[Rank, ...]:
    axes = np.stack(np.unravel_index(np.arange(len(one.devices)), one.way.shape), axis=1)
    ranks = []
    for rank, (name, (i, j, k)) in enumerate(zip(one.devices, axes.tolist(), strict=True)):
        x, y, z = map(int, name.split(","))
        ranks.append(
            Rank(
                rank=rank,
                device=name,
                node="",
                leaf="",
                stage=0,
                axes=(i, j, k),
                coordinate=(x, y, z),
            )
        )
    return tuple(ranks)


def _served(wish: Serve, recipes: Sequence[Recipe], replicas: Sequence[Replica]) -> Served:
    mine: list[Deployment] = [
        recipes[one.recipe].deployment for one in replicas if one.model == wish.model.name
    ]
    return Served(
        model=wish.model.name,
        demand_tokens_per_s=wish.demand_tokens_per_s,
        output_tokens_per_s=math.fsum(one.output_tokens_per_s for one in mine),
        n_replicas=len(mine),
        n_devices=sum(one.n_devices for one in mine),
        usd_per_hour=math.fsum(one.usd_per_hour for one in mine),
    )


def _certificate(
    asked: AskedTorus,
    ground: Ground,
    found: tuple[PosedTorus, PlacementSolution],
    began_s: float,
) -> Certificate:
    """The proof in numbers, in SI units."""
    posed, solution = found
    name = asked.objective
    ways = [way for found_ways, _ in ground.offered for way in found_ways]
    evaluated = {id(way.evaluated): way.evaluated for way in ways}.values()
    n_layouts = sum(it.n_candidates for it in evaluated)
    n_places = sum(int((of >= 0).sum()) for _, of in ground.offered)
    rejected = {
        "layouts": n_layouts - len(ways),
        "tiled": n_places - posed.program.n_columns,
    }
    return certified(
        solution,
        objective_name=name,
        to_si=partial(in_si, name),
        dimension=UNITS[name][1],
        n_candidates=n_layouts,
        n_contexts=n_places,
        screens=screens_of(rejected, _REASONS),
        n_solved=posed.program.n_columns,
        verified=TorusStand.checks,
        wall_s=time.perf_counter() - began_s,
    )


_REASONS = {
    "layouts": "others are better on the same slice",
    "tiled": "slices that smaller ones fill, and serve as much from",
}


def _conflict(asked: AskedTorus, ground: Ground, solution: PlacementSolution) -> PlacementConflict:
    """The irreducible set of wishes that no placement grants together, by a deletion filter."""
    obstacles = [
        Obstacle(
            name=f"targets {wish.model.name}",
            asked=1.0,
            reachable=0.0,
            dimension="1",
            reason=f"no layout meets the targets on any of the {len(ground.openings)} slices that "
            f"lie among the {ground.n_free} free devices",
        )
        for wish, (_, of_opening) in zip(asked.wanted, ground.offered, strict=True)
        if is_wanted(wish, solution) and not (of_opening >= 0).any()
    ]
    if not obstacles and solution.answer is not None:
        ways = [way for found, of_opening in ground.offered for way in _used(found, of_opening)]
        obstacles = narrow_limits(asked.limits, ways)
    if not obstacles:
        with suppress(OutOfTimeError):
            names = _irreducible(asked, ground)
            obstacles = [_obstacle(asked, ground, name, names) for name in names]
    return PlacementConflict(
        pool=asked.cluster.name,
        n_free=ground.n_free,
        n_devices=asked.fabric.n_devices,
        obstacles=tuple(obstacles),
        verified=(*who_finds_none(solution), *(() if obstacles else UNEXPLAINED)),
    )


def _used(ways: Sequence[TorusWay], of_opening: IntArray) -> list[TorusWay]:
    """The ways that some opening has."""
    return [ways[w] for w in np.unique(of_opening) if w >= 0]


def _wishes(asked: AskedTorus) -> list[str]:
    wished = []
    for one in asked.wanted:
        if one.demand_tokens_per_s is not None and asked.objective != "share":
            wished.append(f"demand {one.model.name}")
        if one.replicas is not None:
            wished.append(f"replicas {one.model.name}")
    return [*wished, *asked.limits]


def _irreducible(asked: AskedTorus, ground: Ground) -> list[str]:
    kept, dropped = _wishes(asked), list[str]()
    for name in list(kept):
        posed = pose_asked(asked, ground, without=[*dropped, name])
        if settled(solved(posed, asked.options)).status is Status.INFEASIBLE:
            dropped.append(name)
            kept.remove(name)
    return kept


def _obstacle(asked: AskedTorus, ground: Ground, name: str, names: Sequence[str]) -> Obstacle:
    """What one wish could be, if the others of its conflict hold."""
    what, _, model = name.partition(" ")
    without = [*(wish for wish in _wishes(asked) if wish not in names), name]
    if what in asked.limits:
        posed = pose_asked(asked, ground, without=without, objective=what)
        least = settled(solved(posed, asked.options))
        reach = least.objective if least.answer is not None else math.inf
        unit = UNITS[what][1]
        reason = f"the least {what} of what is asked for"
        return Obstacle(
            name=name, asked=asked.limits[what], reachable=reach, dimension=unit, reason=reason
        )
    m = [one.model.name for one in asked.wanted].index(model)
    posed = pose_asked(asked, ground, without=without, objective="throughput")
    program, mine = posed.program, posed.program.column_model == m
    gain = program.rate if what == "demand" else np.ones(program.n_columns)
    alone = replace(posed, program=replace(program, objective=np.where(mine, -gain, 0.0)))
    most = settled(solved(alone, asked.options))
    wish = asked.wanted[m]
    reach, unit, wished = 0.0, "1", float(wish.replicas or 0)
    if what == "demand":
        unit, wished = "token/s", wish.demand_tokens_per_s or 0.0
    if most.answer is not None:
        reach = (
            float(served_by(program, most.answer)[m]) * 1e3
            if what == "demand"
            else (-most.objective)
        )
    return Obstacle(
        name=name,
        asked=wished,
        reachable=reach,
        dimension=unit,
        reason="with the others kept",
    )
