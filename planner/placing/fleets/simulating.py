"""A chosen fleet as pools with routes, and what the simulation says of it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.placing.fleets.chosen import PlannedFleet
from planner.placing.fleets.market import asked_requests
from planner.results.fleets import CURVE
from planner.runtimes.simulation import simulate
from planner.specs.traffic.records import TrafficClass
from planner.verifier.simulation.intervals import SHARES
from planner.verifier.simulation.loads import ClassLoad, Route
from planner.verifier.simulation.outcomes import FleetOutcome
from planner.verifier.simulation.pools import Pool
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
    loads = [
        ClassLoad(name=one.name, source=one, routes=tuple(_routes(fleet, one)), goodput=one.goodput)
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


def _routes(fleet: PlannedFleet, one: TrafficClass) -> Iterator[Route]:
    """Where requests of a class go."""
    for stream in fleet.streams:
        if all(other.name != one.name for other in stream.classes):
            continue
        for way in fleet.ways_of(stream):
            yield Route(
                pool=fleet.pools[way.pool].name,
                then=None if way.then is None else fleet.pools[way.then].name,
                handover=way.handover,
                share=way.share,
                above_tokens=stream.above_tokens,
                upto_tokens=stream.upto_tokens,
            )
