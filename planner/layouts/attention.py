"""Attention: over heads, or over the batch.

Over heads, each device keeps the KV heads of its query heads; where the devices outnumber
the KV heads they are replicated, and with one KV head (multi-query) every device holds and
reads all of it. Heads arrive in pieces of one n-th, so devices that share a head, of KV or
of queries, complete it among themselves. Over batch, each device keeps the KV of its own
sequences: queries, keys and values travel there by an all-to-all, and the results travel
back.

A cached latent is one head. It is made in pieces, as queries' own latent is, and gathered by
the devices that need all of it: those of its sequence, and where keys and values are made
those of all heads.

Source: [Pope2022] §3.3, figures 4 and 5; latents: [DeepSeek2024] §2.1.
"""

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts.geometry import ALL_AXES, Geometry, Pass, Spread
from planner.layouts.work import ALL_GATHER, ALL_TO_ALL, Message
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec


def n_cached_heads(model: ModelSpec) -> int:
    """Heads that the cache can be cut by: a latent is one, whatever heads are made of it."""
    return 1 if model.mla else model.n_kv_heads


def kv_head_ways(model: ModelSpec, shape: Geometry, batch: Spread) -> FloatArray:
    """Ways in which the KV heads of one sequence are cut; the rest are replicas [1]."""
    return np.minimum(shape.n_tensor / batch.n_batch_ways, n_cached_heads(model))


def _busiest_share(n_heads: int, n_devices: FloatArray) -> FloatArray:
    """Share of the heads that the busiest device has: whole heads, so more than 1/n at times."""
    return np.ceil(n_heads / n_devices) / n_heads


def held_kv_bytes(
    model: ModelSpec,
    shape: Geometry,
    batch: Spread,
    n_tokens: float,
    kv_bytes_per_number: FloatArray,
) -> FloatArray:
    """Keys and values of one layer that the busiest device holds and reads [bytes]."""
    per_token = model.d_cached * kv_bytes_per_number
    share = _busiest_share(n_cached_heads(model), shape.n_tensor / batch.n_batch_ways)
    return batch.n_device_sequences * (n_tokens * per_token * share)


def query_head_ways(model: ModelSpec, shape: Geometry, batch: Spread) -> FloatArray:
    """Ways in which the query heads of one sequence are cut; the rest repeat the work [1]."""
    return np.minimum(shape.n_tensor / batch.n_batch_ways, model.n_heads_served)


def attention_flop(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> FloatArray:
    """Scores and weighted values of the busiest device in one layer [FLOP].

    Each new token meets its whole context, masked or not: 4 × heads × width.
    """
    per_pair = pair_flop(model, on_latents=meets_latents(model, work))
    per_sequence = per_pair * work.n_new_tokens * work.n_context_tokens
    share = _busiest_share(model.n_heads_served, shape.n_tensor / batch.n_batch_ways)
    return batch.n_device_sequences * (per_sequence * share)


def meets_latents(model: ModelSpec, work: Pass) -> bool:
    """Whether queries meet the cached latents themselves, which are wider than a head.

    They do wherever the context is older than the pass. In prefill all of it is new: there
    keys and values are made of the latents, once for each token.
    """
    return model.mla is not None and work.n_new_tokens < work.n_context_tokens


def pair_flop(model: ModelSpec, *, on_latents: bool) -> float:
    """Score and weighted value of one pair of tokens, all heads of one layer [FLOP].

    Source: [DeepSeek2024] §2.1 for latent attention, absorbed in decode.
    """
    if model.mla is None:
        return 4.0 * model.d_query
    mla = model.mla
    score = mla.d_kv_latent + mla.d_rope if on_latents else mla.d_nope + mla.d_rope
    value = mla.d_kv_latent if on_latents else mla.d_value
    return 2.0 * model.n_heads_served * (score + value)


def moved_widths(model: ModelSpec, work: Pass) -> tuple[int, int]:
    """Numbers of a token that travel to its sequence, and back, in attention over batch.

    The matrices that bring queries to latents, or make keys and values of them, lie with
    the heads; so what they make travels.
    """
    mla, n_heads = model.mla, model.n_heads_served
    if mla is None:
        return model.d_query + model.d_cached, model.d_query
    if meets_latents(model, work):
        return (n_heads + 1) * model.d_cached, n_heads * mla.d_kv_latent
    return model.d_query + n_heads * (mla.d_nope + mla.d_value), n_heads * mla.d_value


def messages(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> tuple[Message, ...]:
    """All-to-alls into and out of batch sharding, and the copies of shared heads."""
    bytes_per_number = FORMAT_BYTES[model.activation_format]
    moved_axes = batch.batch_axes & ~shape.cut
    n_moved = batch.n_batch_ways / shape.n_cut
    held_tokens = batch.n_group_sequences * (work.n_new_tokens * bytes_per_number)
    d_projected, d_result = moved_widths(model, work)

    def moved(purpose: str, width: int) -> Message:
        return Message(
            purpose=purpose,
            kind=ALL_TO_ALL,
            group=moved_axes,
            n_devices=n_moved,
            n_bytes=held_tokens * (width / shape.n_rest),
        )

    n_over_heads = shape.n_tensor / batch.n_batch_ways
    own_tokens = batch.n_device_sequences * (work.n_new_tokens * bytes_per_number)

    def copies(purpose: str, width: int, ways: FloatArray) -> Message:
        return Message(
            purpose=purpose,
            kind=ALL_GATHER,
            group=ALL_AXES & ~batch.batch_axes,
            n_devices=n_over_heads / ways,
            n_bytes=own_tokens * (width / ways),
        )

    makes_keys = model.mla is not None and not meets_latents(model, work)
    kv_copies = copies(
        "copies of shared KV heads", model.d_cached, kv_head_ways(model, shape, batch)
    )
    return (
        moved("queries, keys, values to their sequences", d_projected),
        moved("attention results to their heads", d_result),
        *_latent_messages(model, shape, held_tokens, work),
        *(() if makes_keys else (kv_copies,)),
        copies("copies of shared query heads", model.d_query, query_head_ways(model, shape, batch)),
    )


def _latent_messages(
    model: ModelSpec, shape: Geometry, held_tokens: FloatArray, work: Pass
) -> tuple[Message, ...]:
    """Latents, made in pieces, to every device that has heads to make of them.

    Those of keys and values only where keys and values are made; elsewhere the latent is
    the one shared head of the cache.
    """
    if model.mla is None:
        return ()
    widths = {"latents of queries": model.mla.d_q_latent or 0}
    if not meets_latents(model, work):
        widths["latents of keys and values"] = model.d_cached
    return tuple(
        Message(
            purpose=purpose,
            kind=ALL_GATHER,
            group=shape.rest,
            n_devices=shape.n_rest,
            n_bytes=held_tokens * float(width),
        )
        for purpose, width in widths.items()
        if width
    )
