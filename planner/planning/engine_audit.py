"""Is what an engine runs any good? Its prediction, and the best of the pool beside it.

The reference model of [Erdil2025] predicts it likewise, but for prompts, of which it knows nothing.
"""

from dataclasses import replace
from typing import Any

from planner.errors import NoPlanError, Problem, RequestError
from planner.planning.audit import DEFAULT_OPTIONS, rounded_up
from planner.planning.plans import decide
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.plans import AnyDeployment
from planner.running.deadlines import out_of_time, timed
from planner.runtimes.candidates import CandidatePool, Candidates
from planner.runtimes.registry import candidates_of, layers_of
from planner.specs.ask.engine import BEST, DraftOptions, PlanOptions
from planner.specs.ask.targets import DEFAULT_WORKLOAD, Degrees, SolverOptions, Targets
from planner.specs.files.engines import load_engine
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.architecture import Architecture
from planner.specs.records.certificates import FEASIBLE
from planner.specs.records.devices import ClusterSpec, ModelSpec, Workload
from planner.specs.records.runtimes import ERDIL2025
from planner.specs.records.served_formats import as_published
from planner.specs.validation.arguments import arguments_checked, raise_if_any
from planner.verifier.audits import judge_engine_audit
from planner.verifier.findings import refuse


@arguments_checked(ranges="heeded")
@timed
def audit_engine(
    model: Architecture | ModelSpec,
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
    drafting: DraftOptions | None = None,
    options: SolverOptions = DEFAULT_OPTIONS,
) -> EngineAudit:
    """Compare what runs with its prediction, and that with what the pool could do.

    Args:
        engine: whose prediction it is, or `erdil2025`: of decode only, at the rent of decode only.
        speed_tokens_per_s: output tokens a second that each user sees.
        degrees: of what runs; those that are not said are 1, or the tensor and data degrees'
            product of experts where there are several attention ranks.
        batch: sequences on one attention rank.
        chunk_tokens: most tokens of a pass; the engine's usual.
        experts_backend: of its routed experts, in its own words; the engine's own where empty.
        weights_format, kv_format: as published where left out.
        drafting: what it drafts, one number of tokens at once; the best may draft as many.

    Raises:
        RequestError: an amount cannot be, or the engine does not run it so; all are listed.
        SolverError: an answer failed its verification.
    """
    raise_if_any(())
    own = PlanOptions(
        workload=workload,
        experts_backend=experts_backend,
        drafting=drafting,
        weights_formats=(weights_format,) if weights_format else None,
        kv_formats=(kv_format,) if kv_format else None,
        options=options,
    )
    chunk = chunk_tokens
    if engine != ERDIL2025.name:
        own = replace(own, confidence=0.0, prefer=BEST)
        chunk = chunk or int(load_engine(engine).n_chunk_tokens)
        whole = _whole(layers_of(model), degrees)
    else:
        own = replace(own, weights_formats=own.weights_formats or as_published(model)[:1])
        whole = _cut(layers_of(model), degrees, batch)
    given = replace(
        own,
        objective="latency",
        targets=Targets(degrees=whole),
        batches=(batch,),
        chunks=(chunk,) if chunk else None,
    )

    def candidates(choices: PlanOptions) -> Any:  # noqa: ANN401 of an engine, or of the reference model
        return candidates_of(model, cluster, engine, choices).parts[0]

    predicted = _predicted(candidates(given), is_drafted=drafting is not None)
    tpot, n_output = 1.0 / speed_tokens_per_s, workload.n_output_tokens
    each_s = tpot
    if isinstance(predicted, EngineDeployment):
        each_s = (predicted.planned_ttft_s + (n_output - 1) * tpot) / n_output
    cost = predicted.usd_per_hour / 3600.0 * each_s / predicted.n_sequences
    offered = replace(own, batches=tuple(sorted({*DEFAULT_BATCHES, batch})))
    free = candidates(offered)
    beside = set_beside(free, predicted, tpot, cost)
    as_fast = candidates(replace(offered, targets=Targets(tpot_s=rounded_up(tpot))))
    audit = EngineAudit(
        request=free.request,
        observed_tpot_s=tpot,
        observed_usd_per_token=cost,
        predicted=predicted,
        command=as_fast.command({}) if beside["equal_speed"] else "",
        **beside,
    )
    refuse(judge_engine_audit(audit)[1])
    return audit


def _whole(model: Architecture, degrees: Degrees) -> Degrees:
    """Every degree of what runs: what is not said is what `plan predict` takes it for."""
    tensor, data = degrees.tensor or 1, degrees.data or 1
    expert = degrees.expert or (tensor * data if data > 1 and model.expert_counts else 1)
    if degrees.data is None and expert > tensor:
        data = max(1, expert // tensor)
    return Degrees(tensor=tensor, pipeline=degrees.pipeline or 1, expert=expert, data=data)


def _cut(model: Architecture, degrees: Degrees, batch: int) -> Degrees:
    """Every degree of what runs by the reference model; that of copies stays unsaid.

    Raises:
        RequestError: there are more stages than micro-batches.
    """
    n_stages = degrees.pipeline or 1
    if n_stages > batch:
        fact = f"are more stages than the {batch} sequences that micro-batches are made of"
        remedy = f"write `--pp {batch}` or less, or the batch of all of them"
        raise RequestError([Problem(where="--pp", value=str(n_stages), fact=fact, remedy=remedy)])
    usual = Degrees(tensor=1, pipeline=1, expert=1 if model.expert_counts else None)
    return replace(usual, **degrees.fixed())


def _predicted(runs: Any, *, is_drafted: bool) -> Any:  # noqa: ANN401 a deployment
    choices = runs.choices
    own = [i for i in range(len(choices)) if not is_drafted or choices.n_drafted[i]]
    if len(own) == 1:
        return runs.described(choices, own[0])
    limit_bytes = getattr(choices, "limit_bytes", None) or runs.request.hbm_bytes
    fact = f"does not fit the devices by this account, which lets {runs.runtime} take "
    fact += f"{limit_bytes / 1e9:.3g} GB of each"
    remedy = "say the degrees, batch and formats that run: `--tp`, `--pp`, `--dp`, `--ep`"
    raise RequestError([Problem(where="what runs", fact=fact, remedy=remedy)])


def set_beside(
    free: Candidates, runs: AnyDeployment, tpot_s: float, usd_per_token: float
) -> dict[str, Any]:
    """The best that are set beside what runs, by their names in an audit.

    Args:
        free: candidates of the formats that run, any other choice.
        runs: what runs, as predicted.
        tpot_s, usd_per_token: of what runs, as observed.
    """
    as_many = Targets(n_devices=runs.n_devices, min_batch=runs.n_sequences)
    return {
        "same_devices": _best(free, "latency", as_many),
        "equal_speed": _best(free, "cost", Targets(tpot_s=tpot_s)),
        "equal_cost": _best(free, "latency", Targets(usd_per_token=usd_per_token)),
    }


def _best(free: Candidates, objective: str, targets: Targets) -> AnyDeployment | None:
    """The best deployment, proved; `None` if there is none.

    Raises:
        OutOfTimeError: time ended before either was known.
    """
    among = CandidatePool(parts=(free.asking(objective=objective, targets=targets),))
    try:
        plan = decide(among, prefer="objective")
    except NoPlanError:
        return None
    if plan.certificate.status == FEASIBLE:
        raise out_of_time()
    return plan.deployment
