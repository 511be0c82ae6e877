"""Is a running deployment good? Its distance from the frontier, what explains it, what helps.

Somebody serves a model on some devices at a speed per user and a batch, or a utilization. The
same candidates that a plan chooses from say what the devices could do: at the same speed for
less, at the same cost faster, and by which single change. Money counts decode only, because
speed and utilization do.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.errors import OutOfTimeError, Problem
from planner.estimates.candidates import machine_of
from planner.estimates.networks import network_table
from planner.estimates.observed import Observed, impossible
from planner.estimates.steps import Machine
from planner.planning.pareto import Tracing
from planner.programs.blocks import Objective
from planner.quantities.table import USD_PER_MTOKEN
from planner.results import surveys
from planner.results.audits import Audit, AuditedChange, Observation
from planner.results.deployments import Deployment
from planner.running.deadlines import check, timed, within
from planner.runtimes.candidates import CandidatePool
from planner.runtimes.roofline import RooflineCandidates, layout_command
from planner.solvers.search import search
from planner.specs.ask.defaults import among_formats, make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.quality import diffusion_problems
from planner.specs.ask.request import Request
from planner.specs.ask.targets import (
    ANY_LAYOUTS,
    DEFAULT_WORKLOAD,
    Layouts,
    SolverOptions,
    Speculation,
    Targets,
)
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.devices import ClusterSpec, ModelSpec, Workload
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.specs.validation.hints import from_fields
from planner.specs.validation.problems import Problems
from planner.topology.meshes import mesh_table
from planner.verifier.audits import judge_audit
from planner.verifier.findings import refuse

DEFAULT_OPTIONS = SolverOptions()
DECODE_COST = "decode_cost"
DEVICES, DRAFTS = "another number of devices", "drafts"
PRICE = "--price"
_Formats = tuple[tuple[str, ...], tuple[str, ...]]
"""Formats of weights, and of the cache."""


@arguments_checked(ranges="heeded")
@timed
def audit(
    model: ModelSpec,
    cluster: ClusterSpec,
    *,
    speed_tokens_per_s: float,
    batch: int | None = None,
    utilization_fraction: float | None = None,
    weights_format: str | None = None,
    kv_format: str | None = None,
    allowed_formats: Sequence[str] | None = None,
    n_devices: int | None = None,
    layouts: Layouts = ANY_LAYOUTS,
    workload: Workload = DEFAULT_WORKLOAD,
    speculation: Speculation | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
) -> Audit:
    """Compare a running deployment with what its pool could do.

    Args:
        model: what is served.
        cluster: the pool that it is served on.
        speed_tokens_per_s: output tokens a second that each user sees.
        batch: sequences decoded together; or else
        utilization_fraction: model FLOP of decode over the peak of the devices.
        weights_format: of the weights; the first that the model is published in.
        kv_format: of the cache; the published one.
        allowed_formats: that weights and cache may change to, as far as the model is served in
            them; as it is published where left out.
        n_devices: devices in use; the whole pool.
        layouts: of decode, which runs; the fastest where it is left open.
        workload: tokens of a request; they set the context that decode reads.
        speculation: a draft model to consider as a change.
        options: how to solve.

    Raises:
        RequestError: neither batch nor utilization, or both; or what no such devices can do.
    """
    used = cluster.n_devices if n_devices is None else n_devices
    weights = weights_format or next(iter(model.published_weights), "")
    problems = [
        *_problems(speed_tokens_per_s, batch, utilization_fraction, used, cluster),
        *diffusion_problems(model),
    ]
    if layouts.prefill != ANY_LAYOUTS.prefill:
        fact, remedy = "an audit is of decode", "write `--layout decode=…` alone"
        problems.append(Problem(where="--layout", value=layouts.text, fact=fact, remedy=remedy))
    if workload.n_decode_steps < 1:
        value, fact = str(workload.n_output_tokens), "leaves nothing to decode"
        problems.append(
            Problem(where="--output", value=value, fact=fact, remedy="write `2` or more")
        )
    choices = PlanOptions(
        workload=workload,
        targets=Targets(layouts=layouts),
        weights_formats=(weights,),
        kv_formats=(kv_format or model.kv_format,),
        batches=DEFAULT_BATCHES,
        prefill_batches=(1,),
        prefill="latency",
        options=options,
        speculation=speculation,
        confidence=0.0,
    )
    request = Problems(problems=problems).collect(lambda: make_request(model, cluster, choices))
    raise_if_any(problems)
    assert request is not None
    observed = Observed(
        model=replace(model, kv_format=kv_format or model.kv_format),
        cluster=cluster,
        n_devices=used,
        weights_format=weights,
        batch=batch or 1,
        speed_tokens_per_s=speed_tokens_per_s,
        n_context_tokens=workload.mean_decode_context,
        is_share=utilization_fraction is not None,
    )
    peak, token_flop = observed.peak_flop_per_s, observed.token_flop
    if utilization_fraction is not None:
        tokens_per_s = utilization_fraction * peak / token_flop
        observed = replace(observed, batch=max(1, round(tokens_per_s / speed_tokens_per_s)))
    raise_if_any(impossible(observed))
    tokens_per_s = observed.batch * speed_tokens_per_s
    seen = from_fields(
        Observation,
        observed,
        kv_format=observed.model.kv_format,
        tpot_s=1.0 / speed_tokens_per_s,
        usd_per_token=used * cluster.usd_per_hour / 3600.0 / tokens_per_s,
        mfu_fraction=tokens_per_s * token_flop / peak,
    )
    batches = tuple(sorted({*DEFAULT_BATCHES, seen.batch}))
    request = replace(request, batches=batches, speculation=None)
    answer = audited(request, seen, speculation, _offered(model, seen, allowed_formats))
    refuse(judge_audit(answer)[1])
    return answer


def _offered(model: ModelSpec, seen: Observation, allowed: Sequence[str] | None) -> _Formats:
    """Formats that changes may take: those that run, and as published or as allowed."""
    caches: tuple[str, ...]
    weights, caches = model.published_weights, (model.kv_format,)
    if allowed is not None:
        weights, caches = among_formats(model, allowed)
    return (
        tuple(dict.fromkeys((seen.weights_format, *weights))),
        tuple(dict.fromkeys((seen.kv_format, *caches))),
    )


def _problems(
    speed: float, batch: int | None, utilization: float | None, used: int, cluster: ClusterSpec
) -> Iterator[Problem]:
    if not (np.isfinite(speed) and speed > 0):
        yield Problem(where="--speed", value=f"{speed:g}", fact="is not positive")
    if (batch is None) == (utilization is None):
        fact = "and `--utilization` say the same: give one of them"
        yield Problem(where="--batch", fact=fact)
    if batch is not None and batch < 1:
        yield Problem(where="--batch", value=str(batch), fact="is not positive")
    if utilization is not None and not 0 < utilization <= 1:
        fact = "is not a fraction of the peak"
        yield Problem(where="--utilization", value=f"{utilization:g}", fact=fact)
    if not 1 <= used <= cluster.n_devices:
        fact = f"`{cluster.name}` has {cluster.n_devices} devices"
        yield Problem(where="--devices", value=str(used), fact=fact)


def audited(
    request: Request, seen: Observation, speculation: Speculation | None, offered: _Formats
) -> Audit:
    """Own layout, equal speed, equal cost, and each change by itself."""
    pool = machine_of(request.cluster, request.model)
    own_devices = _only(pool, request, seen.n_devices)
    possible = _best(replace(request, batches=(seen.batch,)), own_devices, "latency")
    layouts = request.targets.layouts
    if possible is None and layouts.fixed():
        fact = f"cannot decode {seen.batch} sequences on {seen.n_devices} devices"
        remedy = "leave it out: the fastest that does is taken"
        raise_if_any([Problem(where="--layout", value=layouts.text, fact=fact, remedy=remedy)])
    free = replace(request, targets=Targets())
    as_fast = replace(request, targets=Targets(tpot_s=seen.tpot_s))
    equal_speed = _best(as_fast, pool, DECODE_COST)
    equal_cost = _best(free, pool, "latency", usd_per_token=seen.usd_per_token)
    changes, untried = [], []
    for name, changed, machine in _changes(as_fast, seen, speculation, offered, pool, own_devices):
        try:
            deployment = _best(changed, machine, DECODE_COST)
        except OutOfTimeError:
            untried.append(name)
            continue
        if deployment is None or (name == DEVICES and deployment.mesh.n_devices == seen.n_devices):
            continue
        if name == DRAFTS and deployment.draft is None:
            continue  # it is slower with the draft
        n_devices = None if machine is pool else seen.n_devices
        changes.append(
            AuditedChange(
                name=_title(name, deployment),
                deployment=deployment,
                usd_per_token=deployment.usd_per_decoded_token,
                command=_command(changed, seen.tpot_s, n_devices),
            )
        )
    return Audit(
        request=request,
        observed=seen,
        possible=possible,
        equal_speed=equal_speed,
        equal_cost=equal_cost,
        changes=tuple(sorted(changes, key=lambda change: change.usd_per_token)),
        untried=tuple(untried),
        weights_formats=offered[0],
        kv_formats=offered[1],
        speculation=speculation,
    )


def _changes(
    request: Request,
    seen: Observation,
    speculation: Speculation | None,
    offered: _Formats,
    pool: Machine,
    own: Machine,
) -> Iterator[tuple[str, Request, Machine]]:
    """(what changes, the request with it, the machine): one thing at a time."""
    (formats, caches), at_batch = offered, replace(request, batches=(seen.batch,))
    yield "the best layout of this batch", at_batch, own
    yield "another batch", request, own
    yield DEVICES, request, pool
    for name in formats:
        if name != seen.weights_format:
            yield f"{name} weights", replace(request, weights_formats=(name,)), own
    for name in caches:
        if name != seen.kv_format:
            yield f"{name} KV cache", replace(request, kv_formats=(name,)), own
    if speculation is not None:
        drafted = replace(request, speculation=speculation)
        yield DRAFTS, drafted, own
    everything = replace(request, weights_formats=formats, kv_formats=caches)
    yield "all of these", replace(everything, speculation=speculation), pool


def _title(name: str, deployment: Deployment) -> str:
    """What a change is called; devices and drafts once it is known which."""
    if name == DEVICES:
        return f"{deployment.mesh.n_devices} devices"
    return f"drafts by {deployment.draft.model}" if name == DRAFTS and deployment.draft else name


def _only(machine: Machine, request: Request, n_devices: int) -> Machine:
    """The machine with all meshes of exactly so many devices, long pipelines among them."""
    meshes = mesh_table(request.cluster, max_stages=request.model.n_layers)
    meshes = meshes.take(np.flatnonzero(meshes.n_devices == n_devices))
    return replace(machine, meshes=meshes, network=network_table(meshes, request.cluster.fabric))


def _best(
    request: Request, machine: Machine, objective: str, *, usd_per_token: float = math.inf
) -> Deployment | None:
    """The best deployment, proved; `None` if there is none.

    Args:
        objective: of decoding, the other one decides between optima.
        usd_per_token: most that it costs.

    Raises:
        OutOfTimeError: time ended before either was known.
    """
    check()
    candidates = RooflineCandidates(request=request, machine=machine)
    if len(candidates.table.arms) == 0:
        return None
    is_bounded = usd_per_token < math.inf
    aim = Objective(
        objective=objective,
        at_most=((DECODE_COST, usd_per_token * USD_PER_MTOKEN),) * is_bounded,
        tie_breaker=DECODE_COST if objective == "latency" else "latency",
    )
    result = search(candidates.source(aim), request.options, n_alternatives=0)
    if not result.solution.status.is_final:  # only the best so far
        raise result.solution.unsettled()
    if result.assignment is None:
        return None
    return candidates.deployment(result.posed, result.assignment)


def _command(request: Request, tpot_s: float, n_devices: int | None) -> str:
    """The whole plan that a change leads to; a price of the user's own goes with it."""
    targets = Targets(tpot_s=rounded_up(tpot_s), n_devices=n_devices)
    cluster = request.cluster
    is_asked = any(value.source == PRICE for value in cluster.provenance)
    price = {PRICE: f"${cluster.usd_per_hour:.12g}/h"} if is_asked else {}
    return layout_command(replace(request, targets=targets), price)


def rounded_up(tpot_s: float) -> float:
    """A time in its fourth digit, for people."""
    digit = 10.0 ** (math.floor(math.log10(tpot_s)) - 3)
    return math.ceil(tpot_s / digit) * digit


def audit_curves(audit: Audit) -> tuple[surveys.Curve, ...]:
    """The frontier in the formats that run, and that in all that changes may take.

    Any devices of the pool and any of the audit's batches; exact, every point recounted.

    Raises:
        SolverError: a point failed its verification.
    """
    own = audit.request
    weights, caches = audit.weights_formats, audit.kv_formats
    labels = [
        (own, f"{audit.observed.weights_format} weights, {audit.observed.kv_format} KV cache")
    ]
    if len(weights) * len(caches) > 1:
        free = replace(own, weights_formats=weights, kv_formats=caches)
        labels.append((free, f"{' or '.join(weights)} weights, {' or '.join(caches)} KV cache"))
    with within(own.options.time_limit_s):
        return tuple(
            surveys.Curve(
                case=surveys.Case(model=own.model.name, topology=own.cluster.name, weights=label),
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
