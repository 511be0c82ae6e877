"""The frontiers that an audit is measured against: cost of decoding against speed per user."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from planner.errors import SolverError
from planner.estimates.candidates import machine_of
from planner.planning.pareto import proof_of
from planner.programs.posed import Aim
from planner.quantities.table import MS, USD_PER_MTOKEN
from planner.results.audits import Audit
from planner.results.deployments import Deployment
from planner.results.surveys import (
    DEFAULT_ALPHA,
    Case,
    Curve,
    Frontier,
    FrontierPoint,
)
from planner.running.deadlines import check, within
from planner.runtimes.candidates import Among
from planner.runtimes.roofline import RooflineCandidates
from planner.solvers.tracing import Step, trace
from planner.specs.ask.request import Request

DECODE_COST = "decode_cost"
TOLERANCE = 1e-9


def audit_curves(audit: Audit) -> tuple[Curve, ...]:
    """The frontier in the formats that run, and that in all that changes may take.

    Any devices of the pool and any of the audit's batches; exact, every point recounted.

    Raises:
        SolverError: a point failed its verification.
    """
    with within(audit.request.options.time_limit_s):
        return _curves(audit)


def _curves(audit: Audit) -> tuple[Curve, ...]:
    own, model = audit.request, audit.request.model
    weights, caches = audit.weights_formats, audit.kv_formats
    labels = [
        (own, f"{audit.observed.weights_format} weights, {audit.observed.kv_format} KV cache")
    ]
    if len(weights) * len(caches) > 1:
        free = replace(own, weights_formats=weights, kv_formats=caches)
        labels.append((free, f"{' or '.join(weights)} weights, {' or '.join(caches)} KV cache"))
    return tuple(
        Curve(
            case=Case(model=model.name, topology=own.cluster.name, weights=label),
            frontier=decoding_frontier(request),
            reason="",
        )
        for request, label in labels
    )


def decoding_frontier(request: Request) -> Frontier:
    """Every deployment that no other is as good as in speed and in cost of decoding."""
    began_s = time.perf_counter()
    machine = machine_of(request.cluster, request.model)
    candidates = RooflineCandidates(request=request, machine=machine)
    source = candidates.source(Aim(objective=DECODE_COST))
    traced = trace(source, "latency", request.options)
    if not traced.steps:
        check()
    points: list[FrontierPoint] = []
    verified: tuple[str, ...] = ()
    for step in traced.steps:
        deployment = candidates.deployment(traced.narrowed.posed, step.assignment)
        verified = candidates.checked(deployment)
        points.append(_point(request, step, deployment))
    worths = [-DEFAULT_ALPHA * math.log(point.x) - math.log(point.y) for point in points]
    return Frontier(
        request=request,
        x_name="latency",
        y_name=DECODE_COST,
        x_dimension="s",
        y_dimension="USD/token",
        points=tuple(points),
        alpha=DEFAULT_ALPHA,
        preferred=worths.index(max(worths)),
        proof=proof_of(Among(parts=(candidates,)), traced, began_s, verified),
        provenance=(*request.model.provenance, *request.cluster.provenance),
    )


def _point(request: Request, step: Step, deployment: Deployment) -> FrontierPoint:
    """A step in SI; the program's cost is over all output tokens, ours over decoded ones."""
    share = request.workload.n_decode_steps / request.workload.n_output_tokens
    x, y = deployment.tpot_s, deployment.usd_per_decoded_token
    for name, value, ours in (
        ("time per token", x, step.delay / MS),
        ("cost of decoding", y, step.price / USD_PER_MTOKEN / share),
    ):
        if not math.isclose(value, ours, rel_tol=TOLERANCE):
            raise SolverError(f"{name} {ours!r} of a point is {value!r}")
    bound = max(0.0, step.bound) / USD_PER_MTOKEN / share
    gap = abs(y - bound) / y
    return FrontierPoint(deployment=deployment, x=x, y=y, bound=bound, gap=gap, meets_targets=True)
