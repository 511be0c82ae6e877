"""An audit of layouts counted anew: what runs by its owner's word, and what could run instead."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from planner.results.audits import Audit, AuditedChange, Observation
from planner.results.deployments import Deployment
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.plans import AnyDeployment
from planner.specs.ask.request import Request
from planner.specs.ask.targets import Targets
from planner.verifier.findings import TOLERANCE, Finding, Path, with_differences
from planner.verifier.runtimes.counting import Countings
from planner.verifier.runtimes.layouts import LayoutCounting
from planner.verifier.scalar.times import peak_flop_per_s
from planner.verifier.serving.rounds import stay_s

CLOSE = 1e-8
BEST_LAYOUT, OTHER_BATCH, ALL = "the best layout of this batch", "another batch", "all of these"


def judge_audit(says: Audit) -> tuple[Audit, list[Finding]]:
    """The audit that is true of what was chosen, and everything in this one that is not so."""
    seen, wrong = says.observed, list(_unseen(says))
    if wrong:  # of which nothing can be counted
        return says, wrong
    own, as_fast = replace(says.request, batches=(seen.batch,)), Targets(tpot_s=seen.tpot_s)
    at_speed = replace(says.request, targets=as_fast)
    best: dict[str, Deployment | None] = {}
    for name, request in (
        ("possible", own),
        ("equal_speed", at_speed),
        ("equal_cost", replace(says.request, targets=Targets())),
    ):
        deployment: Deployment | None = getattr(says, name)
        if deployment is not None:
            deployment, more = LayoutCounting(request).counted(deployment, (name,))
            wrong += more
        best[name] = deployment
    wrong += _beyond(seen, best)
    changes = []
    for i, change in enumerate(says.changes):
        true, more = _changed(says, at_speed, change)
        wrong += [finding.below(("changes", str(i))) for finding in more]
        changes.append(true)
    wrong += _out_of_order(says.changes, changes)
    truth = replace(says, observed=_observed(says), changes=tuple(changes), **best)  # type: ignore[arg-type] # no other fields
    return truth, with_differences(wrong, says, truth)


def _unseen(says: Audit) -> Iterator[Finding]:
    """What nobody can run on the pool of the request, or does not run what it asks for."""
    seen, request = says.observed, says.request
    if not 1 <= seen.n_devices <= request.cluster.n_devices:
        fact = f"are not of the {request.cluster.n_devices} of the pool"
        yield Finding(path=("observed", "n_devices"), says=seen.n_devices, fact=fact)
    for name, value, values in (
        ("weights_format", seen.weights_format, request.weights_formats),
        ("kv_format", seen.kv_format, request.kv_formats),
        ("batch", seen.batch, request.batches),
    ):
        if value not in values:
            fact = f"is none of {', '.join(map(str, values[:8]))}, which were asked"
            yield Finding(path=("observed", name), says=value, fact=fact)
    if not seen.tpot_s > 0:
        yield Finding(path=("observed", "tpot_s"), says=seen.tpot_s, fact="is no time")
    for name, own, offered in (
        ("weights_formats", seen.weights_format, says.weights_formats),
        ("kv_formats", seen.kv_format, says.kv_formats),
    ):
        if own not in offered:
            fact = f"leave out {own}, which runs"
            yield Finding(path=(name,), says=", ".join(offered), fact=fact)


def _observed(says: Audit) -> Observation:
    """What runs, with its rent over decoded tokens, and its FLOP over the peak of its devices."""
    seen, model, cluster = says.observed, says.request.model, says.request.cluster
    tokens_per_s = seen.batch / seen.tpot_s
    active = model.n_active_params_published or model.n_params_published
    peak = peak_flop_per_s(cluster.device, seen.weights_format) * seen.n_devices
    return replace(
        seen,
        usd_per_token=seen.n_devices * cluster.usd_per_hour / 3600 / tokens_per_s,
        mfu_fraction=tokens_per_s * 2.0 * active / peak,
    )


def _beyond(seen: Observation, best: dict[str, Deployment | None]) -> Iterator[Finding]:
    """Other devices than those that run, or a higher cost than what runs has."""
    possible, cheap = best["possible"], best["equal_cost"]
    if possible is not None and possible.mesh.n_devices != seen.n_devices:
        path = ("possible", "mesh", "n_devices")
        fact = f"are not the {seen.n_devices} that run"
        yield Finding(path=path, says=possible.mesh.n_devices, fact=fact)
    if cheap is not None and cheap.usd_per_decoded_token > seen.usd_per_token * (1 + CLOSE):
        fact = f"costs {cheap.usd_per_decoded_token!r} a token, beyond {seen.usd_per_token!r}"
        yield Finding(path=("equal_cost",), says=cheap.summary, fact=fact)


def _changed(
    says: Audit, at_speed: Request, change: AuditedChange
) -> tuple[AuditedChange, list[Finding]]:
    request = _with(says, at_speed, change)
    if request is None:
        return change, [Finding(path=("name",), says=change.name, fact="is no change")]
    deployment, wrong = LayoutCounting(request).counted(change.deployment, ("deployment",))
    is_free = change.name in (_devices(change.deployment), ALL)
    if not is_free and deployment.mesh.n_devices != says.observed.n_devices:
        path = ("deployment", "mesh", "n_devices")
        fact = f"are not the {says.observed.n_devices} that run"
        wrong.append(Finding(path=path, says=deployment.mesh.n_devices, fact=fact))
    cost = deployment.usd_per_decoded_token
    return replace(change, deployment=deployment, usd_per_token=cost), wrong


def _devices(deployment: Deployment) -> str:
    return f"{deployment.mesh.n_devices} devices"


def _with(says: Audit, at_speed: Request, change: AuditedChange) -> Request | None:
    """The request with a change, by its name; None where no change has it."""
    seen, weights, caches = says.observed, says.weights_formats, says.kv_formats
    known = {
        BEST_LAYOUT: replace(at_speed, batches=(seen.batch,)),
        OTHER_BATCH: at_speed,
        _devices(change.deployment): at_speed,
        **{
            f"{name} weights": replace(at_speed, weights_formats=(name,))
            for name in weights
            if name != seen.weights_format
        },
        **{
            f"{name} KV cache": replace(at_speed, kv_formats=(name,))
            for name in caches
            if name != seen.kv_format
        },
        ALL: replace(
            at_speed, weights_formats=weights, kv_formats=caches, speculation=says.speculation
        ),
    }
    if says.speculation and change.deployment.draft is not None:
        drafted = replace(at_speed, speculation=says.speculation)
        known[f"drafts by {says.speculation.draft.name}"] = drafted
    return known.get(change.name)


def _out_of_order(
    says: Sequence[AuditedChange], changes: Sequence[AuditedChange]
) -> Iterator[Finding]:
    """Changes that are told twice, or stand behind dearer ones."""
    for i, change in enumerate(changes):
        here: Path = ("changes", str(i))
        if any(change.name == other.name for other in changes[:i]):
            yield Finding(path=(*here, "name"), says=change.name, fact="is told twice")
        if i and change.usd_per_token < changes[i - 1].usd_per_token * (1 - TOLERANCE):
            fact = "is less than that of the one before it"
            yield Finding(path=(*here, "usd_per_token"), says=says[i].usd_per_token, fact=fact)


def judge_engine_audit(audit: EngineAudit) -> tuple[EngineAudit, list[Finding]]:
    """The audit that is true of what runs and of what was found beside it."""
    free: Any = replace(audit.request, targets=Targets())
    of_engine = isinstance(audit.predicted, EngineDeployment)
    says: Any = audit.predicted
    chunks = {"chunks": (says.chunk_tokens,)} if of_engine else {}
    runs = replace(free, batches=(says.batch,), **chunks)
    predicted: Any
    predicted, wrong = Countings.of((runs,)).counted(says, ("predicted",))
    tpot = each_s = audit.observed_tpot_s
    if of_engine:
        each_s = stay_s(predicted.planned_ttft_s, tpot, free.workload.n_output_tokens)
        each_s /= free.workload.n_output_tokens
    in_flight = predicted.batch * (predicted.n_data if of_engine else 1)
    cost = predicted.usd_per_hour / 3600 * each_s / in_flight
    limits = (
        ("same_devices", Targets(n_devices=predicted.n_devices, min_batch=in_flight)),
        ("equal_speed", Targets(tpot_s=tpot)),
        ("equal_cost", Targets(usd_per_token=audit.observed_usd_per_token)),
    )
    deployments: dict[str, AnyDeployment | None] = {}
    for name, targets in limits:
        best: AnyDeployment | None = getattr(audit, name)
        if best is not None:
            best, more = Countings.of((replace(free, targets=targets),)).counted(best, (name,))
            wrong += more
        deployments[name] = best
    truth = replace(audit, predicted=predicted, observed_usd_per_token=cost, **deployments)  # type: ignore[arg-type] # no other fields
    return truth, with_differences(wrong, audit, truth)
