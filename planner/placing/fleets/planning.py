"""`fleet`: from traffic to pools, tried by simulation until both agree."""

from __future__ import annotations

import time

from planner.errors import OutOfTimeError
from planner.placing.fabrics.site import Fabric, graph_in
from planner.placing.fleets.alternatives import alternatives_of, most_factor
from planner.placing.fleets.describing import Answered, fleet_plan
from planner.placing.fleets.market import Market, market_of
from planner.placing.fleets.searching import as_offered, settled
from planner.placing.fleets.shortage import shared_out, unreachable
from planner.placing.fleets.streams import streams_of
from planner.placing.fleets.telling import told
from planner.placing.fleets.trying import LESS, Confirmed, OnRound, Tries, weighed
from planner.results.fleets import FleetPlan, Round
from planner.running.deadlines import out_of_time, share, timed
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import pool_of
from planner.specs.records import ClusterSpec
from planner.verifier.findings import refuse
from planner.verifier.fleets.judging import recounted

SEARCH_SHARE = 0.8
"""Of the time that is left, that looking for the cheapest may take: the rest is to try what is
known by then."""


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
    began_s = time.perf_counter()
    one = _found(opened(request), on_round or _nothing)
    fluid = one.fluid.solution.vouched.bound if one.fluid.is_found else None
    found = fleet_plan(
        Answered(
            asked=request,
            fleet=one.fleet,
            outcome=one.outcome,
            rounds=one.rounds,
            served_fraction=one.served,
            fluid_usd_per_hour=fluid,
            alternatives=alternatives_of(one.fleet),
            most_factor=most_factor(one.fleet),
            began_s=began_s,
        )
    )
    found = told(found, one.fleet.pools)
    refuse(recounted(found)[1])
    return found


def _found(market: Market, on_round: OnRound) -> Confirmed:
    """The cheapest fleet for all traffic; where there is none, for as much as can be.

    Where time may end, a first fleet is found before the cheapest is looked for.
    """
    tries = Tries(on_round=on_round)
    try:
        return _cheapest(market, tries)
    except OutOfTimeError:
        if tries.first is None:
            raise
        return tries.cheaper(tries.first)


def _cheapest(market: Market, tries: Tries) -> Confirmed:
    whole, served = market, {one.name: 1.0 for one in market.request.classes}
    most = 1.0
    while True:
        fluid = settled(market, now=as_offered)
        best = tries.find_first(market, fluid, served)
        if best is not None:
            return best
        with share(SEARCH_SHARE if tries.first else 1.0):
            chosen = weighed(market) if fluid.is_found else fluid
            confirmed = tries.confirmed(chosen)
            if confirmed is not None:
                return tries.answer(fluid, confirmed, served)
            if market is whole and not chosen.is_found:
                unreachable(market)
            else:  # the simulation leaves too little, or fewer replicas share less evenly
                most *= LESS
            market, served = shared_out(whole, most)


def opened(request: FleetRequest) -> Market:
    """What there is to choose from."""
    site = request.site
    pool = pool_of(site) if isinstance(site, ClusterSpec) else site
    fabric = Fabric(pool, graph_in(pool, request.state), most_devices=request.most_devices)
    market = market_of(request, fabric, streams_of(request.classes, sharing=request.sharing))
    if market.offered.is_cut:
        raise out_of_time()
    return market


def _nothing(one: Round) -> None:
    """Nobody listens."""
