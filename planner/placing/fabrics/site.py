"""Nodes below leaves and a spine, or any graph, as a site."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np

from planner.equations.arrays import BoolArray
from planner.placing.configurations import AnyConfiguration, ConfigKey, CurrentReplica, config_key
from planner.placing.fabrics.domains import Domain, DomainContext
from planner.placing.fabrics.dominance import Dominators, undominated
from planner.placing.fabrics.locating import NodesProgram
from planner.placing.fabrics.patterns import (
    LEAF,
    NODE,
    POOL,
    STAGE,
    Beaten,
    NodeConfiguration,
    Offer,
    Shape,
)
from planner.placing.fabrics.posing import pose_by_kinds, pose_on_nodes
from planner.placing.fabrics.relocating import RepairOnNodes
from planner.placing.fabrics.repairing import pose_repair
from planner.placing.fabrics.wires import tight_uplinks, uplinks_of, wire_of
from planner.placing.handing import Uplink, Wire, handing_over
from planner.placing.program import Objective
from planner.placing.runtimes import Runtime
from planner.placing.sites import CandidateCounts, OfferRequest, Site, check_free
from planner.programs.placement import Counts, PlacementProgram
from planner.running.deadlines import is_over, share
from planner.specs.files.pools import PoolSpec, SiteSpec, pool_of
from planner.specs.files.state import State
from planner.specs.records.devices import ClusterSpec, DeviceSpec, NodesFabric, TorusFabric
from planner.specs.records.graphs import GraphSpec
from planner.specs.records.roles import TOGETHER
from planner.specs.region import BELIEFS
from planner.topology.costs import CostTable, GroupCosts, recosted
from planner.topology.graph import Graph, build_graph, graph_of
from planner.topology.inventory import Inventory, Kind, inventory
from planner.topology.pools import pool_graph, with_state

MOST_NODES = 100
"""Of which a program is small, so that replicas are not looked for before their places."""

MOST_DEVICES = 64
"""Of one replica, where nothing else is asked."""

_REASONS = {
    "layouts": "others are better on the same devices",
    "ways": "others fit wherever they do and serve more",
}


class Fabric:
    """Nodes as they are.

    Args:
        spec: the cluster.
        graph: of it, in its state.
        most_devices: of one replica; None for the usual most.
        costs: what groups get, in place of what the graph says.

    Raises:
        RequestError: nothing is free.
    """

    def __init__(
        self,
        spec: PoolSpec | GraphSpec,
        graph: Graph,
        *,
        most_devices: int | None = None,
        costs: GroupCosts | CostTable | None = None,
    ) -> None:
        self.name = spec.name
        self.graph = graph
        free = inventory(graph)
        check_free(spec.name, free.n_free, free.n_devices)
        if costs is not None:
            free = recosted(free, costs)
        most = most_devices or MOST_DEVICES
        self.ground = DomainContext(inventory=free, bases=_bases(spec, free), most_devices=most)

    @property
    def inventory(self) -> Inventory:
        return self.ground.inventory

    @property
    def cluster(self) -> ClusterSpec:
        return next(iter(self.ground.bases.values()))

    @property
    def wires(self) -> dict[str, Wire]:
        """Of each kind by its name."""
        return {kind.name: wire_of(self.ground, kind) for kind in self.inventory.kinds}

    @property
    def clusters(self) -> Mapping[Kind, ClusterSpec]:
        return self.ground.bases

    @property
    def parts(self) -> tuple[Site, ...]:
        return (self,)

    @property
    def n_of_kind(self) -> dict[str, tuple[int, int]]:
        nodes = {kind: self.inventory.nodes_of(kind) for kind in self.inventory.kinds}
        return {
            kind.name: (sum(it.n_devices for it in some), sum(len(it.free) for it in some))
            for kind, some in nodes.items()
        }

    @property
    def n_devices(self) -> int:
        return self.inventory.n_devices

    @property
    def n_free(self) -> int:
        return self.inventory.n_free

    @property
    def reach(self) -> str:
        return (
            "as predicted, no layout of one replica meets the targets and fits any of the "
            f"{self.n_free} free devices that can work together, at most "
            f"{self.ground.most_devices} of them"
        )

    def offered(self, wanted: OfferRequest) -> NodesOffers:
        """The configurations of all models on all kinds, that fit what is free, in time."""
        wires = self.wires
        searches = [
            (model, served, runtime, kind)
            for model, served in enumerate(wanted.models)
            for runtime in served.runtimes
            for kind in self.inventory.kinds
        ]
        configurations: list[NodeConfiguration] = []
        known: dict[tuple[int, Kind], list[NodeConfiguration]] = {}
        is_cut = False
        for n_left, (model, served, runtime, kind) in zip(
            range(len(searches), 0, -1), searches, strict=True
        ):
            # each has some in time, or nothing is placed of a model
            with share(1.0 / n_left if wanted.in_part else 1.0):
                mine = known.setdefault((model, kind), [])
                how = {"several": served.several, "whole": wanted.whole}
                made = configurations_of(runtime, model, kind, self.ground, mine, **how)
                ends = wanted.roles, wires[kind.name], served.n_output_tokens
                new = [config for it in made if (config := handing_over(it, *ends)) is not None]
                mine += new
                configurations += new
                is_cut |= is_over()
        every = NodesOffers(
            ground=self.ground,
            configurations=tuple(configurations),
            of_all_beliefs=tuple(configurations),
            several=np.array([served.several for served in wanted.models]),
            by_latency=wanted.by_latency,
            is_cut=is_cut,
            uplinks=uplinks_of(self.graph, self.ground),
        )
        return every.believing(BELIEFS[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class NodesOffers:
    """Configurations that fit what is free of nodes.

    Args:
        several: whether a model may have any number of replicas, by model.
        of_all_beliefs: the same, and those that other beliefs take.
        uplinks: links of each leaf to all others.
        known: of which of them others stand for: asked again of others, of the same it is known.
    """

    ground: DomainContext
    configurations: tuple[NodeConfiguration, ...]
    several: BoolArray
    by_latency: bool
    is_cut: bool
    of_all_beliefs: tuple[NodeConfiguration, ...] = ()
    uplinks: Mapping[int, Uplink] = field(default_factory=dict)
    known: Dominators = field(default_factory=dict)

    @cached_property
    def listed(self) -> list[NodeConfiguration]:
        """Those that no other stands for."""
        return undominated(
            self.configurations,
            several=self.several,
            by_latency=self.by_latency,
            known=self.known,
        )

    def only(self, sorts: Collection[ConfigKey]) -> NodesOffers:
        some = tuple(one for one in self.configurations if config_key(one) in sorts)
        return replace(self, configurations=some)

    def believing(self, belief: str) -> NodesOffers:
        """Those that a belief takes."""
        some = tuple(one for one in self.of_all_beliefs if belief in one.beliefs)
        return replace(self, configurations=some)

    def anywhere(self, aim: Objective) -> PlacementProgram | None:
        few = len(self.ground.inventory.nodes) <= MOST_NODES
        if few or any(one.role != TOGETHER for one in self.listed):
            return None
        return self.by_kinds(aim)

    def taking(
        self, configurations: Sequence[AnyConfiguration], n_models: int | None = None
    ) -> NodesOffers:
        every = tuple(cast("Sequence[NodeConfiguration]", configurations))
        if n_models is None:
            return replace(self, configurations=every)
        several = np.ones(n_models, dtype=np.bool_)
        return replace(self, configurations=every, several=several, known={})

    def by_kinds(self, aim: Objective) -> PlacementProgram:
        return pose_by_kinds(self.listed, self.ground.inventory, aim)

    def of(self, counts: Counts) -> NodesOffers:
        return replace(self, configurations=tuple(self.listed[j] for j, _ in counts.chosen))

    def posed(self, aim: Objective) -> NodesProgram:
        inventory = self.ground.inventory
        tight = tight_uplinks(self.uplinks, self.listed, inventory, aim)
        return pose_on_nodes(self.listed, inventory, aim, uplinks=tight)

    def repaired(self, standing: Sequence[CurrentReplica], aim: Objective) -> RepairOnNodes:
        offers = self.offers(standing, aim)
        return pose_repair(self.ground.inventory, offers, standing, aim)

    def offers(self, standing: Sequence[CurrentReplica], aim: Objective) -> list[Offer]:
        """Configurations whose weights stand already, and those that no other stands for.

        While something stands, one stands for another only where it loads no more bytes either.
        """
        stands = {one.sharding for one in standing}
        offers = []
        for config in self.configurations:
            sharding, shard_bytes = config.shard(aim.wanted[config.model].name)
            offers.append(Offer(configuration=config, sharding=sharding, shard_bytes=shard_bytes))
        loaded = [one.shard_bytes * one.pattern.n_devices for one in offers]
        new = undominated(
            self.configurations, several=self.several, by_latency=self.by_latency, loaded=loaded
        )
        is_new = {*map(id, new)}
        return [one for one in offers if one.sharding in stands or id(one.configuration) in is_new]

    def candidate_counts(self, n_columns: int) -> CandidateCounts:
        sources = {id(one.source): one.source for one in self.configurations}.values()
        n_candidates, n_ways = sum(one.n_candidates for one in sources), len(self.configurations)
        return CandidateCounts(
            n_candidates=n_candidates,
            n_contexts=n_ways,
            rejected={"layouts": n_candidates - n_ways, "ways": n_ways - len(self.listed)},
            reasons=_REASONS,
        )


def configurations_of(
    runtime: Runtime,
    model: int,
    kind: Kind,
    ground: DomainContext,
    known: Sequence[NodeConfiguration] = (),
    *,
    several: bool,
    whole: bool,
) -> Iterator[NodeConfiguration]:
    """Every way to run a replica of one model on one kind, that fits what is free, in time.

    Replicas over several leaves are no faster than the same within one leaf. Where several may
    take the place of one, what copies beat is left out.

    Args:
        model: number of the model.
        known: those of other runtimes, for the model on the kind.
        several: whether the objective would take k replicas for one that serves no more.
        whole: the best of each sharding of the weights, whoever beats it.
    """
    mine = [*known]
    for domain in ground.domains(kind):
        if is_over():
            return
        # what replicas of one phase are worth depends on others
        is_compared = several and not whole and all(one.role == TOGETHER for one in mine)
        beaten = _beaten(mine, domain) if is_compared else Beaten()
        new = list(runtime.on_nodes(model, domain, beaten, whole=whole))
        mine += new
        yield from new


def _beaten(configurations: Sequence[NodeConfiguration], domain: Domain) -> Beaten:
    """What copies of other replicas outdo on a domain, as `undominated` compares them."""
    n, is_far = np.arange(domain.ground.most_devices + 1), domain.span in (STAGE, POOL)
    n_held, size = np.maximum(1, n // domain.per_node), np.minimum(n, domain.per_node)
    rates, in_leaf = {belief: np.zeros(len(n)) for belief in BELIEFS}, dict[Shape, float]()
    for config in sorted(configurations, key=lambda one: one.output_tokens_per_s):
        span, pieces, rate = config.pattern.span, config.pattern.pieces, config.output_tokens_per_s
        if domain.need.meets(config.pattern.need) and (span in (NODE, POOL) or not is_far):
            is_larger = (n > config.n_devices) & (n_held >= len(pieces))  # nor over more nodes
            served = rate * is_larger * (n_held * (size // max(pieces)) // len(pieces))
            rates |= {it: np.maximum(rates[it], served) for it in config.beliefs}
        if span == LEAF and is_far:
            in_leaf[config.pattern.shape] = rate
    shapes = {one for one, rate in in_leaf.items() if rates[BELIEFS[0]][math.prod(one)] >= rate}
    return Beaten(shapes=shapes, rates=rates)


def graph_in(spec: SiteSpec, state: State | None) -> Graph:
    """The graph of a cluster in its state.

    Raises:
        RequestError: the state does not fit it.
    """
    if isinstance(spec, GraphSpec):
        graph = graph_of(spec)
    elif isinstance(spec, ClusterSpec):
        is_torus = isinstance(spec.fabric, TorusFabric)
        graph = build_graph(spec) if is_torus else pool_graph(pool_of(spec))
    else:
        graph = pool_graph(spec)
    return with_state(graph, state)


def _bases(spec: PoolSpec | GraphSpec, inventory: Inventory) -> dict[Kind, ClusterSpec]:
    """The cluster of each kind, as if all of it were well."""
    if isinstance(spec, PoolSpec):
        of_group = {group.name: group.cluster for group in spec.groups}
        return {kind: of_group[kind.group] for kind in inventory.kinds}
    return {
        kind: _base(kind, spec.devices[kind.device], inventory, spec.name)
        for kind in inventory.kinds
    }


def _base(kind: Kind, device: DeviceSpec, inventory: Inventory, name: str) -> ClusterSpec:
    """The cluster of a kind of a graph: what its edges say is attained."""
    able = inventory.abilities(kind)
    finite = [one.scale_up_bytes_per_s for one in able if one.scale_up_bytes_per_s < float("inf")]
    widest = max(finite, default=1.0)
    if kind.hbm_bytes:
        device = replace(device, hbm_bytes=kind.hbm_bytes)
    fabric = NodesFabric(
        n_nodes=1,
        n_devices_per_node=max(node.n_devices for node in inventory.nodes_of(kind)),
        scale_up_bytes_per_s=widest,
        scale_up_latency_s=inventory.scale_up_s.get(kind, 0.0),
        scale_up_fraction=1.0,
        scale_out_bytes_per_s=max((one.nic_bytes_per_s for one in able), default=0.0) or widest,
        scale_out_latency_s=inventory.scale_out_s.get(kind, 0.0),
        scale_out_fraction=1.0,
        activation_network="tree",
        bulk_network="tree",
    )
    return ClusterSpec(
        name=name, title=name, device=device, fabric=fabric, usd_per_hour=device.usd_per_hour
    )
