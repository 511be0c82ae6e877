"""What a simulation does not confirm, and what is left of the rates that it refutes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.estimates.queues.largest import largest_rate
from planner.estimates.queues.loads import Load
from planner.estimates.queues.pooling import replica_load
from planner.estimates.queues.times import percentiles
from planner.placing.fleets.simulating import PlannedFleet, PlannedPool
from planner.placing.fleets.streams import Stream
from planner.placing.fleets.targets import over_class
from planner.results.fleets import Refuted
from planner.specs.roles import DECODE, PREFILL, TOGETHER
from planner.specs.stations import Station
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.outcomes import ClassOutcome, FleetOutcome

LEAST_STEP = 0.01
"""Of what a replica was sent, by which its rate goes down at least."""

APART_STEP = 0.04
"""The same of replicas of one phase: whose wait it was that is too long nobody says."""

MOST_STEP = 0.3
"""By which it goes down where requests had no room at all."""


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
        for what in missed(one, outcome.of(one.name)):
            for pool in fleet.pools_of(one):
                own = _of_pool(what, pool, outcome.sent(one.name, pool.name))
                if pool.name in found or not _bears(pool, what.target) or own is None:
                    continue
                found[pool.name] = Refuted(
                    pool=pool.name,
                    target=what.target.name,
                    class_name=one.name,
                    at_most_s=what.target.at_most_s,
                    simulated_s=own.simulated_s,
                    before_per_s=pool.most_per_s,
                    after_per_s=_taken_down(fleet, pool, one, own),
                )
    return tuple(found.values())


def _taken_down(
    fleet: PlannedFleet,
    pool: PlannedPool,
    one: TrafficClass,
    what: Missed,
) -> float:
    """Requests a second of a replica that are left of a rate that was refuted.

    At some heavier load formulas say what the simulation had: they take every load for as much
    lighter than it is, and what they allow is as much less. (Times explode where a station is
    full: by how much they are too low there says little of what is left.)
    """
    sent = pool.replica_rate_per_s
    book, origin = fleet.chosen.market.book, fleet.chosen.origin(pool.configuration)
    heavier = 1.0
    left = sent * (1.0 - (LEAST_STEP if pool.role == TOGETHER else APART_STEP))
    if not math.isfinite(what.simulated_s):
        left = sent * (1.0 - MOST_STEP)
    elif pool.role == TOGETHER:
        heavier = _heavier(pool, one, what)
        left = min(left, pool.most_per_s / heavier)
    book.take_down(origin, pool.configuration.choice, left, heavier)
    return left


def _heavier(pool: PlannedPool, one: TrafficClass, what: Missed) -> float:
    """Times the load at which formulas say what the simulation had; 1 if they said it anyway."""
    member = [each.name for each in pool.stream.classes].index(one.name)
    had = replace(what.target, at_most_s=what.simulated_s)
    load, n_ranks = seen_by_one(pool), pool.station.n_ranks
    said_at = largest_rate(pool.station, load, [over_class(pool.stream, had, member)]) * n_ranks
    return max(1.0, said_at / pool.replica_rate_per_s)


class QueuedPool(Protocol):
    """What formulas of queues ask of a pool."""

    @property
    def stream(self) -> Stream: ...

    @property
    def station(self) -> Station: ...

    @property
    def n_replicas(self) -> int: ...

    @property
    def rate_per_s(self) -> float: ...

    @property
    def router(self) -> str: ...


def seen_by_one(pool: QueuedPool) -> Load:
    """What comes to one rank of a pool."""
    load = pool.stream.load.at(pool.rate_per_s)
    return replica_load(load, pool.n_replicas * pool.station.n_ranks, pool.router)


def times_of(pool: QueuedPool, one: TrafficClass) -> dict[str, Callable[[float], float]]:
    """Percentiles of the requests of a class on a replica of a pool, by quantity."""
    stream = pool.stream
    times = percentiles(pool.station, seen_by_one(pool))
    if len(stream.classes) > 1:
        member = [each.name for each in stream.classes].index(one.name)
        times = times.of(np.flatnonzero(stream.member == member))
    return {TTFT: times.ttft_s, TPOT: times.tpot_s, ITL: times.itl_s, E2E: times.request_s}


def _of_pool(what: Missed, pool: PlannedPool, outcome: ClassOutcome) -> Missed | None:
    """What a pool has to do with a target that its class misses; None where it keeps it.

    Whom a pool of prefill hands over to is not told apart, nor are gaps between tokens.
    """
    target = what.target
    if pool.role != TOGETHER or target.quantity == ITL:
        return what
    own = outcome.of(target.quantity).percentiles_s.get(target.share)
    if own is None:
        return what
    return Missed(target=target, simulated_s=own.value) if own.value > target.at_most_s else None


def missed(one: TrafficClass, outcome: ClassOutcome) -> Iterator[Missed]:
    """Targets that the simulation misses, each with what it had."""
    for target in one.targets:
        simulated = outcome.of(target.quantity).percentiles_s.get(target.share)
        if simulated is not None and simulated.value > target.at_most_s:
            yield Missed(target=target, simulated_s=simulated.value)
    goal, had = one.goodput, outcome.goodput
    if goal is None or had is None or not had.value < goal.share:
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
    target = PercentileTarget(quantity=name, share=goal.share, at_most_s=most)
    yield Missed(target=target, simulated_s=worst)


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
