"""A chosen fleet as pools with routes, what the simulation says of it, and what that refutes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from planner.estimates.serving.memory import handed_bytes
from planner.placing.fabrics.site import Fabric
from planner.placing.fleets.candidate_sets import CandidateSet, asked_requests
from planner.placing.fleets.offering import source_of
from planner.placing.fleets.solutions import PlannedFleet, PlannedPool, PoolRoute
from planner.results.fleets import CURVE, Refuted
from planner.runtimes.simulation import simulate
from planner.specs.records.roles import DECODE, PREFILL, TOGETHER
from planner.specs.traffic.percentiles import E2E, ITL, TPOT, TTFT, PercentileTarget
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.fleets import simulate_steady
from planner.verifier.simulation.outcomes import SHARES, ClassOutcome, Estimate, FleetOutcome
from planner.verifier.simulation.pools import ClassLoad, Handover, Pool, Route


def tried(fleet: PlannedFleet, *, seed: int) -> FleetOutcome:
    """Serve requests with a fleet, one by one."""
    request = fleet.chosen.market.request
    pools = [
        Pool(name=pool.name, station=pool.station, n_replicas=pool.n_replicas, router=pool.router)
        for pool in fleet.pools
    ]
    served = {one.name for stream in fleet.streams for one in stream.classes}
    classes = [one for one in request.classes if one.name in served]
    handed = [handover_of(fleet, way) for way in fleet.ways]
    loads = [
        ClassLoad(
            name=traffic.name,
            source=traffic,
            routes=tuple(_routes(fleet, traffic, handed)),
            goodput=traffic.goodput,
        )
        for traffic in classes
    ]
    shares = {target.share for one in classes for target in one.targets}
    return simulate_steady(
        pools,
        loads,
        n_requests=asked_requests(request),
        seed=seed,
        shares=sorted({*SHARES, *CURVE, *shares}),
        simulation=simulate,
    )


def _routes(
    fleet: PlannedFleet, traffic: TrafficClass, handed: Sequence[Handover | None]
) -> Iterator[Route]:
    """Where requests of a class go."""
    for way, handover in zip(fleet.ways, handed, strict=True):
        stream = fleet.pools[way.pool].stream
        if any(other.name == traffic.name for other in stream.classes):
            yield Route(
                pool=fleet.pools[way.pool].name,
                then=None if way.then is None else fleet.pools[way.then].name,
                handover=handover,
                share=way.share * stream.part_of[traffic.name],
                above_tokens=stream.above_tokens,
                upto_tokens=stream.upto_tokens,
            )


def handover_of(fleet: PlannedFleet, way: PoolRoute) -> Handover | None:
    """What hands caches from one pool to the other; None where one does both phases."""
    if way.then is None:
        return None
    ours, theirs = (fleet.pools[i].configuration for i in (way.pool, way.then))
    source, market = source_of(ours).engine, fleet.chosen.market
    connector, site = market.request.roles.connector, market.site
    assert connector is not None
    assert isinstance(site, Fabric)  # nothing is handed over elsewhere
    block = source.machines.engine.n_block_tokens
    low, high = (
        handed_bytes(source.model, ours.kv_format, n_tokens=float(n), n_block_tokens=block)
        for n in (block, 1024 * block)
    )
    token_bytes = (high - low) / (1023.0 * block)
    of_kind = site.wires
    wires = [it.n_devices * of_kind[it.pattern.kind_name].own_bytes_per_s for it in (ours, theirs)]
    most = math.inf if connector.bytes_per_s is None else connector.bytes_per_s
    return Handover(
        latency_s=connector.latency_s,
        bytes_per_s=most,
        wire_bytes_per_s=min(wires),
        sequence_bytes=max(0.0, low - token_bytes * block),
        token_bytes=token_bytes,
    )


LEAST_STEP = 0.01
"""Of what a replica was sent, by which its rate goes down at least."""

APART_STEP = 0.04
"""The same of replicas of one phase: whose wait it was that is too long nobody says."""


Left = Callable[[PlannedFleet, PlannedPool], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A target that the simulation misses, and what it had."""

    target: PercentileTarget
    simulated_s: float


