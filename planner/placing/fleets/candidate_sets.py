"""What there is to choose a fleet from: streams, devices, and who may serve what on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.configurations import AnyConfiguration
from planner.placing.engines import serving_engine
from planner.placing.fabrics.site import Fabric
from planner.placing.fleets import offering
from planner.placing.fleets.accounts import accounts_of
from planner.placing.fleets.capacity import Capacities
from planner.placing.fleets.choosing.rate_cache import RateCache
from planner.placing.fleets.request_classes import RequestClass, streams_of
from planner.placing.fleets.shape_offers import ways_of
from planner.placing.handing import handing_over
from planner.placing.runtimes import Runtime
from planner.placing.sites import OfferRequest, Site, SiteModel, SiteOffers, timers_of_parts
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import Targets
from planner.specs.options.meanings import ENGINES, family_of
from planner.specs.records.devices import Workload
from planner.specs.region import MEDIAN
from planner.specs.traffic.arrivals import POISSON
from planner.specs.traffic.records import TrafficClass
from planner.specs.validation.hints import from_fields

_FEW = offering.BATCHES[:1] + offering.BATCHES[3::4]
"""Batches of layouts to choose from, where nobody says."""

_FEWEST_OUTPUT = 2
"""Tokens of an answer that engines are asked with: of shorter ones no pass decodes, and what those
take is counted by queues, request by request."""


MOST_NAMED = 3
"""Classes planned as one that are all named."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSet:
    """What there is to choose from.

    Args:
        request: what is asked.
        site: its devices.
        streams: models of the program.
        offered: configurations at their fluid rates.
        book: what is known of them.
        roomy: what their ways serve with room to spare, once that is asked (`incumbents`).
    """

    request: FleetRequest
    site: Site
    streams: tuple[RequestClass, ...]
    offered: SiteOffers
    book: RateCache
    roomy: dict[int, FloatArray] = field(default_factory=dict)


def joint_names(classes: Sequence[TrafficClass], *, sharing: bool) -> dict[str, str]:
    """What each class is planned as: those that differ in their rates only, as one together.

    Requests that come at random come so together too, with each class as a random part of them.

    Args:
        sharing: whether classes may be served together.
    """
    groups: dict[str, list[str]] = {}
    for traffic in classes:
        is_random = sharing and traffic.arrivals.pattern == POISSON
        key = repr(replace(traffic, name="", rate_per_s=1.0)) if is_random else traffic.name
        groups.setdefault(key, []).append(traffic.name)
    return {name: _together(names) for names in groups.values() for name in names}


def _together(names: Sequence[str]) -> str:
    return (
        " + ".join(names) if len(names) <= MOST_NAMED else f"{names[0]} and {len(names) - 1} alike"
    )


def with_joint(classes: Sequence[TrafficClass], *, sharing: bool) -> tuple[TrafficClass, ...]:
    """Classes with those that are planned as one together."""
    named, together = joint_names(classes, sharing=sharing), dict[str, TrafficClass]()
    for traffic in classes:
        name = named[traffic.name]
        rate = traffic.rate_per_s + (together[name].rate_per_s if name in together else 0.0)
        together[name] = replace(together.get(name, traffic), name=name, rate_per_s=rate)
    return tuple(together.values())


def candidate_set(
    request: FleetRequest, site: Site, streams: Sequence[RequestClass]
) -> CandidateSet:
    """Every configuration of the engines asked for that may serve a stream, at its fluid rate.

    Raises:
        RequestError: no engine has kernels of the devices, or what is asked of it cannot be.
    """
    timed_by = timers_of_parts(request.engines, site)
    offers = {
        model: [_offers(name, request, mine, part) for name, part in timed_by]
        for model, mine in _of_models(streams).items()
    }
    runtimes = [tuple(made(one) for made in offers[one.model.name]) for one in streams]
    return candidates_among(runtimes, request, site, streams)


def candidates_among(
    runtimes: Sequence[Sequence[Runtime]],
    request: FleetRequest,
    site: Site,
    streams: Sequence[RequestClass],
) -> CandidateSet:
    """What there is to choose from where others say what may serve.

    Args:
        runtimes: of each stream; their configurations are at rates that no queue exceeds, and
            have a `QueuedOffers`.
    """
    served = [
        SiteModel(runtimes=tuple(mine), several=True, n_output_tokens=stream.n_output_tokens)
        for mine, stream in zip(runtimes, streams, strict=True)
    ]
    # rates are not known yet: nothing outdoes anything
    wanted = OfferRequest(
        models=served, roles=request.roles, by_latency=False, whole=True, in_part=False
    )
    return CandidateSet(
        request=request,
        site=site,
        streams=tuple(streams),
        offered=site.offered(wanted),
        book=_empty_cache(request, site),
    )


