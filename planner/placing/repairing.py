"""`repair`: what stands, in a new state, with the fewest moved bytes within a loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.certificates import LEAST_MOVED, UNCONFIRMED
from planner.certify import proofs_in_si
from planner.deadlines import out_of_time, timed
from planner.describe import describe
from planner.errors import NoPlanError, Problem, RequestError, SolverError
from planner.placement_results import Placement, Replica
from planner.placing import planning
from planner.placing.asking import MOST_DEVICES, Serve, requests_of, site_of
from planner.placing.columns import Way
from planner.placing.conflicts import conflict_of
from planner.placing.describing import placement_of
from planner.placing.dominance import undominated
from planner.placing.repair_fabric import Offer, locate_repair, pose_repair
from planner.placing.repair_torus import locate_torus_repair, pose_torus_repair
from planner.placing.searching import Asked, all_ways, searched
from planner.placing.slicing import AskedTorus, ground_of, place_slices
from planner.placing.slicing import placement_of as torus_placement_of
from planner.placing.standing import Sharding, Standing, Standings, sharding_of, standings_of
from planner.placing.tori import TorusWay
from planner.placing.totals import UNITS, in_si
from planner.programs.layout import FloatArray, IntArray
from planner.programs.placement import Counts, PlacementProgram
from planner.programs.repair import Point, best_of, frontier, least_moved
from planner.repair_results import Change, Move, Repair, RepairPoint
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Status, effort_of, relative_gap
from planner.specs.pools import PoolSpec
from planner.specs.records import ClusterSpec, ModelSpec, TorusFabric, Workload
from planner.specs.request import SolverOptions, Targets
from planner.specs.state import State
from planner.topology.slices import torus_device

if TYPE_CHECKING:
    import networkx as nx

MOST_POINTS = 12
MOST_DIRECT = 1000
MOST_TOLD = 5
"""Replicas on unknown devices that are told of one by one."""
BYTES_OF_GIB = 2.0**30
CLOSE = 1e-9


@timed
def repair(
    placement: Placement | Standings,
    cluster: ClusterSpec | PoolSpec | nx.Graph[Any],
    models: ModelSpec | Serve | Sequence[ModelSpec | Serve],
    *,
    state: State | None,
    loss: float = 0.0,
    workload: Workload | None = None,
    targets: Targets = planning.NO_TARGETS,
    objective: str | None = None,
    limits: Mapping[str, float] | None = None,
    batches: Sequence[int] | None = None,
    most_devices: int | None = None,
    most_points: int = MOST_POINTS,
    aligned: bool = False,
    options: SolverOptions = planning.DEFAULT_OPTIONS,
) -> Repair:
    """The placement with the fewest moved bytes within a loss of the best one, and its frontier.

    Args:
        placement: what stands, or what `load_standings` read of it; its own devices are not
            busy in `state`.
        cluster, models, workload, targets, limits, batches, most_devices: as in `place`, which
            has the same answer where nothing stands.
        state: what is busy, failed, reserved, slow or down by now.
        loss: share of the best objective of this state that may be lost for fewer bytes.
        objective: that of the placement, unless another is asked for.
        most_points: of the frontier, the best one among them; the first that lose most.
        aligned: as in `place`; a slice that stands elsewhere than at a cube has to move.
        options: backend, time limit of all of it, threads, seed.

    Raises:
        RequestError, NoPlanError, SolverError: as `place`; or what stands is not of the cluster.
        OutOfTimeError: time ended before the best and the fewest bytes were proved; a frontier that
            it ends in is said not to be whole.
    """
    began_s = time.perf_counter()
    if not 0 <= loss < 1:
        fact = "is no share between 0 and 1"
        raise RequestError([Problem(where="loss", value=f"{loss:g}", fact=fact)])
    before = standings_of(placement) if isinstance(placement, Placement) else placement
    wanted = planning.wishes(models)
    objective = objective or before.objective_name
    asking: dict[str, Any] = {
        "workload": workload,
        "targets": targets,
        "batches": batches,
        "objective": objective,
        "options": options,
    }
    limited = planning.read_limits(limits or {})
    planning.check_most(most_devices)
    planning.check_aligned(cluster, aligned=aligned)
    if isinstance(cluster, ClusterSpec) and isinstance(cluster.fabric, TorusFabric):
        _check_known(before, {torus_device(*at) for at in np.ndindex(cluster.fabric.shape)})
        posed = _on_torus(
            AskedTorus(
                cluster=cluster,
                state=state,
                wanted=wanted,
                requests=tuple(requests_of(wanted, cluster, **asking)),
                objective=objective,
                limits=limited,
                options=options,
                most_devices=most_devices,
                aligned=aligned,
            ),
            before,
        )
    else:
        site = site_of(
            cluster,
            state,
            devices=None,
            group_costs=None,
            most_devices=most_devices or MOST_DEVICES,
        )
        _check_known(before, site.graph)
        asked = Asked(
            site=site,
            wanted=wanted,
            requests=tuple(requests_of(wanted, site, **asking)),
            objective=objective,
            limits=limited,
            options=options,
        )
        posed = _on_nodes(asked, before)
    return _repaired(posed, before, (objective, loss, most_points), options, began_s)


def _check_known(before: Standings, known: Container[str]) -> None:
    """That all that stands is in the cluster.

    Raises:
        RequestError: a device of a replica is not.
    """
    remedy = "name the cluster that it was placed on"
    problems = [
        Problem(where=one.name, value=names[0], fact="is no device of the cluster", remedy=remedy)
        for one in before.replicas
        if (names := [name for name in one.devices if name not in known])
    ]
    if problems:
        raise RequestError(problems[:MOST_TOLD])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Posed:
    """A repair, whatever the fabric.

    Args:
        moved: GiB of each column.
        placed: a placement record of counts, given its solution and when it all began.
        refuse: raises what `place` raises where nothing can be.
        width: bytes a second that a device loads over its own link, by its name.
    """

    program: PlacementProgram
    moved: FloatArray
    placed: Callable[[PlacementSolution, float], Placement]
    refuse: Callable[[], None]
    width: Callable[[str], float]


def _repaired(
    posed: _Posed,
    before: Standings,
    wish: tuple[str, float, int],
    options: SolverOptions,
    began_s: float,
) -> Repair:
    objective, loss, most_points = wish
    solved: list[PlacementSolution] = []

    def solve(program: PlacementProgram) -> Counts | None:
        solved.append(_solved(program, options))
        return solved[-1].answer

    best = best_of(posed.program, posed.moved, solve)
    if best is None:
        posed.refuse()
        raise SolverError("a repair is infeasible where a placement is not")
    at_most = best.objective + loss * abs(best.objective)
    n_before = len(solved)
    chosen = best if loss == 0 else least_moved(posed.program, posed.moved, solve, at_most=at_most)
    assert chosen is not None
    of_best, of_bytes = solved[0], solved[1 if loss == 0 else n_before]
    points, is_whole = frontier(
        posed.program, posed.moved, solve, best=best, most_points=most_points
    )
    kept = _undominated([*points, chosen])
    solution = replace(of_best, answer=chosen.counts, objective=chosen.objective)
    placed = posed.placed(solution, began_s)
    if not placed.replicas:
        posed.refuse()
        raise SolverError("a repair places nothing where a placement places replicas")
    if not _is_best(chosen, best):
        is_proved = Status.OPTIMAL is of_best.status is of_bytes.status
        status = LEAST_MOVED if is_proved else UNCONFIRMED
        placed = replace(placed, certificate=replace(placed.certificate, status=status))
    changes, moves, dropped = _changes(placed, before.replicas)
    moved_bytes = sum(move.n_bytes for move in moves)
    counted = chosen.moved * BYTES_OF_GIB
    if not math.isclose(moved_bytes, counted, rel_tol=1e-6, abs_tol=1.0):
        raise SolverError(f"{counted!r} bytes are counted on and {moved_bytes!r} move")
    return Repair(
        placement=placed,
        before=before.objective,
        best=in_si(objective, best.objective),
        most_loss_fraction=loss,
        dimension=UNITS[objective][1],
        changes=changes,
        dropped=dropped,
        moves=moves,
        frontier=tuple(
            RepairPoint(
                moved_bytes=point.moved * BYTES_OF_GIB,
                objective=in_si(objective, point.objective),
                loss_fraction=abs(relative_gap(best.objective, point.objective)),
                is_chosen=point is chosen or _same(point, chosen),
            )
            for point in kept
        ),
        is_whole=is_whole,
        moved_proofs=proofs_in_si(of_bytes.vouched.proofs, lambda gib: gib * BYTES_OF_GIB),
        moved_vouched_by=of_bytes.vouched.by if of_bytes.status is Status.OPTIMAL else (),
        load_s=_load_s(moves, posed.width),
    )


def _is_best(chosen: Point, best: Point) -> bool:
    return math.isclose(chosen.objective, best.objective, rel_tol=1e-7, abs_tol=CLOSE)


def _same(one: Point, other: Point) -> bool:
    near = math.isclose(one.objective, other.objective, rel_tol=1e-7, abs_tol=CLOSE)
    return near and math.isclose(one.moved, other.moved, rel_tol=1e-7, abs_tol=CLOSE)


def _undominated(points: Sequence[Point]) -> list[Point]:
    """By bytes, those that are better than all that move less."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda one: (one.moved, one.objective)):
        if kept and (_same(point, kept[-1]) or point.objective >= kept[-1].objective - CLOSE):
            continue
        kept.append(point)
    return kept


