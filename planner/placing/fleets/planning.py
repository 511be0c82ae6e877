"""`fleet`: from traffic to pools, tried by simulation until both agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.placing.fabrics.site import Fabric, graph_in
from planner.placing.fleets.alternatives import alternatives_of, most_factor
from planner.placing.fleets.describing import Answered, fleet_plan
from planner.placing.fleets.market import Market, market_of
from planner.placing.fleets.refuting import n_devices, refuted, usd_per_hour
from planner.placing.fleets.searching import Chosen, settled
from planner.placing.fleets.shortage import shared_out, unreachable
from planner.placing.fleets.simulating import PlannedFleet, planned, tried
from planner.placing.fleets.streams import streams_of
from planner.placing.fleets.telling import told
from planner.results.fleets import FleetPlan, Round
from planner.running.deadlines import is_over, out_of_time, timed
from planner.specs.fleet_request import FleetRequest
from planner.specs.pools import pool_of
from planner.specs.records import ClusterSpec
from planner.verifier.findings import refuse
from planner.verifier.fleets.judging import recounted
from planner.verifier.simulation.outcomes import FleetOutcome

MOST_ROUNDS = 40

_LESS = 0.95
"""Of what was served at most, what is tried next where too little is left for it."""

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Confirmed:
    """A fleet that the simulation confirms.

    Args:
        fluid: the cheapest one if no percentile counted.
        served: share of each class, by name.
    """

    fluid: Chosen
    fleet: PlannedFleet
    outcome: FleetOutcome
    rounds: tuple[Round, ...]
    served: Mapping[str, float]


def _found(market: Market, on_round: OnRound) -> _Confirmed:
    """The cheapest fleet for all traffic; where there is none, for as much as can be."""
    whole, served = market, {one.name: 1.0 for one in market.request.classes}
    rounds: list[Round] = []
    most = 1.0
    while True:
        fluid = settled(market, fluid=True)
        chosen = settled(market) if fluid.is_found else fluid
        if chosen.is_found:
            tried_out = _confirmed(chosen, rounds, on_round)
            if tried_out is not None:
                fleet, outcome = tried_out
                return _Confirmed(
                    fluid=fluid, fleet=fleet, outcome=outcome, rounds=tuple(rounds), served=served
                )
            most *= _LESS  # the simulation leaves too little of the rates for so much
        elif market is whole:
            unreachable(market)
        else:
            most *= _LESS  # fewer replicas share less evenly than those of all traffic would
        if is_over():
            raise out_of_time()
        market, served = shared_out(whole, most)


def opened(request: FleetRequest) -> Market:
    """What there is to choose from."""
    site = request.site
    pool = pool_of(site) if isinstance(site, ClusterSpec) else site
    fabric = Fabric(pool, graph_in(pool, request.state), most_devices=request.most_devices)
    return market_of(request, fabric, streams_of(request.classes, sharing=request.sharing))


def _confirmed(
    chosen: Chosen, rounds: list[Round], on_round: OnRound
) -> tuple[PlannedFleet, FleetOutcome] | None:
    """Simulate, take down what is refuted, solve again, until nothing is refuted.

    None where what is left of the rates does not serve the traffic.
    """
    while chosen.is_found:
        if is_over():
            raise out_of_time()
        fleet = planned(chosen)
        outcome = tried(fleet, seed=chosen.market.request.options.seed)
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
            return fleet, outcome
        if len(rounds) == MOST_ROUNDS:
            raise out_of_time()  # what a simulation refutes is no answer
        chosen = settled(chosen.market)
    return None


def _nothing(one: Round) -> None:
    """Nobody listens."""
