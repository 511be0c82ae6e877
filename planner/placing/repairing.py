"""`repair`: what stands, in a new state, with the fewest moved bytes within a loss."""

import math
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.errors import Problem, RequestError, SolverError
from planner.placing.configurations import current_replicas
from planner.placing.describing import LAID, PLACED, Outcome, Recorder, groups_of, placement_of
from planner.placing.inheriting import costs_of, repair_request
from planner.placing.planning import refuse_none, task_of
from planner.placing.program import in_si
from planner.placing.searching import Task, offered, searched, solved
from planner.placing.sites import SiteRepair
from planner.programs.placement import Counts, PlacementProgram
from planner.programs.repair import Point, best_of, frontier, least_moved
from planner.results.placements import Placement
from planner.results.repairs import Repair, RepairPoint, RepairRequest
from planner.running.deadlines import out_of_time, timed
from planner.solvers.certify import proofs_in_si
from planner.solvers.placement import PlacementSolution
from planner.solvers.recording import solving_for
from planner.solvers.solution import Status, relative_gap
from planner.specs.ask.placement import Limits, Objective, Serve, inherited_and_changed
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.engines import engines_as_in
from planner.specs.files.pools import SiteSpec
from planner.specs.files.state import State
from planner.specs.records.certificates import LEAST_MOVED, UNCONFIRMED
from planner.specs.records.devices import AnyModel, DeviceSpec, Workload
from planner.specs.records.roles import TOGETHER
from planner.specs.validation.arguments import arguments_checked
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.graph import Graph
from planner.verifier.findings import accounted
from planner.verifier.placing.placements import judge_placement
from planner.verifier.placing.repairs import judge_repair

MOST_POINTS = 12
MOST_DIRECT = 1000
MOST_TOLD = 5
"""Replicas on unknown devices that are told of one by one."""
BYTES_OF_GIB = 2.0**30
CLOSE = 1e-9


@arguments_checked()
@timed
def repair(
    placement: Placement,
    cluster: SiteSpec | Graph | None = None,
    models: AnyModel | Serve | Sequence[AnyModel | Serve] | None = None,
    *,
    engine: str | Sequence[str] | None = None,
    state: State | None,
    loss: float = 0.0,
    workload: Workload | None = None,
    targets: Targets | None = None,
    objective: Objective | None = None,
    limits: Limits | None = None,
    batches: Sequence[int] | None = None,
    most_devices: int | None = None,
    aligned: bool | None = None,
    confidence: float | None = None,
    devices: Mapping[str, DeviceSpec] | None = None,
    group_costs: GroupCosts | CostTable | None = None,
    most_points: int = MOST_POINTS,
    options: SolverOptions | None = None,
) -> Repair:
    """The placement with the fewest moved bytes within a loss of the best one, and its frontier.

    What is left out is as the placement that stands was asked for; the answer says what.

    Args:
        placement: what stands, see `load_placement`; its own devices are not busy in `state`.
        cluster, models, engine, workload, targets, objective, limits, batches, most_devices,
            aligned, devices, group_costs: as in `place`, which has the same answer where nothing
            stands.
        state: what is busy, failed, reserved, slow or down by now.
        loss: share of the best objective of this state that may be lost for fewer bytes.
        most_points: of the frontier, the best one among them; the first that lose most.
        confidence: as in `place`.
        aligned: as in `place`; a slice that stands elsewhere than at a cube has to move.
        options: backend, time limit of all of it, threads, seed.

    Raises:
        RequestError, NoPlanError, SolverError: as `place`; or what stands is not of the cluster.
        OutOfTimeError: time ended before the best and the fewest bytes were proved; a frontier that
            it ends in is said not to be whole.
    """
    began_s = time.perf_counter()
    if placement.request.roles.name != TOGETHER:
        fact = "has replicas that hand caches over, which a repair cannot move yet"
        remedy = "place anew: `plan place --state …`"
        raise RequestError([Problem(where="placement", fact=fact, remedy=remedy)])
    _check_true(placement)
    recorded = Recorder(group_costs) if callable(group_costs) else None
    request = repair_request(
        placement,
        {
            "cluster": cluster,
            "models": models,
            "engine": engine,
            "workload": workload,
            "targets": targets,
            "objective": objective,
            "limits": limits,
            "batches": batches,
            "most_devices": most_devices,
            "aligned": aligned,
            "confidence": confidence,
            "costs": group_costs,
            "options": options,
        },
        state=state,
        loss=loss,
        most_points=most_points,
        devices=devices,
    )
    wanted = request.wanted
    with engines_as_in(one.engine for one in placement.request.tables):
        task = task_of(wanted, recorded or costs_of(wanted))
    wanted = task.request
    request = replace(request, wanted=wanted)
    _check_known(placement, task.site.graph)
    answer = _repaired(task, request, began_s)
    if recorded is not None:
        for group in groups_of(answer.placement):
            recorded(group)
        wanted = replace(wanted, costs=recorded.asked)
        inherited, changed = inherited_and_changed(placement.request, wanted)
        request = replace(request, wanted=wanted, inherited=inherited, changed=changed)
        answer = replace(
            answer, request=request, placement=replace(answer.placement, request=wanted)
        )
    return accounted(answer, judge_repair(answer), LEFT_OUT)


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
        Problem(where=it.name, value=names[0], fact="is no device of the cluster", remedy=remedy)
        for it in before.replicas
        if (names := [rank.device for rank in it.ranks if rank.device not in known])
    ]
    if problems:
        raise RequestError(problems[:MOST_TOLD])


