"""A deployment of an engine counted anew from the request and from what was chosen.

Chosen are the model, formats, degrees, batch, chunk, overlap and drafts. Each has to be a choice
that the request and the engine allow. Money, bytes and times are counted, kernel by kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.results.engines import EngineDeployment
from planner.results.predictions import Interval
from planner.specs.architecture import Architecture, Experts
from planner.specs.engine_request import AskedModel, EngineRequest
from planner.specs.roles import TOGETHER
from planner.specs.serving_records import PredictionRequest, ServingRecords
from planner.verifier.findings import TOLERANCE, Finding, Path, Refused
from planner.verifier.quality import quality_words
from planner.verifier.quantities import broken_limits, further_of, limits_of
from planner.verifier.runtimes.packed import homeless
from planner.verifier.serving.checkpoints import loaded
from planner.verifier.serving.drafts import draft_of
from planner.verifier.serving.held import copies_of
from planner.verifier.serving.kernels import STATIC, STORED, Kernels
from planner.verifier.serving.links import Links
from planner.verifier.serving.ranks import Rank
from planner.verifier.serving.rounds import Served, deviations_planned, felt, held_by, stay_s
from planner.verifier.serving.starting import unstartable

CHECKS = (
    "every constraint of the unscreened program holds",
    "times, their errors and bytes recounted by an independent scalar model, kernel by kernel",
    "limits hold by that recount",
)
"""What a deployment of an engine passes before it goes out."""


def counted_engine(
    request: EngineRequest, says: EngineDeployment, path: Path
) -> tuple[EngineDeployment, list[Finding]]:
    """A deployment that is true of its choice; itself where that cannot be."""
    try:
        found, wrong = _recounted(request, says)
    except Refused as refused:
        return says, [refused.at(path)]
    wrong += _broken(request, found)
    return found, [replace(one, path=(*path, *one.path)) for one in wrong]


def _recounted(
    request: EngineRequest, says: EngineDeployment
) -> tuple[EngineDeployment, list[Finding]]:
    asked, model = model_of(request, says)
    rank = rank_of(request.records, model, says)
    records = request.records
    wrong = [
        *unstartable(
            records.engine,
            model,
            records.cluster,
            says,
            loaded=rank.formats,
            overlaps=says.overlap == "two-batch",
            balances=True,
        ),
        *_undone(model, rank, request),
        *_unoffered(request, asked, says),
    ]
    work, served = request.workload, served_by(request, model, says)
    held = held_by(rank, served)
    times = felt(rank, served, held.largest_batch)
    weights = held.weights_bytes + held.drafter_bytes
    used = weights + held.activation_bytes + held.workspace_bytes
    used += says.batch * held.sequence_bytes
    if used > held.limit_bytes * (1 + TOLERANCE):
        fact = f"is less than the {used!r} that are held"
        wrong.append(Finding(path=("capacity_bytes",), says=says.capacity_bytes, fact=fact))
    beyond = deviations_planned(request.confidence, times)
    tpot = times.tpot_s * (1 + beyond * times.tpot_error)
    n_devices = rank.n_group * rank.n_stages
    demand = request.targets.demand_tokens_per_s
    is_fleet = demand is not None or request.targets.n_replicas is not None
    n_replicas = says.n_replicas if is_fleet else 1
    pool = (request.cluster.n_devices, request.cluster.n_devices_per_node)
    wrong += homeless(request.targets, pool, n_devices, n_replicas)
    rent = n_replicas * n_devices * request.cluster.usd_per_hour
    ttft, n_out = times.ttft_s * (1 + beyond * times.ttft_error), work.n_output_tokens
    output = n_replicas * says.batch * says.n_data * n_out / stay_s(ttft, tpot, n_out)
    found = replace(
        says,
        engine=request.engine,
        model=asked.name,
        variant="" if asked == request.model else asked.name,
        quality_loss_fraction=asked.quality_loss_fraction,
        quality=quality_words(model, says.formats.weights, says.formats.cache),
        tpot_s=interval(times.tpot_s, times.tpot_error),
        ttft_s=interval(times.ttft_s, times.ttft_error),
        planned_tpot_s=tpot,
        planned_ttft_s=ttft,
        usd_per_hour=rent,
        usd_per_token=rent / 3600 / (output if demand is None else demand),
        output_tokens_per_s=output,
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        weights_bytes=weights,
        used_bytes=used,
        capacity_bytes=held.limit_bytes,
        outside=times.outside,
        redundant_experts=copies_of(rank),
        role=TOGETHER,  # a plan is one deployment that does it all
    )
    device = request.records.cluster.device
    return replace(found, further=further_of(limits_of(request.targets), found, device)), wrong


def interval(value: float, error: float) -> Interval:
    """What is within a relative standard deviation of a value."""
    return Interval(value=value, low=value / (1 + error), high=value * (1 + error))


def served_by(request: EngineRequest, model: Architecture, says: EngineDeployment) -> Served:
    """What a deployment is to serve."""
    work, drafting = request.workload, request.drafting
    acceptance = drafting.acceptance if drafting else ()
    return Served(
        engine=request.records.engine,
        hbm_bytes=request.records.cluster.device.hbm_bytes,
        batch=says.batch,
        chunk_tokens=says.chunk_tokens,
        overlaps=says.overlap == "two-batch",
        n_input_tokens=float(work.n_input_tokens),
        n_output_tokens=float(work.n_output_tokens),
        hit_fraction=request.hit_fraction,
        draft=draft_of(model, says.drafter, says.n_drafted, acceptance),
    )


def model_of(request: EngineRequest, says: EngineDeployment) -> tuple[AskedModel, Architecture]:
    """Which of those that may be served it serves.

    Raises:
        Refused: none of them.
    """
    for asked, model in zip(request.models, request.records.models, strict=True):
        if asked.name == says.model:
            return asked, model
    raise Refused("is no model that may be served", path=("model",), says=says.model)


def rank_of(
    records: ServingRecords, model: Architecture, says: EngineDeployment | PredictionRequest
) -> Rank:
    """One attention rank of a deployment.

    Raises:
        Refused: a degree, batch, chunk or format that nothing has.
    """
    names = ("n_tensor", "n_data", "n_stages", "n_expert_parallel", "n_expert_tensor")
    for name in (*names, "batch", "chunk_tokens"):
        if getattr(says, name) < 1:
            raise Refused("is below one", path=(name,), says=getattr(says, name))
    if (copies := says.n_redundant_experts) < 0:
        raise Refused("is below zero", path=("n_redundant_experts",), says=copies)
    for name in ("weights", "experts", "cache"):
        number_format = getattr(says.formats, name)
        if number_format.removesuffix(STATIC) not in STORED:
            raise Refused("is no number format", path=("formats", name), says=number_format)
    group = says.n_tensor * says.n_data
    return Rank(
        model=model,
        formats=loaded(model, says.formats, records.engine),
        kernels=Kernels(records.cluster.device, records.kernels, records.engine),
        links=Links(records.cluster.fabric),
        n_small_kernels=records.engine.n_small_kernels,
        n_tensor=says.n_tensor,
        n_data=says.n_data,
        n_stages=says.n_stages,
        n_expert_parallel=says.n_expert_parallel,
        n_expert_tensor=says.n_expert_tensor,
        n_redundant=says.n_redundant_experts,
        exchanges=says.n_data > 1 and says.n_expert_parallel > 1 and group > 1,
    )


def _has_experts(model: Architecture) -> bool:
    return any(isinstance(layer.ffn, Experts) for layer in model.layers)


def _undone(model: Architecture, rank: Rank, request: EngineRequest) -> Iterator[Finding]:
    """Degrees that the engine or the pool does not have, or that are not those asked for."""
    group = rank.n_tensor * rank.n_data
    if not _has_experts(model) and rank.n_expert_tensor != group:
        fact = f"is not the {group} devices of a stage"
        yield Finding(path=("n_expert_tensor",), says=rank.n_expert_tensor, fact=fact)
    n_devices = group * rank.n_stages
    if n_devices > request.records.cluster.n_devices:
        fact = f"take {n_devices} devices of {request.records.cluster.n_devices}"
        yield Finding(path=("n_data",), says=rank.n_data, fact=fact)
    of = {"tensor": "n_tensor", "data": "n_data", "pipeline": "n_stages"}
    of["expert"] = "n_expert_parallel"
    for name, asked in request.targets.degrees.fixed().items():
        if getattr(rank, of[name]) != asked:
            fact = f"is not the {asked} that was asked for"
            yield Finding(path=(of[name],), says=getattr(rank, of[name]), fact=fact)


def _unoffered(
    request: EngineRequest, asked: AskedModel, says: EngineDeployment
) -> Iterator[Finding]:
    """Choices that are not among those of the request."""
    if says.formats not in request.formats:
        yield Finding(path=("formats", "weights"), says=says.weights_format, fact="is not offered")
    known = asked.weights_formats
    if known and says.formats.weights not in known:
        fact = f"is no format of {asked.name} here"
        yield Finding(path=("formats", "weights"), says=says.weights_format, fact=fact)
    for name, offered in (
        ("batch", request.batches),
        ("chunk_tokens", request.chunks),
        ("overlap", request.overlaps),
    ):
        if getattr(says, name) not in offered:
            yield Finding(path=(name,), says=getattr(says, name), fact="is not offered")
    yield from _undrafted(request, says)
    exchanges = says.n_data > 1 and says.n_expert_parallel > 1
    if says.overlap == "two-batch" and not (exchanges and says.batch >= 2):
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


def _broken(request: EngineRequest, found: EngineDeployment) -> Iterator[Finding]:
    """Limits of the request that do not hold by the recount."""
    for fact in broken_limits(request.targets, found, 2 * TOLERANCE):
        yield Finding(path=(), says=found.summary, fact=f"breaks a limit: {fact}")
