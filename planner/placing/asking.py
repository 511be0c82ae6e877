"""What is asked of a placement, checked, with its defaults filled in."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.errors import Problem, RequestError
from planner.placing.fabrics.site import Fabric, graph_in
from planner.placing.roles import between_fabrics, role_problems
from planner.placing.sites import Site, without_layouts
from planner.placing.tori.mixed import MixedPool
from planner.placing.tori.site import Torus
from planner.quantities.table import lacking, placed
from planner.runtimes.engines import WITHOUT_ERROR
from planner.specs.ask.defaults import reuse_options
from planner.specs.ask.engine import SIMPLEST
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.placement import GroupCost, PlacementRequest, Serve, tidied
from planner.specs.ask.targets import DEFAULT_WORKLOAD, Targets
from planner.specs.files.places import Kind as FileKind, files
from planner.specs.files.pools import MixedPoolSpec, PoolSpec, SiteSpec, pool_of
from planner.specs.files.reading import load_device
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.options.meanings import LEAVE_OUT, misplaced
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import (
    STORES,
    AnyModel,
    ClusterSpec,
    DeviceSpec,
    ModelSpec,
    TorusFabric,
    Workload,
)
from planner.specs.records.graphs import GraphSpec
from planner.specs.records.roles import TOGETHER
from planner.specs.records.runtimes import DeploymentTable
from planner.specs.validation.problems import did_you_mean
from planner.topology.costs import CostTable, GroupCosts
from planner.topology.faults import validate_graph
from planner.topology.graph import Graph, device_names, spec_of

AnySite = SiteSpec | Any
"""A cluster, a pool, a graph's record, or a `networkx` graph."""


def placement_request(
    cluster: AnySite,
    models: AnyModel | Serve | Sequence[AnyModel | Serve],
    *,
    engine: str | Sequence[str] | None = None,
    workload: Workload | None,
    objective: str | None,
    limits: Mapping[str, float] | None,
    batches: Sequence[int] | None,
    deployments: Sequence[DeploymentTable] = (),
    devices: Mapping[str, DeviceSpec] | None = None,
    costs: GroupCosts | CostTable | None = None,
    aligned: bool = False,
    **fields: Any,  # noqa: ANN401
) -> PlacementRequest:
    """The request, whole: what a function says of groups is added when it was asked.

    Args:
        fields: others of the request, as they are.

    Raises:
        RequestError: it cannot be placed; every problem that can be seen without a solver.
    """
    wanted, engines = wishes(models), named_engines(engine)
    has_demands = all(one.demand_tokens_per_s is not None for one in wanted)
    if aligned and not has_slices(cluster):
        name = f"`{cluster.name}`" if isinstance(cluster, ClusterSpec | PoolSpec) else "a graph"
        fact = f"starts slices of a torus at its cubes, and {name} is no torus"
        raise RequestError([Problem(where="--align", fact=fact, remedy="leave it out")])
    return PlacementRequest(
        site=site_spec(cluster, devices or {}),
        models=wanted,
        engines=engines,
        workload=workload or DEFAULT_WORKLOAD,
        objective=objective or ("rent" if has_demands else "throughput"),
        limits=dict(limits or {}),
        batches=DEFAULT_BATCHES if batches is None else tuple(batches),
        deployments=tuple(deployments),
        costs=_table_costs(costs),
        aligned=aligned,
        **fields,
    )


def has_slices(cluster: AnySite) -> bool:
    """Whether replicas may be slices of it: it is a torus, or has one."""
    return is_torus(cluster) or isinstance(cluster, MixedPoolSpec)


def is_torus(cluster: AnySite) -> bool:
    """Whether all replicas are slices of it."""
    return isinstance(cluster, ClusterSpec) and isinstance(cluster.fabric, TorusFabric)


def named_engines(engine: str | Sequence[str] | None) -> tuple[str, ...]:
    """The engines that are asked for, once each; none where that is left to the planner."""
    listed = [engine] if isinstance(engine, str) else [*(engine or [])]
    return tuple(dict.fromkeys(listed))


