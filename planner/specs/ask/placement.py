"""What is asked of a placement: models, rows of tables, a cluster as it is, what must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from planner.quantities.table import placed
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import BEST, PlanOptions
from planner.specs.ask.request import Request
from planner.specs.ask.targets import DEFAULT_WORKLOAD, SolverOptions, Targets
from planner.specs.files.pools import SiteSpec
from planner.specs.files.state import State
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.architecture import Architecture
from planner.specs.records.correspondence import model_spec_of
from planner.specs.records.devices import AnyModel, ClusterSpec, ModelSpec, Workload
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import ASKED_ROLES, RoleOptions
from planner.specs.records.runtimes import ENGINES, DeploymentTable
from planner.specs.validation.hints import from_fields
from planner.specs.validation.values import Named, one_of

OBJECTIVES = ("throughput", "share", "rent", "devices", "latency", "cost")
Objective = Annotated[str, one_of("objective", OBJECTIVES)]
Role = Annotated[str, one_of("choice of roles", ASKED_ROLES)]
LIMITS = tuple(one.name for one in placed("all"))
Limits = Mapping[Annotated[str, one_of("limit", LIMITS)], Annotated[float, Named("limit")]]
"""On all replicas together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """What is wanted of one model.

    Args:
        model: to serve, as the layouts shard it or layer by layer.
        demand_tokens_per_s: output tokens that its replicas must serve together; for the
            objective `share`, of which the worst served model gets the most.
        replicas: exactly so many; None leaves it open.
        workload, targets: of its requests; those of the placement where left out. Targets
            hold for each replica by itself.
        weights_formats, kv_formats: to choose from, as in `planning.plan`.
    """

    model: AnyModel
    demand_tokens_per_s: float | None = None
    replicas: int | None = None
    workload: Workload | None = None
    targets: Targets | None = None
    weights_formats: Sequence[str] | None = None
    kv_formats: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """What a group of devices gets, by somebody who knows better than the graph.

    Args:
        name: of a node or a leaf, or `pool`, in a table of costs; empty if a function was asked.
        devices: that the function was asked about; none in a table.
        bytes_per_s: of one of them to all others, one way, as attained.
        latency_s: of a message.
    """

    name: str
    devices: tuple[str, ...]
    bytes_per_s: float
    latency_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """One request for a placement, defaults filled in.

    Args:
        site: the cluster, all of it.
        models: what is wanted of each.
        engines: that replicas may run under, `roofline`, or tables of deployments; which of them
            is chosen by replica. None until those that are usual on the site are known.
        workload, targets: of the models that have none of their own.
        objective: one of `OBJECTIVES`.
        state: what of the cluster is busy, failed, reserved, slow or narrow; None for nothing.
        limits: on all replicas together, of `LIMITS`.
        batches: decode batches to choose from.
        most_devices: of one replica; None for the usual most.
        aligned: on a torus, slices start at its cubes only.
        layout_first: each layout is chosen as if all of the cluster were free.
        costs: of groups, in place of what the graph says.
        options: how to solve.
        confidence: of the interval whose upper end an engine is counted on, in [0, 1).
        tables: of the engines, on the kinds of devices that they have kernels of.
        deployments: of the tables that are named, what may be placed.
        roles: that replicas may have.
        prefer: of what is predicted `objective`, or `simplest`: of all placements that lose less of
            it than its error.
    """

    site: SiteSpec
    models: tuple[Serve, ...]
    engines: tuple[str, ...] = ()
    workload: Workload = DEFAULT_WORKLOAD
    targets: Targets = field(default_factory=Targets)
    objective: str = OBJECTIVES[0]
    state: State | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    batches: tuple[int, ...] = DEFAULT_BATCHES
    most_devices: int | None = None
    aligned: bool = False
    layout_first: bool = False
    costs: tuple[GroupCost, ...] = ()
    options: SolverOptions = field(default_factory=SolverOptions)
    confidence: float | None = None
    tables: tuple[EngineTables, ...] = ()
    deployments: tuple[DeploymentTable, ...] = ()
    roles: RoleOptions = field(default_factory=RoleOptions)
    prefer: str = BEST

    @property
    def every_model(self) -> tuple[AnyModel, ...]:
        return tuple(one.model for one in self.models)

    @property
    def has_region(self) -> bool:
        """Whether what was measured, and nothing that is asked for, says what is believed."""
        is_free = self.confidence is None and not self.layout_first
        return is_free and all(name in ENGINES for name in self.engines)


def layout_request(request: PlacementRequest, demand: Serve, cluster: ClusterSpec) -> Request:
    """What is asked of the layout of a model's replica, were it on a cluster of its own.

    Batches are offered as `planning.plan` does.

    Raises:
        RequestError: with every problem, not only the first.
    """
    return make_request(shape_of(demand.model), cluster, replica_options(request, demand))


def replica_options(request: PlacementRequest, demand: Serve) -> PlanOptions:
    """What is asked of one replica of a model, whatever runs it."""
    return from_fields(
        PlanOptions,
        request,
        workload=demand.workload or request.workload,
        targets=demand.targets or request.targets,
        weights_formats=demand.weights_formats,
        kv_formats=demand.kv_formats,
        objective="latency" if request.objective == "latency" else "throughput",
        prefer=BEST,
    )


def shape_of(model: AnyModel) -> ModelSpec:
    """The model as the layouts shard it.

    Raises:
        SpecError: no layout knows it.
    """
    return model_spec_of(model) if isinstance(model, Architecture) else model


def tidied(demand: Serve) -> Serve:
    """A wish whose formats are tuples, so that it equals itself read back."""
    weights, caches = demand.weights_formats, demand.kv_formats
    return replace(
        demand,
        weights_formats=None if weights is None else tuple(weights),
        kv_formats=None if caches is None else tuple(caches),
    )


def aspects(request: PlacementRequest) -> dict[str, object]:
    """What a request says, by what people call it; the state of the cluster is none of it."""
    targets, models = request.targets, request.models
    return {
        "cluster": request.site,
        "models": tuple(one.model for one in models),
        "engines": request.engines,
        "demands": tuple(one.demand_tokens_per_s for one in models),
        "replicas": tuple(one.replicas for one in models),
        "formats": tuple((one.weights_formats, one.kv_formats) for one in models),
        "workload": (request.workload, tuple(one.workload for one in models)),
        "latency target": targets.tpot_s,
        "TTFT target": targets.ttft_s,
        "least batch": targets.min_batch,
        "quality": targets.quality_loss_fraction,
        "other targets": (targets.degrees, targets.layouts, tuple(one.targets for one in models)),
        "objective": request.objective,
        "limits": dict(request.limits),
        "batches": request.batches,
        "most devices of a replica": request.most_devices,
        "alignment": request.aligned,
        "layouts chosen first": request.layout_first,
        "costs of groups": request.costs,
        "options": request.options,
        "confidence": request.confidence,
        "roles": request.roles,
    }


def inherited_and_changed(
    before: PlacementRequest, now: PlacementRequest
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the aspects of a request that are as they were, and of those that are not."""
    old, new = aspects(before), aspects(now)
    same = {name: old[name] == new[name] for name in new}
    return (
        tuple(name for name, is_same in same.items() if is_same),
        tuple(name for name, is_same in same.items() if not is_same),
    )
