"""Fleets and their rent over traffic searched again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from planner.errors import NoPlanError
from planner.planning.proving.comparing import (
    Again,
    again,
    beliefs_of,
    certificate_findings,
    known_best,
    limit_of,
    proved_fields,
    same,
    subset_findings,
    unanswered,
)
from planner.results.fleets import FleetPlan, FleetStaircase
from planner.specs.certificates import OPTIMAL
from planner.specs.fleet_request import FleetRequest


def fleet_again(says: FleetPlan) -> Again:
    """The rates that its program rests on are found again too, and what it says besides."""
    from planner.placing.fleets.planning import fleet

    try:
        found = fleet(says.request)
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(says.request.options.time_limit_s)
    findings = [
        *certificate_findings(says.certificate, found.certificate, limit_s),
        *known_best(beliefs_of(says), beliefs_of(found), limit_s),
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
