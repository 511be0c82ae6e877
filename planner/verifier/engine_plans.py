"""An engine's plan counted anew: its deployment and the next best ones, limits, certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.quantities import MEMORY, QUANTITIES, objective_of
from planner.results import Alternative, Considered, EnginePlan, LimitUse
from planner.results.engines import EngineAudit, EngineDeployment
from planner.specs.engine_request import EngineRequest
from planner.specs.provenance import Provenance
from planner.specs.targets import Targets
from planner.verifier.certificates import certified
from planner.verifier.engine_deployments import CHECKS, counted_engine
from planner.verifier.findings import Finding, Path, refuse, with_differences

Other = Alternative[EngineDeployment]

CLOSE = 1e-8  # a plan chosen among ties may be off by the ties' own tolerance

WITHOUT_ERROR = ("rent", "devices")
"""Objectives of which nothing is predicted."""


def judge_engine_plan(plan: EnginePlan) -> tuple[EnginePlan, list[Finding]]:
    """The plan that is true of what was chosen, and everything in this one that is not so."""
    request = plan.request
    best, wrong = counted_engine(request, plan.deployment, ("deployment",))
    found: list[EngineDeployment] = []
    asked_too = {one.runtime for one in plan.rivals} - {request.engine}
    for i, other in enumerate(plan.alternatives):
        here = ("alternatives", str(i), "deployment")
        if other.deployment.engine in asked_too:  # which has a request of its own
            found.append(other.deployment)
            continue
        one, more = counted_engine(request, other.deployment, here)
        found.append(one)
        wrong += more
    values = [_value(request, one) for one in (best, *found)]
    least = min(values) if request.prefer == "simplest" else values[0]
    leader = (best, *found)[values.index(least)]
    error = _error(request.objective, leader)
    others = [
        _alternative(request, says, one, least, error)
        for says, one in zip(plan.alternatives, found, strict=True)
    ]
    wrong += _out_of_order(plan, others)
    wrong += _ties_wrong(plan, others)
    objective = objective_of(request.objective)
    certificate, more = certified(
        plan.certificate,
        objective_name=request.objective,
        objective=objective.told(leader),
        dimension=objective.dimension,
        is_rate=objective.is_rate,
        gap=request.options.gap,
        checks=CHECKS,
    )
    wrong += more
    truth = replace(
        plan,
        deployment=best,
        error_fraction=error,
        given_up_fraction=_near(plan.given_up_fraction, values[0] / least - 1),
        alternatives=tuple(others),
        limits=_limits(request, best, plan.limits),
        certificate=certificate,
        provenance=_provenance(request, best),
        variants=tuple(
            Considered(
                name=one.name,
                title=one.title,
                quality_loss_fraction=one.quality_loss_fraction,
                quality=one.quality,
            )
            for one in request.variants
        ),
    )
    return truth, with_differences(wrong, plan, truth)


def _near(says: float, found: float) -> float:
    """A difference of nearly equal numbers: as it is said where it is so to their rounding."""
    return says if math.isclose(says, found, abs_tol=CLOSE) else found


def _provenance(request: EngineRequest, best: EngineDeployment) -> tuple[Provenance, ...]:
    """Sources of the model that is served, of the cluster and of its device."""
    records = request.records
    served = [one.provenance for one in records.models if one.name == best.model]
    model = served[0] if served else ()
    return (*model, *records.cluster.provenance, *records.cluster.device.provenance)


def checked_engine(request: EngineRequest, deployment: EngineDeployment) -> tuple[str, ...]:
    """The checks that a deployment by itself passed, in words.

    Raises:
        SolverError: a figure of it is not so, or it breaks a limit.
    """
    found, wrong = counted_engine(request, deployment, ())
    refuse(with_differences(wrong, deployment, found))
    return CHECKS


def judge_engine_audit(audit: EngineAudit) -> tuple[EngineAudit, list[Finding]]:
    """The audit that is true of what runs and of what was found beside it."""
    free = replace(audit.request, targets=Targets())
    runs = replace(free, batches=(audit.predicted.batch,), chunks=(audit.predicted.chunk_tokens,))
    predicted, wrong = counted_engine(runs, audit.predicted, ("predicted",))
    in_flight = predicted.batch * predicted.n_data
    tpot = audit.observed_tpot_s
    cost = predicted.usd_per_hour / 3600 * tpot / in_flight
    limits = (
        ("same_devices", Targets(n_devices=predicted.n_devices, min_batch=in_flight)),
        ("equal_speed", Targets(tpot_s=tpot)),
        ("equal_cost", Targets(usd_per_token=audit.observed_usd_per_token)),
    )
    found: list[EngineDeployment | None] = []
    for name, targets in limits:
        best: EngineDeployment | None = getattr(audit, name)
        if best is not None:
            best, more = counted_engine(replace(free, targets=targets), best, (name,))
            wrong += more
        found.append(best)
    same, fast, cheap = found
    truth = replace(
        audit,
        predicted=predicted,
        observed_usd_per_token=cost,
        same_devices=same,
        equal_speed=fast,
        equal_cost=cheap,
    )
    return truth, with_differences(wrong, audit, truth)


def _value(request: EngineRequest, deployment: EngineDeployment) -> float:
    """An objective, less being better."""
    objective = objective_of(request.objective)
    value = objective.told(deployment)
    return 1 / value if objective.is_rate else value


def _error(objective: str, best: EngineDeployment) -> float:
    """Relative standard deviation of an objective: rent and devices have none."""
    if objective in WITHOUT_ERROR:
        return 0.0
    times = best.ttft_s if objective == "ttft" else best.tpot_s
    return times.high / times.value - 1


def _alternative(
    request: EngineRequest,
    says: Other,
    found: EngineDeployment,
    least: float,
    error: float,
) -> Other:
    value = _value(request, found)
    told = objective_of(request.objective).told(found)
    close = math.isclose(says.objective, told, rel_tol=CLOSE)
    return Alternative(
        deployment=found,
        objective=says.objective if close else told,
        loss_fraction=value / least - 1,
        is_tie=bool(error) and value <= least * (1 + error) * (1 + CLOSE),
    )


def _out_of_order(plan: EnginePlan, found: list[Other]) -> Iterator[Finding]:
    """Runners-up that use the pool as the plan or another does, or stand behind worse ones."""
    met = {_way_to_use(plan.deployment)}
    before = -math.inf
    for i, other in enumerate(found):
        here: Path = ("alternatives", str(i))
        way = _way_to_use(other.deployment)
        if way in met:
            fact = "uses the pool as another plan here does"
            yield Finding(path=(*here, "deployment"), says=other.deployment.label, fact=fact)
        met.add(way)
        if other.loss_fraction < before - CLOSE:
            fact = "is less than that of the one before it"
            yield Finding(path=(*here, "loss_fraction"), says=other.loss_fraction, fact=fact)
        before = other.loss_fraction
        if other.loss_fraction < -CLOSE:
            fact = "is better than the plan"
            yield Finding(path=(*here, "objective"), says=other.objective, fact=fact)


def _way_to_use(one: EngineDeployment) -> tuple[object, ...]:
    degrees = (one.n_tensor, one.n_data, one.n_stages, one.n_expert_parallel)
    return (one.model, one.formats, *degrees)


def _ties_wrong(plan: EnginePlan, found: list[Other]) -> Iterator[Finding]:
    """Fewer ties than are listed, or others than those that are, where all of them are."""
    listed = sum(one.is_tie for one in found)
    is_all = any(not one.is_tie for one in found)
    if plan.n_ties < listed or (is_all and plan.n_ties != listed):
        fact = f"where {listed} of the listed plans are"
        yield Finding(path=("n_ties",), says=plan.n_ties, fact=fact)


def _limits(
    request: EngineRequest, best: EngineDeployment, says: tuple[LimitUse, ...]
) -> tuple[LimitUse, ...]:
    """What is used of each limit; what a looser one would gain is as it is said."""
    gains = {one.name: one.gain_fraction for one in says}
    limits = {**request.targets.limits(), MEMORY: best.capacity_bytes}
    return tuple(
        LimitUse(
            name=name,
            used=QUANTITIES[name].told(best),
            limit=limit,
            dimension=QUANTITIES[name].dimension,
            relief=QUANTITIES[name].relief,
            gain_fraction=gains.get(name),
        )
        for name, limit in limits.items()
    )
