"""A chosen fleet as pools with routes, and what the simulation says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.estimates.serving.memory import handed_bytes
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fabrics.wires import wire_of
from planner.placing.fleets.market import asked_requests
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.searching import Chosen
from planner.placing.fleets.streams import Stream
from planner.placing.program import KTOKEN
from planner.results.fleets import CURVE
from planner.runtimes.simulation import simulate
from planner.specs.roles import TOGETHER
from planner.specs.stations import Station
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.intervals import SHARES
from planner.verifier.simulation.loads import ClassLoad, Route
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import Handover, Pool
from planner.verifier.simulation.steady import simulate_steady

LEAST_FLOW = 1e-9
"""Of thousands of tokens a second, below which a route is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedPool:
    """Replicas that are alike, for one stream.

    Args:
        name: each once.
        configuration: as it is known.
        n_replicas: of it.
        rate_per_s: requests that are sent to all of them.
        router: before them, of `planner.specs.roles`.
    """

    name: str
    stream: Stream
    configuration: NodeConfiguration
    n_replicas: int
    rate_per_s: float
    router: str

    @property
    def role(self) -> str:
        return self.configuration.role

    @property
    def station(self) -> Station:
        return source_of(self.configuration).station(self.configuration.choice)

    @property
    def most_per_s(self) -> float:
        """Requests a second that one replica serves."""
        return self.configuration.output_tokens_per_s / self.stream.n_output_tokens

    @property
    def replica_rate_per_s(self) -> float:
        """What is sent to one of them."""
        return self.rate_per_s / self.n_replicas


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Way:
    """Requests of a stream that go from pool to pool, or to one.

    Args:
        pool, then: numbers of the pools; `then` is None where the first does both phases.
        rate_per_s: of requests.
    """

    pool: int
    then: int | None
    rate_per_s: float
    handover: Handover | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedFleet:
    """Pools, and who sends what where.

    Args:
        chosen: the solution.
        ways: of all streams; those of a stream are those that begin at its pools.
    """

    chosen: Chosen
    pools: tuple[PlannedPool, ...]
    ways: tuple[Way, ...]

    def ways_of(self, stream: Stream) -> Iterator[Way]:
        return (one for one in self.ways if self.pools[one.pool].stream is stream)

    def pools_of(self, one: TrafficClass) -> Iterator[PlannedPool]:
        """Pools that serve some of a class."""
        return (
            pool
            for pool in self.pools
            if any(other.name == one.name for other in pool.stream.classes)
        )

    @property
    def streams(self) -> list[Stream]:
        """Those that are served."""
        return list(dict.fromkeys(pool.stream for pool in self.pools))


def planned(chosen: Chosen) -> PlannedFleet:
    """Pools of a solution; each gets of its stream's requests what it serves of all."""
    streams, replicas = chosen.market.streams, chosen.replicas
    ways = _ways(chosen)
    sent = [0.0] * len(replicas)
    for way in ways:
        for end in {way.pool, way.pool if way.then is None else way.then}:
            sent[end] += way.rate_per_s
    names = _numbered([_name(streams[one.model], one.role) for one, _ in replicas])
    pools = tuple(
        PlannedPool(
            name=name,
            stream=streams[one.model],
            configuration=one,
            n_replicas=n,
            rate_per_s=rate,
            router=chosen.market.request.router,
        )
        for name, (one, n), rate in zip(names, replicas, sent, strict=True)
    )
    return PlannedFleet(chosen=chosen, pools=pools, ways=ways)


def _ways(chosen: Chosen) -> tuple[Way, ...]:
    """Who sends what where: of each stream all that comes, as capacities are."""
    streams, replicas = chosen.market.streams, chosen.replicas
    found = [
        Way(pool=i, then=None, rate_per_s=n * one.output_tokens_per_s)
        for i, (one, n) in enumerate(replicas)
        if one.role == TOGETHER
    ]
    for (i, j), rate in _flows(chosen).items():
        handover = _handover(chosen, replicas[i][0], replicas[j][0])
        found.append(Way(pool=i, then=j, rate_per_s=rate, handover=handover))
    total = [0.0] * len(streams)
    for way in found:
        total[replicas[way.pool][0].model] += way.rate_per_s
    part = [
        one.rate_per_s / rate if rate else 0.0 for one, rate in zip(streams, total, strict=True)
    ]
    return tuple(
        replace(way, rate_per_s=way.rate_per_s * part[replicas[way.pool][0].model]) for way in found
    )


