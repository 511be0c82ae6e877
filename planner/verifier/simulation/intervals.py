"""Percentiles of what was simulated, and how far they are known: by the means of batches.

Requests that follow each other are not independent; batches of many are, nearly. Each percentile
is that of all requests, and its interval that of Student's t over the percentiles of the batches.
Source: [Law2015] §9.5, batch means.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean

from planner.specs.traffic.arrivals import percentile_of_sorted

CONFIDENCE = 0.95
SHARES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure, and half of the interval that holds it with `CONFIDENCE`; NaN of one batch."""

    value: float
    half_width: float

    @property
    def low(self) -> float:
        return self.value - self.half_width

    @property
    def high(self) -> float:
        return self.value + self.half_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Times of all requests, or gaps of all tokens.

    Args:
        n: how many.
        mean_s: of all.
        percentiles_s: by their share.
    """

    n: int
    mean_s: Estimate
    percentiles_s: dict[float, Estimate]

    def at_s(self, share: float) -> float:
        """A percentile that was kept."""
        return self.percentiles_s[share].value


def distribution_of(batches: Sequence[Sequence[float]], shares: Sequence[float]) -> Distribution:
    """Times of requests, batch by batch."""
    kept = [sorted(batch) for batch in batches if batch]
    whole = sorted(one for batch in kept for one in batch)
    if not whole:
        none = Estimate(value=math.nan, half_width=math.nan)
        return Distribution(n=0, mean_s=none, percentiles_s=dict.fromkeys(shares, none))
    return Distribution(
        n=len(whole),
        mean_s=estimate(fmean(whole), [fmean(batch) for batch in kept]),
        percentiles_s={
            share: estimate(
                percentile_of_sorted(whole, share),
                [percentile_of_sorted(batch, share) for batch in kept],
            )
            for share in shares
        },
    )


def estimate(value: float, of_batches: Sequence[float]) -> Estimate:
    """A figure of everything, with the interval that its batches give."""
    n = len(of_batches)
    if n < 2 or not all(map(math.isfinite, of_batches)):
        return Estimate(value=value, half_width=math.nan)
    mean = fmean(of_batches)  # `statistics.stdev` sums fractions: ten times as long
    deviation = math.sqrt(math.fsum((it - mean) ** 2 for it in of_batches) / (n - 1))
    half = student_t(n - 1) * deviation / math.sqrt(n)
    return Estimate(value=value, half_width=half)


@cache
def student_t(n_free: int, confidence: float = CONFIDENCE) -> float:
    """The quantile of Student's t, both sides, by its expansion around the normal one.

    Within 1 % from 4 degrees of freedom on. Source: [AbramowitzStegun1964] 26.7.5.

    >>> round(student_t(19), 3), round(student_t(9), 3)
    (2.093, 2.262)
    """
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    n = float(n_free)
    terms = (
        z,
        (z**3 + z) / 4.0 / n,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0 / n**2,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0 / n**3,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0 / n**4,
    )
    return sum(terms)
