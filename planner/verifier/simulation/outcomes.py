"""What a simulated fleet did, by class and by pool; percentiles, and how far they are known.

Requests that follow each other are not independent; batches of many are, nearly. Each percentile
is that of all requests, and its interval that of Student's t over the percentiles of the batches.
Source: [Law2015] §9.5, batch means.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from statistics import NormalDist, fmean

from planner.results.arrivals import Simulated
from planner.specs.traffic.arrivals import percentile_of_sorted
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, GoodputTarget, PercentileTarget
from planner.specs.validation.hints import from_fields
from planner.verifier.simulation.log import Gaps, Log

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassOutcome:
    """What became of the requests of one class that were counted.

    Args:
        name: of the class.
        n_refused: that no replica has room for; their times are infinite.
        ttft, tpot, itl, e2e: as `planner.specs.traffic.records` defines them.
        goodput: share that meets all limits; None where none is asked for.
    """

    name: str
    n_refused: int
    ttft: Distribution
    tpot: Distribution
    itl: Distribution
    e2e: Distribution
    goodput: Estimate | None

    @property
    def n_requests(self) -> int:
        return self.e2e.n

    def of(self, quantity: str) -> Distribution:
        """By the name of a quantity."""
        return {TTFT: self.ttft, TPOT: self.tpot, ITL: self.itl, E2E: self.e2e}[quantity]

    def meets(self, target: PercentileTarget) -> bool:
        """Whether a percentile that was kept is within its target."""
        distribution = self.of(target.quantity)
        return distribution.n == 0 or distribution.at_s(target.share) <= target.at_most_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOutcome:
    """What the replicas of a pool did meanwhile.

    Args:
        utilisation: share of the time in which a pass was under way, of all ranks.
        n_begun_again: how often a request lost its place, in the whole run.
    """

    name: str
    utilisation: Estimate
    n_begun_again: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOutcome:
    """What a run was, and what came of it.

    Args:
        n_requests: in all.
        n_warm_up, n_wind_down: of these, the first and the last, which are served but not counted.
        n_batches: of the others, for intervals.
        seed: of everything drawn.
        duration_s: from the first request to the end of the last.
        ways: what became of the requests of a class that were sent to a pool, by the names of
            both, when it is asked for; of classes that are sent to several. Gaps of tokens are not
            told apart.
    """

    classes: tuple[ClassOutcome, ...]
    pools: tuple[PoolOutcome, ...]
    n_requests: int
    n_warm_up: int
    n_wind_down: int
    n_batches: int
    seed: int
    duration_s: float
    ways: Mapping[tuple[str, str], Callable[[], ClassOutcome]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def simulated(self) -> Simulated:
        """What the run was, as answers tell it."""
        n_begun_again = sum(one.n_begun_again for one in self.pools)
        return from_fields(Simulated, self, n_begun_again=n_begun_again)

    def of(self, name: str) -> ClassOutcome:
        """The outcome of a class."""
        return next(one for one in self.classes if one.name == name)

    def sent(self, name: str, pool: str) -> ClassOutcome:
        """The outcome of the requests of a class that were sent to a pool."""
        told = self.ways.get((name, pool))
        return self.of(name) if told is None else told()

    def pool(self, name: str) -> PoolOutcome:
        """The outcome of a pool."""
        return next(one for one in self.pools if one.name == name)


def class_outcome(
    name: str,
    batches: Sequence[Sequence[int]],
    gaps: Sequence[Gaps],
    *,
    log: Log,
    arrived_s: Sequence[float],
    goodput: GoodputTarget | None,
    shares: Sequence[float],
) -> ClassOutcome:
    """The outcome of one class.

    Args:
        name: of the class.
        batches: requests of the class in each, by their numbers.
        gaps: between its tokens in each.
        log: of the run.
        arrived_s: of each request of the run.
        goodput: of the class.
        shares: of percentiles.
    """
    times = [[_times(log, arrived_s, request) for request in batch] for batch in batches]
    several = [[request for request in batch if log.n_output[request] > 1] for batch in batches]
    decoded = [[_times(log, arrived_s, request) for request in batch] for batch in several]
    return ClassOutcome(
        name=name,
        n_refused=sum(map(math.isinf, chain.from_iterable(_column(times, 2)))),
        ttft=distribution_of(_column(times, 0), shares),
        tpot=distribution_of(_column(decoded, 1), shares),
        itl=_gap_distribution(gaps, shares),
        e2e=distribution_of(_column(times, 2), shares),
        goodput=None if goodput is None else _share_met(goodput, times),
    )


Times = tuple[float, float, float]
"""TTFT, TPOT and E2E of a request."""


def _column(batches: Sequence[Sequence[Times]], which: int) -> list[list[float]]:
    return [[times[which] for times in batch] for batch in batches]


def _times(log: Log, arrived_s: Sequence[float], request: int) -> Times:
    first_s, last_s = log.first_s[request], log.last_s[request]
    n_gaps = log.n_output[request] - 1
    if math.isinf(last_s):
        return math.inf, math.inf, math.inf
    tpot_s = (last_s - first_s) / n_gaps if n_gaps else 0.0
    return first_s - arrived_s[request], tpot_s, last_s - arrived_s[request]


def _share_met(goodput: GoodputTarget, batches: Sequence[Sequence[Times]]) -> Estimate:
    """The share of requests that meet all limits; NaN of no request."""
    shares = [fmean(goodput.is_met(*times) for times in batch) for batch in batches if batch]
    n = sum(map(len, batches))
    if not n:
        return Estimate(value=math.nan, half_width=math.nan)
    met = sum(goodput.is_met(*times) for batch in batches for times in batch)
    return estimate(met / n, shares)


def _gap_distribution(batches: Sequence[Gaps], shares: Sequence[float]) -> Distribution:
    """Of tokens, whose gaps are counted by their lengths."""
    kept = [batch for batch in batches if batch.n]
    whole = Gaps()
    for batch in kept:
        whole.take(batch)
    return Distribution(
        n=whole.n,
        mean_s=estimate(whole.mean_s, [batch.mean_s for batch in kept]),
        percentiles_s={
            share: estimate(
                whole.percentile_s(share), [batch.percentile_s(share) for batch in kept]
            )
            for share in shares
        },
    )
