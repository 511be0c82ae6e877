"""What is known of how much configurations serve: bounds, then simulations, then refutations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.capacity import MOST_POOLED, Capacities, PoolLoad
from planner.placing.fleets.choosing.program import Pools
from planner.placing.fleets.offering import is_measured, source_of
from planner.placing.fleets.outcomes import HandedOver, held_to, link_rate
from planner.running.deadlines import is_over
from planner.specs.records.roles import LEAST_PRESENT, PREFILL, Connector

_LESS = 1.0 - 1e-3
"""Of a rate that a way was seen not to carry, what it may carry: what programs tolerate is less,
and rates are known to `capacity.PRECISION`."""

_STEPS = (0.15, 0.45)
"""Of a rate that was not carried, how far below it others are tried, until one is."""

_FAR = 0.04
"""Of a rate that was not carried, what is tried first below it: many carry next to nothing."""

_NEAR = 0.7
"""Of a rate that was not carried, from where on what is carried is found to the end."""

_AS_MUCH = 1.0 - 1e-12
"""Of a rate, from where on another is no less."""


@dataclass(slots=True, kw_only=True)
class RateEstimate:
    """What is known of the ways of one configuration: its largest rate is between two.

    Args:
        rates: that no replica of each way exceeds: bounds, what simulations say, or what is left of
            it where a fleet was refuted that had it [1/s] (W,).
        lows: that replicas of each way were seen to carry [1/s] (W,).
        last: a way and its rate, and the configuration at it: who asks again gets the same.
    """

    rates: FloatArray
    lows: FloatArray
    last: tuple[int, float, AnyConfiguration] | None = None

    @property
    def best(self) -> int:
        """The way that may serve most."""
        return int(np.argmax(self.rates))


@dataclass(slots=True, kw_only=True)
class RateCache:
    """What is known of each configuration, as it was offered.

    Args:
        capacities: simulations.
        connector: that hands caches over, if any are.
        router: before replicas that are alike; None takes each replica as if it were alone, which
            holds for any traffic.
        n_free: devices that replicas may have, by kind.
        pools: how many replicas of configurations there are.
        looked: by configuration, and the replicas of a pool.
        lowered: configurations that were taken for less than they carry by themselves.
    """

    capacities: Capacities
    connector: Connector | None = None
    router: str | None = None
    n_free: Mapping[str, int] = field(default_factory=dict)
    pools: Pools = field(default_factory=Pools)
    looked: dict[tuple[int, int], RateEstimate] = field(default_factory=dict)
    lowered: set[int] = field(default_factory=set)
    _wide: dict[tuple[str, int], int] = field(default_factory=dict)

    def _key(self, config: AnyConfiguration) -> tuple[int, int]:
        """Of what is known: the configuration, and the replicas of a pool."""
        widest = self._widest(config)
        return id(config), min(self.pools.most.get(id(config), widest), widest)

    def _widest(self, config: AnyConfiguration) -> int:
        """Replicas of the largest pool that is simulated."""
        key = config.pattern.kind_name, config.n_devices
        if key not in self._wide:
            n_free = self.n_free.get(key[0], 0) if self.router else 0
            self._wide[key] = max(1, min(MOST_POOLED, n_free // key[1]))
        return self._wide[key]

    def anew(self, pairs: Iterable[tuple[AnyConfiguration, AnyConfiguration]]) -> RateCache:
        """What is still known where other ways, or times, of configurations are believed.

        Args:
            pairs: as they were offered, and as they are believed; of those that are the same all
                is known, of others bounds of the ways that were measured.
        """
        book = replace(self, pools=Pools(), looked={}, lowered=set())
        for config, other in pairs:
            known = self.looked.get((id(config), self._widest(config)))
            if known is None or id(config) in self.lowered:
                continue
            rates, lows = known.rates.copy(), known.lows.copy()
            if config is not other:
                before, ways = source_of(config).ways.rows, source_of(other).ways
                at = np.searchsorted(before, ways.rows).clip(max=len(before) - 1)
                is_same = (before[at] == ways.rows) & is_measured(config, ways.rows)
                rates = np.where(is_same, rates[at], ways.bounds)
                lows = np.where(is_same, lows[at], 0.0)
            book.looked[id(other), self._widest(config)] = RateEstimate(rates=rates, lows=lows)
        return book

    def now(self, config: AnyConfiguration) -> AnyConfiguration:
        """A configuration at the rate that it does not exceed, by the way that carries most."""
        known = self.looked.get(self._key(config))
        if known is None:
            return config
        way = int(np.argmax(known.lows)) if known.lows.any() else known.best
        rate = float(known.rates.max())
        if known.last is None or known.last[:2] != (way, rate):
            known.last = way, rate, at_way(config, rate, way)
        return known.last[2]

    def sure(self, config: AnyConfiguration) -> AnyConfiguration | None:
        """A configuration at what it was seen to carry; None where that is nothing."""
        known = self.looked.get(self._key(config))
        if known is None or not known.lows.any():
            return None
        return at_way(config, float(known.lows.max()), int(np.argmax(known.lows)))

    def is_open(self, config: AnyConfiguration, rate_per_s: float) -> bool:
        """Whether nobody knows if a replica of some way carries a rate."""
        known = self._opened(config)
        return bool(known.lows.max() < rate_per_s * _AS_MUCH <= known.rates.max())

    def carries(self, config: AnyConfiguration, rate_per_s: float) -> bool:
        """Whether a replica of some way carries a rate within all goals; False out of time."""
        known = self._opened(config)
        while known.lows.max() < rate_per_s * _AS_MUCH and not is_over():
            way = known.best
            if known.rates[way] < rate_per_s * _AS_MUCH:
                return False
            self._try(config, known, way, min(rate_per_s, float(known.rates[way])))
        return bool(known.lows.max() >= rate_per_s * _AS_MUCH)

    def narrow(self, config: AnyConfiguration, rate_per_s: float) -> None:
        """Where a rate is not carried, look far below it, then further each time, until one is."""
        known = self._opened(config)
        if self.carries(config, rate_per_s) or not (
            known.lows.any() or self.carries(config, rate_per_s * _FAR)
        ):
            return
        for step in _STEPS:
            if self.carries(config, rate_per_s * (1.0 - step)):
                break
        if known.lows.max() > rate_per_s * _NEAR:
            self.look_at(config)

    def _try(
        self, config: AnyConfiguration, known: RateEstimate, way: int, rate_per_s: float
    ) -> None:
        """See whether a way carries a rate; nothing is learnt out of time."""
        self.capacities.n_asked += 1
        carried = self.capacities.carries(self._pool_load(config, way), rate_per_s)
        if carried:
            known.lows[way] = rate_per_s
        elif carried is not None:
            known.rates[way] = rate_per_s * _LESS

    def look_at(self, config: AnyConfiguration) -> None:
        """Find the most that it serves within all goals; out of time some stays at its bounds."""
        known = self._opened(config)
        while known.rates[known.best] > known.lows[known.best] and not is_over():
            way, least = known.best, float(known.lows.max())
            if known.lows[way] < least < known.rates[way]:
                self._try(config, known, way, least)
            if known.rates[way] > least:
                self.capacities.n_asked += 1
                low, most = float(known.lows[way]), float(known.rates[way])
                rate = self.capacities.largest(self._pool_load(config, way), most, low)
                if rate is not None:
                    known.rates[way] = known.lows[way] = rate

    def _pool_load(self, config: AnyConfiguration, way: int, n_most: int | None = None) -> PoolLoad:
        source = source_of(config)
        return PoolLoad(
            stream=source.stream,
            station=source.ways.stations[way],
            goals=held_to(source.stream, config.role, self.handed(config)) or (),
            router=self.router or LEAST_PRESENT,
            n_most=n_most or self._key(config)[1],
        )

    def _opened(self, config: AnyConfiguration) -> RateEstimate:
        """What is known of it, bounds at first."""
        if self._key(config) not in self.looked:
            source, handed = source_of(config), self.handed(config)
            rates = np.array(source.ways.bounds)
            if held_to(source.stream, config.role, handed) is None:  # there is no time for it
                rates[:] = 0.0
            if config.role == PREFILL:
                rates = np.minimum(rates, link_rate(source.stream, handed))
            wide = self.looked.get((id(config), self._widest(config)))
            rates = rates if wide is None else wide.rates.copy()
            self.looked[self._key(config)] = RateEstimate(rates=rates, lows=np.zeros(len(rates)))
        return self.looked[self._key(config)]

    def most_per_s(
        self, config: AnyConfiguration, row: int, n_replicas: int, least: float
    ) -> float:
        """Requests a second that a replica of a way carries in a pool of so many, least at least.

        Out of time that is all that is known.
        """
        known, way = self._opened(config), _index(config, row)
        n_most = min(n_replicas, self._widest(config))
        most = float(known.rates[way])
        rate = self.capacities.largest(self._pool_load(config, way, n_most), most, min(least, most))
        return max(rate or 0.0, least)

    def in_pools_of(self, config: AnyConfiguration, n_replicas: int, rate_per_s: float) -> float:
        """Requests a second that a replica serves in a pool of so many, if less than a rate."""
        narrow = replace(self, pools=self.pools.split(id(config), n_replicas)[0])
        if narrow.carries(config, rate_per_s):
            return rate_per_s
        narrow.look_at(config)
        return float(narrow._opened(config).rates.max())

    def take_down(self, config: AnyConfiguration, row: int, rate_per_s: float) -> None:
        """Take replicas of a way for no more than this each."""
        known, way = self._opened(config), _index(config, row)
        known.rates[way] = min(rate_per_s, known.rates[way])
        known.lows[way] = min(rate_per_s, known.lows[way])
        self.lowered.add(id(config))

    def late(
        self, config: AnyConfiguration, row: int, n_replicas: int, some: float = 1.0
    ) -> list[float]:
        """Of each goal the share of its requests that is late in a pool, as in `Capacities`."""
        return self.capacities.late(self._pool_load(config, _index(config, row), n_replicas), some)

    def saw(self, config: AnyConfiguration, row: int, rate_per_s: float) -> None:
        """Know what replicas of a way carry at least."""
        known, way = self._opened(config), _index(config, row)
        known.lows[way] = rate_per_s
        known.rates[way] = max(rate_per_s, known.rates[way])

    def handed(self, config: AnyConfiguration) -> HandedOver:
        """What handing a cache over takes of it."""
        if self.connector is None or config.handover_s <= 0.0:
            return HandedOver()
        wide = self.connector.bytes_per_s
        link_s = 0.0 if wide is None else config.handed_bytes / wide
        return HandedOver(seconds=config.handover_s, link_s=link_s)


def _index(config: AnyConfiguration, row: int) -> int:
    """The number of a way, by the row of its choice."""
    return int(np.flatnonzero(source_of(config).ways.rows == row)[0])


def at_way(config: AnyConfiguration, rate_per_s: float, way: int) -> AnyConfiguration:
    """A configuration by one of its ways, at a rate."""
    source = source_of(config)
    most, row = rate_per_s * source.stream.n_output_tokens, int(source.ways.rows[way])
    return replace(config, output_tokens_per_s=min(most, config.output_tokens_per_s), choice=row)
