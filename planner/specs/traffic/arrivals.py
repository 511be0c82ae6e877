"""When requests come: at random, in bursts, evenly, or as in a trace; and traces themselves."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from planner.specs.validation.values import one_of

if TYPE_CHECKING:
    Floats = array[float]
    Counts = array[int]
else:  # arrays have a type of their items in annotations only
    Floats = Counts = array


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Requests in the order in which they came.

    Args:
        name: for people.
        arrival_s: since the first of them, ascending, `array("d")` of length N [s].
        n_input, n_output: tokens of each, from 1, `array("q")` of length N.
        part_of_s, part_of_n: duration and length of the trace that it is a part of, from whose
            first request it counts; 0 and None of a whole one.
    """

    name: str
    arrival_s: Floats
    n_input: Counts
    n_output: Counts
    part_of_s: float = 0.0
    part_of_n: int | None = None

    def __hash__(self) -> int:
        return hash((self.name, len(self.arrival_s), self.duration_s))

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def duration_s(self) -> float:
        """From the first to the last, of the whole trace."""
        return self.part_of_s or self.arrival_s[-1]

    @property
    def n_whole(self) -> int:
        """Requests of the whole trace."""
        return self.part_of_n or len(self)

    @property
    def period_s(self) -> float:
        """After which it begins again: a mean gap lies between its end and its beginning."""
        return self.duration_s * (1.0 + 1.0 / self.n_whole)

    @property
    def rate_per_s(self) -> float:
        """Requests over the duration; infinite where all came at once."""
        return len(self) / self.duration_s if self.duration_s > 0.0 else math.inf

    @property
    def interarrival_cv2(self) -> float:
        """Variance of the times between arrivals over their mean squared: 1 if they are Poisson."""
        gaps = [b - a for a, b in zip(self.arrival_s, self.arrival_s[1:], strict=False)]
        if not any(gaps):
            return 0.0
        mean = math.fsum(gaps) / len(gaps)
        return math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2

    @property
    def mean_input_tokens(self) -> float:
        return sum(self.n_input) / len(self)

    @property
    def mean_output_tokens(self) -> float:
        return sum(self.n_output) / len(self)


def percentile_of_sorted(values: Sequence[float], share: float) -> float:
    """What a share of values is no larger than, linear between two of them.

    Args:
        values: in ascending order, at least one.
        share: in [0, 1].

    >>> percentile_of_sorted([1, 2, 3, 4], 0.5)
    2.5
    """
    at = share * (len(values) - 1)
    below = min(math.floor(at), len(values) - 1)
    above = min(below + 1, len(values) - 1)
    low, high = values[below], values[above]
    return low if low == high else low + (at - below) * (high - low)


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

    pattern: Annotated[str, one_of("pattern of arrivals", PATTERNS)] = POISSON
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
        while True:
            now += self._gap(source) * mean_s
            yield now

    def _gap(self, source: random.Random) -> float:
        """A time between two requests, of mean 1."""
        if self.pattern == CONSTANT:
            return 1.0
        if self.pattern == POISSON:
            return source.expovariate(1.0)
        return source.gammavariate(1.0 / self.cv2, self.cv2)

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
