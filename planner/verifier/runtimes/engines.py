"""A deployment of an engine counted anew from the request and from what was chosen.

Chosen are the model, formats, degrees, batch, chunk, overlap and drafts. Each has to be a choice
that the request and the engine allow. Money, bytes and times are counted, kernel by kernel.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.results.engines import EngineDeployment
from planner.results.plans import VariantReport
from planner.specs.ask.engine import EngineRequest, PredictionRequest
from planner.specs.files.tables import Provenance
from planner.specs.records.architecture import Architecture
from planner.specs.records.roles import TOGETHER
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.quantities import further_of, limits_of, quality_words
from planner.verifier.runtimes.layouts import broken_targets, unplaceable
from planner.verifier.serving.evaluation import Evaluation, evaluation
from planner.verifier.serving.held import copies_of
from planner.verifier.serving.measured import engine_deviation
from planner.verifier.serving.passes import interval
from planner.verifier.serving.ranks import Rank, has_experts
from planner.verifier.serving.rounds import deviations_planned, planned_place_s
from planner.verifier.serving.starting import unstartable

CHECKS = (
    "every constraint of the unscreened program holds",
    "times, their errors and bytes recounted by an independent scalar model, kernel by kernel",
    "limits hold by that recount",
)
"""What a deployment of an engine passes before it goes out."""

WITHOUT_ERROR = ("rent", "devices")
"""Objectives of which nothing is predicted."""


class EngineCounting:
    """See `Counting`."""

    checks = CHECKS
    may_lack = False

    def __init__(self, request: EngineRequest) -> None:
        self._request = request
        self.runtime = request.engine

    @property
    def variants(self) -> tuple[VariantReport, ...]:
        return tuple(from_fields(VariantReport, one) for one in self._request.variants)

    def counted(self, says: EngineDeployment, path: Path) -> tuple[EngineDeployment, list[Finding]]:
        return counted_engine(self._request, says, path)

    def way(self, chosen: EngineDeployment) -> tuple[object, ...]:
        degrees = (chosen.n_tensor, chosen.n_data, chosen.n_stages, chosen.n_expert_parallel)
        return (chosen.model, chosen.formats, *degrees)

    def error(self, objective: str, best: EngineDeployment) -> float:
        """Of the time that the objective is made of: rent and devices have none."""
        is_rent = objective == "cost" and best.demand_tokens_per_s is not None
        if is_rent or objective in WITHOUT_ERROR:
            return 0.0
        name = "TTFT" if objective == "ttft" else "TPOT"
        times = best.ttft_s if name == "TTFT" else best.tpot_s
        kind = next(one.kind for one in self._request.models if one.name == best.model)
        of_all = times.high / times.value - 1
        common = (one.deviation_fraction for one in best.outside)
        engine = self._request.records.engine
        common_error = math.hypot(engine_deviation(engine, kind, name), *common)
        return math.sqrt(max(0.0, of_all**2 - common_error**2))

    def provenance(self, best: EngineDeployment | None = None) -> tuple[Provenance, ...]:
        records = self._request.records
        name = best.model if best else records.models[0].name
        served = [one.provenance for one in records.models if one.name == name]
        model = served[0] if served else ()
        return (*model, *records.cluster.provenance, *records.cluster.device.provenance)


def counted_engine(
    request: EngineRequest, says: EngineDeployment, path: Path
) -> tuple[EngineDeployment, list[Finding]]:
    """A deployment that is true of its choice; itself where that cannot be."""
    try:
        model = model_of(request, says)
        given = replace(says, role=TOGETHER).alone(request, model)  # a plan's does it all
        counted = evaluation(given)
    except Invalid as refused:
        return says, [refused.at(path)]
    deployment = engine_deployment(request, given, counted, says.n_replicas)
    deployment = replace(deployment, command=says.command, launch=says.launch)
    records = request.records
    pool = (request.cluster.n_devices, request.cluster.n_devices_per_node)
    wrong = [
        *unstartable(
            records.engine,
            model,
            records.cluster,
            says,
            loaded=counted.rank.formats,
            overlaps=given.overlaps,
            balances=True,
        ),
        *_undone(model, counted.rank, request),
        *_unoffered(request, says),
        *unfit(deployment, counted),
        *unplaceable(request.targets, pool, deployment.n_replica_devices, deployment.n_replicas),
        *broken_targets(request.targets, deployment, tolerance=2 * TOLERANCE),
    ]
    return deployment, [one.below(path) for one in wrong]


def engine_deployment(
    request: EngineRequest, given: PredictionRequest, counted: Evaluation, n_replicas: int = 1
) -> EngineDeployment:
    """The account of a deployment: so many replicas of it, what they hold, take and cost.

    Args:
        request: that it answers.
        given: what was chosen of one replica, and its traffic.
        counted: the same, evaluated.
        n_replicas: where the request asks for a number or a demand; it is of one elsewhere.
    """
    (model,) = given.records.models
    rank, held, times = counted.rank, counted.held, counted.times
    served = next(one for one in request.models if one.name == model.name)
    demand = request.targets.demand_tokens_per_s
    if demand is None and request.targets.n_replicas is None:
        n_replicas = 1
    # what is planned is so many standard deviations beyond what is predicted
    beyond = deviations_planned(request.confidence, times)
    rent = n_replicas * rank.n_devices * request.cluster.usd_per_hour
    place_s = planned_place_s(times, counted.served, beyond)
    output = n_replicas * given.batch * given.n_data * counted.served.n_place_tokens / place_s
    weights = held.weights_bytes + held.drafter_bytes
    used = weights + held.activation_bytes + held.workspace_bytes
    used += given.batch * held.sequence_bytes + held.shared_bytes
    has_pools = given.n_expert_devices > 0
    deployment = from_fields(
        EngineDeployment,
        given,
        engine=request.engine,
        model=model.name,
        variant="" if served == request.model else served.name,
        quality_loss_fraction=served.quality_loss_fraction,
        quality=quality_words(model, given.formats.weights, given.formats.cache),
        overlap="two-batch" if given.overlaps else "none",
        tpot_s=interval(times.tpot_s, times.tpot_error),
        ttft_s=interval(times.ttft_s, times.ttft_error),
        planned_tpot_s=times.tpot_s * (1 + beyond * times.tpot_error),
        planned_ttft_s=times.ttft_s * (1 + beyond * times.ttft_error),
        usd_per_hour=rent,
        usd_per_token=rent / 3600 / (output if demand is None else demand),
        output_tokens_per_s=output,
        # of whichever device is fuller, where experts have their own
        weights_bytes=max(weights, held.pool_weights_bytes),
        used_bytes=max(used, held.pool_bytes),
        capacity_bytes=held.limit_bytes,
        command="",
        launch=None,
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        outside=times.outside,
        redundant_experts=copies_of(rank),
        n_expert_devices=given.n_expert_devices if has_pools else None,
        n_microbatches=given.n_microbatches if has_pools else None,
    )
    device = request.records.cluster.device
    return replace(deployment, further=further_of(limits_of(request.targets), deployment, device))


def model_of(request: EngineRequest, says: EngineDeployment) -> Architecture:
    """Which of those that may be served it serves.

    Raises:
        Refused: none of them.
    """
    for model in request.records.models:
        if model.name == says.model:
            return model
    raise Invalid("is no model that may be served", path=("model",), says=says.model)


def unfit(deployment: EngineDeployment, counted: Evaluation) -> Iterator[Finding]:
    """Sequences that do not all run at once, or are more than the device holds."""
    if deployment.used_bytes > deployment.capacity_bytes * (1 + TOLERANCE):
        fact = f"is less than the {deployment.used_bytes!r} that are held"
        yield Finding(path=("capacity_bytes",), says=deployment.capacity_bytes, fact=fact)
    elif counted.times.n_running < deployment.batch:
        fact = f"is more than the {counted.times.n_running:g} that run at once"
        yield Finding(path=("batch",), says=deployment.batch, fact=fact)


def _undone(model: Architecture, rank: Rank, request: EngineRequest) -> Iterator[Finding]:
    """Degrees that the engine or the pool does not have, or that are not those asked for."""
    group = rank.n_tensor * rank.n_data
    if not has_experts(model) and rank.n_expert_tensor != group:
        fact = f"is not the {group} devices of a stage"
        yield Finding(path=("n_expert_tensor",), says=rank.n_expert_tensor, fact=fact)
    n_devices = group * rank.n_stages
    if n_devices > request.records.cluster.n_devices:
        fact = f"take {n_devices} devices of {request.records.cluster.n_devices}"
        yield Finding(path=("n_data",), says=rank.n_data, fact=fact)
    of = {"tensor": "n_tensor", "data": "n_data", "pipeline": "n_stages"}
    of["expert"] = "n_expert_parallel"
    for name, degree in request.targets.degrees.fixed().items():
        if getattr(rank, of[name]) != degree:
            fact = f"is not the {degree} that was asked for"
            yield Finding(path=(of[name],), says=getattr(rank, of[name]), fact=fact)


def _unoffered(request: EngineRequest, says: EngineDeployment) -> Iterator[Finding]:
    """Choices that are not among those of the request."""
    model = {model.name: model for model in request.models}[says.model]
    if says.formats not in request.formats:
        yield Finding(path=("formats", "weights"), says=says.weights_format, fact="is not offered")
    known = model.weights_formats
    if known and says.formats.weights not in known:
        fact = f"is no format of {model.name} here"
        yield Finding(path=("formats", "weights"), says=says.weights_format, fact=fact)
    for name, offered in (
        ("batch", request.batches),
        ("chunk_tokens", request.chunks),
        ("overlap", request.overlaps),
    ):
        if getattr(says, name) not in offered:
            yield Finding(path=(name,), says=getattr(says, name), fact="is not offered")
    yield from _undrafted(request, says)
    if says.overlap == "two-batch" and min(says.n_data, says.n_expert_parallel, says.batch) < 2:
        fact = "has no two batches with messages to hide"
        yield Finding(path=("overlap",), says=says.overlap, fact=fact)
    decoded = says.batch * (1 + says.n_drafted) if request.records.engine.mixes_prefill else 0
    if says.chunk_tokens <= decoded:
        fact = f"has no room for prompts beside {decoded} tokens"
        yield Finding(path=("chunk_tokens",), says=says.chunk_tokens, fact=fact)


def _undrafted(request: EngineRequest, says: EngineDeployment) -> Iterator[Finding]:
    drafting = request.drafting
    if not says.n_drafted:
        if says.drafter:
            yield Finding(path=("drafter",), says=says.drafter, fact="drafts nothing")
    elif drafting is None or says.drafter != drafting.kind:
        yield Finding(path=("drafter",), says=says.drafter, fact="is not what may draft")
    elif says.n_drafted not in drafting.lookaheads:
        yield Finding(path=("n_drafted",), says=says.n_drafted, fact="is not offered")