def candidates_believing(market: CandidateSet, belief: str) -> CandidateSet:
    """The same streams and devices, where something else is believed of times."""
    request, site = market.request, market.site
    assert isinstance(site, Fabric)  # engines have beliefs, and layouts none
    wires = site.wires
    pairs = []
    for config in market.offered.configurations:
        other, stream = offering.believing(config, belief), market.streams[config.model]
        if other is not None and other is not config:
            wire = wires[config.pattern.kind_name]
            other = handing_over(other, request.roles, wire, stream.n_output_tokens)
        pairs += [(config, other)] if other is not None else []
    offered = market.offered.taking([other for _, other in pairs])
    if belief == MEDIAN:
        request = replace(request, confidence=0.0)
    book = market.book.anew(pairs)
    return replace(market, request=request, offered=offered, book=book, roomy={})


def for_less_traffic(market: CandidateSet, request: FleetRequest) -> CandidateSet:
    """The same configurations for less traffic, or fewer streams; nothing known yet."""
    streams = streams_of(request.classes, sharing=request.sharing)
    numbers = {one.name: i for i, one in enumerate(streams)}
    configurations = tuple(
        for_stream(config, numbers[name], streams[numbers[name]])
        for config in market.offered.configurations
        if (name := market.streams[config.model].name) in numbers
    )
    offered = market.offered.taking(configurations, len(streams))
    book = _empty_cache(request, market.site)
    return replace(market, request=request, streams=streams, offered=offered, book=book, roomy={})


def for_stream(config: AnyConfiguration, number: int, stream: RequestClass) -> AnyConfiguration:
    """A configuration for a stream that may have other shares of its classes."""
    source = offering.source_of(config)
    ways, before = source.ways, source.stream
    if not np.allclose(stream.load.weight, before.load.weight):
        ways = ways_of(ways.rows, ways.stations, stream)
    return replace(
        config,
        model=number,
        output_tokens_per_s=max(ways.bounds) * stream.n_output_tokens,
        source=replace(source, stream=stream, ways=ways),
    )


def _empty_cache(request: FleetRequest, site: Site) -> RateCache:
    """Nothing known yet."""
    capacities = Capacities(
        classes=request.classes, n_requests=asked_requests(request), seed=request.options.seed
    )
    n_free = {kind: free for kind, (_, free) in site.n_of_kind.items()}
    return RateCache(
        capacities=capacities,
        connector=request.roles.connector,
        router=request.router,
        n_free={**n_free, **{kind: min(n, n_free[kind]) for kind, n in request.counts.items()}},
    )


def asked_requests(request: FleetRequest) -> int:
    """Requests that a fleet is tried on: those of the longest trace at least, once."""
    traces = (one.arrivals.trace for one in request.classes)
    return max(request.n_simulated, *(one.n_whole for one in traces if one is not None), 0)


def _of_models(streams: Sequence[RequestClass]) -> dict[str, list[RequestClass]]:
    by_model: dict[str, list[RequestClass]] = {}
    for one in streams:
        by_model.setdefault(one.model.name, []).append(one)
    return by_model


def _offers(
    name: str, request: FleetRequest, streams: Sequence[RequestClass], site: Site
) -> Callable[[RequestClass], Runtime]:
    """Who may serve streams of a model, asked with requests of the mean length of all of them."""
    loads = [one.load for one in streams]
    n_requests = sum(one.rate_per_s for one in loads)
    n_input = sum(one.rate_per_s * one.mean_input for one in loads) / n_requests
    n_output = sum(one.rate_per_s * one.n_output_tokens for one in streams) / n_requests
    workload = Workload(
        n_input_tokens=max(1, round(n_input)),
        n_output_tokens=max(_FEWEST_OUTPUT, round(n_output)),
    )
    targets = Targets(quality_loss_fraction=request.quality_loss_fraction)
    wish = from_fields(Serve, request, model=streams[0].model, workload=workload)
    placement = from_fields(
        PlacementRequest,
        request,
        models=(wish,),
        engines=(name,),
        workload=workload,
        targets=targets,
        batches=request.batches or offering.BATCHES,
    )
    if family_of(name) != ENGINES:
        batches = request.batches or _FEW
        return accounts_of(name, replace(placement, batches=batches), wish, streams, site)
    serving = serving_engine(name, placement, wish, site)
    chunks = request.chunks or offering.CHUNKS
    requests = {kind: replace(one, chunks=chunks) for kind, one in serving.requests.items()}
    serving = replace(serving, requests=requests)
    made = offering.ModelOffers(serving=serving, streams=tuple(streams))
    return lambda stream: offering.QueuedEngine(offers=made, stream=stream)
