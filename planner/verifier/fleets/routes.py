"""Whose requests go where: all that are to be served go to pools that can serve them, and once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from planner.results.fleets import FleetPlan, FleetPool
from planner.specs.roles import DECODE
from planner.specs.traffic.records import TrafficClass
from planner.verifier.findings import Finding, Path

CLOSE = 1e-6
"""Relative, of rates: sums of what solvers say."""


def misrouted(plan: FleetPlan) -> Iterator[Finding]:
    """Requests that go nowhere, or twice, or to a pool that serves fewer or another model."""
    yield from _uncovered(plan)
    yield from _unserved(plan)
    yield from _handed(plan)
    for i, one in enumerate(plan.pools):
        path: Path = ("pools", str(i))
        most = one.replica_rate_per_s * one.n_replicas
        if one.rate_per_s > most * (1 + CLOSE):
            fact = f"is more than the {most!r} that its replicas serve"
            yield Finding(path=(*path, "rate_per_s"), says=one.rate_per_s, fact=fact)
        model = plan.recipes[one.recipe].model
        for name in one.classes:
            asked = next(each for each in plan.request.classes if each.name == name)
            if model not in [each.name for each in asked.models]:
                fact = f"may not be served by {model}"
                yield Finding(path=(*path, "classes"), says=name, fact=fact)


def entries(plan: FleetPlan) -> list[tuple[int, FleetPool]]:
    """Pools that requests come to first, with their numbers."""
    return [(i, one) for i, one in enumerate(plan.pools) if plan.recipes[one.recipe].role != DECODE]


def _uncovered(plan: FleetPlan) -> Iterator[Finding]:
    """Of a class that is served, prompts of some length that go to no pool, or to several sorts."""
    for i, one in enumerate(plan.classes):
        ranges = sorted(
            {
                (pool.above_tokens, pool.upto_tokens)
                for _, pool in entries(plan)
                if one.name in pool.classes
            }
        )
        path: Path = ("classes", str(i))
        is_served = one.served_fraction > 0.0
        if ranges and not is_served:
            fact, says = "is nothing, and pools serve it", one.served_fraction
            yield Finding(path=(*path, "served_fraction"), says=says, fact=fact)
        if is_served and not _meets_each_once(ranges):
            said = ", ".join(f"{above:g} to {upto:g}" for above, upto in ranges) or "no prompts"
            fact = f"has pools for {said}, not for prompts of every length, each once"
            yield Finding(path=(*path, "name"), says=one.name, fact=fact)


def _meets_each_once(ranges: Sequence[tuple[float, float]]) -> bool:
    """Whether ascending ranges follow each other from nothing to what has no end."""
    ends = [0.0, *(edge for pair in ranges for edge in pair), math.inf]
    gaps = list(pairwise(ends))[::2]
    return bool(ranges) and all(before == after for before, after in gaps)


def _unserved(plan: FleetPlan) -> Iterator[Finding]:
    """Pools for the same requests that get more or fewer of them than there are."""
    alike: dict[tuple[frozenset[str], float, float], list[int]] = {}
    for i, one in entries(plan):
        key = (frozenset(one.classes), one.above_tokens, one.upto_tokens)
        alike.setdefault(key, []).append(i)
    for numbers in alike.values():
        sent = math.fsum(plan.pools[i].rate_per_s for i in numbers)
        comes = requests_per_s(plan, plan.pools[numbers[0]])
        if not math.isclose(sent, comes, rel_tol=CLOSE):
            fact = f"with the pools beside it comes to {sent!r}, and {comes!r} are to be served"
            path: Path = ("pools", str(numbers[0]), "rate_per_s")
            yield Finding(path=path, says=plan.pools[numbers[0]].rate_per_s, fact=fact)


def _handed(plan: FleetPlan) -> Iterator[Finding]:
    """What is read is handed over, what is decoded was handed over; for the same requests."""
    numbers = {one.name: i for i, one in enumerate(plan.pools)}
    out: dict[str, list[float]] = {}
    into: dict[str, list[float]] = {}
    for i, one in enumerate(plan.handovers):
        out.setdefault(one.source, []).append(one.requests_per_s)
        into.setdefault(one.target, []).append(one.requests_per_s)
        ends = plan.pools[numbers[one.source]], plan.pools[numbers[one.target]]
        ours, theirs = (plan.recipes[it.recipe] for it in ends)
        path: Path = ("handovers", str(i), "target")
        if theirs.role != DECODE:
            yield Finding(path=path, says=one.target, fact="does not decode only")
        if _requests(ends[0]) != _requests(ends[1]):
            yield Finding(path=path, says=one.target, fact="is for other requests")
        if (ours.model, ours.engine) != (theirs.model, theirs.engine):
            yield Finding(path=path, says=one.target, fact="runs another model, or engine")
    yield from _unbalanced(plan, out, "hands over")
    yield from _unbalanced(plan, into, "gets caches of")


def _requests(pool: FleetPool) -> tuple[frozenset[str], float, float]:
    return frozenset(pool.classes), pool.above_tokens, pool.upto_tokens


def _unbalanced(
    plan: FleetPlan, rates: Mapping[str, Sequence[float]], does: str
) -> Iterator[Finding]:
    for i, one in enumerate(plan.pools):
        is_end = one.name in rates or (
            does != "hands over" and plan.recipes[one.recipe].role == DECODE
        )
        moved = math.fsum(rates.get(one.name, ()))
        if is_end and not math.isclose(one.rate_per_s, moved, rel_tol=CLOSE):
            fact = f"is not what it {does}, {moved!r}"
            yield Finding(path=("pools", str(i), "rate_per_s"), says=one.rate_per_s, fact=fact)


def requests_per_s(plan: FleetPlan, pool: FleetPool) -> float:
    """Requests that a pool, and those beside it for the same, are for: those that are served."""
    served = {one.name: one.rate_per_s * one.served_fraction for one in plan.classes}
    return math.fsum(
        served[one.name] * _share_between(one, pool.above_tokens, pool.upto_tokens)
        for one in plan.request.classes
        if one.name in pool.classes
    )


def _share_between(one: TrafficClass, above: float, upto: float) -> float:
    """Share of a class's requests whose prompts are above one length, up to another."""
    longest = one.lengths.most_input_tokens
    cells = one.lengths.cells(cuts=[cut for cut in (above, upto) if 0.0 < cut < longest])
    both = zip(cells.weight, cells.n_input, strict=True)
    return math.fsum(weight for weight, n_input in both if above < n_input <= upto)
