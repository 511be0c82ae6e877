"""`place`: from a cluster as it is to named devices, one verb after the other."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planner.errors import NoPlanError, Problem, RequestError
from planner.estimates.candidates import machine_of
from planner.estimates.degrees import check_degrees
from planner.placing.asking import placement_request, site_of, wish_problems
from planner.placing.conflicts import conflict_of
from planner.placing.describing import (
    LAID,
    PLACED,
    Recorder,
    groups_of,
    placement_choice,
    placement_of,
)
from planner.placing.engines import serving_engine
from planner.placing.homogeneous import beside, preferred
from planner.placing.roles import asked_roles
from planner.placing.runtimes import Roofline, Runtime
from planner.placing.searching import Search, Task, chosen_first, searched, unsettled
from planner.placing.sites import Site, TimedBy, timers_of_parts, usual_runtimes
from planner.placing.table_rows import with_tables
from planner.placing.tables import table_runtime
from planner.results.placements import Placement
from planner.running.deadlines import out_of_time, timed
from planner.solvers.solution import Status
from planner.specs.ask.engine import BEST
from planner.specs.ask.placement import (
    Limits,
    Objective,
    PlacementRequest,
    Role,
    Serve,
    layout_request,
)
from planner.specs.ask.quality import diffusion_problems
from planner.specs.ask.targets import FREE, SolverOptions, Targets
from planner.specs.files.ledger import remark
from planner.specs.files.pools import SiteSpec
from planner.specs.files.state import State
from planner.specs.records.devices import AnyModel, ClusterSpec, DeviceSpec, Workload
from planner.specs.records.graphs import GraphSpec
from planner.specs.records.roles import TOGETHER, Connector
from planner.specs.records.runtimes import ROOFLINE, DeploymentTable, is_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.problems import Problems
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.graph import Graph
from planner.verifier.findings import accounted
from planner.verifier.placing.placements import judge_placement

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()


@arguments_checked()
@timed
def place(
    cluster: SiteSpec | Graph,
    models: AnyModel | Serve | Sequence[AnyModel | Serve],
    *,
    engine: str | Sequence[str] | None = None,
    workload: Workload | None = None,
    targets: Targets = NO_TARGETS,
    state: State | None = None,
    objective: Objective | None = None,
    limits: Limits | None = None,
    batches: Sequence[int] | None = None,
    most_devices: int | None = None,
    aligned: bool = False,
    devices: Mapping[str, DeviceSpec] | None = None,
    group_costs: GroupCosts | CostTable | None = None,
    layout_first: bool = False,
    deployments: Sequence[DeploymentTable] = (),
    confidence: float | None = None,
    prefer: str = BEST,
    roles: Role | None = None,
    connector: Connector | None = None,
    prefill_devices: int | None = None,
    decode_devices: int | None = None,
    expert_devices: int | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
) -> Placement:
    """Choose replicas, their layouts and their devices together, provably best, and prove it.

    Args:
        cluster: a topology of nodes or a torus, a pool of several (`load_pool`), or a graph: an
            undirected `networkx.Graph` whose vertices have `kind` ("device" or "switch"), devices
            `device` (a name such as "h100-sxm", or a key of `devices`) and, if they like,
            `hbm_bytes`, `speed_fraction` and `state` ("free", "busy", …); and whose edges have
            `bytes_per_s` (one way, as attained), `latency_s` and `tier` ("scale-up" inside a
            node, "scale-out" from a device to its leaf switch, "spine" above; without one a
            link is inside a node).
        models: what to serve: models, or `Serve` records with demands and replicas.
        engine: `vllm`, `sglang`, `trtllm`, `roofline`, or `table:FILE` (docs/tables.md); of
            several each replica has the best.
        workload, targets: of all models that have none of their own; targets hold for each
            replica by itself.
        state: what is busy, failed, reserved, slow or narrow, see `load_state`.
        objective: `throughput` (most output tokens a second), `share` (the most for the worst
            served demand), `rent`, `devices` or `latency` (least, of demands or replicas) or
            `cost` (least per output token, of one replica); by default `rent` where every model
            has a demand, `throughput` elsewhere.
        limits: most `rent` [USD/h], `devices` and `power` [W], of all replicas together.
        batches: decode batches to choose from.
        most_devices: of one replica; 64, and on a torus as many as there are.
        aligned: on a torus, let slices start at its cubes only.
        devices: records of a graph's devices by name, before those that ship.
        group_costs: what groups get, in place of what the graph says, see
            `planner.topology.costs`.
        layout_first: choose each layout as if all of the cluster were free, then place that one:
            what planners do that give degrees. To compare with; the joint choice is never worse.
        deployments: rows of the tables that `engine` names, in place of what their files say.
        confidence: of the interval whose upper end an engine's replicas are counted on.
        prefer: `objective`, or `simplest`: of all placements that lose less of an objective that
            is predicted than its error, the one of fewest sorts of replicas, then devices.
        roles: `together`: every replica does both phases; `apart`: each does prefill or decode,
            and caches are handed over; `free`: the program chooses, and may mix them.
        connector: what hands caches over, see `load_connector`; `nixl`, as measured.
        prefill_devices, decode_devices: of each replica of that role, exactly.
        expert_devices: of each replica of a mixture that only decodes, those that hold experts
            alone; 0 lets the program choose whether, and how many.
        options: backend, time limit, gap, threads, seed.

    Raises:
        RequestError: what was asked, the graph or the state cannot be; all problems are listed.
        NoPlanError: nothing satisfies it; the conflict is a `PlacementConflict`.
        OutOfTimeError: the time limit ended before a first placement.
        SolverError: an answer failed its verification.
    """
    began_s = time.perf_counter()
    recorded = Recorder(group_costs) if callable(group_costs) else None
    request = placement_request(
        cluster,
        models,
        engine=engine,
        workload=workload,
        targets=targets,
        state=state,
        objective=objective,
        limits=limits,
        batches=batches,
        most_devices=most_devices,
        aligned=aligned,
        layout_first=layout_first,
        deployments=deployments,
        devices=devices,
        costs=group_costs,
        confidence=confidence,
        prefer=prefer,
        roles=asked_roles(
            roles,
            connector,
            prefill_devices=prefill_devices,
            decode_devices=decode_devices,
            expert_devices=expert_devices,
        ),
        options=options,
    )
    costs = recorded or group_costs or None  # a table that names no group says nothing
    task = task_of(request, costs)
    if layout_first:
        well = site_of(_well(request), costs)
        task = replace(task, sorts=chosen_first(replace(task, site=well)))
    search = searched(task)
    refuse_none(task, search, changed=lambda it: _placed(it, searched(it, search.offered)))
    placement = beside(task, search, _placed(task, search, began_s=began_s))
    if recorded is not None:
        for group in groups_of(placement):
            recorded(group)
        placement = replace(placement, request=replace(placement.request, costs=recorded.asked))
    return accounted(placement, judge_placement(placement), (*PLACED, *LAID))


def task_of(request: PlacementRequest, costs: GroupCosts | CostTable | None) -> Task:
    """A request with what is free of its cluster, and who times each model's deployments.

    Raises:
        RequestError: it cannot be; every problem is listed.
    """
    site = site_of(request, costs)
    is_named = bool(request.engines)
    if not is_named:
        request = replace(request, engines=usual_runtimes(request.every_model, site))
    timed_by = timers_of_parts(request.engines, site)
    request = with_tables(request, site)
    problems = wish_problems(request, site)
    runtimes: list[tuple[Runtime, ...]] = []
    for demand in request.models:
        timers, refused = _timers(request, demand, timed_by)
        runtimes.append(timers)
        # of the usual ones another may serve it, and another fabric
        if not timers or (is_named and len(site.parts) == 1):
            problems += refused
    RequestError.raise_if_any(problems)
    listed = {
        (tables.engine.name, tables.kernels.device): tables
        for timers in runtimes
        for timer in timers
        for tables in timer.tables
    }
    request = replace(request, tables=tuple(listed.values()))
    return Task(request=request, site=site, runtimes=tuple(runtimes))


def _timers(
    request: PlacementRequest, demand: Serve, timed_by: Sequence[TimedBy]
) -> tuple[tuple[Runtime, ...], list[Problem]]:
    """Who times the deployments of one model, and why others cannot; some fabrics it may miss."""
    refused = Problems()
    timers = refused.each(lambda pair: runtime_of(request, demand, *pair), timed_by)
    if timers and len({id(part) for _, part in timed_by}) > 1:
        for problem in refused.problems:
            remark(problem, once=f"{problem.where} {problem.fact}")
    return timers, refused.problems


def runtime_of(request: PlacementRequest, demand: Serve, name: str, site: Site) -> Runtime:
    """Who times the deployments of one model on a fabric, by name.

    Raises:
        RequestError: it cannot be asked so.
    """
    if name == ROOFLINE.name:
        for_layouts = layout_request(request, demand, site.cluster)
        if request.roles.name != TOGETHER:  # there is no cache to hand over
            RequestError.raise_if_any([*diffusion_problems(demand.model)])
        if for_layouts.targets.layouts.fixed():  # their names; degrees are of slices that are free
            free = replace(for_layouts, targets=replace(for_layouts.targets, degrees=FREE))
            check_degrees(free, machine_of(free.cluster, free.model))
        return Roofline(request=for_layouts, roles=request.roles.roles)
    if is_table(name):
        return table_runtime(name, request, demand, site)
    return serving_engine(name, request, demand, site)


def _placed(task: Task, search: Search, *, began_s: float | None = None) -> Placement:
    """What was chosen, described; of changed wishes it is judged at once.

    Raises:
        NoPlanError: nothing was.
        SolverError: an answer failed its verification.
    """
    refuse_none(task, search)
    chosen = placement_choice(preferred(task, search))
    if began_s is not None:
        return placement_of(task, chosen, began_s=began_s)
    placement = placement_of(task, chosen, began_s=time.perf_counter())
    return accounted(placement, judge_placement(placement), (*PLACED, *LAID))


def refuse_none(
    task: Task, search: Search, *, changed: Callable[[Task], Placement] | None = None
) -> None:
    """Raise what is said where there is no placement.

    Args:
        changed: the best placement of other wishes; None where no changes of them are told.

    Raises:
        NoPlanError: nothing satisfies the request; the conflict is a `PlacementConflict`.
        OutOfTimeError: the time limit ended before a first placement.
    """
    if search.solution.status is Status.INFEASIBLE or search.is_nothing:
        if search.offered.is_cut:
            raise out_of_time()
        raise NoPlanError(conflict_of(task, search, changed), requests=(task.request,))
    if search.solution.answer is None:
        raise unsettled(task, search)


def _well(request: PlacementRequest) -> PlacementRequest:
    """The request as if all of its cluster were free and fast; links stay as a graph has them."""
    site = request.site
    if isinstance(site, GraphSpec):
        vertices = (replace(one, state=None, speed_fraction=None) for one in site.vertices)
        site = replace(site, vertices=tuple(vertices))
    return replace(request, site=site, state=None, aligned=isinstance(site, ClusterSpec))