def wishes(models: AnyModel | Serve | Sequence[AnyModel | Serve]) -> tuple[Serve, ...]:
    listed = [models] if isinstance(models, (ModelSpec, Architecture, Serve)) else [*models]
    return tuple(tidied(one) if isinstance(one, Serve) else Serve(model=one) for one in listed)


def _table_costs(costs: GroupCosts | CostTable | None) -> tuple[GroupCost, ...]:
    if costs is None or callable(costs):
        return ()
    return tuple(
        GroupCost(name=name, devices=(), bytes_per_s=float(cost[0]), latency_s=float(cost[1]))
        for name, cost in costs.items()
    )


def site_spec(cluster: AnySite, devices: Mapping[str, DeviceSpec]) -> SiteSpec:
    """The record of whatever is placed on.

    Raises:
        RequestError: it is nothing that can be placed on, or a graph that has faults.
    """
    if isinstance(cluster, ClusterSpec):
        return cluster if isinstance(cluster.fabric, TorusFabric) else pool_of(cluster)
    if isinstance(cluster, (PoolSpec, GraphSpec, MixedPoolSpec)):
        return cluster
    if not hasattr(cluster, "is_directed"):
        fact = f"is a {type(cluster).__name__}, not a topology, a pool or a graph"
        remedy = "load one: `load_topology`, `load_pool`"
        raise RequestError([Problem(where="cluster", fact=fact, remedy=remedy)])
    problems = validate_graph(cluster)
    known, unknown = _known_devices(cluster, devices)
    if problems or unknown:
        raise RequestError([*problems, *unknown])
    return spec_of(cluster, known)


def site_of(
    request: PlacementRequest | FleetRequest, costs: GroupCosts | CostTable | None = None
) -> Site:
    """The cluster of a request with what is free of it.

    Args:
        costs: what groups get, in place of what the graph says.

    Raises:
        RequestError: a state does not fit it, or nothing is free.
    """
    spec, most_devices = request.site, request.most_devices
    graph = graph_in(spec, request.state)
    aligned = isinstance(request, PlacementRequest) and request.aligned
    if isinstance(spec, ClusterSpec):
        return Torus(spec, graph, aligned=aligned, most_devices=most_devices)
    if isinstance(spec, MixedPoolSpec):
        return MixedPool(spec, graph, aligned=aligned, most_devices=most_devices, costs=costs)
    return Fabric(spec, graph, most_devices=most_devices, costs=costs)


def _known_devices(
    graph: Graph, given: Mapping[str, DeviceSpec]
) -> tuple[dict[str, DeviceSpec], list[Problem]]:
    """Records of the devices that a graph names, and what is wrong with the names."""
    named: dict[str, str] = {}
    problems: list[Problem] = []
    for vertex in device_names(graph):
        name = graph.nodes[vertex].get("device")
        if not isinstance(name, str):
            if len(problems) < 3:
                remedy = 'name its accelerator: device="h100-sxm"'
                key = f"vertex {vertex}"
                problem = Problem(where="graph", key=key, fact="has no `device`", remedy=remedy)
                problems.append(problem)
            continue
        named.setdefault(name, vertex)
    known = dict(given)
    for name, vertex in named.items():
        if name in known:
            continue
        try:
            known[name] = load_device(name, asked_by="graph")
        except RequestError as error:
            if any(problem.where != "graph" for problem in error.problems):
                problems += error.problems  # there is such a file, and it has faults
                continue
            names = [*given, *(path.stem for path in files(FileKind.DEVICE))]
            remedy = did_you_mean(name, names, otherwise="give its record in `devices`")
            fact, key = "is no known device", f"vertex {vertex}"
            problems.append(Problem(where="graph", key=key, value=name, fact=fact, remedy=remedy))
    return known, problems


