"""What a simulation does not confirm, and what is left of the rates that it refutes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.estimates.queues.largest import largest_rate
from planner.estimates.queues.times import percentiles
from planner.fleets.offering import planned_targets
from planner.fleets.simulating import PlannedFleet, PlannedPool
from planner.results.fleets import Refuted
from planner.specs.roles import TOGETHER
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.outcomes import ClassOutcome, FleetOutcome

LEAST_STEP = 0.01
"""Of what a replica was sent, by which its rate goes down at least."""

MOST_STEP = 0.3
"""By which it goes down at most at once: formulas may be far off where they are refuted."""

GOODPUT = "goodput"


def refuted(fleet: PlannedFleet, outcome: FleetOutcome) -> tuple[Refuted, ...]:
    """Rates that the simulation refutes, with what is left of them in the book from now on."""
    classes = {one.name: one for stream in fleet.streams for one in stream.classes}
    found: dict[str, Refuted] = {}
    for one in classes.values():
        for target, simulated in missed(one, outcome.of(one.name)):
            for pool in fleet.pools_of(one):
                if _bears(pool, target):
                    left = _left(pool, target, simulated)
                    known = found.get(pool.name)
                    if known is None or left < known.after_per_s:
                        found[pool.name] = Refuted(
                            pool=pool.name,
                            target=target.name,
                            class_name=one.name,
                            at_most_s=target.at_most_s,
                            simulated_s=simulated,
                            before_per_s=pool.most_per_s,
                            after_per_s=left,
                        )
    book = fleet.chosen.market.book
    for pool in fleet.pools:
        if pool.name in found:
            book.take_down(fleet.chosen.origin(pool.configuration), found[pool.name].after_per_s)
    return tuple(found.values())


def missed(one: TrafficClass, outcome: ClassOutcome) -> Iterator[tuple[PercentileTarget, float]]:
    """Targets that the simulation misses, each with what it had [s]."""
    for target in one.targets:
        simulated = outcome.of(target.quantity).percentiles_s.get(target.share)
        if simulated is not None and simulated.value > target.at_most_s:
            yield target, simulated.value
    goal, had = one.goodput, outcome.goodput
    if goal is None or had is None or had.value >= goal.share:
        return
    # of the limits that too few meet at once, the one that is missed by most
    limits = {TTFT: goal.ttft_s, TPOT: goal.tpot_s, E2E: goal.e2e_s}
    ratios = [
        (outcome.of(name).at_s(0.99) / most, name, most)
        for name, most in limits.items()
        if most is not None
    ]
    ratio, name, most = max(ratios)
    worst = max(most * (1.0 + 1e-6), most * ratio)
    yield PercentileTarget(quantity=name, share=goal.share, at_most_s=most), worst


def _bears(pool: PlannedPool, target: PercentileTarget) -> bool:
    """Whether a pool has to do with what was missed."""
    if pool.role == TOGETHER:
        return True
    own = {one.target.quantity for one in pool.stream.targets}
    return target.quantity in {
        one.quantity for one in planned_targets(pool.stream.targets, pool.role)
    } or (target.quantity == E2E and E2E in own)


def _left(pool: PlannedPool, target: PercentileTarget, simulated_s: float) -> float:
    """Requests a second of a replica that are left of a rate that was refuted.

    Formulas are off by some factor at the rate that was tried: with the target as much tighter,
    they say what is left.
    """
    sent, station = pool.replica_rate_per_s, pool.station
    least, most = sent * (1.0 - MOST_STEP), sent * (1.0 - LEAST_STEP)
    if pool.role != TOGETHER or not math.isfinite(simulated_s):
        return most if math.isfinite(simulated_s) else least
    load = pool.stream.load.at(sent / station.n_ranks)
    times = percentiles(station, load)
    said = {TTFT: times.ttft_s, TPOT: times.tpot_s, ITL: times.itl_s, E2E: times.request_s}
    factor = simulated_s / max(said[target.quantity](target.share), 1e-9)
    tighter = [
        replace(one, at_most_s=one.at_most_s / max(1.0, factor)) if _is_same(one, target) else one
        for one in planned_targets(pool.stream.targets, pool.role)
    ]
    rate = largest_rate(station, pool.stream.load, tighter) * station.n_ranks
    return min(most, max(least, rate))


def _is_same(one: PercentileTarget, other: PercentileTarget) -> bool:
    return one.quantity == other.quantity and one.share >= other.share


def n_devices(pools: Sequence[PlannedPool]) -> int:
    """Devices of all their replicas."""
    return sum(one.n_replicas * one.configuration.n_devices for one in pools)


def usd_per_hour(pools: Sequence[PlannedPool]) -> float:
    """Rent of all their replicas."""
    return math.fsum(one.n_replicas * one.configuration.usd_per_hour for one in pools)
