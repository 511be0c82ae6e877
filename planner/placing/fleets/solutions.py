"""What a program chose, as pools with routes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet
from planner.placing.fleets.choosing.program import choice_of
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.request_classes import RequestClass
from planner.placing.program import KTOKEN, Step
from planner.placing.sites import SiteOffers, SiteProgram
from planner.programs.handover import Handover
from planner.programs.placement import Counts, PlacementProgram
from planner.solvers.placement import PlacementSolution
from planner.specs.records.roles import TOGETHER, Station
from planner.specs.traffic.records import TrafficClass

N_PARTS = 10
"""In which streams share out the requests of a unit."""

LEAST_FLOW = 1e-9
"""Of thousands of tokens a second, below which a route is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """A solution.

    Args:
        offered: what it was chosen from, as it is known.
        counts: copies of the posed columns; None where there is no fleet.
        origins: the configuration as it was offered, of each one that is posed, by identity.
        factors: times the traffic of classes by name; that of others is as it is.
        is_for_share: whether it is the largest share of all demands, not the least rent.
        steps: the best of each number of sorts of replicas that was looked at.
    """

    market: CandidateSet
    offered: SiteOffers
    posed: SiteProgram
    program: PlacementProgram
    network: Handover | None
    solution: PlacementSolution
    flows: tuple[float, ...]
    origins: dict[int, AnyConfiguration]
    factors: Mapping[str, float] = field(default_factory=dict)
    is_for_share: bool = False
    steps: tuple[Step, ...] = ()

    @property
    def is_found(self) -> bool:
        return self.solution.answer is not None

    @property
    def counts(self) -> Counts:
        """Copies of the columns that places know of."""
        assert self.solution.answer is not None
        return Counts(copies=self.solution.answer.copies[: self.posed.program.n_columns])

    @property
    def replicas(self) -> list[tuple[AnyConfiguration, int]]:
        """Configurations that are used, as they are known, with their replicas."""
        used: dict[int, int] = {}
        columns = self.posed.columns
        for j, n in columns.replicas(self.counts.copies):
            i = int(columns.which[j])
            used[i] = used.get(i, 0) + n
        return [(columns.configurations[i], n) for i, n in sorted(used.items())]

    @property
    def shares(self) -> list[float]:
        """Of each stream, the part of what it is asked for that it serves (G,)."""
        fractions = [1.0] * len(self.market.streams)
        _, aside = choice_of(self.market.streams)
        assert self.solution.answer is not None
        copies = self.solution.answer.copies[self.posed.program.n_columns :]
        most = self.program.column_most
        for k, i in enumerate(aside):
            n_parts = 1 if most is None else most[self.posed.program.n_columns + k]
            fractions[i] = 1.0 - copies[k] / float(n_parts)
        return fractions

    def origin(self, config: AnyConfiguration) -> AnyConfiguration:
        return self.origins[id(config)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedPool:
    """Replicas that are alike, for one stream.

    Args:
        name: each once.
        configuration: as it is known.
        n_replicas: of it.
        share: that is sent to all of them of the requests of the stream, relative to those of other
            pools for the same requests.
        rates_per_s: of these, by class.
        router: before them, of `planner.specs.records.roles`.
    """

    name: str
    stream: RequestClass
    configuration: AnyConfiguration
    n_replicas: int
    share: float
    rates_per_s: Mapping[str, float]
    router: str

    @property
    def rate_per_s(self) -> float:
        """Requests that are sent to all of them."""
        return math.fsum(self.rates_per_s.values())

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
class PoolRoute:
    """Requests of a stream that go from pool to pool, or to one.

    Args:
        pool, then: numbers of the pools; `then` is None where the first does both phases.
        share: of the requests of the stream, relative to other ways for the same requests.
    """

    pool: int
    then: int | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedFleet:
    """Pools, and who sends what where.

    Args:
        chosen: the solution.
        ways: of all streams; those of a stream are those that begin at its pools.
    """

    chosen: Solution
    pools: tuple[PlannedPool, ...]
    ways: tuple[PoolRoute, ...]

    def ways_of(self, stream: RequestClass) -> Iterator[PoolRoute]:
        return (one for one in self.ways if self.pools[one.pool].stream is stream)

    def pools_of(self, traffic: TrafficClass) -> Iterator[PlannedPool]:
        """Pools that serve some of a class."""
        return (
            pool
            for pool in self.pools
            if any(other.name == traffic.name for other in pool.stream.classes)
        )

    def carried_per_s(self, pool: PlannedPool) -> float:
        """Requests a second that a replica carries in a pool of that size, those sent at least."""
        config, n, least = pool.configuration, pool.n_replicas, pool.replica_rate_per_s
        origin = self.chosen.origin(config)
        return self.chosen.market.book.most_per_s(origin, config.choice, n, least)

    @property
    def streams(self) -> list[RequestClass]:
        """Those that are served."""
        return list(dict.fromkeys(pool.stream for pool in self.pools))


def planned(chosen: Solution) -> PlannedFleet:
    """Pools of a solution; each gets of its stream's requests what it serves of all."""
    streams, replicas = chosen.market.streams, chosen.replicas
    ways = _routes(chosen)
    shares = [0.0] * len(replicas)
    for way in ways:
        for end in {way.pool, way.pool if way.then is None else way.then}:
            shares[end] += way.share
    sent = _sent(chosen, ways)
    names = numbered([_name(streams[one.model], one.role) for one, _ in replicas])
    pools = tuple(
        PlannedPool(
            name=name,
            stream=streams[config.model],
            configuration=config,
            n_replicas=n,
            share=share,
            rates_per_s={name: share * rate for name, rate in sent[config.model].items()},
            router=chosen.market.request.router,
        )
        for name, (config, n), share in zip(names, replicas, shares, strict=True)
    )
    return PlannedFleet(chosen=chosen, pools=pools, ways=ways)


def _sent(chosen: Solution, ways: Sequence[PoolRoute]) -> list[dict[str, float]]:
    """Of each stream, what comes to it of each class by a way with a share of one [1/s]."""
    streams, models = chosen.market.streams, [one.model for one, _ in chosen.replicas]
    of_stream = [
        math.fsum(it.share for it in ways if models[it.pool] == i) for i in range(len(streams))
    ]
    of_unit: dict[int, float] = {}
    for one, share in zip(streams, of_stream, strict=True):
        for unit, part in zip(one.units, one.parts, strict=True):
            of_unit[unit] = of_unit.get(unit, 0.0) + share * part
    sent: list[dict[str, float]] = []
    for stream in streams:
        rates: dict[str, float] = {}
        for unit, part in zip(stream.units, stream.parts, strict=True):
            name, rate = stream.rate_of_unit[unit]
            comes = rate * chosen.factors.get(name, 1.0) * part / (of_unit[unit] or 1.0)
            rates[name] = rates.get(name, 0.0) + comes
        sent.append(rates)
    return sent


def _routes(chosen: Solution) -> tuple[PoolRoute, ...]:
    """Who sends what where: of each stream its share of all that comes, as capacities are."""
    streams, replicas = chosen.market.streams, chosen.replicas
    routes = [
        PoolRoute(pool=i, then=None, share=n * config.output_tokens_per_s)
        for i, (config, n) in enumerate(replicas)
        if config.role == TOGETHER
    ]
    for (i, j), rate in _flows(chosen).items():
        routes.append(PoolRoute(pool=i, then=j, share=rate))
    total = [0.0] * len(streams)
    for way in routes:
        total[replicas[way.pool][0].model] += way.share
    part = [share / rate if rate else 0.0 for share, rate in zip(chosen.shares, total, strict=True)]
    return tuple(
        replace(way, share=way.share * part[replicas[way.pool][0].model]) for way in routes
    )


def _name(stream: RequestClass, role: str) -> str:
    return stream.name if role == TOGETHER else f"{stream.name} {role}"


def numbered(words: Sequence[str]) -> list[str]:
    """Names, with a number where several have the same."""
    counts: dict[str, int] = {}
    names = []
    for word in words:
        counts[word] = counts.get(word, 0) + 1
        names.append(word if words.count(word) == 1 else f"{word} {counts[word]}")
    return names


def _flows(chosen: Solution) -> dict[tuple[int, int], float]:
    """Tokens that are written of what one configuration hands to another, by their numbers."""
    network, columns = chosen.network, chosen.posed.columns
    if network is None:
        return {}
    numbers = {id(one): i for i, (one, _) in enumerate(chosen.replicas)}
    flows: dict[tuple[int, int], float] = {}
    pairs = zip(network.prefill.tolist(), network.decode.tolist(), chosen.flows, strict=True)
    for p, d, rate in pairs:
        if rate <= LEAST_FLOW:
            continue
        ends = [columns.configurations[int(columns.which[j - columns.n_parts])] for j in (p, d)]
        key = numbers[id(ends[0])], numbers[id(ends[1])]
        flows[key] = flows.get(key, 0.0) + rate / KTOKEN
    return flows


def n_devices(pools: Sequence[PlannedPool]) -> int:
    """Devices of all their replicas."""
    return sum(one.n_replicas * one.configuration.n_devices for one in pools)


def usd_per_hour(pools: Sequence[PlannedPool]) -> float:
    """Rent of all their replicas."""
    return math.fsum(one.n_replicas * one.configuration.usd_per_hour for one in pools)