LEFT_OUT = (*PLACED, *LAID, "before", "dimension", "changes", "dropped", "moves", "load_s")
"""What a repair leaves to the account."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RepairFrontier:
    """The points of a repair between bytes and objective.

    Args:
        best: with the best objective, and of those the fewest bytes; `chosen` with the fewest
            bytes within the loss.
        of_best, of_bytes: what solvers said of the best objective, and of the fewest bytes.
        points: of the frontier, by bytes.
    """

    best: Point
    chosen: Point
    of_best: PlacementSolution
    of_bytes: PlacementSolution
    points: Sequence[Point]
    is_whole: bool


@solving_for("repair")
def _repaired(task: Task, request: RepairRequest, began_s: float) -> Repair:
    standing = current_replicas(request.before)
    whole = offered(task, whole=True)
    if whole.is_cut:
        raise out_of_time()
    posed = whole.repaired(standing, task.aim())
    search = _pointed(task, posed, request)
    solution = replace(
        search.of_best, answer=search.chosen.counts, objective=search.chosen.objective
    )
    placed = _place(task, posed, solution, began_s)
    chosen, best = search.chosen.objective, search.best.objective
    if not math.isclose(chosen, best, rel_tol=1e-7, abs_tol=CLOSE):
        is_proved = Status.OPTIMAL is search.of_best.status is search.of_bytes.status
        status = LEAST_MOVED if is_proved else UNCONFIRMED
        proof = replace(placed.certificate, status=status, given_up_for="")
        placed = replace(placed, certificate=proof)
    objective, of_bytes = request.wanted.objective, search.of_bytes
    return Repair(
        request=request,
        placement=placed,
        before=0.0,
        best=in_si(objective, search.best.objective),
        dimension="",
        changes=(),
        dropped=(),
        moves=(),
        frontier=tuple(_point(objective, point, search) for point in search.points),
        is_whole=search.is_whole,
        moved_proofs=proofs_in_si(of_bytes.vouched.proofs, lambda gib: gib * BYTES_OF_GIB),
        moved_vouched_by=of_bytes.vouched.by if of_bytes.status is Status.OPTIMAL else (),
        load_s=0.0,
    )


def _pointed(task: Task, posed: SiteRepair, request: RepairRequest) -> _RepairFrontier:
    """The best, the one with the fewest bytes within the loss, and those between."""
    solved_all: list[PlacementSolution] = []

    def solve(program: PlacementProgram) -> Counts | None:
        solved_all.append(_solved(program, request.wanted.options))
        return solved_all[-1].answer

    best = best_of(posed.program, posed.moved, solve)
    if best is None:
        refuse_none(task, searched(task))
        raise SolverError("a repair is infeasible where a placement is not")
    loss, n_before = request.loss_fraction, len(solved_all)
    at_most = best.objective + loss * abs(best.objective)
    chosen = best if loss == 0 else least_moved(posed.program, posed.moved, solve, at_most=at_most)
    assert chosen is not None
    of_best, of_bytes = solved_all[0], solved_all[1 if loss == 0 else n_before]
    points, is_whole = frontier(
        posed.program, posed.moved, solve, best=best, most_points=request.most_points
    )
    return _RepairFrontier(
        best=best,
        chosen=chosen,
        of_best=of_best,
        of_bytes=of_bytes,
        points=_undominated([*points, chosen]),
        is_whole=is_whole,
    )


def _place(task: Task, posed: SiteRepair, solution: PlacementSolution, began_s: float) -> Placement:
    """The repaired placement, described.

    Raises:
        NoPlanError: it is no replica at all.
    """
    assert solution.answer is not None
    n_columns = posed.program.n_columns
    chosen = Outcome(
        located=posed.located(solution.answer),
        solution=solution,
        candidate_counts=offered(task).candidate_counts(n_columns),
        n_solved=n_columns,
    )
    placed = placement_of(task, chosen, began_s=began_s)
    if not placed.replicas:
        refuse_none(task, searched(task))
        raise SolverError("a repair places nothing where a placement places replicas")
    return placed


def _point(objective: str, point: Point, search: _RepairFrontier) -> RepairPoint:
    best, chosen = search.best, search.chosen
    return RepairPoint(
        moved_bytes=point.moved * BYTES_OF_GIB,
        objective=in_si(objective, point.objective),
        loss_fraction=abs(relative_gap(best.objective, point.objective)),
        is_chosen=point is chosen or _same(point, chosen),
    )


def _same(point: Point, other: Point) -> bool:
    near = math.isclose(point.objective, other.objective, rel_tol=1e-7, abs_tol=CLOSE)
    return near and math.isclose(point.moved, other.moved, rel_tol=1e-7, abs_tol=CLOSE)


def _undominated(points: Sequence[Point]) -> list[Point]:
    """By bytes, those that are better than all that move less."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.moved, point.objective)):
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
    solution = solved(program, replace(options, gap=0.0), most_direct=MOST_DIRECT)
    if not solution.status.is_final:
        raise solution.unsettled(solution.bound)
    return solution
