"""Plans searched again: all of a certificate, and by parts of the request that may not beat it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from planner.errors import NoPlanError
from planner.planning.proving.comparing import (
    CLOSE,
    Again,
    again,
    beliefs_of,
    certificate_findings,
    counts,
    known_best,
    limit_of,
    proved_fields,
    provers_words,
    same,
    subset_findings,
    unanswered,
)
from planner.results.engines import EngineDeployment
from planner.results.experts import ExpertPlan
from planner.results.placements import Placement
from planner.results.plans import AnyDeployment, AnyPlan, AnyRequest
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan
from planner.running.deadlines import is_over, within
from planner.specs.ask.placement import PlacementRequest
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.records.certificates import OPTIMAL
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import Finding
from planner.verifier.quantities import MEASURES, limits_of, measure_of

SLACK = 1e-9
"""Relative, of limits at what an answer uses: less than what rows of a program tolerate."""

Subset = tuple[str, Targets, AnyDeployment]
"""What it is called, targets that leave less to choose from, and a deployment within them."""


def plan_again(says: AnyPlan) -> Again:
    """Among all runtimes that were asked, in the order in which their rivals stand."""
    from planner.planning.asked_again import among_again, prefer_of
    from planner.planning.plans import decide

    requests = (says.request, *says.other_requests)
    asked_s = says.request.options.time_limit_s
    try:
        with within(asked_s):
            among = among_again(requests, [one.runtime for one in says.rivals])
            found = decide(among, prefer=prefer_of(requests))
            was_cut = is_over()  # before all was seen that stands beside the best
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(asked_s)
    findings = [
        *certificate_findings(says.certificate, found.certificate, limit_s),
        *_gains(says, found, was_cut=was_cut),
        *(() if was_cut else _runners_up(says, found)),
        *known_best(_rivals(says), _rivals(found), limit_s, "rivals"),
        *(() if was_cut else known_best(beliefs_of(says), beliefs_of(found), limit_s)),
        *_rules(says, found),
    ]
    if says.mix is not None:
        findings += [one.below(("mix",)) for one in placement_again(says.mix).findings]
    if not was_cut and says.certificate.status == found.certificate.status == OPTIMAL:
        findings += same(says.n_ties, found.n_ties, ("n_ties",))
        findings += same(says.given_up_fraction, found.given_up_fraction, ("given_up_fraction",))
    names = []
    for subset in _subsets(says):
        findings += _of_subset(says, requests, subset)
        names.append(subset[0])
    told = [f"and by parts: {'; '.join(names)}"]
    told += ["time ended before what stands beside the best was searched again"] * was_cut
    return again(findings, found.certificate, *told)


def _subsets(says: AnyPlan) -> Iterator[Subset]:
    """Parts of a request, of each of which the answer or another that it lists is the best."""
    targets = says.request.targets
    yield "limits at what the plan uses", _tightened(targets, says.deployment), says.deployment
    for one in (says.deployment, *(it.deployment for it in says.alternatives)):
        if isinstance(one, EngineDeployment):
            degrees = Degrees(tensor=one.n_tensor, pipeline=one.n_stages, data=one.n_data)
            yield f"only {one.label or 'one device'}", replace(targets, degrees=degrees), one


def _tightened(targets: Targets, best: AnyDeployment) -> Targets:
    """Limits at what a deployment uses of them; what replicas serve together stays."""
    changes: dict[str, Any] = {}
    further = dict(targets.further)
    for name in limits_of(targets):
        one = MEASURES[name]
        if not one.is_relieved:
            continue
        used = one.of(best)
        if not one.target:
            further[name] = used * (1 + SLACK)
        else:
            changes[one.target] = round(used) if one.dimension == "1" else used * (1 + SLACK)
    return replace(targets, **changes, further=further)


def _of_subset(says: AnyPlan, requests: Sequence[AnyRequest], subset: Subset) -> Iterator[Finding]:
    """What the best of a part, sought from another seed, shows of the answer."""
    from planner.planning.asked_again import among_again, prefer_of
    from planner.planning.plans import decide

    name, targets, one = subset
    options = says.request.options
    asked = [
        replace(it, targets=targets, options=replace(options, seed=options.seed + 1))
        for it in requests
    ]
    own = measure_of(says.request.objective).of(one)
    try:
        with within(options.time_limit_s):
            best = decide(among_again(asked), prefer=prefer_of(asked)).certificate
    except NoPlanError:
        fact = f"is of an answer that a search of {name} does not have"
        yield Finding(path=("certificate", "objective"), says=own, fact=fact)
        return
    yield from subset_findings(
        says.certificate, best.objective, own if best.status == OPTIMAL else None, name
    )


def _rivals(plan: AnyPlan) -> dict[str, Any]:
    """The best of each runtime, by where it stands in the answer."""
    return {str(i): one for i, one in enumerate(plan.rivals)}


def _gains(says: AnyPlan, found: AnyPlan, *, was_cut: bool) -> Iterator[Finding]:
    """What looser limits gain, where both searches know it."""
    gains = {use.name: use.gain_fraction for use in found.limits}
    for i, use in enumerate(says.limits):
        other, here = gains.get(use.name), ("limits", str(i), "gain_fraction")
        if use.gain_fraction is not None and other is not None:
            if not math.isclose(use.gain_fraction, other, rel_tol=CLOSE, abs_tol=1e-6):
                yield Finding(path=here, says=use.gain_fraction, found=other)
        elif found.certificate.status == "optimal" and not was_cut:
            yield from same(use.gain_fraction, other, here)


def _rules(says: AnyPlan, found: AnyPlan) -> Iterator[Finding]:
    """Rules of engines that cost much, and of which nothing is said."""
    said, met = (
        {(it.deployment.engine, it.rule) for it in one.rule_costs} for one in (says, found)
    )
    for engine, rule in sorted(met - said):
        fact = f"lack `{rule}` of {engine}"
        yield Finding(path=("rule_costs",), says=len(says.rule_costs), fact=fact)


def _runners_up(says: AnyPlan, found: AnyPlan) -> Iterator[Finding]:
    """The next best plans: as good as those that a search finds."""
    if says.certificate.status != "optimal" or found.certificate.status != "optimal":
        return
    if len(says.alternatives) != len(found.alternatives):
        fact = f"are {len(says.alternatives)}, and there are {len(found.alternatives)}"
        yield Finding(path=("alternatives",), says=len(says.alternatives), fact=fact)
        return
    mine = [one.objective for one in says.alternatives]
    others = [one.objective for one in found.alternatives]
    for i, (one, other) in enumerate(zip(mine, others, strict=True)):
        yield from same(one, other, ("alternatives", str(i), "objective"))


def certified_again(says: Any, search: Callable[[], Any], limit_s: float | None) -> Again:  # noqa: ANN401
    """An answer with a certificate, and what stands beside it, as good as a search finds.

    Args:
        search: answers its request again.
        limit_s: of that.
    """
    try:
        with within(limit_s):
            found = search()
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(limit_s)
    findings = [*certificate_findings(says.certificate, found.certificate, limit_s)]
    if hasattr(says, "inside"):
        findings += known_best(beliefs_of(says), beliefs_of(found), limit_s)
    return again(findings, found.certificate)


def placement_again(says: Placement) -> Again:
    """From the same cluster."""
    limit_s = says.request.options.time_limit_s
    return certified_again(says, partial(placed_again, says.request), limit_s)


def placed_again(asked: PlacementRequest) -> Placement:
    """What is placed for a request.

    Raises:
        NoPlanError: nothing can be.
    """
    from planner.placing.inheriting import costs_of
    from planner.placing.planning import place
    from planner.placing.roles import said_of

    return from_fields(
        place,
        asked,
        cluster=asked.site,
        engine=asked.engines,
        group_costs=costs_of(asked),
        **said_of(asked.roles),
    )


def repair_again(says: Repair) -> Again:
    from planner.placing.inheriting import costs_of
    from planner.placing.repairing import repair

    asked = says.request
    wanted = asked.wanted
    try:
        found = from_fields(
            repair,
            wanted,
            placement=asked.before,
            cluster=wanted.site,
            engine=wanted.engines,
            loss=asked.loss_fraction,
            group_costs=costs_of(wanted),
            most_points=asked.most_points,
        )
    except NoPlanError:
        return unanswered(("placement", "certificate", "status"), says.placement.certificate.status)
    mine, other = says.placement.certificate, found.placement.certificate
    inside = [
        *counts(mine, other),
        *provers_words(mine.proofs, other.proofs, ("certificate", "proofs")),
    ]
    is_whole = limit_of(wanted.options.time_limit_s) is None
    if is_whole or mine.status == other.status == OPTIMAL:
        inside += same(mine.bound, other.bound, ("certificate", "bound"))
        inside += same(mine.status, other.status, ("certificate", "status"))
    findings = [replace(one, path=("placement", *one.path)) for one in inside]
    if is_whole:
        findings += same(len(says.frontier), len(found.frontier), ("frontier",))
        findings += proved_fields(says, found)
    return again(findings, other)


def experts_again(says: ExpertPlan) -> Again:
    from planner.tools.experts.placing import place_experts

    asked = says.request
    found = from_fields(place_experts, asked)
    mine, other = says.certificate, found.certificate
    findings = [*certificate_findings(mine, other, limit_of(asked.time_limit_s))]
    if not findings and math.isclose(mine.bound, other.bound, rel_tol=CLOSE):
        findings += same(says.proof, found.proof, ("proof",))
    return again(findings, other)


def stages_again(says: StagePlan) -> Again:
    from planner.tools.staging.cutting import cut_groups

    asked = says.request
    return certified_again(says, partial(cut_groups, asked), asked.time_limit_s)


def layers_again(says: LayerPlacement) -> Again:
    from planner.tools.staging.placing import place_layers

    asked = says.request
    return certified_again(says, partial(from_fields, place_layers, asked), asked.time_limit_s)
