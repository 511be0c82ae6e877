"""What a simulation does not confirm, and what is left of the rates that it refutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from planner.estimates.queues.largest import largest_rate
from planner.estimates.queues.loads import Load
from planner.estimates.queues.pooling import replica_load
from planner.estimates.queues.times import percentiles
from planner.fleets.simulating import PlannedFleet, PlannedPool
from planner.fleets.targets import held_to
from planner.results.fleets import Refuted
from planner.specs.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.outcomes import ClassOutcome, FleetOutcome

LEAST_STEP = 0.01
"""Of what a replica was sent, by which its rate goes down at least."""

MOST_STEP = 0.3
"""By which it goes down at most at once: formulas may be far off where they are refuted."""

_MOST_FACTOR = 4.0
"""By which formulas are taken to be too low at most: further off, rates go down step by step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A target that the simulation misses, and what it had."""

    target: PercentileTarget
    simulated_s: float


def refuted(fleet: PlannedFleet, outcome: FleetOutcome) -> tuple[Refuted, ...]:
    """Rates that the simulation refutes, with what is left of them in the book from now on."""
    classes = {one.name: one for stream in fleet.streams for one in stream.classes}
    found: dict[str, Refuted] = {}
    for one in classes.values():
        for target, simulated in missed(one, outcome.of(one.name)):
            for pool in fleet.pools_of(one):
                if pool.name not in found and _bears(pool, target):
                    left = _taken_down(
                        fleet, pool, one, Missed(target=target, simulated_s=simulated)
                    )
                    found[pool.name] = Refuted(
                        pool=pool.name,
                        target=target.name,
                        class_name=one.name,
                        at_most_s=target.at_most_s,
                        simulated_s=simulated,
                        before_per_s=pool.most_per_s,
                        after_per_s=left,
                    )
    return tuple(found.values())


def _taken_down(
    fleet: PlannedFleet,
    pool: PlannedPool,
    one: TrafficClass,
    what: Missed,
) -> float:
    """Requests a second of a replica that are left of a rate that was refuted.

    Formulas are off by some factor at the rate that was tried: with the target as much tighter,
    they say what is left.
    """
    target = what.target
    sent = pool.replica_rate_per_s
    least, most = sent * (1.0 - MOST_STEP), sent * (1.0 - LEAST_STEP)
    book, origin = fleet.chosen.market.book, fleet.chosen.origin(pool.configuration)
    if pool.role != TOGETHER or not math.isfinite(what.simulated_s):
        left = most if math.isfinite(what.simulated_s) else least
        book.take_down(origin, left, target, 1.0)
        return left
    said = times_of(pool, one)[target.quantity](target.share)
    factor = min(_MOST_FACTOR, max(1.0, what.simulated_s / max(said, 1e-9)))
    targets = held_to(pool.stream, pool.role, {(target.quantity, target.share): factor})
    rate = 0.0
    if targets is not None:
        rate = largest_rate(pool.station, seen_by_one(pool), targets) * pool.station.n_ranks
    left = min(most, max(least, rate))
    book.take_down(origin, left, target, factor)
    return left


def seen_by_one(pool: PlannedPool) -> Load:
    """What comes to one rank of a pool."""
    load = pool.stream.load.at(pool.rate_per_s)
    return replica_load(load, pool.n_replicas * pool.station.n_ranks, pool.router)


def times_of(pool: PlannedPool, one: TrafficClass) -> dict[str, Callable[[float], float]]:
    """Percentiles of the requests of a class on a replica of a pool, by quantity."""
    stream = pool.stream
    times = percentiles(pool.station, seen_by_one(pool))
    if len(stream.classes) > 1:
        member = [each.name for each in stream.classes].index(one.name)
        times = times.of(np.flatnonzero(stream.member == member))
    return {TTFT: times.ttft_s, TPOT: times.tpot_s, ITL: times.itl_s, E2E: times.request_s}


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
    is_of = {PREFILL: (TTFT, E2E), DECODE: (TPOT, ITL, E2E)}
    return pool.role == TOGETHER or target.quantity in is_of[pool.role]


def n_devices(pools: Sequence[PlannedPool]) -> int:
    """Devices of all their replicas."""
    return sum(one.n_replicas * one.configuration.n_devices for one in pools)


def usd_per_hour(pools: Sequence[PlannedPool]) -> float:
    """Rent of all their replicas."""
    return math.fsum(one.n_replicas * one.configuration.usd_per_hour for one in pools)
