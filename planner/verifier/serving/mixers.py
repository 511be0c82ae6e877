"""Kernels that mix the tokens of one layer: attention over caches and latents, recurrences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.specs.ask.stages import StagesRequest
from planner.specs.records.mixers import (
    GroupedAttention,
    Indexer,
    LatentAttention,
    Mixer,
    Recurrence,
)
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.serving.kernels import Run, grouped_product, product, stored_bytes


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
    yield product("qkv projection", "project", tokens.n, columns, d_model, formats.weights)
    number = stored_bytes(formats.cache)
    shape = {"n_heads": heads, "n_kv_heads": own, "d_head": mixer.d_head, "cache_bytes": number}
    pair = mixer.d_head + mixer.d_value_head
    cached = own * (mixer.d_head + (0 if mixer.shares_values else mixer.d_value_head)) * number
    width = mixer.n_span_tokens
    if tokens.decoding:
        seen = tokens.context
        if width is not None and mixer.span == "chunk":
            seen = width / 2 if seen > width else seen
        elif width is not None:
            seen = min(seen, width)
        yield Run(
            name="decode attention",
            part="attend",
            family="decode_attention",
            format=formats.cache,
            arguments={"batch": tokens.decoding, "context": seen, **shape},
            flop=2.0 * pair * heads * tokens.scored * seen,
            hbm_bytes=tokens.decoding * seen * cached,
        )
    if tokens.read:
        new, past = tokens.read, tokens.past
        if width is not None and new + past > width:
            # triangles as wide as the window, each beside half of the window before
            new, past = min(new, width), 0.0 if mixer.span == "chunk" else width / 2
        triangles = tokens.new / max(new, 1.0)
        read = tokens.prompts * (past + tokens.read) * cached
        yield Run(
            name="prefill attention",
            part="attend",
            family="prefill_attention",
            format=formats.cache,
            arguments={"batch": triangles, "tokens": new, "past_tokens": past, **shape},
            flop=2.0 * pair * heads * tokens.new * (past + (new + 1) / 2),
            hbm_bytes=read + 2.0 * tokens.new * heads * pair,
        )
    rows = heads * mixer.d_value_head
    yield product("output projection", "attend", tokens.n, d_model, rows, formats.weights)


def _latent(
    mixer: LatentAttention, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    heads, weights = mixer.n_heads / n_tensor, formats.weights
    index = mixer.own_indexer
    columns = mixer.d_cached + (mixer.d_q_latent or 0)
    columns += index.d_head + index.n_heads if index else 0
    d_from = mixer.d_q_latent or d_model
    yield product("latents", "project", tokens.n, columns, d_model, weights)
    yield product("queries", "project", tokens.n, heads * mixer.d_head, d_from, weights)
    if index:
        columns = index.n_heads * index.d_head
        yield product("queries of the indexer", "project", tokens.n, columns, d_from, weights)
        yield _scores(index, tokens)
    if tokens.decoding:
        yield from _absorbed(mixer, heads, tokens, formats)
    if tokens.read:
        yield from _expanded(mixer, heads, tokens, formats)
    rows = heads * mixer.d_value_head
    yield product("output projection", "attend", tokens.n, d_model, rows, weights)


def _scores(index: Indexer, tokens: Tokens) -> Run:
    """Small heads score all cached tokens, on every device the same."""
    met = tokens.scored * tokens.context
    met += tokens.new * (tokens.past + (tokens.read + 1) / 2)
    keys = tokens.decoding * tokens.context + tokens.prompts * (tokens.past + tokens.read)
    flop, n_bytes = 2.0 * index.n_heads * index.d_head * met, keys * index.d_head
    return Run(
        name="scores of the indexer",
        part="attend",
        family="scores",
        format="fp8",
        arguments={"flop": flop, "n_bytes": n_bytes},
        flop=flop,
        hbm_bytes=n_bytes,
    )


def _seen(mixer: LatentAttention, context: float) -> float:
    """Tokens that attention reads of those cached."""
    return min(context, mixer.indexer.n_selected_tokens) if mixer.indexer else context


def _absorbed(
    mixer: LatentAttention, heads: float, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    """Queries go into the space of latents, and outputs come back from it."""
    rows, latent = tokens.scored * heads, mixer.d_kv_latent
    seen, number = _seen(mixer, tokens.context), stored_bytes(formats.cache)
    there = (latent, mixer.d_nope)
    yield grouped_product("queries to latents", "project", rows, heads, there, "bf16")
    yield Run(
        name="decode attention",
        part="attend",
        family="latent_decode",
        format=formats.cache,
        arguments={
            "batch": tokens.decoding,
            "context": seen,
            "n_heads": heads * tokens.positions,  # positions of a sequence share its latents
            "d_latent": latent,
            "d_rope": mixer.d_rope,
            "cache_bytes": number,
        },
        flop=2.0 * (2 * latent + mixer.d_rope) * rows * seen,
        hbm_bytes=tokens.decoding * seen * mixer.d_cached * number,
    )
    back = (mixer.d_value_head, latent)
    yield grouped_product("latents to values", "attend", rows, heads, back, "bf16")


def _expanded(
    mixer: LatentAttention, heads: float, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    """Keys and values of all heads are made from latents, of cached tokens again."""
    made = heads * (mixer.d_nope + mixer.d_value_head)
    all_tokens = tokens.prompts * (tokens.read + tokens.past)
    name, weights = "keys and values from latents", formats.weights
    yield product(name, "project", all_tokens, made, mixer.d_kv_latent, weights)
    mean, pair = (tokens.read + 1) / 2, mixer.d_head + mixer.d_value_head
    seen = _seen(mixer, tokens.past + mean)
    past = max(0.0, seen - mean) if mixer.indexer else tokens.past
    yield Run(
        name="prefill attention",
        part="attend",
        family="latent_prefill",
        format=formats.cache,
        arguments={
            "batch": tokens.prompts,
            "tokens": tokens.read,
            "past_tokens": past,
            "n_heads": heads,
            "d_nope": mixer.d_nope,
            "d_rope": mixer.d_rope,
            "d_value": mixer.d_value_head,
        },
        flop=2.0 * pair * heads * tokens.new * seen,
        hbm_bytes=2.0 * pair * heads * tokens.prompts * (2.0 * tokens.read + tokens.past),
    )


def _recurrent(
    mixer: Recurrence, d_model: int, n_tensor: int, tokens: Tokens, formats: ServedFormats
) -> Iterator[Run]:
    columns, weights = mixer.n_input_columns / n_tensor, formats.weights
    yield product("input projections", "project", tokens.n, columns, d_model, weights)
    heads, channels = mixer.n_heads / n_tensor, mixer.d_conv / n_tensor
    state = heads * mixer.d_key * mixer.d_value
    waiting = channels * max(0, mixer.n_conv_taps - 1) * 2.0
    held = state * mixer.state_bytes_per_number + waiting
    shape = {
        "n_heads": heads,
        "d_key": mixer.d_key,
        "d_value": mixer.d_value,
        "n_groups": max(1.0, mixer.n_groups / n_tensor),
        "d_conv": channels,
        "n_conv_taps": mixer.n_conv_taps,
    }
    if tokens.decoding:
        kept = {"state_bytes": mixer.state_bytes_per_number}
        yield Run(
            name="state update",
            part="attend",
            family="recurrence_decode",
            format=mixer.kind,
            arguments={"batch": tokens.decoding, **shape, **kept},
            flop=6.0 * state * tokens.scored,
            hbm_bytes=2.0 * held * tokens.decoding,
        )
    if tokens.read:
        yield Run(
            name="state over the prompt",
            part="attend",
            family="recurrence_prefill",
            format=mixer.kind,
            arguments={"batch": tokens.prompts, "tokens": tokens.read, **shape},
            flop=6.0 * state * tokens.new,
            hbm_bytes=2.0 * held * tokens.prompts + 4.0 * channels * tokens.new,
        )
    rows = mixer.n_output_rows / n_tensor
    yield product("output projection", "attend", tokens.n, d_model, rows, weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one pass has of tokens.

    Args:
        decoding: sequences that decode, at a context of `context` cached tokens each.
        positions: of each of them that are scored: one, and those that were drafted.
        prompts: that are read: `read` tokens of each, after `past` of it.
    """

    decoding: float = 0.0
    positions: float = 1.0
    context: float = 0.0
    prompts: float = 0.0
    read: float = 0.0
    past: float = 0.0

    @property
    def scored(self) -> float:
        """Positions of all sequences that decode."""
        return self.decoding * self.positions

    @property
    def new(self) -> float:
        """Tokens of prompts."""
        return self.prompts * self.read

    @property
    def n(self) -> float:
        """That every matrix meets."""
        return self.scored + self.new

    @property
    def n_logits(self) -> float:
        """Whose next token is wanted: each that decodes, and the last of a prompt."""
        return self.scored + self.prompts

    def beside(self, reading: Tokens) -> Tokens:
        """The same with prompts that ride along."""
        prompts, read, past = reading.prompts, reading.read, reading.past
        return replace(self, prompts=prompts, read=read, past=past)

    def parted(self, n: float) -> Tokens:
        """Of one of so many micro-batches."""
        return replace(self, decoding=self.decoding / n, prompts=self.prompts / n)


def tokens_of(request: StagesRequest) -> Tokens:
    """Decode at the mean context; or a chunk in the middle of a prompt."""
    work = request.work
    if work.phase == "decode":
        context = work.n_input_tokens + work.n_output_tokens / 2
        return Tokens(decoding=float(work.batch), context=context)
    chunk = float(min(request.engine.n_chunk_tokens, work.n_input_tokens))
    return Tokens(prompts=1.0, read=chunk, past=(work.n_input_tokens - chunk) / 2)
