"""Fleets and their rent over traffic searched again, and what formulas say of their queues."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.errors import NoPlanError
from planner.planning.proving.comparing import (
    Again,
    again,
    certificate_findings,
    proved_fields,
    same,
    subset_findings,
    unanswered,
)
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase
from planner.specs.certificates import OPTIMAL
from planner.specs.fleet_request import FleetRequest
from planner.specs.roles import TOGETHER
from planner.specs.stations import Station
from planner.specs.traffic.records import TrafficClass
from planner.verifier.findings import Finding

if TYPE_CHECKING:  # pools are heavy
    from planner.placing.fleets.streams import Stream


def fleet_again(says: FleetPlan) -> Again:
    """The rates that its program rests on are found again too, and what it says besides."""
    from planner.placing.fleets.planning import fleet

    try:
        found = fleet(says.request)
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = says.request.options.time_limit_s
    findings = [
        *certificate_findings(says.certificate, found.certificate, limit_s),
        *_queues(says),
    ]
    is_whole = limit_s is None or says.certificate.status == found.certificate.status == OPTIMAL
    if is_whole and _pool_names(says) == _pool_names(found):
        findings += same(len(says.rounds), len(found.rounds), ("rounds",))
        findings += proved_fields(says, found)
    names = []
    for name, asked in _subsets(says) if is_whole else ():
        with suppress(NoPlanError):
            best = fleet(asked).certificate.objective
            findings += subset_findings(says.certificate, best, None, name)
            names.append(name)
    parts = [f"and by parts: {'; '.join(names)}"] if names else []
    return again(findings, found.certificate, *parts)


def _pool_names(plan: FleetPlan) -> list[str]:
    return [one.name for one in plan.pools]


def _subsets(says: FleetPlan) -> Iterator[tuple[str, FleetRequest]]:
    """Parts of a request whose rates a simulation took down: rounds may have lost the best."""
    from planner.placing.fleets.offering import CHUNKS

    asked = says.request
    if not any(one.refuted for one in says.rounds):
        return
    for chunk in asked.chunks or CHUNKS:
        yield f"only chunks of {chunk}", replace(asked, chunks=(chunk,))
    for engine in asked.engines if len(asked.engines) > 1 else ():
        yield f"only {engine}", replace(asked, engines=(engine,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Queue:
    """A pool of an answer as formulas of queues take it; see `QueuedPool`."""

    stream: Stream
    station: Station
    n_replicas: int
    rate_per_s: float
    router: str


def _queues(says: FleetPlan) -> Iterator[Finding]:
    """What formulas say of the times of each class, of the pools that the answer has."""
    from planner.placing.fleets.streams import streams_of

    asked, served = says.request, {one.name: one.served_fraction for one in says.classes}
    classes = {
        one.name: replace(one, rate_per_s=one.rate_per_s * served[one.name])
        for one in asked.classes
        if served.get(one.name)
    }
    streams = streams_of(tuple(classes.values()), sharing=asked.sharing)
    for i, one in enumerate(says.classes):
        predicted = _predicted(says, streams, classes[one.name]) if one.percentiles else ()
        for k, (it, seconds) in enumerate(zip(one.percentiles, predicted, strict=True)):
            here = ("classes", str(i), "percentiles", str(k), "predicted_s")
            yield from same(it.predicted_s, seconds, here)


def _predicted(says: FleetPlan, streams: Sequence[Stream], one: TrafficClass) -> list[float]:
    """Of each percentile of a class what formulas say, of the pool where it is worst [s].

    NaN where caches are handed over, of which they say nothing.
    """
    from planner.placing.fleets.refuting import times_of

    pools = [pool for pool in says.pools if one.name in pool.classes]
    is_whole = all(says.recipes[pool.recipe].role == TOGETHER for pool in pools)
    laws = [times_of(_queue(says, pool, streams), one) for pool in pools] if is_whole else []
    (told,) = (it.percentiles for it in says.classes if it.name == one.name)
    return [
        max((float(law[it.quantity](it.share)) for law in laws), default=math.nan) for it in told
    ]


def _queue(says: FleetPlan, pool: FleetPool, streams: Sequence[Stream]) -> _Queue:
    """A pool with its requests."""
    mine = (says.recipes[pool.recipe].model, pool.classes, pool.above_tokens, pool.upto_tokens)
    stream = next(
        one
        for one in streams
        if mine
        == (
            one.model.name,
            tuple(it.name for it in one.classes),
            one.above_tokens,
            one.upto_tokens,
        )
    )
    return _Queue(
        stream=stream,
        station=pool.station,
        n_replicas=len(pool.replicas),
        rate_per_s=pool.rate_per_s,
        router=says.request.router,
    )


def staircase_again(says: FleetStaircase) -> Again:
    """Every step, from the least traffic to the most."""
    from planner.placing.fleets.staircase import staircase

    if not says.steps:
        return Again(findings=(), proofs=())
    of = says.request.rate_per_s
    beyond = 1.0 if says.is_whole else 1.01
    found = staircase(
        says.request,
        lowest_per_s=says.steps[0].above_factor * of,
        highest_per_s=says.steps[-1].upto_factor * of * beyond,
    )
    findings = [*same(len(says.steps), len(found.steps), ("steps",)), *proved_fields(says, found)]
    for i, (one, other) in enumerate(zip(says.steps, found.steps, strict=False)):
        for name in ("above_factor", "upto_factor"):
            findings += same(getattr(one, name), getattr(other, name), ("steps", str(i), name))
    words = (
        f"climbed again: {len(found.steps)} steps, none further than {found.gap:.3g} of its rent"
    )
    return Again(findings=tuple(findings), proofs=(f"{words} from its bound",))
