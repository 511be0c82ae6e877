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
from planner.placement_results import Placement
from planner.placing.asking import requests_of
from planner.placing.columns import Way
from planner.placing.conflicts import conflict_of
from planner.placing.describing import placement_of
from planner.placing.dominance import undominated
from planner.placing.inheriting import costs_of, repair_request
from planner.placing.moving import changes_of, load_s
from planner.placing.planning import Recorder, asked_of
from planner.placing.repair_fabric import Offer, locate_repair, pose_repair
from planner.placing.repair_torus import locate_torus_repair, pose_torus_repair
from planner.placing.searching import Asked, all_ways, searched
from planner.placing.slicing import AskedTorus, ground_of, place_slices
from planner.placing.slicing import placement_of as torus_placement_of
from planner.placing.standing import Sharding, Standing, sharding_of, standing_of
from planner.placing.tori import TorusWay
from planner.placing.totals import UNITS, in_si
from planner.programs.layout import FloatArray, IntArray
from planner.programs.placement import Counts, PlacementProgram
from planner.programs.repair import Point, best_of, frontier, least_moved
from planner.repair_results import Repair, RepairPoint, RepairRequest
from planner.solvers.placement import PlacementSolution, solve_placement
from planner.solvers.solution import Status, effort_of, relative_gap
from planner.specs.arguments import arguments_checked
from planner.specs.placement_request import Serve, SiteSpec, inherited_and_changed
from planner.specs.records import ClusterSpec, DeviceSpec, ModelSpec, Workload
from planner.specs.request import SolverOptions, Targets
from planner.specs.state import State
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.slices import torus_device
from planner.verifier.findings import refuse
from planner.verifier.placements import judge_placement
from planner.verifier.repairs import judge_repair

if TYPE_CHECKING:
    import networkx as nx

MOST_POINTS = 12
MOST_DIRECT = 1000
MOST_TOLD = 5
"""Replicas on unknown devices that are told of one by one."""
BYTES_OF_GIB = 2.0**30
CLOSE = 1e-9


