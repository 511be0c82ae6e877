"""Seconds of one layer on one device, kernel by kernel and message by message.

Devices of an attention rank share the heads of attention and the columns of FFNs; all devices of
a stage share the experts, which are dealt to some groups of them and cut over the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.specs.ask.stages import StageGroup, StagesRequest
from planner.specs.records.architecture import Architecture, LayerClass
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.verifier.serving.feeding import feeding_runs
from planner.verifier.serving.kernels import (
    READ,
    STATIC,
    Run,
    message,
    moved,
    product,
    stored_bytes,
)
from planner.verifier.serving.mixers import Tokens, kv_heads, mixing_runs, tokens_of
from planner.verifier.serving.ranks import COLLECTIVES, COUNTED, ERRORS, MEASURED, Rank, rank_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Time of a kernel or a message.

    Args:
        form: that errs as one.
        error: relative, of the form.
    """

    run: Run
    seconds: float
    form: str
    error: float


def layer_spent(layer: LayerClass, rank: Rank, tokens: Tokens) -> list[Spent]:
    d_model, formats = rank.model.d_model, rank.formats
    runs: list[Run] = []
    if layer.mixer is not None:
        runs += mixing_runs(layer.mixer, d_model, rank.n_tensor, tokens, formats)
        if layer.ffn is None or not rank.model.is_parallel_block:  # there one sum is of both
            n_bytes, name = tokens.n * d_model * 2, "all-reduce after mixing"
            runs.append(message(name, "reduce", "all_reduce", n_bytes, rank.n_tensor))
    if layer.ffn is not None:
        runs += feeding_runs(layer.ffn, rank, tokens)
    if rank.kernels.quantises(formats.weights):
        runs += _quantising(runs)
    n_bytes = _small_bytes(layer, rank, tokens)
    runs.append(moved("norms and rotations", "project", n_bytes, rank.n_small_kernels))
    return [spent_by(run, rank) for run in runs]


def spent_by(run: Run, rank: Rank) -> Spent:
    """Of one kernel or collective."""
    kernels, links = rank.kernels, rank.links
    if run.family in COLLECTIVES:
        seconds = links.collective_s(run.family, *run.arguments.values())
        form = MEASURED if links.is_measured else COUNTED
        return Spent(run=run, seconds=seconds, form=form, error=ERRORS[form])
    if run.family == "between":
        leaves = rank.n_devices > links.n_per_node  # a node that has both pools keeps them all
        seconds = links.send_s(run.sent_bytes, leaves_node=leaves)
        return Spent(run=run, seconds=seconds, form=COUNTED, error=ERRORS[COUNTED])
    if run.family == "scores":  # no closed form
        seconds, form = kernels.roofline_s(run), "roofline"
        return Spent(run=run, seconds=seconds, form=form, error=kernels.error(run))
    return Spent(run=run, seconds=kernels.seconds(run), form=run.family, error=kernels.error(run))


def layer_s(layer: LayerClass, group: StageGroup, request: StagesRequest) -> float:
    spent = layer_spent(layer, rank_of(group, request), tokens_of(request))
    beside = unfilled_s if request.work.phase == "decode" else launched_s
    return sum(one.seconds for one in spent) + beside(layer, request.engine)


