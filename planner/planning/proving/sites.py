"""Placements, repairs and the siblings of plans searched again, from their requests."""

from __future__ import annotations

import math
from dataclasses import replace

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
    unanswered,
)
from planner.results.experts import ExpertPlan
from planner.results.placements import Placement
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan
from planner.running.deadlines import within
from planner.specs.certificates import OPTIMAL
from planner.specs.placement_request import PlacementRequest


def placement_again(says: Placement) -> Again:
    """From the same cluster."""
    try:
        found = placed_again(says.request)
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(says.request.options.time_limit_s)
    findings = [
        *certificate_findings(says.certificate, found.certificate, limit_s),
        *known_best(beliefs_of(says), beliefs_of(found), limit_s),
    ]
    return again(findings, found.certificate)


def placed_again(asked: PlacementRequest) -> Placement:
    """What is placed for a request.

    Raises:
        NoPlanError: nothing can be.
    """
    from planner.placing.inheriting import costs_of
    from planner.placing.planning import place
    from planner.placing.roles import said_of

    return place(
        asked.site,
        asked.models,
        engine=asked.engines,
        workload=asked.workload,
        targets=asked.targets,
        state=asked.state,
        objective=asked.objective,
        limits=asked.limits,
        batches=asked.batches,
        most_devices=asked.most_devices,
        aligned=asked.aligned,
        deployments=asked.deployments,
        layout_first=asked.layout_first,
        group_costs=costs_of(asked),
        confidence=asked.confidence,
        prefer=asked.prefer,
        **said_of(asked.roles),
        options=asked.options,
    )


def repair_again(says: Repair) -> Again:
    from planner.placing.inheriting import costs_of
    from planner.placing.repairing import repair

    asked = says.request
    wanted = asked.wanted
    try:
        found = repair(
            asked.before,
            wanted.site,
            wanted.models,
            engine=wanted.engines,
            state=wanted.state,
            loss=asked.loss_fraction,
            workload=wanted.workload,
            targets=wanted.targets,
            objective=wanted.objective,
            limits=wanted.limits,
            batches=wanted.batches,
            most_devices=wanted.most_devices,
            aligned=wanted.aligned,
            confidence=wanted.confidence,
            group_costs=costs_of(wanted),
            most_points=asked.most_points,
            options=wanted.options,
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
    from planner.placing.expert_placing import place_experts

    asked = says.request
    found = place_experts(
        asked.loads,
        n_ranks=asked.n_ranks,
        n_slots=asked.n_slots,
        n_nodes=asked.n_nodes,
        n_groups=asked.n_groups,
        split=asked.split,
        present=asked.present,
        move_price=asked.move_price,
        coactivation=asked.coactivation,
        slack=asked.slack,
        weights=asked.weights,
        gap=asked.gap,
        seed=asked.seed,
        time_limit_s=asked.time_limit_s,
        proof=asked.proof,
    )
    mine, other = says.certificate, found.certificate
    findings = [*certificate_findings(mine, other, limit_of(asked.time_limit_s))]
    if not findings and math.isclose(mine.bound, other.bound, rel_tol=CLOSE):
        findings += same(says.proof, found.proof, ("proof",))
    return again(findings, other)


def stages_again(says: StagePlan) -> Again:
    from planner.placing.staging.cutting import cut_groups

    try:
        with within(says.request.time_limit_s):
            found = cut_groups(says.request)
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(says.request.time_limit_s)
    findings = [*certificate_findings(says.certificate, found.certificate, limit_s)]
    return again(findings, found.certificate)


def layers_again(says: LayerPlacement) -> Again:
    from planner.placing.staging.placing import place_layers

    asked = says.request
    try:
        found = place_layers(
            asked.layers,
            gap=asked.gap,
            time_limit_s=asked.time_limit_s,
            seed=asked.seed,
            proof=asked.proof,
        )
    except NoPlanError:
        return unanswered(("certificate", "status"), says.certificate.status)
    limit_s = limit_of(asked.time_limit_s)
    findings = [*certificate_findings(says.certificate, found.certificate, limit_s)]
    return again(findings, found.certificate)
