"""What was asked of an engine's deployments, in words."""

from collections.abc import Iterator, Sequence

from planner.quantities.units import show
from planner.report.launch.words import saved_as
from planner.report.region import planned_words
from planner.report.words import amount, percent, plural, target_texts
from planner.results.plans import AnyRequest
from planner.results.predictions import Prediction
from planner.specs.ask.engine import (
    OVERLAPS,
    DraftOptions,
    EngineRequest,
    ModelOption,
    PredictionRequest,
)
from planner.specs.files.acceptance import acceptance_text, source_of
from planner.specs.files.engines import memory_options
from planner.specs.options.counts import span_text
from planner.specs.records.architecture import Architecture, Experts
from planner.specs.records.devices import Workload
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.served_formats import ServedFormats, as_run, checkpoint_of


def engine_rows(request: EngineRequest, others: Sequence[AnyRequest] = ()) -> list[tuple[str, str]]:
    """What was asked, with every default that is worth saying.

    Args:
        others: what other engines were asked beside it.
    """
    engines = [one.engine for one in (request, *others) if isinstance(one, EngineRequest)]
    work = request.workload
    reuse = reuse_words(work)
    formats = (f"{one.weights} weights with {one.cache} cache" for one in request.formats)
    backend = request.records.kernels.experts_backend
    return [
        ("engine", " or ".join(engines)),
        ("model", request.model.title),
        ("variants", "; ".join(_variant_text(one) for one in request.variants)),
        ("pool", f"{request.cluster.n_devices} × {request.cluster.device}"),
        ("requests", f"{amount(work.n_input_tokens)} tokens in, {work.n_output_tokens} out{reuse}"),
        ("formats", " or ".join(formats)),
        ("experts", f"by {backend}" if backend else ""),
        ("targets", ", ".join(target_texts(request.targets)) or "none"),
        ("memory", _memory_text(request.records.engine)),
        ("rules", changed_words(request.records.engine)),
        ("overlap", " or ".join(request.overlaps) if request.overlaps != OVERLAPS[:1] else ""),
        ("drafts", _drafts_text(request.drafting)),
        ("objective", request.objective),
        ("times", planned_words(request.confidence)),
    ]


def reuse_words(work: Workload | PredictionRequest) -> str:
    """`, first 1,000 in common, 4 samples a prompt, 70 % of the input cached`; empty of none."""
    return "".join(
        (
            f", first {work.n_shared_tokens:,} in common" * (work.n_shared_tokens > 0),
            f", {work.n_samples} samples a prompt" * (work.n_samples > 1),
            f", {percent(work.hit_fraction)} of the input cached" * (work.hit_fraction > 0),
            " by the host" * (work.offload == "host"),
        )
    )


def cost_words(answer: Prediction) -> str:
    """Rent, and what an output token costs of it; nothing of devices without a price."""
    rent, rate = answer.request.records.cluster.usd_per_hour, answer.total_tokens_per_s
    rent *= answer.n_devices
    token = f"{show(rent / 3600.0 / rate, 'USD/token')}, " if rate else ""
    return f"{token}{show(rent, 'USD/h')} for {plural(answer.n_devices, 'device')}" if rent else ""


def sharing_words(answer: Prediction) -> Iterator[str]:
    """What of its cache sequences hold together, and what they fetch of the host."""
    once, n, hits = answer.memory.shared_bytes, answer.request.n_samples, answer.offload
    if once:
        yield f"of the cache {show(once, 'B')} are of all requests, once on each rank"
    if n > 1:
        yield f"the {n} samples of a request hold the whole blocks of its prompt once"
    if once or n > 1:
        yield "each sequence reads all of its context by itself"
    if hits is not None:
        fetched, took, again = (
            show(hits.fetched_bytes, "B"),
            show(hits.fetch_s, "s"),
            show(hits.again_s, "s"),
        )
        yield (
            f"each device fetches {fetched} of its host for a request in {took}; reading these "
            f"tokens again takes {again} longer"
        )
    if hits is not None and hits.n_kept is not None:
        yield f"the host has room for caches of {hits.n_kept:,} requests, beside the devices"


def _drafts_text(drafting: DraftOptions | None) -> str:
    if drafting is None:
        return ""
    source = source_of(drafting.kind, drafting.acceptance)
    return (
        f"none, or {span_text(drafting.lookaheads)} tokens by {drafting.kind}, each accepted "
        f"with probability {acceptance_text(drafting.acceptance)} by position"
        f"{f' ({source})' if source else ''}"
    )


def changed_words(engine: EngineSpec) -> str:
    """What a user's file changes of the rules of an engine; empty without one."""
    if not engine.rules_file:
        return ""
    added = [rule.name for rule in engine.rules if rule.origin == engine.rules_file]
    parts = [
        f"{verb} {', '.join(f'`{name}`' for name in names)}"
        for verb, names in (("lifts", engine.lifted), ("adds", added))
        if names
    ]
    return f"{engine.rules_file}: {' and '.join(parts) or 'nothing'}"


def _memory_text(engine: EngineSpec) -> str:
    """What the engine may take of a device, where that is not what its file says."""
    if not set(memory_options(engine)) - {"--rules", "--calibration"}:
        return ""
    own = show(engine.workspace_bytes, "B")
    return f"{percent(engine.memory_fraction)} of each device, {own} of it the engine's own"


def _variant_text(model: ModelOption) -> str:
    loss = model.quality_loss_fraction
    return f"{model.title}, which loses {percent(loss) if loss < 1 else 'nobody knows what'}"


def loaded_words(model: Architecture, formats: ServedFormats, engine: EngineSpec) -> str:
    """`Qwen/Qwen3-32B-FP8, in fp8 with a scale for each block of 128 × 128`; empty where formats
    say it all."""
    run = as_run(model, formats, engine)
    if run == formats:
        return ""
    known = checkpoint_of(model, formats.weights)
    which = known.repository or model.repository or model.name if known else "a checkpoint"
    has_experts = any(isinstance(layer.ffn, Experts) for layer in model.layers)
    source = f" ({known.source})" if known and known.source else ""
    return f"{which} {saved_as(run, has_experts=has_experts)}{source}"
