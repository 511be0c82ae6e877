"""`fleet`: from traffic to pools, tried by simulation until both agree."""

import math
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from planner.errors import OutOfTimeError
from planner.placing.asking import site_of
from planner.placing.configurations import ConfigKey, config_key
from planner.placing.describing import LAID
from planner.placing.engines import EngineOffers
from planner.placing.fleets.candidate_sets import (
    CandidateSet,
    candidate_set,
    candidates_believing,
    with_joint,
)
from planner.placing.fleets.choosing.alternatives import alternatives_of, most_factor
from planner.placing.fleets.choosing.confirming import LESS, Confirmed, OnRound, Tries, weighed
from planner.placing.fleets.choosing.fluid import fluid_bound
from planner.placing.fleets.choosing.searching import RENT, as_offered, settled
from planner.placing.fleets.choosing.shortage import shared_out, unreachable
from planner.placing.fleets.describing import fleet_plan
from planner.placing.fleets.offering import is_measured, source_of
from planner.placing.fleets.request_classes import streams_of
from planner.placing.fleets.solutions import PlannedFleet, usd_per_hour
from planner.report.launch.telling import with_commands_of
from planner.results.fleets import FleetPlan, OtherFleet
from planner.running.deadlines import out_of_time, share, timed
from planner.specs.ask.fleet import FleetRequest
from planner.specs.records.kernels import EngineTables
from planner.specs.region import INSIDE, MEDIAN
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import accounted
from planner.verifier.fleets.judging import recounted

SEARCH_SHARE = 0.8
"""Of the time that is left, that looking for the cheapest may take: the rest is to try what is
known by then."""


LESS_RENT = 1.0 - 1e-6
"""Of a rent, what is less for sure."""


@timed
def fleet(request: FleetRequest, *, on_round: OnRound | None = None) -> FleetPlan:
    """Choose pools of replicas for traffic, provably cheapest, and try them.

    Where there are too few devices for all, as much as can be is served, the classes of the highest
    priority first.

    Args:
        on_round: called with each solution and what the simulation says of it.

    Raises:
        RequestError: a target that no replica meets, or an engine without kernels; all problems.
        NoPlanError: nothing can be served.
        OutOfTimeError: the time limit ended before a first fleet.
        SolverError: provers contradict each other.
    """
    began_s, market = time.perf_counter(), opened(request)
    best = _cheapest_confirmed(market, on_round)
    others = {belief: _other(market, best, belief) for belief in (INSIDE, MEDIAN)}
    fleets = [it.fleet for it in (best, *others.values()) if it is not None]
    rent = usd_per_hour(best.fleet.pools)
    fluid = (fluid_bound(best.fleet.chosen.market, rent) or None) if best.fluid.is_found else None
    others_cost, most = alternatives_of(best.fleet), most_factor(best.fleet)
    plan = replace(
        _with_tables(fleet_plan(request, best, began_s), fleets),
        fluid_usd_per_hour=fluid,
        alternatives=others_cost,
        most_factor=most,
    )
    asked_by = {INSIDE: request, MEDIAN: replace(request, confidence=0.0)}
    beside = {
        belief: _other_fleet(fleet_plan(asked_by[belief], it, began_s), plan)
        for belief, it in others.items()
        if it is not None
    }
    plan = replace(plan, inside=beside.get(INSIDE), anywhere=beside.get(MEDIAN))
    left_out = ("title", "kinds", "classes.usd_per_hour", "provenance", "verified", *LAID)
    plan = accounted(plan, recounted(plan), left_out)
    started = with_commands_of(plan)
    assert isinstance(started, FleetPlan)
    return started


def _other(market: CandidateSet, confirmed: Confirmed, belief: str) -> Confirmed | None:
    """The cheapest fleet by a belief; None where there is none, or nobody knows."""
    is_known = confirmed.fleet.chosen.solution.status.is_final and confirmed.is_whole
    if not market.request.has_region or not is_known:
        return None
    used = [pool.configuration for pool in confirmed.fleet.pools]
    if belief == INSIDE and all(map(bool, map(is_measured, used))):
        return confirmed  # nothing inside is cheaper
    with suppress(OutOfTimeError):
        return _believed(candidates_believing(market, belief), {*map(config_key, used)})
    return None


