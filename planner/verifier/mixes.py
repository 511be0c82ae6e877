"""Replicas of several sorts beside a plan: what was asked of the plan, served for less."""

from __future__ import annotations

import math
from collections.abc import Iterator

from planner.quantities import objective_of
from planner.results import AnyPlan
from planner.results.placements import Placement
from planner.specs.economics.request import EconomicsRequest
from planner.specs.placement_request import SiteSpec
from planner.specs.records import ClusterSpec
from planner.verifier.findings import TOLERANCE, Finding, differences

OBJECTIVES = {"cost": "rent", "rent": "rent", "devices": "devices"}


def judged_mix(plan: AnyPlan) -> tuple[Placement | None, list[Finding]]:
    """The mix that is true of its choice, and everything in it that is not so."""
    wrong = list(_bound(plan))
    if plan.mix is None:
        return None, wrong
    from planner.verifier.placements import judge_placement

    truth, more = judge_placement(plan.mix)
    wrong += [one.below(("mix",)) for one in more]
    return truth, [*wrong, *_unasked(plan, plan.mix), *_dearer(plan, truth)]


def _bound(plan: AnyPlan) -> Iterator[Finding]:
    """A bound that the answer is below; the bound itself only a search can judge."""
    quantity, bound = objective_of(plan.request.objective), plan.mix_bound
    if bound is None:
        if plan.mix is not None:
            fact = "is of no bound, and a mix has one"
            yield Finding(path=("mix_bound",), says=bound, fact=fact)
        return
    if not math.isfinite(bound) or bound > quantity.told(plan.deployment) * (1 + TOLERANCE):
        fact = f"is beyond {quantity.told(plan.deployment)!r}, which alike replicas reach"
        yield Finding(path=("mix_bound",), says=bound, fact=fact)


def _unasked(plan: AnyPlan, mix: Placement) -> Iterator[Finding]:
    """What the mix was asked that the plan was not."""
    asked, path = mix.request, ("mix", "request")
    request, targets = plan.request, plan.request.targets
    if isinstance(request, EconomicsRequest):
        yield Finding(path=("mix",), says=asked.engines, fact="is of a plan that knows decode only")
        return
    if len(asked.models) != 1 or asked.models[0].model.name != request.model.name:
        says = ", ".join(one.model.name for one in asked.models)
        yield Finding(path=(*path, "models"), says=says, fact=f"is not {request.model.name}")
        return
    (wish,) = asked.models
    demand = (wish.demand_tokens_per_s, targets.demand_tokens_per_s)
    yield from differences(*demand, (*path, "models", "0", "demand_tokens_per_s"))
    yield from differences(wish.workload or asked.workload, request.workload, (*path, "workload"))
    for name in ("tpot_s", "ttft_s", "min_batch", "quality_loss_fraction"):
        pair = getattr(wish.targets or asked.targets, name), getattr(targets, name)
        yield from differences(*pair, (*path, "targets", name))
    limits = {name: most for name, most in targets.limits().items() if name in asked.limits}
    yield from differences(dict(asked.limits), limits, (*path, "limits"))
    yield from _elsewhere(asked.site, request.cluster.name, request.cluster.n_devices)


def _elsewhere(site: SiteSpec, name: str, n_devices: int) -> Iterator[Finding]:
    """A site that is not the pool of the plan."""
    held = site.n_devices if isinstance(site, ClusterSpec) else _held(site)
    if site.name != name or held != n_devices:
        fact = f"is not `{name}` of {n_devices} devices"
        yield Finding(path=("mix", "request", "site"), says=site.name, fact=fact)


def _held(site: object) -> int | None:
    """Devices of a pool; None of a graph, which no plan is on."""
    groups = getattr(site, "groups", None)
    return None if groups is None else sum(one.cluster.n_devices for one in groups)


def _dearer(plan: AnyPlan, mix: Placement) -> Iterator[Finding]:
    """A mix that is no better than replicas that are all alike."""
    alike = {
        "rent": plan.deployment.usd_per_hour,
        "devices": float(plan.deployment.n_devices),
    }[OBJECTIVES.get(plan.request.objective, "rent")]
    value = mix.certificate.objective
    name = mix.certificate.objective_name
    path = ("mix", "certificate", "objective")
    if name != OBJECTIVES.get(plan.request.objective):
        fact = f"is not the {plan.request.objective} that the plan is best in"
        yield Finding(path=("mix", "certificate", "objective_name"), says=name, fact=fact)
    elif value >= alike:
        yield Finding(path=path, says=value, fact=f"is no less than {alike!r} of alike replicas")
