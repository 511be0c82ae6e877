"""When requests come: at random, in bursts, evenly, or as in a trace."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from planner.specs.traffic.traces import Trace

POISSON, BURSTS, CONSTANT, REPLAYED = "poisson", "cv2", "constant", "trace"
PATTERNS = (POISSON, BURSTS, CONSTANT, REPLAYED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How times between requests vary.

    Args:
        pattern: one of `PATTERNS`: independent and exponential; independent and gamma, of a given
            variance; all alike; those of a trace, over and over, at another rate.
        cv2: their variance over their mean squared.
        trace: that is replayed.

    >>> times = Arrivals(pattern="constant", cv2=0.0).times_s(4.0, random.Random(1))
    >>> next(times), next(times)
    (0.25, 0.5)
    """

    pattern: str = POISSON
    cv2: float = 1.0
    trace: Trace | None = None

    def times_s(self, rate_per_s: float, source: random.Random) -> Iterator[float]:
        """Arrivals without end, ascending [s].

        Args:
            rate_per_s: requests a second, in the long run.
            source: of chance.
        """
        if self.pattern == REPLAYED:
            yield from self._replayed(rate_per_s)
            return
        now, mean_s = 0.0, 1.0 / rate_per_s
        for gap in self._gaps(source):
            now += gap * mean_s
            yield now

    def _gaps(self, source: random.Random) -> Iterator[float]:
        """Times between requests, of mean 1."""
        if self.pattern == CONSTANT:
            while True:
                yield 1.0
        elif self.pattern == POISSON:
            while True:
                yield source.expovariate(1.0)
        shape = 1.0 / self.cv2
        while True:
            yield source.gammavariate(shape, self.cv2)

    def _replayed(self, rate_per_s: float) -> Iterator[float]:
        """The trace again and again, a mean gap between its end and its beginning.

        At the trace's own rate its times are as they were.
        """
        trace = self.trace
        assert trace is not None
        scale = trace.rate_per_s / rate_per_s
        start = 0.0
        while True:
            for at in trace.arrival_s:
                yield (start + at) * scale
            start += trace.period_s


POISSON_ARRIVALS = Arrivals()
"""Those of many users who know nothing of each other."""


def replaying(trace: Trace) -> Arrivals:
    return Arrivals(pattern=REPLAYED, cv2=trace.interarrival_cv2, trace=trace)


def arriving(said: Arrivals | None, trace: Trace | None) -> Arrivals:
    """As they are said, else as in the trace, else at random."""
    if trace is not None and (said is None or said.pattern == REPLAYED):
        return replaying(trace)
    return said or POISSON_ARRIVALS


def in_bursts(cv2: float) -> Arrivals:
    """Independent gaps with such a variance; at 1 they are Poisson's, at 0 all alike."""
    if cv2 == 0.0:
        return Arrivals(pattern=CONSTANT, cv2=0.0)
    return Arrivals() if cv2 == 1.0 else Arrivals(pattern=BURSTS, cv2=cv2)