def _solved(program: PlacementProgram, options: SolverOptions) -> PlacementSolution:
    """Solved to the proof.

    Raises:
        OutOfTimeError: the time ended before it.
    """
    effort = replace(effort_of(options), gap=0.0)
    is_packing = bool((program.uses.amount > 0).all()) and program.n_columns > MOST_DIRECT
    solver = "narrowing" if is_packing else options.solver
    solution = solve_placement(program, solver=solver, effort=effort, proof=options.proof)
    if not solution.status.is_final:
        raise out_of_time(solution.bound)
    return solution


def _changes(
    placed: Placement, standing: Sequence[Standing]
) -> tuple[tuple[Change, ...], tuple[Move, ...], tuple[str, ...]]:
    """What moves, counted device by device: a shard moves where its device does not have it."""
    owns = {
        name: (one.sharding, rank, one.name)
        for one in standing
        for rank, name in enumerate(one.devices)
    }
    changes, moves, met = [], [], set[str]()
    keeps: dict[tuple[Sharding, int], list[str]] = {}
    recipes = [recipe.deployment for recipe in placed.recipes]
    for one in placed.replicas:
        sharding = sharding_of(one.model, recipes[one.recipe])
        for rank in one.ranks:
            if owns.get(rank.device, ())[:2] == (sharding, rank.rank):
                keeps.setdefault((sharding, rank.rank), []).append(rank.device)
    for one in placed.replicas:
        deployment = recipes[one.recipe]
        sharding = sharding_of(one.model, deployment)
        stays = [
            owns[rank.device][2]
            for rank in one.ranks
            if owns.get(rank.device, ())[:2] == (sharding, rank.rank)
        ]
        mine = _moves(one, sharding, deployment.memory.weights_bytes, (owns, keeps))
        fate = "kept" if not mine else "patched" if stays else "new"
        before = max(dict.fromkeys(stays), key=stays.count, default="")
        met |= set(stays)
        moves += mine
        changes.append(
            Change(
                replica=one.name,
                before=before,
                fate=fate,
                n_moved=len(mine),
                moved_bytes=sum(move.n_bytes for move in mine),
            )
        )
    dropped = tuple(one.name for one in standing if one.name not in met)
    return tuple(changes), tuple(moves), dropped