def refuted(
    fleet: PlannedFleet, outcome: FleetOutcome, left: Left, before: FleetOutcome | None = None
) -> tuple[Refuted, ...]:
    """Rates that the simulation refutes, with what is left of them.

    Args:
        left: requests a second of a replica of a pool that is.
        before: of other draws, which kept all; what is within both intervals is no refutation.
    """
    classes = {one.name: one for stream in fleet.streams for one in stream.classes}
    by_pool: dict[str, Refuted] = {}
    for traffic in classes.values():
        for what in missed(
            traffic, outcome.of(traffic.name), before.of(traffic.name) if before else None
        ):
            for pool in fleet.pools_of(traffic):
                own = _of_pool(what, pool, outcome.sent(traffic.name, pool.name))
                if pool.name in by_pool or not _bears(pool, what.target) or own is None:
                    continue
                by_pool[pool.name] = Refuted(
                    pool=pool.name,
                    target=what.target.name,
                    class_name=traffic.name,
                    at_most_s=what.target.at_most_s,
                    simulated_s=own.simulated_s,
                    before_per_s=pool.most_per_s,
                    after_per_s=left(fleet, pool),
                )
    return tuple(by_pool.values())


def in_such_pools(fleet: PlannedFleet, pool: PlannedPool) -> float:
    """Requests a second of a replica in a pool of such a size, whatever the others do."""
    book, origin = fleet.chosen.market.book, fleet.chosen.origin(pool.configuration)
    return book.in_pools_of(origin, pool.n_replicas, pool.replica_rate_per_s)


def divided(fleet: PlannedFleet, refuted: Sequence[Refuted]) -> list[CandidateSet]:
    """What there is to choose from with no larger a pool, at what that serves, and with larger.

    Of the refuted pools that one counts which serves least of what it was taken for. Nothing where
    none serves less by itself: then it is the fleet that does, by how its pools share.
    """
    pools = {one.name: one for one in fleet.pools}
    after = {one.pool: one.after_per_s / pools[one.pool].replica_rate_per_s for one in refuted}
    least = min(after, key=after.__getitem__)
    if after[least] >= 1.0:
        return []
    pool = pools[least]
    market = fleet.chosen.market
    parts = market.book.pools.split(id(fleet.chosen.origin(pool.configuration)), pool.n_replicas)
    return [replace(market, book=replace(market.book, pools=one)) for one in parts]


def taken_down(fleet: PlannedFleet, pool: PlannedPool) -> float:
    """Requests a second that a replica is taken for from now on: less than it was sent."""
    left = pool.replica_rate_per_s * (1.0 - (LEAST_STEP if pool.role == TOGETHER else APART_STEP))
    origin = fleet.chosen.origin(pool.configuration)
    fleet.chosen.market.book.take_down(origin, pool.configuration.choice, left)
    return left


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


def missed(
    traffic: TrafficClass, outcome: ClassOutcome, before: ClassOutcome | None = None
) -> Iterator[Missed]:
    """Targets that the simulation misses, each with what it had.

    Args:
        before: of other draws; what is missed within both intervals is not.
    """
    for target in traffic.targets:
        simulated = outcome.of(target.quantity).percentiles_s.get(target.share)
        known = before.of(target.quantity).percentiles_s.get(target.share) if before else None
        room = _room(simulated, known)
        if simulated is not None and simulated.value > target.at_most_s + room:
            yield Missed(target=target, simulated_s=simulated.value)
    goal, had = traffic.goodput, outcome.goodput
    room = _room(had, before.goodput if before else None)
    if goal is None or had is None or not had.value < goal.share - room:
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


def _room(estimate: Estimate | None, before: Estimate | None) -> float:
    """Half of both intervals, of what is known; nothing without draws before."""
    if estimate is None or before is None:
        return 0.0
    return sum(it.half_width for it in (estimate, before) if math.isfinite(it.half_width))


def _bears(pool: PlannedPool, target: PercentileTarget) -> bool:
    """Whether a pool has to do with what was missed."""
    is_of = {PREFILL: (TTFT, E2E), DECODE: (TPOT, ITL, E2E)}
    return pool.role == TOGETHER or target.quantity in is_of[pool.role]
