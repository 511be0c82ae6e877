"""Plans searched again: all of a certificate, and by parts of the request that may not beat it; and
with more of each resource of a machine, to say what that would gain."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.errors import NoPlanError, OutOfTimeError, Problem
from planner.planning.plans import decide
from planner.planning.proving import comparing
from planner.quantities.table import objective_of
from planner.results.engines import EngineDeployment
from planner.results.experts import ExpertPlan
from planner.results.placements import Placement
from planner.results.plans import AnyDeployment, AnyPlan, AnyRequest, ResourceGain
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan
from planner.running import begin
from planner.running.deadlines import is_over, within
from planner.specs.ask.placement import PlacementRequest
from planner.specs.ask.targets import WHAT_IF, Degrees, Targets
from planner.specs.files.ledger import remark
from planner.specs.files.what_if import has, multiplied, resources
from planner.specs.records.certificates import OPTIMAL
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.kernels import inner_records
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Finding
from planner.verifier.quantities import MEASURES, limits_of, measure_of

SLACK = 1e-9
"""Relative, of limits at what an answer uses: less than what rows of a program tolerate."""

Subset = tuple[str, Targets, AnyDeployment]
"""What it is called, targets that leave less to choose from, and a deployment within them."""


def plan_again(says: AnyPlan) -> comparing.Again:
    """Among all runtimes that were asked, in the order in which their rivals stand."""
    requests = (says.request, *says.other_requests)
    asked_s = says.request.options.time_limit_s
    try:
        with within(asked_s):
            among = comparing.among_again(requests, [one.runtime for one in says.rivals])
            plan = decide(among, prefer=comparing.prefer_of(requests))
            was_cut = is_over()  # before all was seen that stands beside the best
    except NoPlanError:
        return comparing.unanswered(("certificate", "status"), says.certificate.status)
    limit_s = comparing.limit_of(asked_s)
    findings = [
        *comparing.certificate_findings(says.certificate, plan.certificate, limit_s),
        *_shadow_prices(says, plan, was_cut=was_cut),
        *(() if was_cut else _runners_up(says, plan)),
        *comparing.known_best(_numbered(says.rivals), _numbered(plan.rivals), limit_s, "rivals"),
        *(() if was_cut else comparing.same_beliefs(says, plan, limit_s)),
        *_rules(says, plan),
    ]
    if says.mix is not None:
        findings += [one.below(("mix",)) for one in placement_again(says.mix).findings]
    if not was_cut and says.certificate.status == plan.certificate.status == OPTIMAL:
        findings += comparing.same_fields(says, plan, "n_ties", "given_up_fraction")
    names = []
    for subset in _subsets(says):
        findings += _of_subset(says, requests, subset)
        names.append(subset[0])
    told = [f"and by parts: {'; '.join(names)}"]
    told += ["time ended before what stands beside the best was searched again"] * was_cut
    return replace(comparing.again(findings, plan.certificate, *told), taken=_without_mix(says))


def _without_mix(says: AnyPlan) -> tuple[str, ...]:
    """That a plan of replicas for which others of several sorts may do says nothing of them."""
    is_engines = not isinstance(says.request, EconomicsRequest)
    if says.mix is None and is_engines and says.deployment.demand_tokens_per_s is not None:
        return ("no mix: `plan place` says whether replicas of several sorts serve it for less",)
    return ()


def _subsets(says: AnyPlan) -> Iterator[Subset]:
    """Parts of a request, of each of which the answer or another that it lists is the best."""
    targets = says.request.targets
    yield "limits at what the plan uses", _tightened(targets, says.deployment), says.deployment
    for other in (says.deployment, *(it.deployment for it in says.alternatives)):
        if isinstance(other, EngineDeployment):
            degrees = Degrees(tensor=other.n_tensor, pipeline=other.n_stages, data=other.n_data)
            yield f"only {other.label or 'one device'}", replace(targets, degrees=degrees), other


def _tightened(targets: Targets, best: AnyDeployment) -> Targets:
    """Limits at what a deployment uses of them; what replicas serve together stays."""
    used = {
        name: MEASURES[name].of(best) * (1 + SLACK)
        for name in limits_of(targets)
        if MEASURES[name].is_relieved
    }
    return targets.with_limits(used)


def _of_subset(says: AnyPlan, requests: Sequence[AnyRequest], subset: Subset) -> Iterator[Finding]:
    """What the best of a part, sought from another seed, shows of the answer."""
    name, targets, deployment = subset
    options = says.request.options
    reseeded = [
        replace(it, targets=targets, options=replace(options, seed=options.seed + 1))
        for it in requests
    ]
    own = measure_of(says.request.objective).of(deployment)
    try:
        best = comparing.decided_again(reseeded).certificate
    except NoPlanError:
        fact = f"is of an answer that a search of {name} does not have"
        yield Finding(path=("certificate", "objective"), says=own, fact=fact)
        return
    yield from comparing.subset_findings(
        says.certificate, best.objective, own if best.status == OPTIMAL else None, name
    )


def _numbered(every: Sequence[Any]) -> dict[str, Any]:
    """What is listed, by where it stands in the answer."""
    return {str(i): one for i, one in enumerate(every)}


def _shadow_prices(says: AnyPlan, plan: AnyPlan, *, was_cut: bool) -> Iterator[Finding]:
    """What looser limits gain, where both searches know it."""
    gains = {use.name: use.gain_fraction for use in plan.limits}
    for i, use in enumerate(says.limits):
        other, here = gains.get(use.name), ("limits", str(i), "gain_fraction")
        if use.gain_fraction is not None and other is not None:
            if not math.isclose(use.gain_fraction, other, rel_tol=comparing.CLOSE, abs_tol=1e-6):
                yield Finding(path=here, says=use.gain_fraction, found=other)
        elif plan.certificate.status == "optimal" and not was_cut:
            yield from comparing.same(use.gain_fraction, other, here)


def _rules(says: AnyPlan, plan: AnyPlan) -> Iterator[Finding]:
    """Rules of engines that cost much, and of which nothing is said; what resources gain."""
    factors = {gain.name: gain.factor for gain in says.gains}
    yield from comparing.proved_fields(says.gains, resource_gains(says, factors), ("gains",))
    said, met = ({(it.deployment.engine, it.rule) for it in one.rule_costs} for one in (says, plan))
    for engine, rule in sorted(met - said):
        fact = f"lack `{rule}` of {engine}"
        yield Finding(path=("rule_costs",), says=len(says.rule_costs), fact=fact)


def resource_gains(plan: AnyPlan, factors: Mapping[str, float]) -> tuple[ResourceGain, ...]:
    """What the best would gain of so many times as much of each resource by itself, most first.

    What the machine does not have is left out; so is what time ended before, with a remark.
    """
    requests, proof = (plan.request, *plan.other_requests), plan.certificate
    is_rate, gains = objective_of(proof.objective_name).is_rate, []
    pools = [pool for _, pool in inner_records(requests, ClusterSpec)]
    for name in (name for name in factors if any(has(pool, name) for pool in pools)):
        begin(f"solving with other {resources()[name]['words']}")
        more = [multiplied(request, {name: factors[name]}) for request in requests]
        try:
            again = comparing.decided_again(more, [rival.runtime for rival in plan.rivals])
        except (NoPlanError, OutOfTimeError) as error:
            remark(Problem(where=WHAT_IF, value=name, fact=f"is not known: {error}"))
            continue
        best = again.certificate.objective
        gain = best / proof.objective - 1.0 if is_rate else 1.0 - best / proof.objective
        gains.append(
            ResourceGain(name=name, factor=factors[name], objective=best, gain_fraction=gain)
        )
    return tuple(sorted(gains, key=lambda gain: -gain.gain_fraction))


def _runners_up(says: AnyPlan, plan: AnyPlan) -> Iterator[Finding]:
    """The next best plans: as good as those that a search finds."""
    here = "alternatives"
    if says.certificate.status != "optimal" or plan.certificate.status != "optimal":
        return
    if len(says.alternatives) != len(plan.alternatives):
        fact = f"are {len(says.alternatives)}, and there are {len(plan.alternatives)}"
        yield Finding(path=(here,), says=len(says.alternatives), fact=fact)
        return
    for i, pair in enumerate(zip(says.alternatives, plan.alternatives, strict=True)):
        yield from comparing.same_fields(*pair, "objective", path=("alternatives", str(i)))


def certified_again(says: Any, search: Callable[[], Any], limit_s: float | None) -> comparing.Again:  # noqa: ANN401
    """An answer with a certificate, and what stands beside it, as good as a search finds.

    Args:
        search: answers its request again.
        limit_s: of that.
    """
    try:
        with within(limit_s):
            found = search()
    except NoPlanError:
        return comparing.unanswered(("certificate", "status"), says.certificate.status)
    limit_s = comparing.limit_of(limit_s)
    findings = [*comparing.certificate_findings(says.certificate, found.certificate, limit_s)]
    if hasattr(says, "inside"):
        findings += comparing.same_beliefs(says, found, limit_s)
    return comparing.again(findings, found.certificate)


def placement_again(says: Placement) -> comparing.Again:
    """From the same cluster."""
    limit_s = says.request.options.time_limit_s
    return certified_again(says, partial(placed_again, says.request), limit_s)


def placed_again(request: PlacementRequest) -> Placement:
    """What is placed for a request.

    Raises:
        NoPlanError: nothing can be.
    """
    from planner.placing.inheriting import costs_of
    from planner.placing.planning import place
    from planner.placing.roles import said_of

    return from_fields(
        place,
        request,
        cluster=request.site,
        engine=request.engines,
        group_costs=costs_of(request),
        **said_of(request.roles),
    )


def repair_again(says: Repair) -> comparing.Again:
    from planner.placing.inheriting import costs_of
    from planner.placing.repairing import repair

    request = says.request
    wanted = request.wanted
    try:
        repaired = from_fields(
            repair,
            wanted,
            placement=request.before,
            cluster=wanted.site,
            engine=wanted.engines,
            loss=request.loss_fraction,
            group_costs=costs_of(wanted),
            most_points=request.most_points,
        )
    except NoPlanError:
        return comparing.unanswered(
            ("placement", "certificate", "status"), says.placement.certificate.status
        )
    mine, other = says.placement.certificate, repaired.placement.certificate
    inside = [
        *comparing.counts(mine, other),
        *comparing.provers_words(mine.proofs, other.proofs, ("certificate", "proofs")),
    ]
    is_whole = comparing.limit_of(wanted.options.time_limit_s) is None
    if is_whole or mine.status == other.status == OPTIMAL:
        inside += comparing.same_fields(mine, other, "bound", "status", path=("certificate",))
    findings = [it.below(("placement",)) for it in inside]
    if is_whole:
        findings += comparing.same_fields(says, repaired, "frontier")
        findings += comparing.proved_fields(says, repaired)
    return comparing.again(findings, other)


def experts_again(says: ExpertPlan) -> comparing.Again:
    from planner_workshop.experts.placing import place_experts

    request = says.request
    plan = from_fields(place_experts, request)
    mine, other = says.certificate, plan.certificate
    limit_s = comparing.limit_of(request.time_limit_s)
    findings = [*comparing.certificate_findings(mine, other, limit_s)]
    if not findings and math.isclose(mine.bound, other.bound, rel_tol=comparing.CLOSE):
        findings += comparing.same_fields(says, plan, "proof")
    return comparing.again(findings, other)


def stages_again(says: StagePlan) -> comparing.Again:
    from planner_workshop.staging.placing import cut_groups

    request = says.request
    return certified_again(says, partial(cut_groups, request), request.time_limit_s)


def layers_again(says: LayerPlacement) -> comparing.Again:
    from planner_workshop.staging.placing import place_layers

    request = says.request
    return certified_again(says, partial(from_fields, place_layers, request), request.time_limit_s)
