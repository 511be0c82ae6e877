"""Kernels that mix the tokens of one layer: attention over caches and latents, recurrences."""

from __future__ import annotations

from collections.abc import Iterator

from planner.specs.mixers import GroupedAttention, Indexer, LatentAttention, Mixer, Recurrence
from planner.specs.served_formats import ServedFormats
from planner.verifier.serving.kernels import Run, grouped_product, product, stored_bytes
from planner.verifier.serving.tokens import Tokens


def mixing_runs(
    mixer: Mixer, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    """On one of the devices that share the heads."""
    if isinstance(mixer, GroupedAttention):
        return _grouped(mixer, d_model, n_tensor, tokens, formats)
    if isinstance(mixer, LatentAttention):
        return _latent(mixer, d_model, n_tensor, tokens, formats)
    return _recurrent(mixer, d_model, n_tensor, tokens, formats)


def kv_heads(mixer: GroupedAttention, n_tensor: int) -> int:
    """Of one device: fewer heads than devices are held several times."""
    return max(1, -(-mixer.n_kv_heads // n_tensor))


def _grouped(
    mixer: GroupedAttention, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    heads, own = mixer.n_heads / n_tensor, kv_heads(mixer, n_tensor)
    columns = mixer.d_queries / n_tensor + own * mixer.d_keys_and_values / mixer.n_kv_heads
    yield product("project", tokens.n, columns, d_model, formats.weights)
    shape = {
        "n_heads": heads,
        "n_kv_heads": own,
        "d_head": mixer.d_head,
        "cache_bytes": stored_bytes(formats.cache),
    }
    width = mixer.n_span_tokens
    if tokens.decoding:
        seen = tokens.context
        if width is not None and mixer.span == "chunk":
            seen = width / 2 if seen > width else seen
        elif width is not None:
            seen = min(seen, width)
        yield Run(
            family="decode_attention",
            format=formats.cache,
            part="attend",
            arguments={"batch": tokens.decoding, "context": seen, **shape},
        )
    if tokens.read:
        new, past = tokens.read, tokens.past
        if width is not None and new + past > width:
            # triangles as wide as the window, each beside half of the window before
            new, past = min(new, width), 0.0 if mixer.span == "chunk" else width / 2
        triangles = tokens.new / max(new, 1.0)
        yield Run(
            family="prefill_attention",
            format=formats.cache,
            part="attend",
            arguments={"batch": triangles, "tokens": new, "past_tokens": past, **shape},
        )
    yield product("attend", tokens.n, d_model, heads * mixer.d_value_head, formats.weights)


def _latent(
    mixer: LatentAttention, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    heads, weights = mixer.n_heads / n_tensor, formats.weights
    index = mixer.indexer if mixer.indexer and not mixer.indexer.is_shared else None
    columns = mixer.d_cached + (mixer.d_q_latent or 0)
    columns += index.d_head + index.n_heads if index else 0
    d_from = mixer.d_q_latent or d_model
    yield product("project", tokens.n, columns, d_model, weights)
    yield product("project", tokens.n, heads * mixer.d_head, d_from, weights)
    if index:
        yield product("project", tokens.n, index.n_heads * index.d_head, d_from, weights)
        yield _scores(index, tokens)
    if tokens.decoding:
        yield from _absorbed(mixer, heads, tokens, formats)
    if tokens.read:
        yield from _expanded(mixer, heads, tokens, formats)
    yield product("attend", tokens.n, d_model, heads * mixer.d_value_head, weights)


def _scores(index: Indexer, tokens: Tokens) -> Run:
    """Small heads score all cached tokens, on every device the same."""
    met = tokens.scored * tokens.context
    met += tokens.new * (tokens.past + (tokens.read + 1) / 2)
    keys = tokens.decoding * tokens.context + tokens.prompts * (tokens.past + tokens.read)
    return Run(
        family="scores",
        part="attend",
        format="fp8",
        flop=2.0 * index.n_heads * index.d_head * met,
        hbm_bytes=keys * index.d_head,
    )


def _seen(mixer: LatentAttention, context: float) -> float:
    """Tokens that attention reads of those cached."""
    return min(context, mixer.indexer.n_selected_tokens) if mixer.indexer else context


def _absorbed(
    mixer: LatentAttention, heads: float, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    """Queries go into the space of latents, and outputs come back from it."""
    rows, latent = tokens.scored * heads, mixer.d_kv_latent
    yield grouped_product("project", rows, heads, (latent, mixer.d_nope), "bf16")
    yield Run(
        family="latent_decode",
        format=formats.cache,
        part="attend",
        arguments={
            "batch": tokens.decoding,
            "context": _seen(mixer, tokens.context),
            "n_heads": heads * tokens.positions,
            "d_latent": latent,
            "d_rope": mixer.d_rope,
            "cache_bytes": stored_bytes(formats.cache),
        },
    )
    yield grouped_product("attend", rows, heads, (mixer.d_value_head, latent), "bf16")


def _expanded(
    mixer: LatentAttention, heads: float, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    """Keys and values of all heads are made from latents, of cached tokens again."""
    made = heads * (mixer.d_nope + mixer.d_value_head)
    all_tokens = tokens.prompts * (tokens.read + tokens.past)
    yield product("project", all_tokens, made, mixer.d_kv_latent, formats.weights)
    mean = (tokens.read + 1) / 2
    past = max(0.0, _seen(mixer, tokens.past + mean) - mean) if mixer.indexer else tokens.past
    yield Run(
        family="latent_prefill",
        format=formats.cache,
        part="attend",
        arguments={
            "batch": tokens.prompts,
            "tokens": tokens.read,
            "past_tokens": past,
            "n_heads": heads,
            "d_nope": mixer.d_nope,
            "d_rope": mixer.d_rope,
            "d_value": mixer.d_value_head,
        },
    )


def _recurrent(
    mixer: Recurrence, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    columns = mixer.n_input_columns / n_tensor
    yield product("project", tokens.n, columns, d_model, formats.weights)
    shape = {
        "n_heads": mixer.n_heads / n_tensor,
        "d_key": mixer.d_key,
        "d_value": mixer.d_value,
        "n_groups": max(1.0, mixer.n_groups / n_tensor),
        "d_conv": mixer.d_conv / n_tensor,
        "n_conv_taps": mixer.n_conv_taps,
    }
    if tokens.decoding:
        kept = {"state_bytes": mixer.state_bytes_per_number}
        yield Run(
            family="recurrence_decode",
            format=mixer.kind,
            part="attend",
            arguments={"batch": tokens.decoding, **shape, **kept},
        )
    if tokens.read:
        yield Run(
            family="recurrence_prefill",
            format=mixer.kind,
            part="attend",
            arguments={"batch": tokens.prompts, "tokens": tokens.read, **shape},
        )
    rows = mixer.n_output_rows / n_tensor
    yield product("attend", tokens.n, d_model, rows, formats.weights)