def unfilled_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a decode pass, between its kernels and in norms that nobody fused."""
    mixer, seconds = layer.mixer, engine.layer_gap_s
    if isinstance(mixer, GroupedAttention):
        norms = mixer.norms_heads
    elif isinstance(mixer, LatentAttention):
        norms = mixer.own_indexer is not None
    else:
        norms = mixer is not None
    return seconds + (engine.inner_norms_s if norms else 0.0)


def decode_beside_s(model: Architecture, engine: EngineSpec, sequences: float) -> float:
    """What a decode pass takes beside its kernels: of its layers, of what it writes for each."""
    gaps = (layer.n_layers * unfilled_s(layer, engine) for layer in model.layers)
    return engine.decode_host_s + sum(gaps) + sequences * engine.decode_sequence_s


def launched_s(layer: LayerClass, engine: EngineSpec) -> float:
    """Of one layer of a pass that reads prompts, while its host launches kernels of experts.

    And those of mixers that are many: of scans of a state, of an indexer.
    """
    mixer, seconds = layer.mixer, 0.0
    if hasattr(layer.ffn, "n_experts"):
        seconds += engine.prefill_experts_s
    index = mixer.own_indexer if isinstance(mixer, LatentAttention) else None
    if isinstance(mixer, Recurrence) or index is not None:
        seconds += engine.prefill_scans_s
    return seconds


def prefill_beside_s(model: Architecture, engine: EngineSpec) -> float:
    """What a pass that reads prompts takes beside its kernels."""
    return engine.prefill_host_s + sum(
        layer.n_layers * launched_s(layer, engine) for layer in model.layers
    )


def _quantising(runs: list[Run]) -> Iterator[Run]:
    """What makes inputs narrow before products: one kernel each, counted by parts of a layer."""
    products = [run for run in runs if run.family == "gemm"]
    narrow = [run for run in products if run.format.removesuffix(STATIC) in READ]
    for part in dict.fromkeys(run.part for run in narrow):
        mine = [run.arguments for run in narrow if run.part == part]
        n_bytes = sum(one["m"] * one["k"] * (2 + one["input_bytes"]) for one in mine)
        yield moved("quantisation", part, n_bytes, len(mine))


def _small_bytes(layer: LayerClass, rank: Rank, tokens: Tokens) -> float:
    """Norms with their residuals, rotations, and what goes into the cache."""
    mixer, n_tensor = layer.mixer, rank.n_tensor
    numbers = 4.0 * rank.model.d_model * ((mixer is not None) + (layer.ffn is not None))
    cached = 0.0
    if isinstance(mixer, (GroupedAttention, LatentAttention)):
        numbers += 2.0 * mixer.n_heads * mixer.d_head / n_tensor
        cached = cached_numbers(layer, n_tensor)
    n_bytes = tokens.n * (2 * numbers + cached * (2 + stored_bytes(rank.formats.cache)))
    if isinstance(mixer, LatentAttention):  # keys are joined of what latents give and rotated
        joined = mixer.d_nope + mixer.d_head
        n_bytes += tokens.new * 2.0 * mixer.n_heads * joined / n_tensor
    return n_bytes


def cached_numbers(layer: LayerClass, n_tensor: int) -> float:
    """That a token leaves on one device."""
    mixer = layer.mixer
    if isinstance(mixer, GroupedAttention):
        return kv_heads(mixer, n_tensor) * mixer.d_cached / mixer.n_kv_heads
    return float(mixer.d_kept) if mixer else 0.0


def encoder_spent(rank: Rank, tokens: Tokens) -> list[tuple[int, Spent]]:
    """Of a tower, for what is seen or heard in the prompts of a pass; each with how often it runs.

    A patch attends to as many as a causal kernel lets the last of them, with half of them before.
    """
    tower, cut = rank.model.encoder, rank.n_tensor
    if tower is None or not tokens.new * tower.patches_per_token:
        return []
    n, w, runs = tokens.new * tower.patches_per_token, tower.width, []
    for name, times, inner, params in tower.matrices:
        rows, columns = n * w / inner, params / inner / cut
        runs.append((times, product(f"tower: {name}", "model", rows, columns, inner, "bf16")))
    for name, times, seen in tower.spans:
        arguments = {"batch": n / seen, "tokens": seen, "past_tokens": seen / 2, "d_head": 64}
        arguments |= {"n_heads": w / cut / 64, "n_kv_heads": w / cut / 64, "cache_bytes": 2.0}
        work: dict[str, Any] = {"flop": 4.0 * w / cut * n * seen, "hbm_bytes": 8.0 * w / cut * n}
        work |= {"part": "model", "family": "prefill_attention", "arguments": arguments}
        runs.append((times, Run(name=f"tower: {name}", **work)))
    summed = message("tower: all-reduces", "model", "all_reduce", n * w * 2, cut)
    n_bytes = n / tower.n_joined * rank.model.d_model * 2
    after = message("tower: all-reduce after it", "model", "all_reduce", n_bytes, cut)
    runs += [(2 * tower.n_layers, summed), (1, after)]
    return [(times, spent_by(run, rank)) for times, run in runs]


def embedding_spent(rank: Rank, n_tokens: float) -> Spent:
    """The sum after the embedding."""
    n_bytes = n_tokens * rank.model.d_model * 2
    name = "all-reduce after the embedding"
    return spent_by(message(name, "model", "all_reduce", n_bytes, rank.n_tensor), rank)


def head_spent(rank: Rank, rows: float) -> list[Spent]:
    """The head, its scores gathered, and the next tokens drawn."""
    words, cut = rank.model.vocab_size, rank.n_tensor
    drawn = Run(
        name="sampling",
        part="model",
        family="sampling",
        arguments={"batch": rows, "vocab": words},
        hbm_bytes=rows * words * 4,
    )
    scored = product("head", "model", rows, words / cut, rank.model.d_model, "bf16")
    gathered = message("gather of logits", "model", "all_gather", rows * words * 2, cut)
    return [spent_by(one, rank) for one in (scored, gathered, drawn)]


def embedding_s(group: StageGroup, request: StagesRequest) -> float:
    return embedding_spent(rank_of(group, request), tokens_of(request).n).seconds


def head_s(group: StageGroup, request: StagesRequest) -> float:
    """The head of a group, and the host's part of a pass."""
    spent = head_spent(rank_of(group, request), tokens_of(request).n_logits)
    engine, work = request.engine, request.work
    host_s = engine.prefill_host_s
    if work.phase == "decode":
        host_s = engine.decode_host_s + engine.decode_sequence_s * work.batch
    return sum(one.seconds for one in spent) + host_s
