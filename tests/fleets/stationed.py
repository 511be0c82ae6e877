"""A runtime of given stations: fleets as planned, on devices of a real site, without an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np

from planner.estimates.fluid_rates import Load, fluid_rates
from planner.placing.configurations import Configuration
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import NODE, NodeConfiguration, NodePattern
from planner.placing.fabrics.site import Fabric, graph_in
from planner.placing.fleets.candidate_sets import CandidateSet, candidates_among
from planner.placing.fleets.offering import QueuedOffers
from planner.placing.fleets.request_classes import RequestClass, streams_of
from planner.placing.fleets.shape_offers import ShapeOffers
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.pools import GroupSpec, PoolSpec
from planner.specs.files.reading import load_cluster
from planner.specs.records.devices import ClusterSpec, DeviceSpec
from planner.specs.records.kernels import EngineTables
from planner.specs.records.roles import Station


def fluid_rate(station: Station, load: Load) -> float:
    """`fluid_rates` of one station and one load."""
    return float(fluid_rates([station], [load])[0, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One shape of a kind, and the deployments that may be chosen for it.

    Args:
        kind: of its devices.
        n_devices: of a replica; beyond a node, whole nodes.
        stations: of each deployment.
        n_stages: that tell shapes of as many devices apart.
        usd_per_hour: of a replica; None for the rent of its devices.
    """

    kind: str
    n_devices: int
    stations: tuple[Station, ...]
    n_stages: int = 1
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenEngine:
    """In the place of an engine's deployments: a name, and a device."""

    label: str
    device: DeviceSpec
    n_candidates: int = 1

    def deployment(self, choice: int, n_alike: int) -> SimpleNamespace:
        del choice, n_alike
        return SimpleNamespace(label=self.label)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GivenStations:
    """A runtime that serves one stream by given stations."""

    stream: RequestClass
    offers: Sequence[Offer]
    tables: tuple[EngineTables, ...] = ()

    def on_nodes(
        self, model: int, domain: Domain, beaten: Collection[object], *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        del beaten, whole  # each offer is a sharding of its own
        for one in self.offers:
            is_inside = domain.span == NODE
            fits = one.n_devices <= domain.per_node
            if not is_inside:
                largest = domain.n_devices >= one.n_devices and domain.per_node == _node(domain)
                fits = not fits and largest
            if one.kind == domain.kind.name and fits:
                yield self._configuration(one, model, domain)

    def _configuration(self, one: Offer, model: int, domain: Domain) -> NodeConfiguration:
        whole, rest = divmod(one.n_devices, domain.per_node)
        pattern = NodePattern(
            kind=domain.kind,
            span=domain.span,
            need=domain.need,
            n_inside=min(one.n_devices, domain.per_node),
            n_across=max(1, whole),
            n_stages=one.n_stages,
            pieces=(*[domain.per_node] * whole, *([rest] if rest else [])),
        )
        rates = [fluid_rate(each, self.stream.load) * each.n_ranks for each in one.stations]
        cluster = domain.cluster
        rent = one.usd_per_hour
        source = QueuedOffers(
            made_by=GivenEngine(label=f"{one.n_devices}×{one.n_stages}", device=cluster.device),
            stream=self.stream,
            ways=ShapeOffers(
                rows=np.arange(len(one.stations)), stations=one.stations, bounds=rates
            ),
        )
        return Configuration(
            model=model,
            engine="given",
            pattern=pattern,
            output_tokens_per_s=max(rates) * self.stream.n_output_tokens,
            tpot_s=0.0,
            usd_per_hour=one.n_devices * cluster.usd_per_hour if rent is None else rent,
            source=source,
            choice=0,
        )


def _node(domain: Domain) -> int:
    return max(one.n_devices for one in domain.ground.inventory.nodes if one.kind == domain.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenKind:
    """Nodes of a kind, at a price of a device."""

    name: str
    n_nodes: int
    per_node: int
    usd_per_hour: float


@cache
def _base() -> ClusterSpec:
    return load_cluster("h100-nvl8-x1")


def pool_of_kinds(kinds: Sequence[GivenKind]) -> PoolSpec:
    """A site of several kinds, each on a leaf of its own; of an H100 but for what is given."""
    base = _base()
    groups = tuple(
        GroupSpec(
            name=one.name,
            cluster=replace(
                base,
                usd_per_hour=one.usd_per_hour,
                fabric=replace(base.fabric, n_nodes=one.n_nodes, n_devices_per_node=one.per_node),
            ),
            n_nodes_per_leaf=one.n_nodes,
        )
        for one in kinds
    )
    return PoolSpec(name="given", title="given", groups=groups)


def given_market(request: FleetRequest, offers: Mapping[str, Sequence[Offer]]) -> CandidateSet:
    """What there is to choose from, of each model the offers of its name."""
    assert isinstance(request.site, PoolSpec)
    site = Fabric(request.site, graph_in(request.site, request.state), most_devices=64)
    streams = streams_of(request.classes, sharing=request.sharing)
    runtimes = [(GivenStations(stream=one, offers=offers[one.model.name]),) for one in streams]
    market = candidates_among(runtimes, request, site, streams)
    market.book.router = None  # what counts fleets out takes each replica by itself
    return market