@arguments_checked(ranges="later")
@timed
def repair(
    placement: Placement,
    cluster: SiteSpec | nx.Graph[Any] | None = None,
    models: ModelSpec | Serve | Sequence[ModelSpec | Serve] | None = None,
    *,
    state: State | None,
    loss: float = 0.0,
    workload: Workload | None = None,
    targets: Targets | None = None,
    objective: str | None = None,
    limits: Mapping[str, float] | None = None,
    batches: Sequence[int] | None = None,
    most_devices: int | None = None,
    aligned: bool | None = None,
    devices: Mapping[str, DeviceSpec] | None = None,
    group_costs: GroupCosts | CostTable | None = None,
    most_points: int = MOST_POINTS,
    options: SolverOptions | None = None,
) -> Repair:
    """The placement with the fewest moved bytes within a loss of the best one, and its frontier.

    What is left out is as the placement that stands was asked for; the answer says what.

    Args:
        placement: what stands, see `load_placement`; its own devices are not busy in `state`.
        cluster, models, workload, targets, objective, limits, batches, most_devices, aligned,
            devices, group_costs: as in `place`, which has the same answer where nothing stands.
        state: what is busy, failed, reserved, slow or down by now.
        loss: share of the best objective of this state that may be lost for fewer bytes.
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
    _check_true(placement)
    recorded = Recorder(group_costs) if callable(group_costs) else None
    request = repair_request(
        placement,
        {
            "cluster": cluster,
            "models": models,
            "workload": workload,
            "targets": targets,
            "objective": objective,
            "limits": limits,
            "batches": batches,
            "most_devices": most_devices,
            "aligned": aligned,
            "costs": group_costs,
            "options": options,
        },
        state=state,
        loss=loss,
        most_points=most_points,
        devices=devices,
    )
    wanted = request.wanted
    if isinstance(wanted.site, ClusterSpec):
        requests = tuple(requests_of(wanted, wanted.site))
        asked_torus = AskedTorus(request=wanted, requests=requests)
        everywhere = np.ndindex(asked_torus.fabric.shape)
        _check_known(placement, {torus_device(*at) for at in everywhere})
        posed = _on_torus(asked_torus, placement)
    else:
        costs = recorded or costs_of(wanted)
        asked = asked_of(wanted, costs)
        _check_known(placement, asked.site.graph)
        posed = _on_nodes(asked, placement, costs)
    found = _repaired(posed, request, began_s)
    if recorded is not None:
        wanted = replace(wanted, costs=recorded.asked)
        inherited, changed = inherited_and_changed(placement.request, wanted)
        request = replace(request, wanted=wanted, inherited=inherited, changed=changed)
        found = replace(
            found,
            request=request,
            placement=replace(found.placement, request=wanted),
        )
    refuse(judge_repair(found)[1])
    return found


def _check_true(before: Placement) -> None:
    """That what stands is what its request comes to: a file may have been altered.

    Raises:
        RequestError: some of it is not so.
    """
    _, wrong = judge_placement(before)
    remedy = "`plan verify FILE` lists all that is not so, `plan place --json` writes it anew"
    if wrong:
        facts = [f"is not true: {one}" for one in wrong[:MOST_TOLD]]
        raise RequestError([Problem(where="placement", fact=f, remedy=remedy) for f in facts])


def _check_known(before: Placement, known: Container[str]) -> None:
    """That all that stands is in the cluster.

    Raises:
        RequestError: a device of a replica is not.
    """
    remedy = "name the cluster that it was placed on"
    problems = [
        Problem(where=one.name, value=names[0], fact="is no device of the cluster", remedy=remedy)
        for one in before.replicas
        if (names := [rank.device for rank in one.ranks if rank.device not in known])
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


def _repaired(posed: _Posed, request: RepairRequest, began_s: float) -> Repair:
    objective, options = request.wanted.objective, request.wanted.options
    loss, before = request.loss_fraction, request.before
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
        posed.program, posed.moved, solve, best=best, most_points=request.most_points
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
    changes, moves, dropped = changes_of(placed, standing_of(before))
    moved_bytes = sum(move.n_bytes for move in moves)
    counted = chosen.moved * BYTES_OF_GIB
    if not math.isclose(moved_bytes, counted, rel_tol=1e-6, abs_tol=1.0):
        raise SolverError(f"{counted!r} bytes are counted on and {moved_bytes!r} move")
    return Repair(
        request=request,
        placement=placed,
        before=before.certificate.objective,
        best=in_si(objective, best.objective),
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
        load_s=load_s(moves, posed.width),
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
        UnsettledError: the provers do not agree on it.
    """
    effort = replace(effort_of(options), gap=0.0)
    is_packing = bool((program.uses.amount > 0).all()) and program.n_columns > MOST_DIRECT
    solver = "narrowing" if is_packing else options.solver
    solution = solve_placement(program, solver=solver, effort=effort, proof=options.proof)
    if not solution.status.is_final:
        raise solution.unsettled(solution.bound)
    return solution


def _on_nodes(asked: Asked, before: Placement, costs: GroupCosts | CostTable | None) -> _Posed:
    search, standing = searched(asked), standing_of(before)
    offers = offers_of(asked, standing)
    posed = pose_repair(asked, offers, standing)

    def placed(solution: PlacementSolution, began_s: float) -> Placement:
        assert solution.answer is not None
        located = locate_repair(asked, posed, solution.answer, standing)
        n_pieces = len(posed.pieces)
        taken = tuple((offers[b.offer].way, b.leaf) for b in posed.taken)
        counts = Counts(copies=solution.answer.copies[n_pieces:])
        described = replace(
            search,
            posed=replace(search.posed, program=posed.program, given=(), staged=(), taken=taken),
            solution=replace(solution, answer=counts),
        )
        return placement_of(asked, described, located, began_s=began_s, costs=costs)

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


def offers_of(asked: Asked, before: Sequence[Standing]) -> list[Offer]:
    """Ways that may be loaded anew, and those whose weights stand already."""
    by_latency = asked.objective == "latency"
    several = np.array([one.replicas is None for one in asked.wanted])
    ways, is_cut = all_ways(asked)
    if is_cut:
        raise out_of_time()
    new = {id(way) for way in undominated(ways, several=several, by_latency=by_latency)}
    standing = {one.sharding for one in before}
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


def _on_torus(asked: AskedTorus, before: Placement) -> _Posed:
    ground, stands_there = ground_of(asked), standing_of(before)
    if ground.is_cut:
        raise out_of_time()
    standing = {one.sharding for one in stands_there}
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
    posed = pose_torus_repair(asked, ground, offered, shardings, stands_there)

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