def _name(stream: Stream, role: str) -> str:
    return stream.name if role == TOGETHER else f"{stream.name} {role}"


def _numbered(words: Sequence[str]) -> list[str]:
    """Names, with a number where several have the same."""
    counts: dict[str, int] = {}
    found = []
    for word in words:
        counts[word] = counts.get(word, 0) + 1
        found.append(word if words.count(word) == 1 else f"{word} {counts[word]}")
    return found


def _flows(chosen: Chosen) -> dict[tuple[int, int], float]:
    """Tokens that are written of what one configuration hands to another, by their numbers."""
    network, columns = chosen.network, chosen.posed.columns
    if network is None:
        return {}
    numbers = {id(one): i for i, (one, _) in enumerate(chosen.replicas)}
    found: dict[tuple[int, int], float] = {}
    pairs = zip(network.prefill.tolist(), network.decode.tolist(), chosen.flows, strict=True)
    for p, d, rate in pairs:
        if rate <= LEAST_FLOW:
            continue
        ends = [columns.configurations[int(columns.which[j - columns.n_parts])] for j in (p, d)]
        key = numbers[id(ends[0])], numbers[id(ends[1])]
        found[key] = found.get(key, 0.0) + rate / KTOKEN
    return found


def _handover(chosen: Chosen, ours: NodeConfiguration, theirs: NodeConfiguration) -> Handover:
    """What hands caches from replicas of one configuration to those of another."""
    connector = chosen.market.request.roles.connector
    assert connector is not None
    source, ground = source_of(ours).engine, chosen.market.site.ground
    block = source.machines.engine.n_block_tokens
    low, high = (
        handed_bytes(source.model, ours.kv_format, n_tokens=float(n), n_block_tokens=block)
        for n in (block, 1024 * block)
    )
    token_bytes = (high - low) / (1023.0 * block)
    wires = [
        one.n_devices * wire_of(ground, one.pattern.kind).own_bytes_per_s for one in (ours, theirs)
    ]
    most = math.inf if connector.bytes_per_s is None else connector.bytes_per_s
    return Handover(
        latency_s=connector.latency_s,
        bytes_per_s=most,
        wire_bytes_per_s=min(wires),
        sequence_bytes=max(0.0, low - token_bytes * block),
        token_bytes=token_bytes,
    )


def tried(fleet: PlannedFleet, *, seed: int) -> FleetOutcome:
    """Serve requests with a fleet, one by one."""
    request = fleet.chosen.market.request
    pools = [
        Pool(name=one.name, station=one.station, n_replicas=one.n_replicas, router=one.router)
        for one in fleet.pools
    ]
    served = {one.name for stream in fleet.streams for one in stream.classes}
    classes = [one for one in request.classes if one.name in served]
    loads = [
        ClassLoad(name=one.name, source=one, routes=tuple(_routes(fleet, one)), goodput=one.goodput)
        for one in classes
    ]
    asked = {target.share for one in classes for target in one.targets}
    return simulate_steady(
        pools,
        loads,
        n_requests=asked_requests(request),
        seed=seed,
        shares=sorted({*SHARES, *CURVE, *asked}),
        simulation=simulate,
    )


def _routes(fleet: PlannedFleet, one: TrafficClass) -> Iterator[Route]:
    """Where requests of a class go."""
    for stream in fleet.streams:
        if all(other.name != one.name for other in stream.classes):
            continue
        for way in fleet.ways_of(stream):
            yield Route(
                pool=fleet.pools[way.pool].name,
                then=None if way.then is None else fleet.pools[way.then].name,
                handover=way.handover,
                share=way.rate_per_s,
                above_tokens=stream.above_tokens,
                upto_tokens=stream.upto_tokens,
            )