def _believed(market: CandidateSet, used: Collection[ConfigKey]) -> Confirmed | None:
    """The cheapest of what is believed.

    First the cheapest of the sorts of replicas that the fleet has: little is left then that could
    be cheaper.
    """
    best = _cheaper(replace(market, offered=market.offered.only(used)), None)
    last = _cheaper(market, best)
    if last is None:  # nothing is cheaper
        return best
    return last if last.fleet.chosen.solution.status.is_final else None


def _cheaper(market: CandidateSet, than: Confirmed | None) -> Confirmed | None:
    """The cheapest fleet for all traffic, if it is cheaper than another, sorts priced."""
    options, limits = market.request.options, {**market.request.limits}
    most = math.inf if than is None else _priced(than)
    if than is not None:
        least = most / (1.0 + options.sort_price) * LESS_RENT
        limits[RENT] = min(least, limits.get(RENT, math.inf))
    within = replace(market, request=replace(market.request, limits=limits))
    tries, fluid = Tries(), settled(within, now=as_offered)
    if not fluid.is_found:
        return None
    chosen = tries.confirmed(weighed(within))
    if chosen is None:
        return None
    best = tries.answer(fluid, chosen, {one.name: 1.0 for one in market.request.classes})
    return best if _priced(best) < most else None


def _priced(confirmed: Confirmed) -> float:
    """The rent of a fleet, with what its sorts of replicas count."""
    price, pools = confirmed.fleet.chosen.market.request.options.sort_price, confirmed.fleet.pools
    return usd_per_hour(pools) * (1.0 + price * len({config_key(it.configuration) for it in pools}))


def _with_tables(plan: FleetPlan, fleets: Sequence[PlannedFleet]) -> FleetPlan:
    """A fleet whose request holds the kernels of engines.

    Args:
        fleets: whose engines they are.
    """
    listed = {}
    for planned in (pool for fleet in fleets for pool in fleet.pools):
        made_by = source_of(planned.configuration).made_by
        if not isinstance(made_by, EngineOffers):
            continue
        machines = made_by.machines
        kernels = replace(machines.kernels, rivals={})
        tables = EngineTables(engine=machines.engine, kernels=kernels)
        listed[machines.engine.name, kernels.device] = tables
    return replace(plan, request=replace(plan.request, tables=tuple(listed.values())))


def _other_fleet(plan: FleetPlan, beside: FleetPlan) -> OtherFleet:
    """A fleet that stands beside another."""
    rent, least = plan.usd_per_hour, beside.usd_per_hour
    loss = (rent - least) / least if least else 0.0
    return from_fields(OtherFleet, plan, objective=rent, loss_fraction=loss)


def _cheapest_confirmed(market: CandidateSet, on_round: OnRound | None) -> Confirmed:
    """The cheapest fleet for all traffic; where there is none, for as much as can be.

    Where time may end, a first fleet is found before the cheapest is looked for.
    """
    tries = Tries(on_round=on_round)
    whole, served = market, {one.name: 1.0 for one in market.request.classes}
    most = 1.0
    while True:
        fluid = settled(market, now=as_offered)
        try:
            best = tries.find_first(market, fluid, served)
            if best is not None:
                return best
            with share(SEARCH_SHARE):
                chosen = weighed(market) if fluid.is_found else fluid
                confirmed = tries.confirmed(chosen)
                if confirmed is not None:
                    return tries.answer(fluid, confirmed, served)
                if market is whole and not chosen.is_found:
                    unreachable(market)
                else:  # the simulation leaves too little, or fewer replicas share less evenly
                    most *= LESS
                market, served = shared_out(whole, most)
        except OutOfTimeError:
            return tries.cheaper(market, fluid, served)


def opened(request: FleetRequest) -> CandidateSet:
    """What there is to choose from; classes that come alike are one."""
    site = site_of(request)
    request = replace(request, classes=with_joint(request.classes, sharing=request.sharing))
    market = candidate_set(request, site, streams_of(request.classes, sharing=request.sharing))
    if market.offered.is_cut:
        raise out_of_time()
    return market
