"""Is what an engine runs any good? Its prediction, and the best of the pool beside it."""

from dataclasses import replace

from planner.errors import NoPlanError, Problem, RequestError
from planner.planning.audit import rounded_up
from planner.planning.plans import decide
from planner.results.engines import EngineAudit, EngineDeployment
from planner.running.deadlines import out_of_time, timed
from planner.runtimes.candidates import CandidatePool
from planner.runtimes.engine_requests import command_of
from planner.runtimes.engines import EngineCandidates, engine_candidates
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import DEFAULT_WORKLOAD, Degrees, SolverOptions, Targets
from planner.specs.files.engines import load_engine
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.certificates import FEASIBLE
from planner.specs.records.devices import ClusterSpec, Workload
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.verifier.audits import judge_engine_audit
from planner.verifier.findings import refuse

DEFAULT_OPTIONS = SolverOptions()


@arguments_checked(ranges="heeded")
@timed
def audit_engine(
    model: Architecture,
    cluster: ClusterSpec,
    engine: str = "vllm",
    *,
    speed_tokens_per_s: float,
    degrees: Degrees,
    batch: int,
    chunk_tokens: int | None = None,
    weights_format: str | None = None,
    kv_format: str | None = None,
    workload: Workload = DEFAULT_WORKLOAD,
    experts_backend: str = "",
    options: SolverOptions = DEFAULT_OPTIONS,
) -> EngineAudit:
    """Compare what runs with its prediction, and that with what the pool could do.

    Args:
        speed_tokens_per_s: output tokens a second that each user sees.
        degrees: of what runs; those that are not said are 1, or the tensor and data degrees'
            product of experts where there are several attention ranks.
        batch: sequences on one attention rank.
        chunk_tokens: most tokens of a pass; the engine's usual.
        experts_backend: of its routed experts, in its own words; the engine's own where empty.
        weights_format, kv_format: as published where left out.

    Raises:
        RequestError: an amount cannot be, or the engine does not run it so; all are listed.
        SolverError: an answer failed its verification.
    """
    raise_if_any(())
    own = PlanOptions(
        workload=workload,
        experts_backend=experts_backend,
        weights_formats=(weights_format,) if weights_format else None,
        kv_formats=(kv_format,) if kv_format else None,
        confidence=0.0,
        prefer="objective",
        options=options,
    )
    chunk = chunk_tokens or int(load_engine(engine).n_chunk_tokens)
    given = replace(
        own,
        objective="latency",
        targets=Targets(degrees=_whole(model, degrees)),
        batches=(batch,),
        chunks=(chunk,),
    )
    (runs,) = engine_candidates(model, cluster, engine, given)
    predicted = _predicted(runs)
    tpot, n_output = 1.0 / speed_tokens_per_s, workload.n_output_tokens
    each_s = (predicted.planned_ttft_s + (n_output - 1) * tpot) / n_output
    cost = predicted.usd_per_hour / 3600.0 * each_s / (batch * predicted.n_data)
    offered = replace(own, batches=tuple(sorted({*DEFAULT_BATCHES, batch})))
    (free,) = engine_candidates(model, cluster, engine, offered)
    beside = set_beside(free, predicted, tpot, cost)
    as_fast = replace(free.request, objective="cost", targets=Targets(tpot_s=rounded_up(tpot)))
    audit = EngineAudit(
        request=free.request,
        observed_tpot_s=tpot,
        observed_usd_per_token=cost,
        predicted=predicted,
        command=command_of(model, as_fast, {}) if beside["equal_speed"] else "",
        **beside,
    )
    refuse(judge_engine_audit(audit)[1])
    return audit


def _whole(model: Architecture, degrees: Degrees) -> Degrees:
    """Every degree of what runs: what is not said is what `plan predict` takes it for."""
    tensor, data = degrees.tensor or 1, degrees.data or 1
    routes = any(isinstance(layer.ffn, Experts) for layer in model.layers)
    expert = degrees.expert or (tensor * data if data > 1 and routes else 1)
    if degrees.data is None and expert > tensor:
        data = max(1, expert // tensor)
    return Degrees(tensor=tensor, pipeline=degrees.pipeline or 1, expert=expert, data=data)


def _predicted(runs: EngineCandidates) -> EngineDeployment:
    choices = runs.choices
    if len(choices) == 1:
        return runs.described(choices, 0)
    fact = f"does not fit the devices by this account, which lets {runs.request.engine} take "
    fact += f"{choices.limit_bytes / 1e9:.3g} GB of each"
    remedy = "say the degrees, batch and formats that run: `--tp`, `--pp`, `--dp`, `--ep`"
    raise RequestError([Problem(where="what runs", fact=fact, remedy=remedy)])


def set_beside(
    free: EngineCandidates, runs: EngineDeployment, tpot_s: float, usd_per_token: float
) -> dict[str, EngineDeployment | None]:
    """The best that are set beside what runs, by their names in an audit.

    Args:
        free: candidates of the formats that run, any other choice.
        runs: what runs, as predicted.
        tpot_s, usd_per_token: of what runs, as observed.
    """
    in_flight = runs.batch * runs.n_data
    asked = {
        "same_devices": ("latency", Targets(n_devices=runs.n_devices, min_batch=in_flight)),
        "equal_speed": ("cost", Targets(tpot_s=tpot_s)),
        "equal_cost": ("latency", Targets(usd_per_token=usd_per_token)),
    }
    return {
        name: _best(replace(free, request=replace(free.request, objective=of, targets=targets)))
        for name, (of, targets) in asked.items()
    }


def _best(candidates: EngineCandidates) -> EngineDeployment | None:
    """The best deployment, proved; `None` if there is none.

    Raises:
        OutOfTimeError: time ended before either was known.
    """
    try:
        plan = decide(CandidatePool(parts=(candidates,)), prefer="objective")
    except NoPlanError:
        return None
    if plan.certificate.status == FEASIBLE:
        raise out_of_time()
    assert isinstance(plan.deployment, EngineDeployment)
    return plan.deployment
