"""Replicas of several sorts beside a plan: they serve what was asked of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.results import AnyPlan
from planner.specs.economics.request import EconomicsRequest
from planner.specs.records import ClusterSpec
from planner.verifier.findings import Finding, differences
from planner.verifier.quantities import limits_of

if TYPE_CHECKING:
    from planner.results.placements import Placement
    from planner.specs.placement_request import SiteSpec

OBJECTIVES = {"cost": "rent", "rent": "rent", "devices": "devices"}


def judged_mix(plan: AnyPlan) -> tuple[Placement | None, list[Finding]]:
    """The mix that is true of its choice, and everything in it that is not so."""
    if plan.mix is None:
        return None, []
    from planner.verifier.placements import judge_placement

    truth, more = judge_placement(plan.mix)
    wrong = [one.below(("mix",)) for one in more]
    return truth, [*wrong, *_unasked(plan, plan.mix), *_aimed_elsewhere(plan, plan.mix)]


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
    limits = {name: most for name, most in limits_of(targets).items() if name in asked.limits}
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


def _aimed_elsewhere(plan: AnyPlan, mix: Placement) -> Iterator[Finding]:
    """A mix that is best in what the plan is not."""
    name = mix.certificate.objective_name
    if name != OBJECTIVES.get(plan.request.objective):
        path, fact = ("mix", "certificate", "objective_name"), "is not what the plan is best in"
        yield Finding(path=path, says=name, fact=f"{fact}: {plan.request.objective}")
