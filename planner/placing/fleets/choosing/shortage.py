"""Where not everything can be served: targets that nobody meets, and the most by priority."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from planner.errors import NoPlanError, OutOfTimeError
from planner.placing.configurations import AnyConfiguration
from planner.placing.fleets.candidate_sets import CandidateSet, for_less_traffic
from planner.placing.fleets.choosing.incumbents import roomy_fleet
from planner.placing.fleets.choosing.searching import SHARE, as_offered, settled
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.request_classes import targets_of
from planner.placing.fleets.solutions import Solution
from planner.quantities.units import show
from planner.results.conflicts import PlacementConflict
from planner.results.engines import EngineDeployment
from planner.results.obstacles import Obstacle, beyond_text
from planner.running.deadlines import check, share
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass

_ROUNDING = 1e-6
"""Of a share that one program says, by which another may find it too large."""

_PRECISION = 1.0 / 1024.0
"""Of the share of a class that is served, relative to it."""

PART_SHARE = 0.25
"""Of the time that is left, what finding a part to serve may take."""

_LEAST = 2.0**-30
"""Share of a class below which it is taken for none."""


def unreachable(market: CandidateSet) -> None:
    """Refuse classes that no replica can serve, however little comes.

    Raises:
        NoPlanError: the conflict, a `PlacementConflict`, says the least that is reachable.
    """
    obstacles: list[Obstacle] = []
    for traffic in market.request.classes:
        mine = [
            offer
            for offer in market.offered.configurations
            if any(each.name == traffic.name for each in market.streams[offer.model].classes)
        ]
        if not mine:
            obstacles.append(_no_room(market, traffic))
        elif not _is_served(market, mine):
            obstacles += _missed(market, traffic, mine)
    check()
    if obstacles:
        raise NoPlanError(_conflict(market, obstacles))


def _conflict(market: CandidateSet, obstacles: Sequence[Obstacle]) -> PlacementConflict:
    return PlacementConflict(
        pool=market.site.name,
        n_free=market.site.n_free,
        n_devices=market.site.n_devices,
        obstacles=tuple(obstacles),
        verified=("no replica that its devices hold, as simulated, with one request in it",),
    )


def _is_served(market: CandidateSet, mine: Sequence[AnyConfiguration]) -> bool:
    """Whether some replica does both phases for a class, or some each of them."""
    roles = {
        role
        for role in dict.fromkeys(one.role for one in mine)
        if any(_serves(market, one) for one in mine if one.role == role)
    }
    return TOGETHER in roles or {PREFILL, DECODE} <= roles


def _serves(market: CandidateSet, offer: AnyConfiguration) -> bool:
    market.book.look_at(offer)
    return market.book.now(offer).output_tokens_per_s > 0.0


def _no_room(market: CandidateSet, traffic: TrafficClass) -> Obstacle:
    n_tokens = sum(traffic.lengths.longest)
    return Obstacle(
        name=f"model of {traffic.name}",
        asked=float(n_tokens),
        reachable=0.0,
        dimension="1",
        reason=(
            f"no replica on {market.site.n_free} free devices holds {traffic.model.name} "
            f"and a request of {n_tokens} tokens"
        ),
    )


def _too_few(market: CandidateSet, traffic: TrafficClass) -> Obstacle:
    return Obstacle(
        name=f"traffic of {traffic.name}",
        asked=traffic.rate_per_s,
        reachable=0.0,
        dimension="request/s",
        reason=f"{market.site.n_free} free devices, and limits, leave no replica for it",
    )


def _missed(
    market: CandidateSet, traffic: TrafficClass, mine: Sequence[AnyConfiguration]
) -> Iterator[Obstacle]:
    """Targets of a class that no replica meets by itself; all, if each is met by some."""
    best = [(target, *_least(market, target, mine)) for target in targets_of(traffic)]
    beyond = [each for each in best if each[1] > each[0].at_most_s] or best
    for target, least_s, offer in beyond:
        what = (
            f"the least {target.name} of {traffic.name}, of a request by itself, is "
            f"{show(least_s, 's')} on {show(offer.usd_per_hour, 'USD/h')}"
        )
        if least_s > target.at_most_s:
            deployment = offer.deployment(1)
            high = 0.0
            if isinstance(deployment, EngineDeployment):
                of = deployment.ttft_s if target.quantity == TTFT else deployment.tpot_s
                high = of.high / of.value - 1.0
            what += f"; {beyond_text(target.at_most_s, least_s, high)}"
        else:
            what += "; as predicted, no replica meets it together with the others"
        yield Obstacle(
            name=f"{target.name} of {traffic.name}",
            asked=target.at_most_s,
            reachable=least_s,
            dimension="s",
            reason=what,
        )


def _least(
    market: CandidateSet, target: PercentileTarget, mine: Sequence[AnyConfiguration]
) -> tuple[float, AnyConfiguration]:
    """The least of a quantity that any replica has for requests by themselves, and which one."""
    rates = []
    for offer in mine:
        if offer.role == (DECODE if target.quantity == TTFT else PREFILL):  # it is of the other
            continue
        station, stream = source_of(offer).ways.stations[0], market.streams[offer.model]
        least_s = market.book.capacities.alone_s(stream, station, target.quantity, target.share)
        seconds = least_s + market.book.handed(offer).seconds
        rates.append((seconds, offer))
    nobody = (math.inf, mine[0])
    return min(rates, key=lambda each: (each[0], each[1].usd_per_hour), default=nobody)


def shared_out(market: CandidateSet, most: float = 1.0) -> tuple[CandidateSet, dict[str, float]]:
    """The most of every class that the devices serve, the highest priority first.

    Of classes of one priority each is served to the same share, within `_PRECISION`.

    Args:
        most: share of any class.

    Returns:
        What there is to choose from for the traffic that is served, and its share of each class.

    Raises:
        NoPlanError: nothing of any class can be served; the conflict is a `PlacementConflict`.
    """
    classes, apart = market.request.classes, _apart(market)
    served = dict.fromkeys((one.name for one in classes), 0.0)
    for priority in sorted({one.priority for one in classes}, reverse=True):
        level = [one.name for one in classes if one.priority == priority]
        share = most * _share(apart, served, level)
        served |= dict.fromkeys(level, share)
    kept = tuple(
        replace(traffic, rate_per_s=traffic.rate_per_s * served[traffic.name])
        for traffic in classes
        if served[traffic.name] > 0.0
    )
    if not kept:
        raise NoPlanError(_conflict(market, [_too_few(market, one) for one in classes]))
    return for_less_traffic(market, replace(market.request, classes=kept)), served


def roomy(
    market: CandidateSet, wider: Mapping[str, float], fluid: Solution, served: Mapping[str, float]
) -> tuple[Solution, Solution, Mapping[str, float]]:
    """A fleet with room to spare, the cheapest at fluid rates, and what is served: less if need."""
    chosen, part = roomy_fleet(market, wider), None
    if not chosen.is_found and {*served.values()} == {1.0}:
        with suppress(OutOfTimeError), share(PART_SHARE):
            part = _roomy_part(market, wider)
    return part or (chosen, fluid, served)


def _roomy_part(
    market: CandidateSet, wider: Mapping[str, float]
) -> tuple[Solution, Solution, dict[str, float]] | None:
    """A fleet with so much room for as much as can be served; None where that is nothing.

    Classes of several priorities are left to `shared_out`.

    Args:
        wider: see `roomy_fleet`.

    Returns:
        It, the cheapest one at fluid rates, and what is served of each class.
    """
    classes = market.request.classes
    if len({one.priority for one in classes}) > 1:
        return None
    most = roomy_fleet(market, wider, SHARE)
    part = min(1.0, -most.solution.objective) * (1.0 - _ROUNDING) if most.is_found else 0.0
    if part <= _LEAST:
        return None
    less = tuple(replace(one, rate_per_s=one.rate_per_s * part) for one in classes)
    again = for_less_traffic(market, replace(market.request, classes=less))
    fluid = settled(again, now=as_offered)
    return roomy_fleet(again, wider), fluid, {one.name: part for one in classes}


def _apart(market: CandidateSet) -> CandidateSet:
    """What there is where no class shares replicas, as formulas have it."""
    if any(len(one.classes) > 1 for one in market.streams):
        return for_less_traffic(market, replace(market.request, sharing=False))
    return market


def _share(market: CandidateSet, served: Mapping[str, float], level: Sequence[str]) -> float:
    """The largest share of some classes that can be served beside what is served of others."""
    if len(level) == len(market.request.classes):  # of all alike one program says it
        most = settled(market, objective=SHARE)
        return min(1.0, -most.solution.objective) * (1.0 - _ROUNDING) if most.is_found else 0.0
    low, high = 0.0, 1.0
    if settled(market, factors={**served, **dict.fromkeys(level, high)}).is_found:
        return high
    while high - low > _PRECISION * high and high > _LEAST:
        middle = (low + high) / 2.0
        is_enough = settled(market, factors={**served, **dict.fromkeys(level, middle)}).is_found
        low, high = (middle, high) if is_enough else (low, middle)
    return low
