"""Frontiers and a comparison made by hand: figures that are easy to find again."""

from __future__ import annotations

from dataclasses import replace

from planner.results.audits import Audit, AuditedChange, Observation
from planner.results.surveys import (
    Case,
    Comparison,
    Curve,
    Frontier,
    FrontierPoint,
    FrontierProof,
    Row,
)
from planner.specs.ask.targets import Targets
from planner.specs.records.certificates import Proof, Screen
from tests.report.examples import DECODE, DEPLOYMENT, PLAN, PROVENANCE, REQUEST, SECOND

CASE = Case(model="tiny-7b", topology="toy-4x4x4", weights="")

PROOF = FrontierProof(
    status="optimal",
    proofs=(
        Proof(prover="highs 1.13.1", outcome="optimal", value=40e-6, bound=40e-6, wall_s=0.049),
        Proof(
            prover="enumeration of 45", outcome="optimal", value=40e-6, bound=40e-6, wall_s=0.001
        ),
    ),
    vouched_by=("highs 1.13.1", "enumeration of 45"),
    n_candidates=12_345,
    n_contexts=27,
    screens=(Screen(name="bound", n_candidates=12_300, reason="dearer than one in hand"),),
    n_solved=45,
    verified=("every constraint holds", "seconds and bytes recounted"),
    wall_s=1.25,
    solve_s=0.05,
)


def point(tpot_s: float, usd_per_token: float, *, batch: int) -> FrontierPoint:
    """A deployment whose decode pass takes so long; all of it is overhead."""
    none = replace(DECODE.step, compute_s=0.0, weights_s=0.0, attention_s=0.0, network_s=0.0)
    decode = replace(DECODE, batch=batch, step=replace(none, overhead_s=tpot_s))
    return FrontierPoint(
        deployment=replace(DEPLOYMENT, decode=decode, usd_per_token=usd_per_token),
        x=tpot_s,
        y=usd_per_token,
        bound=usd_per_token,
        gap=0.0,
        meets_targets=tpot_s <= 0.030 and usd_per_token <= 50e-6,
    )


def frontier(
    *points: FrontierPoint, preferred: int = 0, targets: Targets | None = None
) -> Frontier:
    return Frontier(
        request=replace(REQUEST, targets=targets or Targets()),
        x_name="latency",
        y_name="cost",
        x_dimension="s",
        y_dimension="USD/token",
        points=points,
        alpha=3.0,
        preferred=preferred,
        proof=PROOF,
        provenance=PROVENANCE,
    )


THREE = frontier(
    point(0.100, 20e-6, batch=256),
    point(0.025, 40e-6, batch=64),
    point(0.010, 160e-6, batch=8),
    preferred=1,
    targets=Targets(tpot_s=0.030, usd_per_token=50e-6),
)
MANY = frontier(
    *(point(0.1 / (i + 1), 20e-6 * 1.02**i, batch=400 - i) for i in range(200)), preferred=150
)
CURVE = Curve(case=CASE, frontier=THREE, reason="")
MISSING = Curve(
    case=Case(model="big & <bold>", topology="toy-4x4x4", weights=""),
    frontier=None,
    reason="HBM ≤ 32 GB is out of reach: 90 GB",
)

AUDIT = Audit(
    request=REQUEST,
    observed=Observation(
        n_devices=32,
        weights_format="bf16",
        kv_format="bf16",
        batch=16,
        tpot_s=0.040,
        usd_per_token=66e-6,
        mfu_fraction=0.02,
    ),
    possible=DEPLOYMENT,
    equal_speed=DEPLOYMENT,
    equal_cost=SECOND,
    changes=(
        AuditedChange(
            name="int8 weights",
            deployment=SECOND,
            usd_per_token=11e-6,
            command="plan --model tiny-7b --weights int8 --latency-target 40ms",
        ),
        AuditedChange(
            name="int8 KV cache",
            deployment=DEPLOYMENT,
            usd_per_token=70e-6,
            command="plan --model tiny-7b --kv int8 --latency-target 40ms",
        ),
    ),
)

COMPARISON = Comparison(
    objective="cost",
    rows=(
        Row(case=CASE, plan=PLAN, loss_fraction=0.0, reason=""),
        Row(
            case=replace(CASE, topology="toy-8x8x8"),
            plan=replace(PLAN, deployment=SECOND, limits=()),
            loss_fraction=0.05,
            reason="",
        ),
        Row(
            case=replace(CASE, topology="toy-1x1x1"),
            plan=None,
            loss_fraction=None,
            reason="HBM ≤ 32 GB is out of reach: 90 GB",
        ),
    ),
    best=0,
)
