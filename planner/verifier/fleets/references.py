"""Names and numbers of a fleet that have to be of something: else nothing can be counted."""

from collections.abc import Iterator, Sequence

from planner.results.fleets import CURVE, FleetPlan, FleetPool
from planner.specs.records.roles import PREFILL
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
