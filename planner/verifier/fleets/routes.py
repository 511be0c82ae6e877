"""Whose requests go where: all that are to be served go to pools that can serve them.

Names and numbers of a fleet have to be of something: else nothing can be counted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from planner.results.fleets import CURVE, FleetPlan, FleetPool
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.traffic.records import TrafficClass
from planner.verifier.findings import Finding, Path


def dangling(plan: FleetPlan) -> Iterator[Finding]:
    """Pools, replicas, classes and hand-overs that speak of what is not there."""
    yield from _classes(plan)
    names = [one.name for one in plan.pools]
    for i, pool in enumerate(plan.pools):
        path: Path = ("pools", str(i))
        if names.count(pool.name) > 1:
            yield Finding(path=(*path, "name"), says=pool.name, fact="is of several pools")
        yield from _pool(plan, pool, path)
    yield from _shared_out(plan)
    yield from _handovers(plan)


def _classes(plan: FleetPlan) -> Iterator[Finding]:
    """Classes have to be those that were asked for, in their order."""
    classes, got = plan.request.classes, plan.classes
    if [one.name for one in classes] != [one.name for one in got]:
        fact = "are not the classes that were asked for, in their order"
        yield Finding(path=("classes",), says=", ".join(one.name for one in got), fact=fact)
        return
    for i, (outcome, wanted) in enumerate(zip(got, classes, strict=True)):
        path: Path = ("classes", str(i))
        if outcome.model not in [model.name for model in wanted.models]:
            fact = "is no model that may serve it"
            yield Finding(path=(*path, "model"), says=outcome.model, fact=fact)
        if any(len(curve) not in (0, len(CURVE)) for curve in outcome.curve_s):
            fact = f"are not the percentiles at {len(CURVE)} shares"
            yield Finding(path=(*path, "curve_s"), says=len(outcome.curve_s[0]), fact=fact)


def _pool(plan: FleetPlan, pool: FleetPool, path: Path) -> Iterator[Finding]:
    known = {each.name for each in plan.request.classes}
    if not 0 <= pool.recipe < len(plan.recipes):
        fact = f"is none of the {len(plan.recipes)} recipes"
        yield Finding(path=(*path, "recipe"), says=pool.recipe, fact=fact)
    if not pool.replicas:
        yield Finding(path=(*path, "replicas"), says=0, fact="are none")
    for j, number in enumerate(pool.replicas):
        here = (*path, "replicas", str(j))
        if not 0 <= number < len(plan.replicas):
            fact = f"is none of the {len(plan.replicas)} replicas"
            yield Finding(path=here, says=number, fact=fact)
        elif plan.replicas[number].recipe != pool.recipe:
            yield Finding(path=here, says=number, fact="is a replica of another recipe")
    if not pool.classes or len({*pool.classes}) < len(pool.classes) or {*pool.classes} - known:
        fact = "are not classes that were asked for, each once"
        yield Finding(path=(*path, "classes"), says=", ".join(pool.classes), fact=fact)
    if not 0.0 <= pool.above_tokens < pool.upto_tokens:
        fact = "is no length below which prompts are"
        yield Finding(path=(*path, "upto_tokens"), says=pool.upto_tokens, fact=fact)


def _shared_out(plan: FleetPlan) -> Iterator[Finding]:
    """Each replica is in one pool, and each recipe is of some pool."""
    members = [number for one in plan.pools for number in one.replicas]
    for number in range(len(plan.replicas)):
        n = members.count(number)
        if n != 1:
            fact = f"is in {n} pools"
            yield Finding(
                path=("replicas", str(number)), says=plan.replicas[number].name, fact=fact
            )
    used = {one.recipe for one in plan.pools}
    for number in range(len(plan.recipes)):
        if number not in used:
            model = plan.recipes[number].model
            yield Finding(path=("recipes", str(number)), says=model, fact="is of no pool")


def _handovers(plan: FleetPlan) -> Iterator[Finding]:
    """Hand-overs between pools that are there; a pool that hands over says to whom."""
    names = {one.name for one in plan.pools}
    targets: dict[str, list[str]] = {}
    for i, handover in enumerate(plan.handovers):
        targets.setdefault(handover.source, []).append(handover.target)
        for what, name in (("source", handover.source), ("target", handover.target)):
            if name not in names:
                path: Path = ("handovers", str(i), what)
                yield Finding(path=path, says=name, fact="is no pool")
    for i, pool in enumerate(plan.pools):
        fact = _misnamed(plan, pool, targets.get(pool.name, []))
        if fact:
            yield Finding(path=("pools", str(i), "then"), says=pool.then, fact=fact)


def _misnamed(plan: FleetPlan, pool: FleetPool, targets: Sequence[str]) -> str:
    """Why a pool does not go on where it says; empty where it does."""
    if pool.then and pool.then not in targets:
        return "gets no caches of it"
    if targets and not pool.then:
        return f"is not said, and is {targets[0]}"
    is_known = 0 <= pool.recipe < len(plan.recipes)
    if is_known and (plan.recipes[pool.recipe].role == PREFILL) != bool(targets):
        return "hands caches over just if it reads prompts only"
    return ""


CLOSE = 1e-6
"""Relative, of rates: sums of what solvers say."""


def misrouted(plan: FleetPlan) -> Iterator[Finding]:
    """Requests that go nowhere, or to a pool that serves fewer or another model."""
    yield from _uncovered(plan)
    yield from _missent(plan)
    yield from _handover_rates(plan)
    for i, pool in enumerate(plan.pools):
        path: Path = ("pools", str(i))
        most = pool.replica_rate_per_s * pool.n_replicas
        if pool.rate_per_s > most * (1 + CLOSE):
            fact = f"is more than the {most!r} that its replicas serve"
            yield Finding(path=(*path, "rate_per_s"), says=pool.rate_per_s, fact=fact)
        model = plan.recipes[pool.recipe].model
        for name in pool.classes:
            traffic = next(each for each in plan.request.classes if each.name == name)
            if model not in [each.name for each in traffic.models]:
                fact = f"may not be served by {model}"
                yield Finding(path=(*path, "classes"), says=name, fact=fact)


def entries(plan: FleetPlan) -> list[tuple[int, FleetPool]]:
    """Pools that requests come to first, with their numbers."""
    return [(i, one) for i, one in enumerate(plan.pools) if plan.recipes[one.recipe].role != DECODE]


def _uncovered(plan: FleetPlan) -> Iterator[Finding]:
    """Of a class that is served, prompts of some length that go to no pool, or to less than one."""
    for i, outcome in enumerate(plan.classes):
        mine = [pool for _, pool in entries(plan) if outcome.name in pool.classes]
        path: Path = ("classes", str(i))
        if outcome.served_fraction <= 0.0:
            if mine:
                fact, says = "is nothing, and pools serve it", outcome.served_fraction
                yield Finding(path=(*path, "served_fraction"), says=says, fact=fact)
            continue
        for above, upto in _intervals(mine):
            shares = _shares(mine, outcome.name, above, upto)
            if shares < 1.0 - CLOSE:
                fact = f"has pools for {shares:g} of its prompts of {above:g} to {upto:g} tokens"
                yield Finding(path=(*path, "name"), says=outcome.name, fact=fact)


def _intervals(pools: Sequence[FleetPool]) -> list[tuple[float, float]]:
    """Lengths of prompts between which all go to the same pools."""
    edges = {
        0.0,
        math.inf,
        *(edge for one in pools for edge in (one.above_tokens, one.upto_tokens)),
    }
    return [*pairwise(sorted(edges))]


def _shares(pools: Sequence[FleetPool], name: str, above: float, upto: float) -> float:
    """Of all pools for prompts of a class, relative."""
    return math.fsum(it.share_of(name) for it in pools if _takes(it, above, upto))


def _takes(pool: FleetPool, above: float, upto: float) -> bool:
    """Whether prompts of such lengths go to a pool."""
    return pool.above_tokens <= above and upto <= pool.upto_tokens


def _missent(plan: FleetPlan) -> Iterator[Finding]:
    """Pools that get more or fewer requests than their shares of all that come."""
    for i, (pool, sent) in enumerate(zip(plan.pools, sent_per_s(plan), strict=True)):
        path: Path = ("pools", str(i))
        comes, is_entry = math.fsum(sent.values()), plan.recipes[pool.recipe].role != DECODE
        if is_entry and not 0.0 < pool.share <= 1.0 + CLOSE:
            yield Finding(path=(*path, "share"), says=pool.share, fact="is no share of requests")
        if not _are_parts(pool):
            yield Finding(
                path=(*path, "parts"), says=pool.parts, fact="are no parts of its classes"
            )
        if not math.isclose(pool.rate_per_s, comes, rel_tol=CLOSE):
            fact = f"is not its share of what comes, {comes!r}"
            yield Finding(path=(*path, "rate_per_s"), says=pool.rate_per_s, fact=fact)
        share = math.fsum(part * plan.pools[k].share for k, part in _parts(plan, pool.name))
        if not is_entry and not math.isclose(pool.share, share, rel_tol=CLOSE):
            fact = f"is not what is handed over to it, {share!r}"
            yield Finding(path=(*path, "share"), says=pool.share, fact=fact)


def _are_parts(pool: FleetPool) -> bool:
    """Whether a pool gets all of its classes, or of each of them some."""
    is_part = [0.0 < it <= 1.0 for it in pool.parts]
    return not is_part or (len(is_part) == len(pool.classes) and all(is_part))


def _parts(plan: FleetPlan, target: str) -> Iterator[tuple[int, float]]:
    """Pools that hand over to a pool, and which part of what they read."""
    numbers = {one.name: i for i, one in enumerate(plan.pools)}
    for handover in plan.handovers:
        if handover.target == target:
            source = numbers[handover.source]
            yield source, handover.requests_per_s / (plan.pools[source].rate_per_s or math.inf)


def sent_per_s(plan: FleetPlan) -> list[dict[str, float]]:
    """Requests of each class that come to each pool, of those that are served [1/s].

    Pools share prompts that several take by their shares.
    """
    first = dict(entries(plan))
    sent = {i: dict(_first_sent(plan, i, [*first.values()])) for i in first}
    return [
        sent[i] if i in sent else _handed_to(plan, one, sent) for i, one in enumerate(plan.pools)
    ]


def _first_sent(
    plan: FleetPlan, number: int, first: Sequence[FleetPool]
) -> Iterator[tuple[str, float]]:
    """What comes to a pool of each class before any other pool has it."""
    pool, classes = plan.pools[number], {it.name: it for it in plan.request.classes}
    served = {it.name: it.rate_per_s * it.served_fraction for it in plan.classes}
    for name in pool.classes:
        mine = [it for it in first if name in it.classes]
        rates = []
        for above, upto in _intervals(mine):
            if _takes(pool, above, upto):
                share = pool.share_of(name) / (_shares(mine, name, above, upto) or math.inf)
                rates.append(share * served[name] * _share_between(classes[name], above, upto))
        yield name, math.fsum(rates)


def _handed_to(
    plan: FleetPlan, pool: FleetPool, sent: Mapping[int, Mapping[str, float]]
) -> dict[str, float]:
    """What comes to a pool of each class once others have read it."""
    parts = [*_parts(plan, pool.name)]
    return {
        name: math.fsum(part * sent.get(k, {}).get(name, 0.0) for k, part in parts)
        for name in pool.classes
    }


def _handover_rates(plan: FleetPlan) -> Iterator[Finding]:
    """What is read is handed over, what is decoded was handed over; for the same requests."""
    numbers = {one.name: i for i, one in enumerate(plan.pools)}
    out: dict[str, list[float]] = {}
    into: dict[str, list[float]] = {}
    for i, handover in enumerate(plan.handovers):
        out.setdefault(handover.source, []).append(handover.requests_per_s)
        into.setdefault(handover.target, []).append(handover.requests_per_s)
        ends = plan.pools[numbers[handover.source]], plan.pools[numbers[handover.target]]
        ours, theirs = (plan.recipes[it.recipe] for it in ends)
        path: Path = ("handovers", str(i), "target")
        if theirs.role != DECODE:
            yield Finding(path=path, says=handover.target, fact="does not decode only")
        if _requests(ends[0]) != _requests(ends[1]):
            yield Finding(path=path, says=handover.target, fact="is for other requests")
        if (ours.model, ours.engine) != (theirs.model, theirs.engine):
            yield Finding(path=path, says=handover.target, fact="runs another model, or engine")
    yield from _unbalanced(plan, out, "hands over")
    yield from _unbalanced(plan, into, "gets caches of")


def _requests(pool: FleetPool) -> tuple[frozenset[str], float, float]:
    return frozenset(pool.classes), pool.above_tokens, pool.upto_tokens


def _unbalanced(
    plan: FleetPlan, rates: Mapping[str, Sequence[float]], does: str
) -> Iterator[Finding]:
    for i, pool in enumerate(plan.pools):
        is_end = pool.name in rates or (
            does != "hands over" and plan.recipes[pool.recipe].role == DECODE
        )
        moved = math.fsum(rates.get(pool.name, ()))
        if is_end and not math.isclose(pool.rate_per_s, moved, rel_tol=CLOSE):
            fact = f"is not what it {does}, {moved!r}"
            yield Finding(path=("pools", str(i), "rate_per_s"), says=pool.rate_per_s, fact=fact)


def _share_between(traffic: TrafficClass, above: float, upto: float) -> float:
    """Share of a class's requests whose prompts are above one length, up to another."""
    longest = traffic.lengths.most_input_tokens
    cells = traffic.lengths.cells(cuts=[cut for cut in (above, upto) if 0.0 < cut < longest])
    both = zip(cells.weight, cells.n_input, strict=True)
    return math.fsum(weight for weight, n_input in both if above < n_input <= upto)
