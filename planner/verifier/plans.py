"""A plan counted anew, whichever runtime: its deployment and the next best ones, the best of
each runtime, limits, certificate, sources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.results.plans import (
    Alternative,
    AnyDeployment,
    AnyPlan,
    AnyRequest,
    LimitUse,
    runtime_name,
)
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.economics import EconomicsRequest
from planner.verifier.beliefs import judged_beliefs
from planner.verifier.certificates import certified
from planner.verifier.findings import Finding, Path, differences, near, refuse, with_differences
from planner.verifier.quantities import HBM, MEASURES, limits_of, measure_of
from planner.verifier.rivals import CLOSE, Scale, judged_costs, judged_rivals, value_of
from planner.verifier.runtimes.counting import Countings, counting_of, disagreements

if TYPE_CHECKING:
    from planner.results.placements import Placement
    from planner.specs.files.pools import SiteSpec


def judge_plan(plan: AnyPlan) -> tuple[AnyPlan, list[Finding]]:
    """The plan that is true of what was chosen, and everything in this one that is not so."""
    requests = (plan.request, *plan.other_requests)
    among = Countings.of(requests)
    if runtime_name(plan.deployment) != among.first.runtime:
        fact = f"is not {among.first.runtime}, which was asked"
        path = ("deployment", "engine")
        return plan, [Finding(path=path, says=runtime_name(plan.deployment), fact=fact)]
    best, wrong = among.counted(plan.deployment, ("deployment",))
    wrong += disagreements(requests, ("other_requests",))
    deployments: list[AnyDeployment] = []
    for i, says in enumerate(plan.alternatives):
        deployment, more = among.counted(says.deployment, ("alternatives", str(i), "deployment"))
        deployments.append(deployment)
        wrong += more
    listed = (best, *deployments)
    leader, scale = _scale(requests, among, listed)
    others = tuple(
        _alternative(scale, says, deployment)
        for says, deployment in zip(plan.alternatives, deployments, strict=True)
    )
    kinds = {it.name: it.kind for one in requests for it in getattr(one, "models", ())}
    rivals, more = judged_rivals(plan.rivals, among, listed, scale, leader, kinds)
    believed, of_beliefs = judged_beliefs(plan, leader, scale)
    costs, of_rules = judged_costs(plan, scale)
    wrong += [*of_beliefs, *of_rules]
    wrong += [*more, *_out_of_order(plan, others, among), *_ties_wrong(plan, others, scale)]
    certificate, more = certified(
        plan.certificate,
        objective_name=plan.request.objective,
        objective=scale.measure.of(leader),
        dimension=scale.measure.dimension,
        is_rate=scale.measure.is_rate,
        gap=plan.request.options.gap,
        checks=among.first.checks,
    )
    mix, of_mix = judged_mix(plan)
    load = plan.load
    if load is not None:
        from planner.verifier.loads import judged_load  # the simulator is heavy

        load, of_load = judged_load(load, plan.request, best)
        wrong += of_load
    wrong += [*more, *of_mix, *_considered_wrong(plan, among)]
    truth = replace(
        plan,
        deployment=best,
        alternatives=others,
        limits=_limits(plan.request, best, plan.limits),
        certificate=certificate,
        provenance=among.first.provenance(best),
        variants=tuple(among.variants.get(one.name, one) for one in plan.variants),
        error_fraction=scale.error,
        given_up_fraction=near(plan.given_up_fraction, scale.lost(best), abs_tol=CLOSE),
        rivals=rivals,
        mix=mix,
        inside=believed.inside,
        anywhere=believed.anywhere,
        rule_costs=costs,
        load=load,
    )
    return truth, with_differences(wrong, plan, truth)


def checked(request: AnyRequest, deployment: AnyDeployment) -> tuple[str, ...]:
    """The checks that a deployment by itself passed, in words.

    Raises:
        SolverError: a figure of it is not so, or it breaks a limit.
    """
    counting = counting_of(request)
    deployment_counted, wrong = counting.counted(deployment, ())
    refuse(with_differences(wrong, deployment, deployment_counted))
    return counting.checks


def _scale(
    requests: Sequence[AnyRequest], among: Countings, listed: Sequence[AnyDeployment]
) -> tuple[AnyDeployment, Scale]:
    """The best of what is listed, which is the plan itself unless a simpler one was preferred."""
    request = requests[0]
    measure = measure_of(request.objective)
    values = [value_of(measure, one) for one in listed]
    is_simplest = any(getattr(one, "prefer", "") == "simplest" for one in requests)
    best = values.index(min(values)) if is_simplest else 0
    if values[0] <= values[best] * (1 + CLOSE):
        best = 0  # of copies of a layout, equal but for rounding, it is the plan itself
    least, leader = values[best], listed[best]
    error = among.error(request.objective, leader)
    return leader, Scale(measure=measure, least=least, error=error)


def _alternative(
    scale: Scale, says: Alternative[AnyDeployment], deployment: AnyDeployment
) -> Alternative[AnyDeployment]:
    """The runner-up that is true of its deployment."""
    return Alternative(
        deployment=deployment,
        objective=near(says.objective, scale.measure.of(deployment), rel_tol=CLOSE),
        loss_fraction=scale.lost(deployment),
        is_tie=scale.is_tie(deployment),
    )


def _out_of_order(
    plan: AnyPlan, alternatives: Sequence[Alternative[AnyDeployment]], among: Countings
) -> Iterator[Finding]:
    """Runners-up that use the pool as the plan or another does, or stand behind worse ones."""
    met = {among.way(plan.deployment)}
    before = -math.inf
    for i, other in enumerate(alternatives):
        here: Path = ("alternatives", str(i))
        way = among.way(other.deployment)
        if way in met:
            fact = "uses the pool as another plan here does"
            yield Finding(path=(*here, "deployment"), says=other.deployment.summary, fact=fact)
        met.add(way)
        if other.loss_fraction < before - CLOSE:
            fact = "is less than that of the one before it"
            says = plan.alternatives[i].loss_fraction
            yield Finding(path=(*here, "loss_fraction"), says=says, fact=fact)
        before = other.loss_fraction
        if other.loss_fraction < -CLOSE:
            fact = "is better than the plan"
            yield Finding(path=(*here, "objective"), says=other.objective, fact=fact)


def _ties_wrong(
    plan: AnyPlan, alternatives: Sequence[Alternative[AnyDeployment]], scale: Scale
) -> Iterator[Finding]:
    """Fewer ties than are listed, or others than those that are, where all of them are."""
    listed = sum(one.is_tie for one in alternatives)
    is_all = any(not one.is_tie for one in alternatives) or not scale.error
    if plan.n_ties < listed or (is_all and plan.n_ties != listed):
        fact = f"where {listed} of the listed plans are"
        yield Finding(path=("n_ties",), says=plan.n_ties, fact=fact)


def _limits(
    request: AnyRequest, best: AnyDeployment, says: tuple[LimitUse, ...]
) -> tuple[LimitUse, ...]:
    """What is used of each limit; what a looser one would gain is as it is said."""
    gains = {one.name: one.gain_fraction for one in says}
    limits = {**limits_of(request.targets), HBM: best.capacity_bytes}
    return tuple(
        LimitUse(
            name=name,
            used=MEASURES[name].of(best),
            limit=limit,
            dimension=MEASURES[name].dimension,
            relief=MEASURES[name].relief,
            gain_fraction=gains.get(name) if MEASURES[name].is_relieved else None,
        )
        for name, limit in limits.items()
    )


def _considered_wrong(plan: AnyPlan, among: Countings) -> Iterator[Finding]:
    """Variants that are said to be chosen among and were not, or were and are not said."""
    known, said = list(among.variants), [one.name for one in plan.variants]
    if said != known and not (among.may_lack and set(said) <= set(known)):
        fact = f"are not {', '.join(known) or 'none'}, which may be served"
        yield Finding(path=("variants",), says=", ".join(said), fact=fact)


OBJECTIVES = {"cost": "rent", "rent": "rent", "devices": "devices"}


def judged_mix(plan: AnyPlan) -> tuple[Placement | None, list[Finding]]:
    """The mix that is true of its choice, and everything in it that is not so."""
    if plan.mix is None:
        return None, []
    from planner.verifier.placing.placements import judge_placement

    truth, more = judge_placement(plan.mix)
    wrong = [one.below(("mix",)) for one in more]
    return truth, [*wrong, *_unasked(plan, plan.mix), *_aimed_elsewhere(plan, plan.mix)]


def _unasked(plan: AnyPlan, mix: Placement) -> Iterator[Finding]:
    """What the mix was asked that the plan was not."""
    mixed, path = mix.request, ("mix", "request")
    request, targets = plan.request, plan.request.targets
    if isinstance(request, EconomicsRequest):
        yield Finding(path=("mix",), says=mixed.engines, fact="is of a plan that knows decode only")
        return
    if len(mixed.models) != 1 or mixed.models[0].model.name != request.model.name:
        says = ", ".join(one.model.name for one in mixed.models)
        yield Finding(path=(*path, "models"), says=says, fact=f"is not {request.model.name}")
        return
    (wish,) = mixed.models
    demand = (wish.demand_tokens_per_s, targets.demand_tokens_per_s)
    yield from differences(*demand, (*path, "models", "0", "demand_tokens_per_s"))
    yield from differences(wish.workload or mixed.workload, request.workload, (*path, "workload"))
    for name in ("tpot_s", "ttft_s", "min_batch", "quality_loss_fraction"):
        pair = getattr(wish.targets or mixed.targets, name), getattr(targets, name)
        yield from differences(*pair, (*path, "targets", name))
    limits = {name: most for name, most in limits_of(targets).items() if name in mixed.limits}
    yield from differences(dict(mixed.limits), limits, (*path, "limits"))
    yield from _elsewhere(mixed.site, request.cluster.name, request.cluster.n_devices)


def _elsewhere(site: SiteSpec, name: str, n_devices: int) -> Iterator[Finding]:
    """A site that is not the pool of the plan."""
    held = site.n_devices if isinstance(site, ClusterSpec) else _n_devices(site)
    if site.name != name or held != n_devices:
        fact = f"is not `{name}` of {n_devices} devices"
        yield Finding(path=("mix", "request", "site"), says=site.name, fact=fact)


def _n_devices(site: object) -> int | None:
    """Devices of a pool; None of a graph, which no plan is on."""
    groups = getattr(site, "groups", None)
    return None if groups is None else sum(one.cluster.n_devices for one in groups)


def _aimed_elsewhere(plan: AnyPlan, mix: Placement) -> Iterator[Finding]:
    """A mix that is best in what the plan is not."""
    name = mix.certificate.objective_name
    if name != OBJECTIVES.get(plan.request.objective):
        path, fact = ("mix", "certificate", "objective_name"), "is not what the plan is best in"
        yield Finding(path=path, says=name, fact=f"{fact}: {plan.request.objective}")
