"""`fleet`: from traffic to pools, tried by simulation until both agree."""

from __future__ import annotations

import time
from collections.abc import Callable

from planner.errors import NoPlanError
from planner.fleets.alternatives import alternatives_of, most_factor
from planner.fleets.describing import Answered, fleet_plan
from planner.fleets.market import Market, market_of
from planner.fleets.refuting import n_devices, refuted, usd_per_hour
from planner.fleets.searching import Chosen, settled
from planner.fleets.shortage import shared_out, unreachable
from planner.fleets.simulating import PlannedFleet, planned, tried
from planner.fleets.streams import streams_of
from planner.fleets.telling import told
from planner.placing.fabrics.site import Fabric, graph_in
from planner.results.fleets import FleetPlan, Round
from planner.running.deadlines import is_over, out_of_time, timed
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import pool_of
from planner.specs.records import ClusterSpec
from planner.verifier.findings import refuse
from planner.verifier.fleets.judging import recounted
from planner.verifier.simulation.outcomes import FleetOutcome

MOST_ROUNDS = 40

OnRound = Callable[[Round], None]


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
    market = opened(request)
    served = {one.name: 1.0 for one in request.classes}
    fluid = settled(market, fluid=True)
    chosen = settled(market) if fluid.is_found else fluid
    if not chosen.is_found:
        unreachable(market)
        market, served = shared_out(market)
        fluid, chosen = settled(market, fluid=True), settled(market)
    fleet, outcome, rounds = confirmed(chosen, on_round or _nothing)
    found = fleet_plan(
        Answered(
            asked=request,
            fleet=fleet,
            outcome=outcome,
            rounds=rounds,
            served_fraction=served,
            fluid_usd_per_hour=fluid.solution.vouched.bound if fluid.is_found else None,
            alternatives=alternatives_of(fleet),
            most_factor=most_factor(fleet),
            began_s=began_s,
        )
    )
    found = told(found, fleet.pools)
    refuse(recounted(found)[1])
    return found


def opened(request: FleetRequest) -> Market:
    """What there is to choose from."""
    site = request.site
    pool = pool_of(site) if isinstance(site, ClusterSpec) else site
    fabric = Fabric(pool, graph_in(pool, request.state), most_devices=request.most_devices)
    return market_of(request, fabric, streams_of(request.classes, sharing=request.sharing))


def confirmed(
    chosen: Chosen, on_round: OnRound
) -> tuple[PlannedFleet, FleetOutcome, tuple[Round, ...]]:
    """Solve, simulate, take down what is refuted, and again, until nothing is.

    Raises:
        NoPlanError: what is left of the rates serves the traffic nowhere.
    """
    market, rounds = chosen.market, []
    while True:
        fleet = planned(chosen)
        outcome = tried(fleet, seed=market.request.options.seed)
        found = refuted(fleet, outcome)
        rounds.append(
            Round(
                usd_per_hour=usd_per_hour(fleet.pools),
                n_devices=n_devices(fleet.pools),
                refuted=found,
            )
        )
        on_round(rounds[-1])
        if not found:
            return fleet, outcome, tuple(rounds)
        if is_over() or len(rounds) == MOST_ROUNDS:
            raise out_of_time()  # what a simulation refutes is no answer
        chosen = settled(market)
        if not chosen.is_found:
            raise NoPlanError("the simulation leaves no fleet that meets the targets")


def _nothing(one: Round) -> None:
    """Nobody listens."""
