"""Layouts and rows of tables as replicas that serve a stream: stations by their own accounts."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import STAGE, Beaten, NodeConfiguration
from planner.placing.fleets.offering import Listed, QueuedOffers
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.fleets.shape_offers import N_BEYOND, ways_of
from planner.placing.runtimes import Roofline, Runtime
from planner.placing.sites import Site
from planner.placing.tables import Table, table_runtime
from planner.results.deployments import Deployment
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.records.devices import ClusterSpec, Workload
from planner.specs.records.roles import TOGETHER, Station
from planner.specs.records.runtimes import ROOFLINE, DeploymentRow
from planner.specs.traffic.percentiles import ITL, TPOT
from planner.verifier.layouts.stations import layout_station, table_station

StationOf = Callable[[NodeConfiguration, Domain], Station]

_AS_IT_COMES = (1,)
"""Prompts of a prefill, where they are not gathered."""


@dataclass(slots=True, kw_only=True, eq=False)
class AccountOffers:
    """Replicas for requests of one sort, and their stations, made once a domain.

    Args:
        runtimes: that time them, by ascending batches, of each way to gather prompts.
        station_of: the station of one on its domain.
    """

    runtimes: Sequence[Sequence[Runtime]]
    station_of: StationOf
    usual: Workload
    _known: dict[Hashable, list[list[NodeConfiguration]]] = field(default_factory=dict)
    _stations: dict[int, Station] = field(default_factory=dict)

    def on(self, domain: Domain, most_tpot_s: float) -> Iterator[tuple[NodeConfiguration, Station]]:
        """Of each shape the largest batch, the last that keeps a TPOT when full, and the next."""
        size = domain.n_nodes, domain.per_node, domain.n_devices
        key = (domain.kind, domain.span, domain.need, size)
        if key not in self._known:
            self._known[key] = [*self._by_shape(domain)]
        for alike in self._known[key]:
            n_kept = sum(one.tpot_s <= most_tpot_s for one in alike)
            some = [*alike[max(0, n_kept - 1) : n_kept + N_BEYOND], alike[-1]]
            for config in dict.fromkeys(some):
                if id(config) not in self._stations:
                    self._stations[id(config)] = self.station_of(config, domain)
                yield config, self._stations[id(config)]

    def _by_shape(self, domain: Domain) -> Iterator[list[NodeConfiguration]]:
        """Replicas of each shape, by ascending batches."""
        for by_batch in self.runtimes:
            groups: dict[Hashable, list[NodeConfiguration]] = {}
            for runtime in by_batch:
                for one in runtime.on_nodes(0, domain, Beaten()):
                    groups.setdefault((one.pattern.shape, one.engine), []).append(one)
            yield from groups.values()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedAccounts(Runtime):
    """Replicas that may serve a stream, if any; see `planner.placing.runtimes.Runtime`."""

    offers: AccountOffers | None
    stream: RequestClass

    def on_nodes(
        self, model: int, domain: Domain, beaten: Beaten, *, whole: bool = False
    ) -> Iterator[NodeConfiguration]:
        """Every shape on a domain, at its fluid rate."""
        del beaten, whole
        if self.offers is None or domain.span == STAGE:
            return
        alike: dict[Hashable, list[tuple[NodeConfiguration, Station]]] = {}
        limits = (one.target for one in self.stream.targets if one.target.quantity in (TPOT, ITL))
        most_s = min((one.at_most_s for one in limits), default=math.inf)
        for one, station in self.offers.on(domain, most_s):
            if station.held_bytes(self.stream.n_longest_tokens) <= station.room_bytes:
                alike.setdefault((one.pattern.shape, one.engine), []).append((one, station))
        for both in alike.values():
            ways = ways_of(np.arange(len(both)), [it for _, it in both], self.stream)
            listed = Listed(replicas=[it for it, _ in both], usual=self.offers.usual)
            yield replace(
                both[0][0],
                model=model,
                output_tokens_per_s=max(ways.bounds) * self.stream.n_output_tokens,
                ttft_s=0.0,
                source=QueuedOffers(made_by=listed, stream=self.stream, ways=ways),
                choice=0,
            )


def accounts_of(
    name: str, request: PlacementRequest, wish: Serve, streams: Sequence[RequestClass], site: Site
) -> Callable[[RequestClass], QueuedAccounts]:
    """Who may serve a stream of a model: its layouts, or rows of requests of its lengths.

    Raises:
        RequestError: it cannot be asked so.
    """
    if name == ROOFLINE.name:
        longest = max(one.n_longest_tokens for one in streams)
        layouts = _layouts(request, wish, site.cluster, longest)
        return lambda stream: QueuedAccounts(offers=layouts, stream=stream)
    rows = {
        usual: _rows(table_runtime(name, request, replace(wish, workload=usual), site), usual)
        for usual in {one.lengths.usual for it in streams for one in it.classes}
    }

    def of(stream: RequestClass) -> QueuedAccounts:
        is_whole = (stream.above_tokens, stream.upto_tokens) == (0.0, math.inf)
        is_timed = is_whole and len(stream.classes) == 1
        offers = rows[stream.classes[0].lengths.usual] if is_timed else None
        return QueuedAccounts(offers=offers, stream=stream)

    return of


def _layouts(
    request: PlacementRequest, wish: Serve, cluster: ClusterSpec, n_longest_tokens: int
) -> AccountOffers:
    """Layouts at each batch, prompts gathered for a prefill or as they come."""
    for_layouts = layout_request(request, wish, cluster)

    def station_of(config: NodeConfiguration, domain: Domain) -> Station:
        deployment = config.deployment()
        assert isinstance(deployment, Deployment)
        on_it = replace(for_layouts, cluster=domain.cluster)
        return layout_station(on_it, deployment, n_longest_tokens)

    runtimes = [
        [
            Roofline(request=replace(for_layouts, batches=(batch,), prefill_batches=prompts))
            for batch in for_layouts.batches
        ]
        for prompts in dict.fromkeys((_AS_IT_COMES, for_layouts.prefill_batches))
    ]
    return AccountOffers(runtimes=runtimes, station_of=station_of, usual=for_layouts.workload)


def _rows(table: Table, usual: Workload) -> AccountOffers:
    """Rows of requests of some lengths: with those of smaller batches a curve of times."""

    def station_of(config: NodeConfiguration, domain: Domain) -> Station:
        assert isinstance(config.choice, DeploymentRow)
        return table_station(table.rows, config.choice)

    by_batch = sorted(table.rows, key=lambda row: row.batch)
    runtimes = [[replace(table, rows=(one,), roles=(TOGETHER,)) for one in by_batch]]
    return AccountOffers(runtimes=runtimes, station_of=station_of, usual=usual)
