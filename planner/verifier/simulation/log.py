"""What happened to requests, for all ranks that serve them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_PER_DECADE = 400
"""Bins of a decade: values of one are within 0.6 % of each other."""


class Gaps:
    """How many gaps between tokens there were of each length: too many to be kept one by one.

    >>> gaps = Gaps()
    >>> gaps.add(0.010, 99)
    >>> gaps.add(0.100, 1)
    >>> round(gaps.percentile_s(0.5), 4), round(gaps.percentile_s(0.999), 3)
    (0.01, 0.1)
    """

    __slots__ = ("_counts", "_total_s")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._total_s = 0.0

    @staticmethod
    def bin_of(gap_s: float) -> int:
        return round(math.log10(gap_s) * _PER_DECADE)

    def add(self, gap_s: float, n: int) -> None:
        """So many more of one length."""
        at = self.bin_of(gap_s)
        self._counts[at] = self._counts.get(at, 0) + n
        self._total_s += gap_s * n

    def add_run(self, step_s: float, slope_s: float, first: int, last: int, n: int) -> None:
        """So many more of each pass from the first to before the last, a slope longer each."""
        longest_s = step_s + slope_s * (last - 1)
        self._total_s += (step_s + slope_s * first + longest_s) / 2.0 * (n * (last - first))
        while first < last:
            at, beyond = self.bin_of(step_s + slope_s * first), first + 1
            if self.bin_of(longest_s) == at:
                beyond = last
            while beyond < last and self.bin_of(step_s + slope_s * beyond) == at:
                beyond += 1
            self._counts[at] = self._counts.get(at, 0) + n * (beyond - first)
            first = beyond

    def take(self, other: Gaps) -> None:
        """Everything that another has."""
        for at, n in other._counts.items():
            self._counts[at] = self._counts.get(at, 0) + n
        self._total_s += other._total_s

    @property
    def n(self) -> int:
        return sum(self._counts.values())

    @property
    def mean_s(self) -> float:
        return self._total_s / self.n if self._counts else math.nan

    def percentile_s(self, share: float) -> float:
        """What that share of all gaps are no longer than [s]; NaN of none."""
        wanted, seen = share * self.n, 0
        for at in sorted(self._counts):
            seen += self._counts[at]
            if seen >= wanted:
                return float(10.0 ** (at / _PER_DECADE))
        return math.nan


@dataclass(slots=True, kw_only=True)
class Log:
    """What happened to each request, by its number; times are since the beginning [s].

    Args:
        n_input, n_output: tokens.
        ready_s: when it stands in line.
        first_s, last_s: of its first and last token; NaN until then.
        gaps: between tokens.
        n_cached: tokens of the prompt that need not be read; empty where all are read.
        of_class: number of its class; empty where there is one.
        family, n_shared: prompts of a family begin with so many tokens that are alike; below 0 of
            none. Empty where no prompts do.
        priority: the lower goes first, where the engine heeds it.
        n_begun_again: how often a request lost its place.
    """

    n_input: list[int]
    n_output: list[int]
    ready_s: list[float]
    first_s: list[float]
    last_s: list[float]
    gaps: Gaps
    n_cached: list[int] = field(default_factory=list)
    of_class: list[int] = field(default_factory=list)
    family: list[int] = field(default_factory=list)
    n_shared: list[int] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    n_begun_again: int = 0
