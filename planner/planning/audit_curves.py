"""The frontiers that an audit is measured against: cost of decoding against speed per user."""

import time
from dataclasses import replace

from planner.estimates.candidates import machine_of
from planner.planning.pareto import Tracing
from planner.results import surveys
from planner.results.audits import Audit
from planner.running.deadlines import within
from planner.runtimes.candidates import CandidatePool
from planner.runtimes.roofline import RooflineCandidates
from planner.specs.ask.request import Request

DECODE_COST = "decode_cost"


def audit_curves(audit: Audit) -> tuple[surveys.Curve, ...]:
    """The frontier in the formats that run, and that in all that changes may take.

    Any devices of the pool and any of the audit's batches; exact, every point recounted.

    Raises:
        SolverError: a point failed its verification.
    """
    with within(audit.request.options.time_limit_s):
        return _curves(audit)


def _curves(audit: Audit) -> tuple[surveys.Curve, ...]:
    own, model = audit.request, audit.request.model
    weights, caches = audit.weights_formats, audit.kv_formats
    labels = [
        (own, f"{audit.observed.weights_format} weights, {audit.observed.kv_format} KV cache")
    ]
    if len(weights) * len(caches) > 1:
        free = replace(own, weights_formats=weights, kv_formats=caches)
        labels.append((free, f"{' or '.join(weights)} weights, {' or '.join(caches)} KV cache"))
    return tuple(
        surveys.Curve(
            case=surveys.Case(model=model.name, topology=own.cluster.name, weights=label),
            frontier=decoding_frontier(request),
            reason="",
        )
        for request, label in labels
    )


def decoding_frontier(request: Request) -> surveys.Frontier:
    """Every deployment that no other is as good as in speed and in cost of decoding."""
    began_s, asked = time.perf_counter(), replace(request, objective=DECODE_COST)
    machine = machine_of(request.cluster, request.model)
    candidates = RooflineCandidates(request=asked, machine=machine)
    tracing = Tracing(CandidatePool(parts=(candidates,)), x="latency", began_s=began_s)
    frontier = tracing.frontier(surveys.DEFAULT_ALPHA)
    for point in frontier.points:
        verified = candidates.checked(point.deployment)
    return replace(
        frontier,
        request=request,
        proof=replace(frontier.proof, verified=verified),
        provenance=(*request.model.provenance, *request.cluster.provenance),
    )
