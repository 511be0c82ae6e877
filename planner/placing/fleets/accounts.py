"""Layouts and rows of tables as replicas that serve a stream: stations by their own accounts."""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from planner.equations.arrays import IntArray
from planner.placing.configurations import AnyConfiguration, Pattern
from planner.placing.fabrics.domains import Domain
from planner.placing.fabrics.patterns import STAGE, Beaten, NodeConfiguration
from planner.placing.fleets.offering import Listed, QueuedOffers
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.fleets.shape_offers import N_BEYOND, ways_of
from planner.placing.layouts import Layouts
from planner.placing.runtimes import Roofline, Runtime
from planner.placing.sites import Site
from planner.placing.tables import Table, table_runtime
from planner.placing.tori.slices import SlicePattern, TorusOffers, offers_at
from planner.results.deployments import Deployment
from planner.specs.ask.placement import PlacementRequest, Serve, layout_request
from planner.specs.records.devices import ClusterSpec, Workload
from planner.specs.records.roles import TOGETHER, Station
from planner.specs.records.runtimes import ROOFLINE, DeploymentRow
from planner.specs.traffic.percentiles import ITL, TPOT
from planner.topology.openings import Openings
from planner.verifier.layouts.deployments import Context
from planner.verifier.layouts.meshes import Opening
from planner.verifier.layouts.stations import layout_station, table_station

StationOf = Callable[[AnyConfiguration], Station]

MadeBy = Callable[[Runtime], Iterable[AnyConfiguration]]
"""What a runtime makes somewhere."""

Worth = Iterator[tuple[AnyConfiguration, Station]]
"""Replicas that are worth a look, each with its station."""

_AS_IT_COMES = (1,)
"""Prompts of a prefill, where they are not gathered."""


@dataclass(slots=True, kw_only=True, eq=False)
class AccountOffers:
    """Replicas for requests of one sort, and their stations, made once a domain.

    Args:
        runtimes: that time them, by ascending batches, of each way to gather prompts.
        station_of: the station of one.
        places: on a torus, openings of each mesh.
    """

    runtimes: Sequence[Sequence[Runtime]]
    station_of: StationOf
    usual: Workload
    places: dict[Pattern, IntArray] = field(default_factory=dict)
    _known: dict[Hashable, list[list[AnyConfiguration]]] = field(default_factory=dict)
    _stations: dict[int, Station] = field(default_factory=dict)

    def on(self, domain: Domain, most_tpot_s: float) -> Iterator[tuple[AnyConfiguration, Station]]:
        """Of each shape the largest batch, the last that keeps a TPOT when full, and the next."""
        size = domain.n_nodes, domain.per_node, domain.n_devices
        key = (domain.kind, domain.span, domain.need, size)
        return self._worth(key, lambda it: it.on_nodes(0, domain, Beaten()), most_tpot_s)

    def on_slices(self, openings: Openings, most_tpot_s: float) -> Worth:
        """The same of each mesh of a torus."""

        def made(runtime: Runtime) -> Iterable[AnyConfiguration]:
            offers = runtime.on_slices(0, openings)
            self.places.update(offers.places)
            return offers.configurations

        return self._worth(None, made, most_tpot_s)

    def _worth(self, key: Hashable, made: MadeBy, most_tpot_s: float) -> Worth:
        if key not in self._known:
            self._known[key] = [*self._by_shape(made)]
        for alike in self._known[key]:
            n_kept = sum(one.tpot_s <= most_tpot_s for one in alike)
            some = [*alike[max(0, n_kept - 1) : n_kept + N_BEYOND], alike[-1]]
            for config in dict.fromkeys(some):
                if id(config) not in self._stations:
                    self._stations[id(config)] = self.station_of(config)
                yield config, self._stations[id(config)]

    def _by_shape(self, made: MadeBy) -> Iterator[list[AnyConfiguration]]:
        """Replicas of each shape, by ascending batches."""
        for by_batch in self.runtimes:
            groups: dict[Hashable, list[AnyConfiguration]] = {}
            for runtime in by_batch:
                for one in made(runtime):
                    groups.setdefault((one.pattern, one.engine), []).append(one)
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
        if self.offers is not None and domain.span != STAGE:
            made = self._queued(model, self.offers.on(domain, self.stream.least_s(TPOT, ITL)))
            yield from cast("Iterator[NodeConfiguration]", made)

    @property
    def torus(self) -> str:
        return "" if self.offers is None else self.offers.runtimes[0][0].torus

    def on_slices(self, model: int, openings: Openings, *, whole: bool = False) -> TorusOffers:
        """Every mesh, at its fluid rate."""
        del whole
        if self.offers is None:
            return offers_at([], [])
        worth = self.offers.on_slices(openings, self.stream.least_s(TPOT, ITL))
        made, places = [*self._queued(model, worth)], self.offers.places
        return offers_at(made, [places[one.pattern] for one in made])

    def _queued(self, model: int, worth: Worth) -> Iterator[AnyConfiguration]:
        assert self.offers is not None
        alike: dict[Hashable, list[tuple[AnyConfiguration, Station]]] = {}
        for one, station in worth:
            if station.held_bytes(self.stream.n_longest_tokens) <= station.room_bytes:
                alike.setdefault((one.pattern, one.engine), []).append((one, station))
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

    def station_of(config: AnyConfiguration) -> Station:
        deployment, pattern = config.deployment(), config.pattern
        assert isinstance(deployment, Deployment)
        assert isinstance(config.source, Layouts)
        on_it = replace(for_layouts, cluster=config.source.request.cluster)
        ground = None
        if isinstance(pattern, SlicePattern):
            links = pattern.link_bytes_per_s
            ground = Context(opening=Opening(closes=pattern.closes, link_bytes_per_s=links))
        return layout_station(on_it, deployment, n_longest_tokens, ground=ground)

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

    def station_of(config: AnyConfiguration) -> Station:
        assert isinstance(config.choice, DeploymentRow)
        return table_station(table.rows, config.choice)

    by_batch = sorted(table.rows, key=lambda row: row.batch)
    runtimes = [[replace(table, rows=(one,), roles=(TOGETHER,)) for one in by_batch]]
    return AccountOffers(runtimes=runtimes, station_of=station_of, usual=usual)
