"""What is known of how much configurations serve: bounds, then simulations, then refutations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.capacity import MOST_POOLED, Capacities, Judged
from planner.placing.fleets.offering import is_measured, source_of
from planner.placing.fleets.program import Pools
from planner.placing.fleets.targets import HandedOver, held_to, link_rate
from planner.running.deadlines import is_over
from planner.specs.roles import LEAST_PRESENT, PREFILL, Connector

_LESS = 1.0 - 1e-9
"""Of a rate that another way is known to serve, where this one serves less."""

Key = tuple[int, str]
"""Stream and role, whose configurations stand for each other."""


@dataclass(slots=True, kw_only=True)
class Looked:
    """What is known of the ways of one configuration.

    Args:
        rates: of a replica, of each way: bounds, what simulations say, or what is left of it where
            a fleet was refuted that had it [1/s] (W,).
        is_found: which of them are no bounds (W,).
        is_raced: whether they were held against the cheapest of their stream.
    """

    rates: FloatArray
    is_found: BoolArray
    is_raced: bool = False


@dataclass(slots=True, kw_only=True)
class Book:
    """What is known of each configuration, as it was offered.

    Args:
        capacities: simulations.
        connector: that hands caches over, if any are.
        router: before replicas that are alike; None takes each replica as if it were alone, which
            holds for any traffic.
        n_free: devices that replicas may have, by kind.
        pools: how many replicas of configurations there are.
        looked: by configuration, and the replicas of a pool.
        cheapest: of each stream and role, the least rent per token that was found.
        lowered: configurations that were taken for less than they carry by themselves.
    """

    capacities: Capacities
    connector: Connector | None = None
    router: str | None = None
    n_free: Mapping[str, int] = field(default_factory=dict)
    pools: Pools = field(default_factory=Pools)
    looked: dict[tuple[int, int], Looked] = field(default_factory=dict)
    cheapest: dict[Key, float] = field(default_factory=dict)
    lowered: set[int] = field(default_factory=set)

    def _key(self, one: NodeConfiguration) -> tuple[int, int]:
        """Of what is known: the configuration, and the replicas of a pool."""
        widest = self._widest(one)
        return id(one), min(self.pools.most.get(id(one), widest), widest)

    def _widest(self, one: NodeConfiguration) -> int:
        """Replicas of the largest pool that is simulated."""
        n_free = self.n_free.get(one.pattern.kind_name, 0)
        return max(1, min(MOST_POOLED, n_free // one.n_devices)) if self.router else 1

    def anew(self, pairs: Iterable[tuple[NodeConfiguration, NodeConfiguration]]) -> Book:
        """What is still known where other ways, or times, of configurations are believed.

        Args:
            pairs: as they were offered, and as they are believed; of those that are the same all
                is known, of others bounds of the ways that were measured.
        """
        book = replace(self, pools=Pools(), looked={}, lowered=set(), cheapest={**self.cheapest})
        for one, other in pairs:
            known = self.looked.get((id(one), self._widest(one)))
            if known is None or id(one) in self.lowered:
                continue
            rates, is_found = known.rates.copy(), known.is_found.copy()
            if one is not other:
                before, ways = source_of(one).ways.rows, source_of(other).ways
                at = np.searchsorted(before, ways.rows).clip(max=len(before) - 1)
                is_same = (before[at] == ways.rows) & is_measured(one, ways.rows)
                # of a way that serves less than the best nothing but a bound is known
                is_found &= rates == rates[is_found].max(initial=0.0)
                rates = np.where(is_same, rates[at], ways.bounds)
                is_found = (is_found[at] & is_same) | (rates == 0.0)
            book.looked[id(other), self._widest(one)] = Looked(rates=rates, is_found=is_found)
        return book

    def is_known(self, one: NodeConfiguration) -> bool:
        """Whether what it serves was found."""
        known = self.looked.get(self._key(one))
        return known is not None and bool(known.is_found[self._best(known)])

    def now(self, one: NodeConfiguration) -> NodeConfiguration:
        """A configuration as it is known now."""
        known = self.looked.get(self._key(one))
        if known is None:
            return one
        return at_way(one, known.rates, self._best(known))

    def sure(self, one: NodeConfiguration) -> NodeConfiguration | None:
        """A configuration by the best of its ways that were found; None where none was."""
        known = self.looked.get(self._key(one))
        if known is None or not known.is_found.any():
            return None
        rates = np.where(known.is_found, known.rates, 0.0)
        return at_way(one, rates, int(np.argmax(rates)))

    def _best(self, known: Looked) -> int:
        """The way that serves most; when it is found, no other serves more."""
        return int(np.argmax(known.rates))

    def look_at(self, one: NodeConfiguration, *, n_ways: int | None = None) -> None:
        """Find the most that it serves within all goals, or that it serves too little.

        The first time it is only asked whether it may be cheaper than what is known of its stream.
        Out of time, what was not found stays at its bounds.

        Args:
            n_ways: that are looked at; all that may be the best where None.
        """
        source = source_of(one)
        stream, handed = source.stream, self.handed(one)
        known = self._opened(one, handed)
        goals = held_to(stream, one.role, handed)
        least = 0.0
        if not known.is_raced:
            parity = one.usd_per_hour / self.cheapest.get((one.model, one.role), np.inf)
            least, known.is_raced = parity / stream.n_output_tokens, True
        found = known.rates[known.is_found].max(initial=0.0)
        while n_ways != 0 and not is_over():
            best = self._best(known)
            if known.is_found[best] or known.rates[best] <= least:
                break
            n_ways = None if n_ways is None else n_ways - 1
            judged = Judged(
                stream=stream,
                station=source.ways.stations[best],
                goals=goals or (),
                router=self.router or LEAST_PRESENT,
                n_most=self._key(one)[1],
            )
            self._find(judged, known, best, max(found, least), is_rival=found >= least)
            found = known.rates[known.is_found].max(initial=0.0)
        self._price(one)

    def _find(
        self, judged: Judged, known: Looked, way: int, least: float, *, is_rival: bool
    ) -> None:
        """What one way serves, if that is more than a rate that matters.

        Args:
            is_rival: whether another way serves so much; else what serves less is not found.
        """
        self.capacities.n_found += 1
        most = float(known.rates[way])
        if least > 0.0 and least < most:
            carried = self.capacities.carries(judged, least)
            if carried is None:
                return
            if not carried:
                known.rates[way], known.is_found[way] = least * _LESS, is_rival
                return
        rate = self.capacities.largest(judged, most, min(least, most))
        if rate is not None:
            known.rates[way], known.is_found[way] = rate, True

    def _price(self, one: NodeConfiguration) -> None:
        """Keep the least rent per token of its stream and role."""
        now = self.sure(one)
        if now is not None and now.output_tokens_per_s > 0.0:
            key, price = (one.model, one.role), now.usd_per_hour / now.output_tokens_per_s
            self.cheapest[key] = min(price, self.cheapest.get(key, np.inf))

    def _opened(self, one: NodeConfiguration, handed: HandedOver) -> Looked:
        """What is known of it, bounds at first."""
        if self._key(one) not in self.looked:
            source = source_of(one)
            rates = np.array(source.ways.bounds)
            if held_to(source.stream, one.role, handed) is None:  # there is no time for it
                rates[:] = 0.0
            if one.role == PREFILL:
                rates = np.minimum(rates, link_rate(source.stream, handed))
            wide = self.looked.get((id(one), self._widest(one)))
            rates = rates if wide is None else wide.rates.copy()
            self.looked[self._key(one)] = Looked(rates=rates, is_found=rates == 0.0)
        return self.looked[self._key(one)]

    def in_pools_of(self, one: NodeConfiguration, n_replicas: int) -> float:
        """Tokens a second that a replica serves in a pool of so many."""
        narrow = replace(self, pools=self.pools.split(id(one), n_replicas)[0])
        while not narrow.is_known(one) and not is_over():
            narrow.look_at(one)
        return narrow.now(one).output_tokens_per_s

    def take_down(self, one: NodeConfiguration, row: int, rate_per_s: float) -> None:
        """Take replicas of a way for no more than this each."""
        known, way = self._opened(one, self.handed(one)), _way(one, row)
        known.rates[way] = min(rate_per_s, known.rates[way])
        self.lowered.add(id(one))

    def handed(self, one: NodeConfiguration) -> HandedOver:
        """What handing a cache over takes of it."""
        if self.connector is None or one.handover_s <= 0.0:
            return HandedOver()
        wide = self.connector.bytes_per_s
        link_s = 0.0 if wide is None else one.handed_bytes / wide
        return HandedOver(seconds=one.handover_s, link_s=link_s)


def _way(one: NodeConfiguration, row: int) -> int:
    """The number of a way, by the row of its choice."""
    return int(np.flatnonzero(source_of(one).ways.rows == row)[0])


def at_way(one: NodeConfiguration, rates: FloatArray, way: int) -> NodeConfiguration:
    """A configuration by one of its ways, at its rate."""
    source = source_of(one)
    most = float(rates[way]) * source.stream.n_output_tokens
    row = int(source.ways.rows[way])
    return replace(one, output_tokens_per_s=min(most, one.output_tokens_per_s), choice=row)