def wish_problems(request: PlacementRequest, site: Site) -> list[Problem]:
    """What is wrong with what is asked of all replicas together."""
    problems = [*_problems(request.models, request.targets, objective=request.objective)]
    problems += role_problems(request)
    said = {"--confidence": f"{request.confidence:g}"} if request.confidence else {}
    if request.prefer == SIMPLEST:
        said["--prefer"] = SIMPLEST
        problems += _unpredicted(request)
    for workload in (one.workload or request.workload for one in request.models):
        said |= reuse_options(workload)
        if workload.offload != STORES[0]:
            fact, remedy = "is of one deployment", "`plan` and `plan predict` have it"
            offload = Problem(where="--kv-offload", value="host", fact=fact, remedy=remedy)
            problems.append(offload)
    problems += misplaced(said, request.engines)
    problems += fabric_problems(request, site)
    return list(dict.fromkeys(problems))


def fabric_problems(request: PlacementRequest | FleetRequest, site: Site) -> Iterator[Problem]:
    """Limits that a device says nothing of, and what fabrics side by side are not asked."""
    clusters = (it for part in site.parts for it in part.clusters.values() or [part.cluster])
    for cluster in clusters:
        yield from lacking(request.limits, cluster.device)
    if len(site.parts) > 1:
        yield from between_fabrics(request.roles)
    if len(site.parts) > 1 or isinstance(request, FleetRequest):  # else its runtime says so
        yield from without_layouts(request.engines, site)


def _unpredicted(request: PlacementRequest) -> Iterator[Problem]:
    """Why nothing is as good as the best within an error."""
    facts = {
        f"is within an error, and nothing of {request.objective} is predicted": request.objective
        in WITHOUT_ERROR,
        "is of replicas that do both phases": request.roles.name != TOGETHER,
    }
    for fact in (fact for fact, is_so in facts.items() if is_so):
        yield Problem(where="--prefer", value=SIMPLEST, fact=fact, remedy=LEAVE_OUT)


def _problems(wanted: Sequence[Serve], targets: Targets, *, objective: str) -> Iterator[Problem]:
    if not wanted:
        yield Problem(where="models", fact="names no model")
    if objective == "cost" and len(wanted) > 1:
        fact, remedy = "the least cost per token is of one model", "ask for `rent`"
        yield Problem(where="objective", value=objective, fact=fact, remedy=remedy)
    names = [one.model.name for one in wanted]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        fact, remedy = "is wanted twice", "add the demands"
        yield Problem(where="models", value=name, fact=fact, remedy=remedy)
    fact = "is no limit of a replica by itself"
    remedy = "give `limits` of all, and each model's demand"
    for demand in wanted:
        yield from _wish_faults(demand, objective)
        for kept in (demand.targets, targets):
            limits = kept.limits() if kept else {}
            for name in limits.keys() - {one.name for one in placed("each")}:
                yield Problem(where="targets", key=name, fact=fact, remedy=remedy)


def _wish_faults(wish: Serve, objective: str) -> Iterator[Problem]:
    name, has_demand = wish.model.name, wish.demand_tokens_per_s is not None
    if objective == "share" and not has_demand:
        fact, remedy = "has no demand to serve a share of", "give one, or another objective"
        yield Problem(where=name, fact=fact, remedy=remedy)
    if objective == "cost" and (wish.replicas != 1 or has_demand):
        remedy = "write `--replicas 1`, or `--objective rent`"
        fact = "the least cost per token is that of one replica"
        yield Problem(where=name, fact=fact, remedy=remedy)
    if objective in ("rent", "devices", "latency") and not has_demand and wish.replicas is None:
        fact = f"nothing is asked of it, and the least {objective} is that of no replica"
        yield Problem(where=name, fact=fact, remedy="ask for a demand or for replicas")
    if objective == "latency" and has_demand:
        fact, remedy = "has a demand, which the least latency knows nothing of", "ask for replicas"
        yield Problem(where=name, fact=fact, remedy=remedy)
