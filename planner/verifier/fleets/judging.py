"""A fleet judged: devices, deployments, stations, rents, routes, proof, and the requests served.

The cluster is built from the request and its state, each deployment is counted for the requests of
its pool, each station point by point. Then the requests are served again: with the seed of the
answer, which has to give what it says, and with another, which has to meet the same targets.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from planner.results.deployments import Deployment
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase, ServedClass, Step
from planner.results.phase_deployments import PhaseDeployment
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.ask.targets import Targets
from planner.specs.files.pools import pool_of
from planner.specs.records.devices import ClusterSpec
from planner.specs.traffic.percentiles import TPOT, TTFT
from planner.specs.traffic.records import TrafficClass
from planner.specs.validation.hints import from_fields
from planner.verifier.beliefs import judged_others
from planner.verifier.certificates import certified, judged_sorts
from planner.verifier.findings import TOLERANCE, Finding, Path, with_differences
from planner.verifier.fleets import counting
from planner.verifier.fleets.routes import dangling, misrouted
from planner.verifier.fleets.trials import USUAL, missed_elsewhere, tried_again
from planner.verifier.placing import placements

RENT = "rent"
SEAM = 1e-5
"""Of traffic, between the end of a step and the next: within what proofs tolerate."""


def judge_fleet(says: FleetPlan) -> tuple[FleetPlan, list[Finding]]:
    """The fleet that is true of its choice, and everything in this one that is not so."""
    truth, wrong = recounted(says)
    if wrong:  # of which requests would be served by something else
        return truth, wrong
    truth, wrong = _served_again(says, truth)
    truth, more = judged_others(
        says, truth, lambda fleet: _served_again(fleet, recounted(fleet)[0]), is_rate=False
    )
    return truth, with_differences([*wrong, *more], says, truth)


def _served_again(says: FleetPlan, truth: FleetPlan) -> tuple[FleetPlan, list[Finding]]:
    """A fleet with what its requests get when they are served again, with its seed and another."""
    truth = tried_again(truth)
    return truth, with_differences([*missed_elsewhere(says)], says, truth)


def recounted(says: FleetPlan) -> tuple[FleetPlan, list[Finding]]:
    """The same without serving a request again."""
    wrong = list(dangling(says))
    if wrong:  # of which nothing can be counted
        return says, wrong
    wrong += misrouted(says)
    request = placement_request(says)
    wishes = wishes_of(says)
    it = counting.Counting(
        says=says, asked=request, stand=placements.stand_of(request), wishes=wishes, wrong=wrong
    )
    wrong += placements.misplaced_devices(says, it.stand)
    truth = _true(it)
    rent, used = truth.certificate.objective, placements.devices_used(says, it.stand)
    by_model = {one.model.name: one for one in wishes}
    further = placements.further_used(request, truth.replicas, truth.recipes, it.stand, by_model)
    wrong += _beyond(says, used, {**further, "rent": rent, "devices": float(sum(used.values()))})
    wrong += _unbelievable(says, rent)
    truth, more = judged_others(says, truth, recounted, is_rate=False)
    wrong += more
    return truth, with_differences(wrong, says, truth)


def _true(it: counting.Counting) -> FleetPlan:
    """The fleet that is true of its choice, but for what was simulated."""
    says, stand = it.says, it.stand
    recipes = tuple(counting.true_config(it, number) for number in range(len(says.recipes)))
    pools = tuple(
        counting.true_pool(it, i, recipes[one.recipe]) for i, one in enumerate(says.pools)
    )
    rent = math.fsum(one.usd_per_hour for one in pools)
    kinds = stand.kinds(placements.devices_used(says, stand))
    certificate, more = certified(
        says.certificate,
        objective_name=RENT,
        objective=rent,
        dimension="USD/h",
        is_rate=False,
        gap=says.request.options.gap,
        checks=placements.checks_of(stand.checks, recipes),
        counts=stand.counts.of_a_repair(),
    )
    it.wrong.extend(more)
    certificate, more = judged_sorts(certificate, recipes, says.request.options, is_rate=False)
    it.wrong.extend(more)
    return replace(
        says,
        title=stand.title,
        recipes=recipes,
        replicas=tuple(counting.true_replicas(it, recipes)),
        pools=pools,
        handovers=tuple(counting.true_handover(it, one, recipes) for one in says.handovers),
        classes=tuple(counting.true_class(says, one, pools) for one in says.classes),
        kinds=kinds,
        certificate=certificate,
        rounds=counting.true_rounds(says, rent, sum(one.n_used for one in kinds)),
        provenance=counting.true_provenance(says, stand),
    )


def judge_staircase(says: FleetStaircase) -> tuple[FleetStaircase, list[Finding]]:
    """A staircase, and steps of it that leave gaps, fall, or are below their bounds."""
    wrong: list[Finding] = []
    before: Step | None = None
    for i, step in enumerate(says.steps):
        path: Path = ("steps", str(i))
        for name, value, least in (
            ("above_factor", step.above_factor, before.upto_factor if before else 0.0),
            ("upto_factor", step.upto_factor, step.above_factor),
            ("usd_per_hour", step.usd_per_hour, before.usd_per_hour if before else 0.0),
            ("usd_per_hour", step.usd_per_hour, step.bound_usd_per_hour),
        ):
            if value < least * (1 - TOLERANCE):
                wrong.append(Finding(path=(*path, name), says=value, fact=f"is below {least!r}"))
        if before and not math.isclose(step.above_factor, before.upto_factor, rel_tol=SEAM):
            fact = f"is not where the step before it ends, {before.upto_factor!r}"
            wrong.append(Finding(path=(*path, "above_factor"), says=step.above_factor, fact=fact))
        before = step
    return says, wrong


def placement_request(says: FleetPlan) -> PlacementRequest:
    """What a placement would be asked that has the same devices, engines and formats."""
    request, site = says.request, says.request.site
    offered = request.batches or tuple(sorted({*_batches(says)}))
    return from_fields(
        PlacementRequest,
        request,
        site=pool_of(site) if isinstance(site, ClusterSpec) else site,
        models=(),
        objective=RENT,
        batches=offered,
        targets=Targets(quality_loss_fraction=request.quality_loss_fraction),
    )


def _batches(says: FleetPlan) -> Iterator[int]:
    for recipe in says.recipes:
        it = recipe.deployment
        if isinstance(it, Deployment):
            yield it.decode.batch
        elif not isinstance(it, PhaseDeployment):
            yield it.batch


def wishes_of(says: FleetPlan) -> list[Serve]:
    """Of each recipe, its model and the requests of a pool that runs it."""
    recipes = range(len(says.recipes))
    return [_wish(says, next(it for it in says.pools if it.recipe == i)) for i in recipes]


def _wish(says: FleetPlan, pool: FleetPool) -> Serve:
    """A model for the requests that a pool's deployment is told for."""
    name = says.recipes[pool.recipe].model
    models = {it.name: it for one in says.request.classes for it in one.models}
    model = models[name] if name in models else says.request.classes[0].model
    return from_fields(Serve, says.request, model=model, workload=pool.usual)


