"""`place`: from a cluster as it is to named devices, one verb after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.deadlines import out_of_time, timed
from planner.errors import NoPlanError, Problem, RequestError
from planner.placement_results import Placement
from planner.placing.asking import (
    LIMITS,
    MOST_DEVICES,
    Serve,
    requests_of,
    site_of,
)
from planner.placing.conflicts import conflict_of
from planner.placing.decoding import locate
from planner.placing.describing import placement_of
from planner.placing.searching import Asked, chosen_first, searched
from planner.placing.slicing import AskedTorus, place_slices
from planner.placing.totals import in_si
from planner.solvers.solution import Status
from planner.specs.pools import PoolSpec
from planner.specs.records import ClusterSpec, DeviceSpec, ModelSpec, TorusFabric, Workload
from planner.specs.request import SolverOptions, Targets
from planner.specs.state import State
from planner.topology.costs import CostTable, GroupCosts

if TYPE_CHECKING:
    import networkx as nx

NO_TARGETS = Targets()
DEFAULT_OPTIONS = SolverOptions()


@timed
def place(
    cluster: ClusterSpec | PoolSpec | nx.Graph[Any],
    models: ModelSpec | Serve | Sequence[ModelSpec | Serve],
    *,
    workload: Workload | None = None,
    targets: Targets = NO_TARGETS,
    state: State | None = None,
    objective: str | None = None,
    limits: Mapping[str, float] | None = None,
    batches: Sequence[int] | None = None,
    most_devices: int | None = None,
    aligned: bool = False,
    devices: Mapping[str, DeviceSpec] | None = None,
    group_costs: GroupCosts | CostTable | None = None,
    layout_first: bool = False,
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
        workload, targets: of all models that have none of their own; targets hold for each
            replica by itself.
        state: what is busy, failed, reserved, slow or narrow, see `load_state`.
        objective: `throughput` (most output tokens a second), `share` (the most for the worst
            served demand), `rent`, `devices` or `latency` (least, of demands or replicas); by
            default `rent` where every model has a demand, `throughput` elsewhere.
        limits: most `rent` [USD/h] and `devices`, of all replicas together.
        batches: decode batches to choose from.
        most_devices: of one replica; 64, and on a torus as many as there are.
        aligned: on a torus, let slices start at its cubes only.
        devices: records of a graph's devices by name, before those that ship.
        group_costs: what groups get, in place of what the graph says, see
            `planner.topology.costs`.
        layout_first: choose each layout as if all of the cluster were free, then place that one:
            what planners do that give degrees. To compare with; the joint choice is never worse.
        options: backend, time limit, gap, threads, seed.

    Raises:
        RequestError: what was asked, the graph or the state cannot be; all problems are listed.
        NoPlanError: nothing satisfies it; the conflict is a `PlacementConflict`.
        OutOfTimeError: the time limit ended before a first placement.
        SolverError: an answer failed its verification.
    """
    began_s = time.perf_counter()
    wanted = wishes(models)
    objective = objective or _usual_objective(wanted)
    check_most(most_devices)
    check_aligned(cluster, aligned=aligned)
    if isinstance(cluster, ClusterSpec) and isinstance(cluster.fabric, TorusFabric):
        return place_slices(
            AskedTorus(
                cluster=cluster,
                state=state,
                wanted=wanted,
                requests=tuple(
                    requests_of(
                        wanted,
                        cluster,
                        workload=workload,
                        targets=targets,
                        batches=batches,
                        objective=objective,
                        options=options,
                    )
                ),
                objective=objective,
                limits=read_limits(limits or {}),
                options=options,
                most_devices=most_devices,
                aligned=aligned,
                layout_first=layout_first,
            )
        )
    site = site_of(
        cluster,
        state,
        devices=devices,
        group_costs=group_costs,
        most_devices=most_devices or MOST_DEVICES,
    )
    requests = requests_of(
        wanted,
        site,
        workload=workload,
        targets=targets,
        batches=batches,
        objective=objective,
        options=options,
    )
    asked = Asked(
        site=site,
        wanted=wanted,
        requests=tuple(requests),
        objective=objective,
        limits=read_limits(limits or {}),
        options=options,
    )
    if layout_first:
        well = site_of(
            _well(cluster),
            None,
            devices=devices,
            group_costs=group_costs,
            most_devices=most_devices or MOST_DEVICES,
        )
        asked = replace(asked, shapes=chosen_first(replace(asked, site=well)))
    search = searched(asked)
    counts = search.solution.answer
    n_before = len(search.posed.given) + len(search.posed.staged)
    nothing = counts is not None and not any(counts.copies[n_before:])
    if search.solution.status is Status.INFEASIBLE or nothing:
        raise out_of_time() if search.is_cut else NoPlanError(conflict_of(asked, search))
    if counts is None:
        raise out_of_time(in_si(objective, search.solution.bound))
    located = locate(search.posed, counts)
    return placement_of(asked, search, located, began_s=began_s, costs=group_costs)


def _well(
    cluster: ClusterSpec | PoolSpec | nx.Graph[Any],
) -> ClusterSpec | PoolSpec | nx.Graph[Any]:
    """The cluster as if all were free and fast; links stay as a graph has them."""
    if isinstance(cluster, (ClusterSpec, PoolSpec)):
        return cluster
    well = cluster.copy()
    for _, at in well.nodes(data=True):
        at.pop("state", None)
        at.pop("speed_fraction", None)
    return well


def wishes(models: ModelSpec | Serve | Sequence[ModelSpec | Serve]) -> tuple[Serve, ...]:
    listed = [models] if isinstance(models, (ModelSpec, Serve)) else [*models]
    return tuple(one if isinstance(one, Serve) else Serve(model=one) for one in listed)


def _usual_objective(wanted: Sequence[Serve]) -> str:
    return "rent" if all(one.demand_tokens_per_s is not None for one in wanted) else "throughput"


def check_aligned(cluster: object, *, aligned: bool) -> None:
    """Raises `RequestError` where slices are to be aligned and the cluster has none."""
    is_torus = isinstance(cluster, ClusterSpec) and isinstance(cluster.fabric, TorusFabric)
    if aligned and not is_torus:
        name = f"`{cluster.name}`" if isinstance(cluster, ClusterSpec | PoolSpec) else "a graph"
        fact = f"starts slices of a torus at its cubes, and {name} is no torus"
        raise RequestError([Problem(where="--align", fact=fact, remedy="leave it out")])


def check_most(most_devices: int | None) -> None:
    """That a replica may have a device.

    Raises:
        RequestError: it may have none.
    """
    if most_devices is not None and most_devices < 1:
        fact = "is no positive number of devices"
        raise RequestError([Problem(where="most_devices", value=str(most_devices), fact=fact)])


def read_limits(limits: Mapping[str, float]) -> dict[str, float]:
    problems = [
        Problem(where="limits", key=name, value=str(value), fact=fact)
        for name, value in limits.items()
        if (
            fact := "is no limit: there are `rent` and `devices`"
            if name not in LIMITS
            else "is not a positive number"
            if not (isinstance(value, (int, float)) and 0 < value < math.inf)
            else ""
        )
    ]
    if problems:
        raise RequestError(problems)
    return {name: float(value) for name, value in limits.items()}
