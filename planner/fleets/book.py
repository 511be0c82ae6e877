"""What is known of how much configurations serve: bounds, then queues, then what was refuted."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.queues.largest import largest_rate, rate_bound
from planner.estimates.queues.loads import Load
from planner.estimates.queues.pooling import replica_load
from planner.fleets.offering import source_of
from planner.fleets.targets import Factors, HandedOver, held_to, link_rate
from planner.placing.fabrics.patterns import NodeConfiguration
from planner.specs.roles import PREFILL, Connector
from planner.specs.traffic.percentiles import PercentileTarget

_ROUNDING = 1e-9


@dataclass(slots=True, kw_only=True)
class Looked:
    """What is known of the ways of one configuration.

    Args:
        rates: of a replica, of each way: bounds, or what was found [1/s] (W,).
        is_found: which of them were found, by queues or by simulation (W,).
        is_refuted: which of them a simulation took down (W,).
        factors: that targets were tightened by when they were found.
    """

    rates: FloatArray
    is_found: BoolArray
    is_refuted: BoolArray
    factors: Factors = field(default_factory=dict)

    @property
    def best(self) -> int:
        """The way that serves most; when it is found, no other serves more."""
        return int(np.argmax(self.rates))


@dataclass(slots=True, kw_only=True)
class Book:
    """What is known of each configuration, as it was offered.

    Args:
        connector: that hands caches over, if any are.
        router: before replicas that are alike: a stream that several share comes to each of them
            more evenly; None takes each replica as if it were alone, which holds for any traffic.
        n_found: largest rates that were looked for.
        factors: by how much formulas were found to be too low, of a stream's quantity and share:
            the least of all that were refuted. It depends on lengths and arrivals more than on who
            serves them, so that all configurations of a stream are held to it from then on.
    """

    connector: Connector | None = None
    router: str | None = None
    looked: dict[int, Looked] = field(default_factory=dict)
    n_found: int = 0
    factors: dict[int, dict[tuple[str, float], float]] = field(default_factory=dict)

    def is_bounded(self, one: NodeConfiguration) -> bool:
        """Whether more is known of it than that no scheduler serves more."""
        return id(one) in self.looked

    def is_known(self, one: NodeConfiguration) -> bool:
        """Whether what it serves was found."""
        known = self.looked.get(id(one))
        if known is None or known.factors != self.factors.get(one.model, {}):
            return False
        return bool(known.is_found[known.best])

    def is_refuted(self, one: NodeConfiguration) -> bool:
        """Whether what it serves is what a simulation left of it."""
        known = self.looked.get(id(one))
        return known is not None and bool(known.is_refuted[known.best])

    def now(self, one: NodeConfiguration) -> NodeConfiguration:
        """A configuration as it is known now."""
        known = self.looked.get(id(one))
        if known is None:
            return one
        source = source_of(one)
        most = float(known.rates[known.best]) * source.stream.n_output_tokens
        row = int(source.ways.rows[known.best])
        return replace(one, output_tokens_per_s=min(most, one.output_tokens_per_s), choice=row)

    def bound(self, one: NodeConfiguration) -> None:
        """Find what no way of it exceeds within the targets, at a hundredth of what finding costs.

        What is chosen is bounded first, with all of its stream: few of them are worth finding.
        """
        if id(one) in self.looked:
            return
        ways, stream = source_of(one).ways, source_of(one).stream
        n, handed = len(ways.stations), self.handed(one)
        targets = held_to(stream, one.role, {}, handed)
        rates = np.zeros(n)
        if targets is not None:  # there is time for it
            most = link_rate(stream, handed) if one.role == PREFILL else np.inf
            bounds = [rate_bound(w, stream.load, targets) * w.n_ranks for w in ways.stations]
            rates = np.minimum(bounds, most)
        none = np.zeros(n, dtype=np.bool_)
        self.looked[id(one)] = Looked(rates=rates, is_found=rates == 0.0, is_refuted=none)

    def look_at(self, one: NodeConfiguration) -> None:
        """Find the most that it serves within all percentiles, best bounds first."""
        self.bound(one)
        known, source = self.looked[id(one)], source_of(one)
        factors = self.factors.get(one.model, {})
        if known.factors != factors:
            known.factors = dict(factors)
            known.is_found = known.is_refuted | (known.rates == 0.0)
        targets = held_to(source.stream, one.role, factors, self.handed(one))
        while not known.is_found[known.best]:
            best, station = known.best, source.ways.stations[known.best]
            rate = 0.0
            if targets is not None:
                load = self._seen_by_one(source.stream.load, known.rates[best], station.n_ranks)
                rate = largest_rate(station, load, targets) * station.n_ranks
            known.rates[best] = min(rate, known.rates[best])
            known.is_found[best] = True
            self.n_found += 1

    def take_down(
        self, one: NodeConfiguration, rate_per_s: float, missed: PercentileTarget, factor: float
    ) -> None:
        """A simulation refuted what it serves: it serves so much, or another of its ways more.

        Args:
            missed: the target.
            factor: by how much formulas are too low there; 1 where nobody knows.
        """
        known = self.looked[id(one)]
        known.rates[known.best] = rate_per_s
        known.is_refuted[known.best] = known.is_found[known.best] = True
        if factor > 1.0:
            mine = self.factors.setdefault(one.model, {})
            what = missed.quantity, missed.share
            mine[what] = min(factor, mine.get(what, factor))
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
