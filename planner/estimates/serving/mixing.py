"""Operations of the layers that mix tokens: attention of all kinds, recurrences."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.deployments import DeploymentTable, kv_heads_per_device
from planner.estimates.serving.operations import (
    Operation,
    PassShape,
    all_reduce,
    gemm,
    grouped_gemm,
    kernel,
    number_bytes,
)
from planner.specs.records.mixers import (
    GroupedAttention,
    Indexer,
    LatentAttention,
    Mixer,
    Recurrence,
)
from planner.specs.records.served_formats import ServedFormats

AFTER_MIXING = "all-reduce after mixing"


def mixer_operations(
    mixer: Mixer, d_model: int, table: DeploymentTable, work: PassShape, formats: ServedFormats
) -> Iterator[Operation]:
    """What one layer does to mix tokens, on one device."""
    if isinstance(mixer, GroupedAttention):
        yield from _grouped(mixer, d_model, table, work, formats)
    elif isinstance(mixer, LatentAttention):
        yield from _latent(mixer, d_model, table, work, formats)
    else:
        yield from _recurrence(mixer, d_model, table, work, formats)
    yield all_reduce(AFTER_MIXING, "reduce", work.n_tokens, d_model, table.n_tensor)


def _grouped(
    mixer: GroupedAttention,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
) -> Iterator[Operation]:
    tokens = work.n_tokens
    heads = mixer.n_heads / table.n_tensor
    kv_heads = kv_heads_per_device(mixer, table)
    columns = heads * (mixer.d_queries / mixer.n_heads)
    columns = columns + kv_heads * (mixer.d_keys_and_values / mixer.n_kv_heads)
    weights = formats.weights
    yield gemm("qkv projection", "project", tokens, n=columns, k=d_model, number_format=weights)
    yield from _grouped_attention(mixer, heads, kv_heads, work, formats)
    rows = heads * mixer.d_value_head
    yield gemm("output projection", "attend", tokens, n=d_model, k=rows, number_format=weights)


def _grouped_attention(
    mixer: GroupedAttention,
    heads: FloatArray,
    kv_heads: FloatArray,
    work: PassShape,
    formats: ServedFormats,
) -> Iterator[Operation]:
    shape: dict[str, Any] = {
        "n_heads": heads,
        "n_kv_heads": kv_heads,
        "d_head": mixer.d_head,
        "cache_bytes": number_bytes(formats.cache),
    }
    if np.any(work.n_decoding):
        yield kernel(
            "decode attention",
            "attend",
            "decode_attention",
            formats.cache,
            batch=np.asarray(work.n_decoding),
            context=_decode_span(mixer, work),
            **shape,
        )
    if np.any(work.n_prompts):
        new, past = _prefill_span(mixer, work)
        yield kernel(
            "prefill attention",
            "attend",
            "prefill_attention",
            formats.cache,
            batch=work.read_tokens / np.maximum(new, 1.0),
            tokens=new,
            past_tokens=past,
            **shape,
        )


def _decode_span(mixer: GroupedAttention, work: PassShape) -> FloatArray:
    """Cached tokens that one decoding sequence attends to; half a chunk on average (N,)."""
    context = np.asarray(work.context, dtype=float)
    if mixer.n_span_tokens is None:
        return context
    if mixer.span == "chunk":
        half = mixer.n_span_tokens / 2.0
        return np.where(context > mixer.n_span_tokens, half, context)
    return np.asarray(np.minimum(context, mixer.n_span_tokens))


def _prefill_span(mixer: GroupedAttention, work: PassShape) -> tuple[FloatArray, FloatArray]:
    """Tokens of the causal triangle, and of the rectangle beside it, that stand for a prompt.

    A window of w makes of t new tokens t/w triangles of w, each beside a rectangle of w/2 of
    the window before: t·w pairs in all. A chunk of w makes t/w triangles alone.
    """
    new = np.asarray(work.prompt_tokens, dtype=float)
    past = np.asarray(work.past_tokens, dtype=float)
    if mixer.n_span_tokens is None:
        return new, past
    width = float(mixer.n_span_tokens)
    cut = new + past > width
    beside = 0.0 if mixer.span == "chunk" else width / 2.0
    return np.where(cut, np.minimum(new, width), new), np.where(cut, beside, past)


def _latent(
    mixer: LatentAttention,
    d_model: int,
    table: DeploymentTable,
    work: PassShape,
    formats: ServedFormats,
) -> Iterator[Operation]:
    tokens, weights = work.n_tokens, formats.weights
    heads = mixer.n_heads / table.n_tensor
    d_latents = (mixer.d_q_latent or 0) + mixer.d_cached  # one product makes both
    index = mixer.own_indexer
    if index is not None:
        d_latents += index.d_head + index.n_heads
    yield gemm("latents", "project", tokens, n=d_latents, k=d_model, number_format=weights)
    d_from = mixer.d_q_latent or d_model
    queries = heads * mixer.d_head
    yield gemm("queries", "project", tokens, n=queries, k=d_from, number_format=weights)
    if index is not None:
        yield from _indexing(index, d_from, work, formats)
    if np.any(work.n_decoding):
        yield from _absorbed(mixer, heads, work, formats)
    if np.any(work.n_prompts):
        yield from _expanded(mixer, heads, work, formats)
    rows = heads * mixer.d_value_head
    yield gemm("output projection", "attend", tokens, n=d_model, k=rows, number_format=weights)


def _absorbed(
    mixer: LatentAttention, heads: FloatArray, work: PassShape, formats: ServedFormats
) -> Iterator[Operation]:
    """Decode attends to latents: queries go into their space, outputs come back."""
    rows = work.decoded_tokens * heads
    latent = mixer.d_kv_latent
    product = partial(grouped_gemm, n_hit=heads, number_format="bf16")
    yield product("queries to latents", "project", rows, n=latent, k=mixer.d_nope)
    yield kernel(
        "decode attention",
        "attend",
        "latent_decode",
        formats.cache,
        batch=np.asarray(work.n_decoding),
        context=_selected(mixer.indexer, np.asarray(work.context, dtype=float)),
        n_heads=heads * work.n_positions,  # positions of a sequence share its latents
        d_latent=latent,
        d_rope=mixer.d_rope,
        cache_bytes=number_bytes(formats.cache),
    )
    yield product("latents to values", "attend", rows, n=mixer.d_value_head, k=latent)


def _expanded(
    mixer: LatentAttention, heads: FloatArray, work: PassShape, formats: ServedFormats
) -> Iterator[Operation]:
    """Prefill makes keys and values of every head from the latents, the cached ones again."""
    made = heads * (mixer.d_nope + mixer.d_value_head)
    new = np.asarray(work.prompt_tokens, dtype=float)
    past = np.asarray(work.past_tokens, dtype=float)
    prompts = np.asarray(work.n_prompts)
    yield gemm(
        "keys and values from latents",
        "project",
        prompts * (new + past),
        n=made,
        k=mixer.d_kv_latent,
        number_format=formats.weights,
    )
    if mixer.indexer is not None:
        mean = (new + 1.0) / 2.0
        past = np.maximum(0.0, _selected(mixer.indexer, past + mean) - mean)
    yield kernel(
        "prefill attention",
        "attend",
        "latent_prefill",
        formats.cache,
        batch=prompts,
        tokens=new,
        past_tokens=past,
        n_heads=heads,
        d_nope=mixer.d_nope,
        d_rope=mixer.d_rope,
        d_value=mixer.d_value_head,
    )


def _selected(indexer: Indexer | None, context: FloatArray) -> FloatArray:
    """Tokens that attention reads of `context`."""
    return context if indexer is None else np.minimum(context, indexer.n_selected_tokens)


def _indexing(
    index: Indexer, d_from: int, work: PassShape, formats: ServedFormats
) -> Iterator[Operation]:
    """Small heads score every cached token; they are not cut over devices."""
    columns = index.n_heads * index.d_head
    yield gemm(
        "queries of the indexer",
        "project",
        work.n_tokens,
        n=columns,
        k=d_from,
        number_format=formats.weights,
    )
    decoded = work.decoded_tokens * work.context
    new, past = np.asarray(work.prompt_tokens), np.asarray(work.past_tokens)
    read = np.asarray(work.n_prompts) * new * (past + (new + 1.0) / 2.0)
    scored = np.asarray(work.n_decoding) * work.context + work.n_prompts * (past + new)
    flop, n_bytes = 2.0 * columns * (decoded + read), scored * index.d_head
    yield kernel("scores of the indexer", "attend", "scores", "fp8", flop=flop, n_bytes=n_bytes)


def _recurrence(
    mixer: Recurrence, d_model: int, table: DeploymentTable, work: PassShape, formats: ServedFormats
) -> Iterator[Operation]:
    tokens, weights = work.n_tokens, formats.weights
    cut = table.n_tensor
    columns = mixer.n_input_columns / cut
    yield gemm("input projections", "project", tokens, n=columns, k=d_model, number_format=weights)
    shape: dict[str, Any] = {
        "n_heads": mixer.n_heads / cut,
        "d_key": mixer.d_key,
        "d_value": mixer.d_value,
        "n_groups": np.maximum(1.0, mixer.n_groups / cut),
        "d_conv": mixer.d_conv / cut,
        "n_conv_taps": mixer.n_conv_taps,
    }
    if np.any(work.n_decoding):
        yield kernel(
            "state update",
            "attend",
            "recurrence_decode",
            mixer.kind,
            batch=np.asarray(work.n_decoding),
            **shape,
            state_bytes=mixer.state_bytes_per_number,
        )
    if np.any(work.n_prompts):
        yield kernel(
            "state over the prompt",
            "attend",
            "recurrence_prefill",
            mixer.kind,
            batch=np.asarray(work.n_prompts),
            tokens=np.asarray(work.prompt_tokens),
            **shape,
        )
    rows = mixer.n_output_rows / cut
    yield gemm("output projection", "attend", tokens, n=d_model, k=rows, number_format=weights)