def _moves(
    one: Replica,
    sharding: Sharding,
    n_bytes: float,
    known: tuple[dict[str, tuple[Sharding, int, str]], dict[tuple[Sharding, int], list[str]]],
) -> list[Move]:
    """Shards that a replica loads, from devices that keep them in turn."""
    owns, keeps = known
    moves = []
    for rank in one.ranks:
        if owns.get(rank.device, ())[:2] == (sharding, rank.rank):
            continue
        sources = keeps.get((sharding, rank.rank), [])
        source = sources.pop(0) if sources else ""
        if source:
            sources.append(source)
        moves.append(
            Move(
                replica=one.name,
                rank=rank.rank,
                device=rank.device,
                source=source,
                n_bytes=n_bytes,
            )
        )
    return moves


def _load_s(moves: Sequence[Move], width: Callable[[str], float]) -> float:
    """The longest time of a device that receives from, or sends to, other devices [s]."""
    busy: dict[tuple[str, str], float] = {}
    for move in moves:
        if move.source:
            for way, name in (("in", move.device), ("out", move.source)):
                rate = width(name)
                seconds = move.n_bytes / rate if rate > 0 else math.inf
                busy[way, name] = busy.get((way, name), 0.0) + seconds
    return max(busy.values(), default=0.0)


def _on_nodes(asked: Asked, before: Standings) -> _Posed:
    search = searched(asked)
    offers = offers_of(asked, before)
    posed = pose_repair(asked, offers, before.replicas)

    def placed(solution: PlacementSolution, began_s: float) -> Placement:
        assert solution.answer is not None
        located = locate_repair(asked, posed, solution.answer, before.replicas)
        n_pieces = len(posed.pieces)
        taken = tuple((offers[b.offer].way, b.leaf) for b in posed.taken)
        counts = Counts(copies=solution.answer.copies[n_pieces:])
        described = replace(
            search,
            posed=replace(search.posed, program=posed.program, given=(), staged=(), taken=taken),
            solution=replace(solution, answer=counts),
        )
        return placement_of(asked, described, located, began_s=began_s, costs=None)

    def refuse() -> None:
        counts = search.solution.answer
        n_before = len(search.posed.given) + len(search.posed.staged)
        if counts is None or not any(counts.copies[n_before:]):
            raise NoPlanError(conflict_of(asked, search))

    able = {
        name: max(ability.nic_bytes_per_s, 0.0)
        for node in asked.site.ground.inventory.nodes
        for name, ability in node.free
    }
    return _Posed(
        program=posed.program,
        moved=posed.moved,
        placed=placed,
        refuse=refuse,
        width=lambda name: able.get(name, 0.0),
    )


