"""The requests of a fleet served again, one by one: as it was said, and with another seed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from planner.results import fleets
from planner.results.arrivals import Percentile
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.traffic.arrivals import POISSON
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.specs.traffic.records import TrafficClass
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Finding, Path
from planner.verifier.simulation.fleets import Simulation, simulate, simulate_steady
from planner.verifier.simulation.outcomes import SHARES, ClassOutcome, Estimate, FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, Handover, Pool, Route

USUAL = (0.5, 0.95, 0.99)
"""Percentiles of TTFT and TPOT that are said of every class, beside those of its targets."""


def tried_again(plan: fleets.FleetPlan, simulation: Simulation = simulate) -> fleets.FleetPlan:
    """The fleet with what its simulation had, run once more with its own seed."""
    return with_outcome(plan, _tried(plan, plan.request.options.seed, simulation))


def with_outcome(plan: fleets.FleetPlan, outcome: FleetOutcome) -> fleets.FleetPlan:
    """The fleet with what a simulation of it had, of every class that is served."""
    had = {one.name: one for one in outcome.classes}
    used = {one.name: one.utilisation for one in outcome.pools}
    asked = {one.name: one for one in plan.request.classes}
    return replace(
        plan,
        classes=tuple(
            _with_outcome(outcome, asked[outcome.name], had[outcome.name])
            if outcome.name in had
            else outcome
            for outcome in plan.classes
        ),
        pools=tuple(
            replace(
                pool,
                utilisation=used[pool.name].value,
                utilisation_half_width=_finite(used[pool.name].half_width),
            )
            for pool in plan.pools
        ),
        simulated=outcome.simulated,
    )


def missed_elsewhere(plan: fleets.FleetPlan) -> Iterator[Finding]:
    """Targets that are said to be met, and are missed with another seed by more than the intervals.

    Both runs are known within an interval each; beyond the two together it is no accident.
    """
    outcome = _tried(plan, plan.request.options.seed + 1)
    for i, says_class in enumerate(plan.classes):
        if says_class.served_fraction <= 0.0:
            continue
        had = outcome.of(says_class.name)
        for j, it in enumerate(says_class.percentiles):
            again = had.of(it.quantity).percentiles_s[it.share]
            room = _width(it.half_width_s) + _width(again.half_width)
            if it.at_most_s is not None and it.is_met and again.value > it.at_most_s + room:
                path: Path = ("classes", str(i), "percentiles", str(j), "simulated_s")
                yield _elsewhere(path, it.simulated_s, again, f"above {it.at_most_s!r}")
        goal = says_class.goodput
        if goal is not None and had.goodput is not None and goal.is_met:
            room = _width(goal.half_width) + _width(had.goodput.half_width)
            if had.goodput.value < goal.asked - room:
                path = ("classes", str(i), "goodput", "simulated")
                yield _elsewhere(path, goal.simulated, had.goodput, f"below {goal.asked!r}")


def _elsewhere(path: Path, says: float, again: Estimate, beyond: str) -> Finding:
    fact = f"is {again.value!r} with another seed, {beyond}"
    return Finding(path=path, says=says, fact=fact)


def _width(half_width: float) -> float:
    """Half of an interval; nothing of what nobody knows."""
    return half_width if math.isfinite(half_width) else 0.0


def _finite(value: float) -> float:
    """What nobody knows is written as what has no end is."""
    return math.inf if math.isnan(value) else value


def _with_outcome(
    outcome: fleets.ServedClass, traffic: TrafficClass, had: ClassOutcome
) -> fleets.ServedClass:
    """A class with its targets, then the usual percentiles, and its goodput if one is asked for."""
    goal, got = None, had.goodput
    if traffic.goodput is not None and got is not None:
        value, half = _finite(got.value), _finite(got.half_width)
        goal = fleets.Goodput(asked=traffic.goodput.share, simulated=value, half_width=half)
    limits = {(it.quantity, it.share): it.at_most_s for it in traffic.targets}
    return replace(
        outcome,
        percentiles=tuple(
            Percentile(
                quantity=quantity,
                share=share,
                at_most_s=limits.get((quantity, share)),
                simulated_s=_finite(estimate.value),
                half_width_s=_finite(estimate.half_width),
            )
            for quantity, share in dict.fromkeys([*limits, *product((TTFT, TPOT), USUAL)])
            for estimate in [had.of(quantity).percentiles_s[share]]
        ),
        curve_s=(_curve(had, TTFT), _curve(had, TPOT)),
        goodput=goal,
    )


def _curve(had: ClassOutcome, quantity: str) -> tuple[float, ...]:
    return tuple(_finite(had.of(quantity).at_s(share)) for share in fleets.CURVE)


def _tried(plan: fleets.FleetPlan, seed: int, simulation: Simulation = simulate) -> FleetOutcome:
    """All that came of the requests with a seed."""
    request = plan.request
    pools = [from_fields(Pool, one, router=request.router) for one in plan.pools]
    traces = [one.arrivals.trace for one in request.classes]
    longest = max((it.n_whole for it in traces if it is not None), default=0)
    groups = [*_groups(plan)]
    outcome = simulate_steady(
        pools,
        [_load(plan, some) for some in groups],
        n_requests=max(request.n_simulated, longest),
        seed=seed,
        shares=sorted({*SHARES, *fleets.CURVE, *_shares(plan)}),
        simulation=simulation,
    )
    each = (replace(outcome.of(some[0].name), name=one.name) for some in groups for one in some)
    return replace(outcome, classes=tuple(each))


def _groups(plan: fleets.FleetPlan) -> Iterator[list[TrafficClass]]:
    """Classes that are served, those together whose requests come at random and differ in nothing.

    Nor do their ways: so what becomes of all is what becomes of each.
    """
    alike: dict[str, list[TrafficClass]] = {}
    for traffic in _served_classes(plan):
        mine = [pool for pool in plan.pools if traffic.name in pool.classes]
        pools = [(pool.name, pool.share_of(traffic.name)) for pool in mine]
        is_random = traffic.arrivals.pattern == POISSON
        key = (
            repr((replace(traffic, name="", rate_per_s=1.0), pools)) if is_random else traffic.name
        )
        alike.setdefault(key, []).append(traffic)
    yield from alike.values()


def _shares(plan: fleets.FleetPlan) -> set[float]:
    return {it.share for one in plan.classes for it in one.percentiles}


def _served_classes(plan: fleets.FleetPlan) -> list[TrafficClass]:
    """Classes that are served, in the order of the request, at the rates at which they are."""
    share = {one.name: one.served_fraction for one in plan.classes}
    names = {name for pool in plan.pools for name in pool.classes}
    return [
        replace(traffic, rate_per_s=traffic.rate_per_s * share[traffic.name])
        for traffic in plan.request.classes
        if traffic.name in names
    ]


def _load(plan: fleets.FleetPlan, some: Sequence[TrafficClass]) -> ClassLoad:
    """Classes that are alike and their ways; those of the same prompts stand together."""
    traffic = replace(some[0], rate_per_s=math.fsum(it.rate_per_s for it in some))
    mine = [pool for pool in plan.pools if traffic.name in pool.classes]
    parts = dict.fromkeys((pool.classes, pool.above_tokens, pool.upto_tokens) for pool in mine)
    routes = [
        route
        for part in parts
        for route in _routes(
            plan,
            [it for it in mine if (it.classes, it.above_tokens, it.upto_tokens) == part],
            traffic.name,
        )
    ]
    return ClassLoad(
        name=traffic.name, source=traffic, routes=tuple(routes), goodput=traffic.goodput
    )


def _routes(plan: fleets.FleetPlan, pools: list[fleets.FleetPool], name: str) -> Iterator[Route]:
    """Ways of a class to pools that do it all, then those through two pools."""
    for pool in pools:
        if plan.recipes[pool.recipe].role not in (PREFILL, DECODE):
            yield from_fields(Route, pool, pool=pool.name, then=None, share=pool.share_of(name))
    of = {pool.name: pool for pool in pools}
    for handover in plan.handovers:
        if handover.source in of:
            pool = of[handover.source]
            yield from_fields(
                Route,
                pool,
                pool=handover.source,
                then=handover.target,
                handover=from_fields(Handover, handover),
                share=pool.share_of(name) * handover.requests_per_s / pool.rate_per_s,
            )
