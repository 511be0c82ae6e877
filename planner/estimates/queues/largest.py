"""The largest rate at which a station keeps within targets by percentile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.queues.laws import Law
from planner.estimates.queues.loads import Cells, Load
from planner.estimates.queues.rates import fluid_of, kept_up_with
from planner.estimates.queues.served import Own, Served
from planner.estimates.queues.times import QueueTimes, times_at
from planner.specs.roles import DECODE
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget

_ROUNDS = 40
_NEARLY_NONE = 1e-4
_AIM = 0.003
_NEAR, _FAR = 0.02, 0.75
"""Shares of what is left between both ends: least and most that a step is."""

_FIRST, _USUAL_RISE = 0.85, 1.6
"""Where to look first, and what logarithms of times usually grow by from none to all that is kept
up with: they say where to look, and change nothing that is found."""

_MOST_OFF = 30.0
_PATIENCE = 3
_MEDIAN = 0.5
_ABOVE_MEDIAN = 1.25
"""Population over its median, as a bound: laws of populations are far less skewed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupTarget:
    """A target over the requests of some cells of a load, as of one class among several.

    Args:
        target: over these requests.
        cells: of the load.
    """

    target: PercentileTarget
    cells: Cells


AnyTarget: TypeAlias = PercentileTarget | GroupTarget
"""Over all requests, or over some."""


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """Requests that have targets of their own."""

    own: Own
    load: Load
    targets: list[PercentileTarget]


def largest_rate(
    station: Station, load: Load, targets: Sequence[AnyTarget], *, precision: float = 0.005
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
    served = Served(station, load)
    most = kept_up_with(served)
    judged = _groups(load, targets)
    high = _bound(served, judged, most)
    if high <= 0.0 or not targets:
        return high
    low, top = _End(0.0), _End(high)
    rate = _FIRST * high
    for _ in range(_ROUNDS):
        found = _End(rate, _excess(times_at(served, rate, most), judged))
        low, top = (found, top.aged()) if found.worst <= 0.0 else (low.aged(), found)
        is_close = top.rate - low.rate <= precision * top.rate or -precision < low.worst <= 0.0
        if is_close or top.rate < _NEARLY_NONE * high:
            break
        rate = _between(low, top, most)
    return low.rate


class _End:
    """A rate, and by how much times are beyond their targets there.

    Args:
        rate: of requests [1/s].
        excess: logarithm of each time over its target (T,); None where nobody asked.
        age: times that the other end was moved since.
    """

    __slots__ = ("age", "excess", "rate", "worst")

    def __init__(self, rate: float, excess: FloatArray | None = None, age: int = 0) -> None:
        self.rate, self.excess, self.age = rate, excess, age
        self.worst = -math.inf if excess is None else float(np.max(excess))

    def aged(self) -> _End:
        return _End(self.rate, self.excess, self.age + 1)


def rate_bound(station: Station, load: Load, targets: Sequence[AnyTarget]) -> float:
    """Requests a second that `largest_rate` does not exceed, at a hundredth of its cost [1/s].

    What the station keeps up with, in no more places than leave a pass within every target of
    TPOT, and of ITL, that holds for half of the requests or more. 0 where a prompt by itself takes
    longer than a target of TTFT, or a single sequence longer than one of TPOT.
    """
    served = Served(station, load)
    return _bound(served, _groups(load, targets), kept_up_with(served))


def _groups(load: Load, targets: Sequence[AnyTarget]) -> list[_Judged]:
    """Targets by the requests that they are over."""
    found: dict[bytes, _Judged] = {}
    for one in targets:
        cells = one.cells if isinstance(one, GroupTarget) else slice(None)
        key = np.arange(len(load.weight))[cells].tobytes()
        if key not in found:
            some = load.only(cells)
            found[key] = _Judged(Own(some), some, [])
        found[key].targets.append(one.target if isinstance(one, GroupTarget) else one)
    return list(found.values())


def _bound(served: Served, judged: Sequence[_Judged], kept_up: float) -> float:
    station = served.station
    if station.role != DECODE and any(_is_late(served, one) for one in judged):
        return 0.0
    most = _most_within(served, [target for one in judged for target in one.targets])
    if most < 1:
        return 0.0
    if most == station.most_running:
        return min(kept_up, fluid_of(served))
    held = served.held_to(most)
    return min(kept_up_with(held), fluid_of(held))


def _is_late(served: Served, judged: _Judged) -> bool:
    """Whether prompts by themselves take longer than a target of first tokens."""
    station, load = served.station, judged.load
    targets = [one for one in judged.targets if one.quantity in (TTFT, E2E)]
    if not targets:
        return False
    alone = Served(station, load, served.times).prompts_s(np.zeros(1))[0][0] * station.n_lanes
    alone = alone + station.request_s + station.request_token_s * load.n_input
    first = Law(alone, load.weight)
    return any(first.percentile(one.share) > one.at_most_s for one in targets)


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


def _excess(times: QueueTimes, judged: Sequence[_Judged]) -> FloatArray:
    """Logarithm of each time over its target (T,); what does not occur is within."""
    if not times.is_stable:
        return np.full(sum(len(one.targets) for one in judged), _MOST_OFF)
    ratios = []
    for one in judged:
        own = times.judging(one.own)
        ask = {TTFT: own.ttft_s, TPOT: own.tpot_s, ITL: own.itl_s, E2E: own.request_s}
        ratios += [ask[goal.quantity](goal.share) / goal.at_most_s for goal in one.targets]
    return np.array([-_MOST_OFF if math.isnan(x) else math.log(max(x, 1e-12)) for x in ratios])


def _between(low: _End, top: _End, most: float) -> float:
    """Where the first target is met just so, by the line through both ends.

    An end that stays while the other moves counts for half each time, so that it moves too
    [Dowell1971]. Where one end is unknown, times grow by a usual share with the rate.

    Args:
        most: what the station keeps up with [1/s].
    """
    wide = top.rate - low.rate
    if low.age > _PATIENCE or top.age > _PATIENCE:
        return low.rate + wide / 2.0
    if low.excess is None or top.excess is None:
        known = low if low.excess is not None else top
        step = (-known.worst - _AIM) / _USUAL_RISE * most
        guess = known.rate + float(np.clip(step, -_FAR * wide, _FAR * wide))
    else:
        at_low = (low.excess + _AIM) / 2.0 ** max(0, low.age - 1)
        at_top = (top.excess + _AIM) / 2.0 ** max(0, top.age - 1)
        binds = at_top > 0.0
        part = at_low[binds] / (at_low[binds] - at_top[binds])
        guess = low.rate + wide * float(np.min(part, initial=1.0))
    return float(np.clip(guess, low.rate + _NEAR * wide, top.rate - _NEAR * wide))
