"""A trace: when requests came, and how many tokens each read and wrote."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def percentile(values: Sequence[float], share: float) -> float:
    """What a share of values is no larger than, linear between two of them.

    Args:
        values: in any order, at least one.
        share: in [0, 1].

    >>> percentile([4, 1, 3, 2], 0.5)
    2.5
    """
    return percentile_of_sorted(sorted(values), share)


def percentile_of_sorted(values: Sequence[float], share: float) -> float:
    """The same of values in ascending order."""
    at = share * (len(values) - 1)
    below = min(math.floor(at), len(values) - 1)
    above = min(below + 1, len(values) - 1)
    low, high = values[below], values[above]
    return low if low == high else low + (at - below) * (high - low)
