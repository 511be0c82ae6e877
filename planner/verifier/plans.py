"""A plan counted anew: its deployment and the next best ones, limits, certificate, sources."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.quantities import MEMORY, QUANTITIES, objective_of
from planner.results import Alternative, Considered, Deployment, LayoutPlan, LimitUse, Plan
from planner.specs.quality import with_variants
from planner.specs.request import Request
from planner.verifier.certificates import certified
from planner.verifier.deployments import Ground, recounted
from planner.verifier.findings import (
    TOLERANCE,
    Finding,
    Path,
    Refused,
    differences,
    refuse,
    with_differences,
)
from planner.verifier.meshes import is_counted_off_twice

CLOSE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance


def judge_plan(plan: LayoutPlan) -> tuple[LayoutPlan, list[Finding]]:
    """The plan that is true of what was chosen, and everything in this one that is not so."""
    requests = {one.model.name: one for one in with_variants(plan.request)}
    served = _request_of(requests, plan.request, plan.deployment)
    if served is None:
        fact = "is no variant that may be served"
        of = ("deployment", "variant")
        return plan, [Finding(path=of, says=plan.deployment.variant, fact=fact)]
    best, wrong = counted_deployment(served, plan.deployment, ("deployment",))
    wrong += broken_targets(served, best, ("deployment",))
    objective = objective_of(plan.request.objective).told(best)
    others = []
    for i, other in enumerate(plan.alternatives):
        here = ("alternatives", str(i))
        request = _request_of(requests, plan.request, other.deployment)
        if request is None:
            others.append(other)
            fact = "is no variant that may be served"
            path = (*here, "deployment", "variant")
            wrong.append(Finding(path=path, says=other.deployment.variant, fact=fact))
            continue
        found, found_wrong = counted_deployment(request, other.deployment, (*here, "deployment"))
        wrong += found_wrong
        wrong += broken_targets(request, found, (*here, "deployment"))
        others.append(_alternative(plan.request.objective, other, found, objective))
        if others[-1].loss_fraction < -CLOSE:
            fact = "is better than the plan"
            wrong.append(Finding(path=(*here, "objective"), says=other.objective, fact=fact))
    wrong += _out_of_order(plan)
    certificate, found_wrong = certified(
        plan.certificate,
        objective_name=plan.request.objective,
        objective=objective,
        dimension=objective_of(plan.request.objective).dimension,
        is_rate=objective_of(plan.request.objective).is_rate,
        gap=plan.request.options.gap,
        checks=plan_checks(served),
    )
    wrong += found_wrong
    wrong += _considered_wrong(plan, requests)
    truth = Plan(
        request=plan.request,
        deployment=best,
        alternatives=tuple(others),
        limits=_limits(served, best, plan.limits),
        certificate=certificate,
        provenance=(
            *served.model.provenance,
            *served.cluster.provenance,
            *served.cluster.device.provenance,
        ),
        variants=tuple(_considered(requests, one) for one in plan.variants),
    )
    return truth, with_differences(wrong, plan, truth)


def checked(request: Request, deployment: Deployment) -> tuple[str, ...]:
    """The checks that a deployment by itself passed, in words.

    Raises:
        SolverError: a figure of it is not so, or it breaks a target.
    """
    found, wrong = counted_deployment(request, deployment, ())
    wrong += broken_targets(request, found, ())
    refuse([*wrong, *differences(replace(deployment, variant=""), found)])
    return plan_checks(request)


def plan_checks(request: Request) -> tuple[str, ...]:
    """The checks that a plan passes before it goes out, in words."""
    fleet = "every replica put in a place of its own, and the demand served by all of them"
    return (
        "every constraint of the unscreened program holds",
        *((fleet,) if request.targets.demand_tokens_per_s is not None else ()),
        "seconds and bytes recounted by an independent scalar model",
        "targets hold by that recount",
    )


def _request_of(
    requests: dict[str, Request], asked: Request, deployment: Deployment
) -> Request | None:
    """The request of the model that a deployment serves."""
    if not deployment.variant:
        return requests[asked.model.name]
    return requests.get(deployment.variant) if deployment.variant != asked.model.name else None


def counted_deployment(
    request: Request, says: Deployment, path: Path, *, ground: Ground | None = None
) -> tuple[Deployment, list[Finding]]:
    """A deployment that is true of its choice; itself where that cannot be."""
    try:
        found, wrong = recounted(request, says, ground=ground)
    except Refused as refused:
        return says, [refused.at(path)]
    return found, [replace(one, path=(*path, *one.path)) for one in wrong]


def _alternative(
    name: str, says: Alternative[Deployment], found: Deployment, best: float
) -> Alternative[Deployment]:
    """The runner-up that is true of its deployment; of rates, the time that it loses."""
    value = objective_of(name).told(found)
    lost = best / value - 1.0 if objective_of(name).is_rate else (value - best) / abs(best)
    return Alternative(
        deployment=found,
        objective=says.objective if math.isclose(says.objective, value, rel_tol=CLOSE) else value,
        loss_fraction=lost,
    )


def _out_of_order(plan: LayoutPlan) -> Iterator[Finding]:
    """Runners-up that use the pool as the plan or another does, or stand behind worse ones."""
    met = {_way_to_use(plan.deployment)}
    before = -math.inf
    for i, other in enumerate(plan.alternatives):
        way = _way_to_use(other.deployment)
        if way in met:
            fact = "uses the pool as another plan here does"
            path = ("alternatives", str(i), "deployment")
            yield Finding(path=path, says=other.deployment.mesh.label, fact=fact)
        if other.loss_fraction < before - CLOSE:
            fact = "is less than that of the one before it"
            of = ("alternatives", str(i), "loss_fraction")
            yield Finding(path=of, says=other.loss_fraction, fact=fact)
        met.add(way)
        before = other.loss_fraction


def _way_to_use(one: Deployment) -> tuple[object, ...]:
    """Devices, formats and how weights rest: plans that share these differ in less.

    Where a switch is counted off along two axes, also how prefill uses them: either phase may be
    the one for whose sake there are two.
    """
    resting = (one.storage, one.copied_axes, one.sliced_axes)
    formats = (one.variant, one.weights_format, one.kv_format)
    before = (one.prefill.gathered_axes, one.prefill.attention, one.prefill.batch)
    for_whom = before if is_counted_off_twice(one.mesh) else ()
    return (one.mesh.label, one.mesh.axes, one.mesh.n_stages, *formats, *resting, *for_whom)


def _limits(request: Request, best: Deployment, says: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
    """What is used of each limit; what a looser one would gain is as it is said."""
    gains = {one.name: one.gain_fraction for one in says}
    limits = {**request.targets.limits(), MEMORY: best.memory.capacity_bytes}
    return tuple(
        LimitUse(
            name=name,
            used=QUANTITIES[name].told(best),
            limit=limit,
            dimension=QUANTITIES[name].dimension,
            relief=QUANTITIES[name].relief,
            gain_fraction=None if name == "demand" else gains.get(name),
        )
        for name, limit in limits.items()
    )


def broken_targets(request: Request, found: Deployment, path: Path) -> Iterator[Finding]:
    """Targets that do not hold by the recount."""
    for name, limit in request.targets.limits().items():
        quantity = QUANTITIES[name]
        value = quantity.told(found)
        if not quantity.is_kept(value, limit, tolerance=TOLERANCE):
            fact = f"has {name} {value!r}, beyond {limit!r}"
            yield Finding(path=path, says=found.summary, fact=fact)


def _considered(requests: dict[str, Request], says: Considered) -> Considered:
    """A variant as its own file has it."""
    request = requests.get(says.name)
    variant = request.model.variant if request else None
    if request is None or variant is None:
        return says
    return Considered(
        name=says.name,
        title=request.model.title,
        quality_loss_fraction=variant.quality_loss_fraction,
        quality=variant.quality,
    )


def _considered_wrong(plan: LayoutPlan, requests: dict[str, Request]) -> Iterator[Finding]:
    """Variants that are said to be chosen among and were not, or were and are not said.

    Where degrees are fixed, variants that cannot have them are left out; only a new search says
    which these are.
    """
    known = [name for name in requests if name != plan.request.model.name]
    said = [one.name for one in plan.variants]
    is_whole = said == known
    is_part = plan.request.targets.degrees.fixed() and set(said) <= set(known)
    if not (is_whole or is_part):
        fact = f"are not {', '.join(known) or 'none'}, which may be served"
        yield Finding(path=("variants",), says=", ".join(said), fact=fact)
