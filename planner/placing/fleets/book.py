"""What is known of how much configurations serve: bounds, then queues, then what was refuted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.queues.largest import largest_rate, rate_bound
from planner.estimates.queues.loads import Load
from planner.estimates.queues.pooling import replica_load
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.targets import HandedOver, held_to, link_rate
from planner.running.deadlines import is_over
from planner.specs.roles import PREFILL, Connector

_ROUNDING = 1e-9


@dataclass(slots=True, kw_only=True)
class Looked:
    """What is known of the ways of one configuration.

    Args:
        rates: of a replica, of each way: bounds, what queues say, or what is left of it where
            a simulation refuted that [1/s] (W,).
        is_found: which of them are no bounds (W,).
        is_refuted: which of them a simulation took down (W,).
    """

    rates: FloatArray
    is_found: BoolArray
    is_refuted: BoolArray


@dataclass(slots=True, kw_only=True)
class Book:
    """What is known of each configuration, as it was offered.

    Args:
        connector: that hands caches over, if any are.
        router: before replicas that are alike: a stream that several share comes to each of them
            more evenly; None takes each replica as if it were alone, which holds for any traffic.
        n_found: largest rates that were looked for.
        heavier: by stream, times its load that formulas have to be told to say what a simulation
            had: the least of all that were refuted. It depends on lengths and arrivals more than on
            who serves them, so that what no simulation has tried of a stream is held to it.
    """

    connector: Connector | None = None
    router: str | None = None
    looked: dict[int, Looked] = field(default_factory=dict)
    n_found: int = 0
    heavier: dict[int, float] = field(default_factory=dict)

    @property
    def has_refuted(self) -> bool:
        """Whether a simulation took anything down."""
        return any(bool(np.any(one.is_refuted)) for one in self.looked.values())

    def is_bounded(self, one: NodeConfiguration) -> bool:
        """Whether more is known of it than that no scheduler serves more."""
        return id(one) in self.looked

    def is_known(self, one: NodeConfiguration) -> bool:
        """Whether what it serves was found."""
        known = self.looked.get(id(one))
        return known is not None and bool(known.is_found[self._best(one, known)])

    def is_refuted(self, one: NodeConfiguration, row: int) -> bool:
        """Whether what one of its ways serves is what a simulation left of it."""
        known = self.looked.get(id(one))
        return known is not None and bool(known.is_refuted[_way(one, row)])

    def now(self, one: NodeConfiguration) -> NodeConfiguration:
        """A configuration as it is known now."""
        known = self.looked.get(id(one))
        if known is None:
            return one
        return _at(one, self._rates(one, known), self._best(one, known))

    def sure(self, one: NodeConfiguration) -> NodeConfiguration | None:
        """A configuration by the best of its ways that were found; None where none was."""
        known = self.looked.get(id(one))
        if known is None or not known.is_found.any():
            return None
        rates = np.where(known.is_found, self._rates(one, known), 0.0)
        return _at(one, rates, int(np.argmax(rates)))

    def _rates(self, one: NodeConfiguration, known: Looked) -> FloatArray:
        """Of its ways, as they are known (W,): formulas are told a load as much heavier."""
        heavier = self.heavier.get(one.model, 1.0)
        return np.where(known.is_refuted, known.rates, known.rates / heavier)

    def _best(self, one: NodeConfiguration, known: Looked) -> int:
        """The way that serves most; when it is found, no other serves more."""
        return int(np.argmax(self._rates(one, known)))

    def bound(self, one: NodeConfiguration) -> None:
        """Find what no way of it exceeds within the targets, at a hundredth of what finding costs.

        What is chosen is bounded first, with all of its stream: few of them are worth finding.
        """
        if id(one) in self.looked:
            return
        ways, stream = source_of(one).ways, source_of(one).stream
        n, handed = len(ways.stations), self.handed(one)
        targets = held_to(stream, one.role, handed)
        rates = np.zeros(n)
        if targets is not None:  # there is time for it
            most = link_rate(stream, handed) if one.role == PREFILL else np.inf
            bounds = [rate_bound(w, stream.load, targets) * w.n_ranks for w in ways.stations]
            rates = np.minimum(bounds, most)
        none = np.zeros(n, dtype=np.bool_)
        self.looked[id(one)] = Looked(rates=rates, is_found=rates == 0.0, is_refuted=none)

    def look_at(self, one: NodeConfiguration, *, n_ways: int | None = None) -> None:
        """Find the most that it serves within all percentiles, best bounds first.

        Out of time, what was not found stays at its bounds.

        Args:
            n_ways: that are looked at; all that may be the best where None.
        """
        self.bound(one)
        known, source = self.looked[id(one)], source_of(one)
        targets = held_to(source.stream, one.role, self.handed(one))
        best = self._best(one, known)
        while not known.is_found[best] and n_ways != 0 and not is_over():
            n_ways = None if n_ways is None else n_ways - 1
            assert targets is not None  # or nothing is left to be found
            station = source.ways.stations[best]
            load = self._seen_by_one(source.stream.load, known.rates[best], station.n_ranks)
            rate = largest_rate(station, load, targets) * station.n_ranks
            known.rates[best] = min(rate, known.rates[best])
            known.is_found[best] = True
            self.n_found += 1
            best = self._best(one, known)

    def take_down(
        self, one: NodeConfiguration, row: int, rate_per_s: float, heavier: float
    ) -> None:
        """A simulation refuted what a way of it serves: so much, or another of its ways more.

        Args:
            heavier: times the load that formulas have to be told; 1 where nobody knows.
        """
        known, way = self.looked[id(one)], _way(one, row)
        known.rates[way] = rate_per_s
        known.is_refuted[way] = known.is_found[way] = True
        if heavier > 1.0:
            self.heavier[one.model] = min(heavier, self.heavier.get(one.model, heavier))
        self.look_at(one)

    def _seen_by_one(self, load: Load, most: float, n_ranks: int) -> Load:
        """What comes to one rank, beside as many replicas as serve the stream at least.

        Args:
            most: requests a second that a replica does not exceed.
        """
        n_replicas = math.ceil(load.rate_per_s / most - _ROUNDING) if most > 0.0 else 1
        if self.router is None or n_replicas < 2:
            return load
        return replica_load(load, n_replicas * n_ranks, self.router)

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


def _at(one: NodeConfiguration, rates: FloatArray, way: int) -> NodeConfiguration:
    """A configuration by one of its ways, at its rate."""
    source = source_of(one)
    most = float(rates[way]) * source.stream.n_output_tokens
    row = int(source.ways.rows[way])
    return replace(one, output_tokens_per_s=min(most, one.output_tokens_per_s), choice=row)