def offers_of(asked: Asked, before: Standings) -> list[Offer]:
    """Ways that may be loaded anew, and those whose weights stand already."""
    by_latency = asked.objective == "latency"
    several = np.array([one.replicas is None for one in asked.wanted])
    ways, is_cut = all_ways(asked)
    if is_cut:
        raise out_of_time()
    new = {id(way) for way in undominated(ways, several=several, by_latency=by_latency)}
    standing = {one.sharding for one in before.replicas}
    offers = []
    for way in ways:
        offer = _offer(asked, way, is_new=id(way) in new and way.span != "stage")
        if offer.is_new or offer.sharding in standing:
            offers.append(offer)
    return offers


def _offer(asked: Asked, way: Way, *, is_new: bool) -> Offer:
    it = way.evaluated
    deployment = describe(it.table, it.posed, it.request, way.assignment)
    return Offer(
        way=way,
        sharding=sharding_of(asked.wanted[way.model].model.name, deployment),
        shard_bytes=deployment.memory.weights_bytes,
        is_new=is_new,
    )


def _on_torus(asked: AskedTorus, before: Standings) -> _Posed:
    ground = ground_of(asked)
    if ground.is_cut:
        raise out_of_time()
    standing = {one.sharding for one in before.replicas}
    shardings: dict[int, tuple[Sharding, float]] = {}
    offered: list[tuple[list[TorusWay], IntArray]] = []
    for (ways, of_opening), (_, kept) in zip(ground.offered, ground.kept, strict=True):
        stands = np.zeros(len(ways) + 1, np.bool_)
        for w, way in enumerate(ways):
            it = way.evaluated
            deployment = describe(it.table, it.posed, it.request, way.assignment)
            name = asked.wanted[way.model].model.name
            shardings[id(way)] = sharding_of(name, deployment), deployment.memory.weights_bytes
            stands[w] = shardings[id(way)][0] in standing
        # slices that smaller ones fill are no use but to those who stand there
        offered.append((ways, np.where((kept >= 0) | stands[of_opening], of_opening, -1)))
    posed = pose_torus_repair(asked, ground, offered, shardings, before.replicas)

    def placed(solution: PlacementSolution, began_s: float) -> Placement:
        assert solution.answer is not None
        located = [one for one, _ in locate_torus_repair(posed, solution.answer)]
        base = replace(posed.base, program=posed.program)
        return torus_placement_of(asked, ground, (base, solution, located), began_s=began_s)

    def refuse() -> None:
        place_slices(asked)

    return _Posed(
        program=posed.program,
        moved=posed.moved,
        placed=placed,
        refuse=refuse,
        width=lambda name: asked.fabric.link_bytes_per_s,
    )
