"""A chosen fleet as pools with routes, and what the simulation says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from planner.estimates.serving.memory import handed_bytes
from planner.placing.fabrics.wires import wire_of
from planner.placing.fleets.chosen import PlannedFleet, Way
from planner.placing.fleets.market import asked_requests
from planner.placing.fleets.offering import source_of
from planner.results.fleets import CURVE
from planner.runtimes.simulation import simulate
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.intervals import SHARES
from planner.verifier.simulation.loads import ClassLoad, Route
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import Handover, Pool
from planner.verifier.simulation.steady import simulate_steady


def tried(fleet: PlannedFleet, *, seed: int) -> FleetOutcome:
    """Serve requests with a fleet, one by one."""
    request = fleet.chosen.market.request
    pools = [
        Pool(name=one.name, station=one.station, n_replicas=one.n_replicas, router=one.router)
        for one in fleet.pools
    ]
    served = {one.name for stream in fleet.streams for one in stream.classes}
    classes = [one for one in request.classes if one.name in served]
    handed = [handover_of(fleet, way) for way in fleet.ways]
    loads = [
        ClassLoad(
            name=one.name,
            source=one,
            routes=tuple(_routes(fleet, one, handed)),
            goodput=one.goodput,
        )
        for one in classes
    ]
    asked = {target.share for one in classes for target in one.targets}
    return simulate_steady(
        pools,
        loads,
        n_requests=asked_requests(request),
        seed=seed,
        shares=sorted({*SHARES, *CURVE, *asked}),
        simulation=simulate,
    )


def _routes(
    fleet: PlannedFleet, one: TrafficClass, handed: Sequence[Handover | None]
) -> Iterator[Route]:
    """Where requests of a class go."""
    for way, handover in zip(fleet.ways, handed, strict=True):
        stream = fleet.pools[way.pool].stream
        if any(other.name == one.name for other in stream.classes):
            yield Route(
                pool=fleet.pools[way.pool].name,
                then=None if way.then is None else fleet.pools[way.then].name,
                handover=handover,
                share=way.share,
                above_tokens=stream.above_tokens,
                upto_tokens=stream.upto_tokens,
            )


def handover_of(fleet: PlannedFleet, way: Way) -> Handover | None:
    """What hands caches from one pool to the other; None where one does both phases."""
    if way.then is None:
        return None
    chosen, ours, theirs = (
        fleet.chosen,
        *(fleet.pools[i].configuration for i in (way.pool, way.then)),
    )
    connector = chosen.market.request.roles.connector
    assert connector is not None
    source, ground = source_of(ours).engine, chosen.market.site.ground
    block = source.machines.engine.n_block_tokens
    low, high = (
        handed_bytes(source.model, ours.kv_format, n_tokens=float(n), n_block_tokens=block)
        for n in (block, 1024 * block)
    )
    token_bytes = (high - low) / (1023.0 * block)
    wires = [
        one.n_devices * wire_of(ground, one.pattern.kind).own_bytes_per_s for one in (ours, theirs)
    ]
    most = math.inf if connector.bytes_per_s is None else connector.bytes_per_s
    return Handover(
        latency_s=connector.latency_s,
        bytes_per_s=most,
        wire_bytes_per_s=min(wires),
        sequence_bytes=max(0.0, low - token_bytes * block),
        token_bytes=token_bytes,
    )