def _beyond(
    says: FleetPlan, used: Mapping[str, int], totals: Mapping[str, float]
) -> Iterator[Finding]:
    """Devices of a kind, or limits on all replicas together, that are exceeded."""
    for kind, most in says.request.counts.items():
        if used.get(kind, 0) > most:
            fact = f"has {used[kind]} of {kind} in use, and may have {most}"
            yield Finding(path=("kinds",), says=len(says.kinds), fact=fact)
    for name, limit in says.request.limits.items():
        if totals[name] > limit * (1 + TOLERANCE):
            fact = f"have {name} {totals[name]!r}, which exceeds {limit!r}"
            yield Finding(path=("pools",), says=len(says.pools), fact=fact)
    for i, recipe in enumerate(says.recipes):
        n_devices, most_each = recipe.deployment.n_devices, says.request.most_devices
        if most_each is not None and n_devices > most_each:
            fact = f"are more than the {most_each} devices that a replica may have"
            yield Finding(path=("recipes", str(i)), says=n_devices, fact=fact)


def _unbelievable(says: FleetPlan, rent: float) -> Iterator[Finding]:
    """Bounds that the answer refutes, targets that it leaves out, shares that cannot be."""
    fluid, most = says.fluid_usd_per_hour, says.most_factor
    if fluid is not None and fluid > rent * (1 + TOLERANCE):
        fact = f"is beyond the rent {rent!r}"
        yield Finding(path=("fluid_usd_per_hour",), says=fluid, fact=fact)
    if most is not None and most < 1.0 - TOLERANCE:
        yield Finding(path=("most_factor",), says=most, fact="is less than what is served")
    for i, (outcome, traffic) in enumerate(zip(says.classes, says.request.classes, strict=True)):
        if not 0.0 <= outcome.served_fraction <= 1.0:
            path: Path = ("classes", str(i), "served_fraction")
            yield Finding(path=path, says=outcome.served_fraction, fact="is no share")
        if outcome.served_fraction > 0.0:
            yield from _left_out(outcome, traffic, ("classes", str(i)))


def _left_out(outcome: ServedClass, traffic: TrafficClass, path: Path) -> Iterator[Finding]:
    """Of a class that is served, targets and usual percentiles that are not said once."""
    told = [(it.quantity, it.share) for it in outcome.percentiles]
    names = {(it.quantity, it.share): it.name for it in traffic.targets}
    for quantity, share in dict.fromkeys([*names, *product((TTFT, TPOT), USUAL)]):
        if told.count((quantity, share)) != 1:
            name = names.get((quantity, share), f"{quantity} of {share:.0%}")
            fact = f"hold {name} {told.count((quantity, share))} times, and not once"
            yield Finding(path=(*path, "percentiles"), says=len(told), fact=fact)
    goal, wanted = outcome.goodput, traffic.goodput
    if (wanted is None) != (goal is None):
        fact = "is told just if it is asked for"
        yield Finding(path=(*path, "goodput"), says=None, fact=fact)
    elif goal is not None and wanted is not None and goal.asked != wanted.share:
        fact = f"is not the {wanted.share!r} that was asked for"
        yield Finding(path=(*path, "goodput", "asked"), says=goal.asked, fact=fact)
