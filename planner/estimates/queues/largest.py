"""The largest rate at which a station keeps within targets by percentile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.estimates.queues.laws import Law
from planner.estimates.queues.loads import Load
from planner.estimates.queues.passes import PassTimes
from planner.estimates.queues.rates import fluid_rate, stable_rate
from planner.estimates.queues.served import Served
from planner.estimates.queues.times import QueueTimes, percentiles
from planner.specs.roles import DECODE
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget

_ROUNDS = 40
_NEARLY_NONE = 1e-4
_AIM = 0.003
_NEAR, _FAR = 0.1, 0.9
_MEDIAN = 0.5
_ABOVE_MEDIAN = 1.25
"""Population over its median, as a bound: laws of populations are far less skewed."""


def largest_rate(
    station: Station, load: Load, targets: Sequence[PercentileTarget], *, precision: float = 0.005
) -> float:
    """Requests a second, as they come in the load, at which all targets hold [1/s].

    Percentiles grow with the rate, so that it is found between none and `rate_bound`.

    Args:
        load: its rate does not matter.
        targets: none leaves what the station keeps up with.
        precision: of the rate or of the time that binds, whichever is closer first, as a share;
            what is found is within the targets.

    Returns:
        0 where they do not hold for a request by itself.
    """
    high = rate_bound(station, load, targets)
    if high <= 0.0 or not targets:
        return high
    times = PassTimes(station)

    def excess(rate: float) -> float:
        """Logarithm of the worst time over its target."""
        return _excess(percentiles(station, load.at(rate), times=times), targets)

    low, at_low, top, at_top = 0.0, -math.inf, high, math.inf
    for _ in range(_ROUNDS):
        if top - low <= precision * top or -precision < at_low <= 0.0 or top < _NEARLY_NONE * high:
            break
        middle = _between(low, at_low, top, at_top)
        found = excess(middle)
        if found <= 0.0:
            low, at_low = middle, found
        else:
            top, at_top = middle, found
    return low


def rate_bound(station: Station, load: Load, targets: Sequence[PercentileTarget]) -> float:
    """Requests a second that `largest_rate` does not exceed, at a hundredth of its cost [1/s].

    What the station keeps up with, in no more places than leave a pass within every target of
    TPOT, and of ITL, that holds for half of the requests or more. 0 where a prompt by itself takes
    longer than a target of TTFT, or a single sequence longer than one of TPOT.
    """
    served = Served(station, load)
    if station.role != DECODE:
        alone = served.prompts_s(np.zeros(1))[0][0] * station.n_lanes
        alone = alone + station.request_s + station.request_token_s * load.n_input
        first = Law(alone, load.weight)
        if any(
            first.percentile(target.share) > target.at_most_s
            for target in targets
            if target.quantity in (TTFT, E2E)
        ):
            return 0.0
    most = _most_within(served, targets)
    if most < 1:
        return 0.0
    held = replace(station, most_running=most) if most < station.most_running else station
    return min(stable_rate(held, load), fluid_rate(held, load))


def _most_within(served: Served, targets: Sequence[PercentileTarget]) -> int:
    """Sequences that may decode at once, so that a pass of half of all is within the targets."""
    most = served.station.most_running
    limits = [
        target.at_most_s
        for target in targets
        if target.quantity in (TPOT, ITL) and target.share >= _MEDIAN
    ]
    if not limits or not served.decodes:
        return most
    n = np.arange(1, most + 1)
    within = int(np.sum(served.plain_s(n) <= min(limits)))
    return min(most, math.ceil(within * _ABOVE_MEDIAN))


def _excess(times: QueueTimes, targets: Sequence[PercentileTarget]) -> float:
    """Logarithm of the largest time over its target; what does not occur is within."""
    if not times.is_stable:
        return math.inf
    ask = {TTFT: times.ttft_s, TPOT: times.tpot_s, ITL: times.itl_s, E2E: times.request_s}
    ratios = [ask[target.quantity](target.share) / target.at_most_s for target in targets]
    return max((math.log(max(x, 1e-12)) for x in ratios if not math.isnan(x)), default=-math.inf)


def _between(low: float, at_low: float, high: float, at_high: float) -> float:
    """Where the line through both ends is just below 0; the middle where there is no line."""
    if not math.isfinite(at_low) or not math.isfinite(at_high):
        return (low + high) / 2.0
    part = (-at_low - _AIM) / (at_high - at_low)
    return low + (high - low) * min(_FAR, max(_NEAR, part))
