"""Attention: over heads, or over the batch.

Over heads, each device keeps the KV heads of its query heads; where the devices outnumber
the KV heads they are replicated, and with one KV head (multi-query) every device holds and
reads all of it. Heads arrive in pieces of one n-th, so devices that share a head, of KV or
of queries, complete it among themselves. Over batch, each device keeps the KV of its own
sequences: queries, keys and values travel there by an all-to-all, and the results travel
back.

Source: [Pope2022] §3.3, figures 4 and 5.
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts.geometry import Geometry, Pass, Spread
from planner.layouts.table import ALL_AXES
from planner.layouts.work import ALL_GATHER, ALL_TO_ALL, Message
from planner.specs.records import FORMAT_BYTES, ModelSpec


def kv_head_ways(model: ModelSpec, shape: Geometry, batch: Spread) -> FloatArray:
    """Ways in which the KV heads of one sequence are cut; the rest are replicas [1]."""
    return np.minimum(shape.n_tensor / batch.n_batch_ways, model.n_kv_heads)


def held_kv_bytes(model: ModelSpec, shape: Geometry, batch: Spread, n_tokens: float) -> FloatArray:
    """Keys and values of one layer that the busiest device holds and reads [bytes].

    A head is never cut: where the heads do not divide, the busiest device has one more.
    """
    n_heads = np.ceil(model.n_kv_heads / kv_head_ways(model, shape, batch))
    per_token = n_heads * (2 * model.d_head * FORMAT_BYTES[model.kv_format])
    return batch.n_device_sequences * (n_tokens * per_token)


def query_head_ways(model: ModelSpec, shape: Geometry, batch: Spread) -> FloatArray:
    """Ways in which the query heads of one sequence are cut; the rest repeat the work [1]."""
    return np.minimum(shape.n_tensor / batch.n_batch_ways, model.n_heads_served)


def attention_flop(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> FloatArray:
    """Scores and weighted values of the busiest device in one layer [FLOP].

    Each new token meets its whole context, masked or not: 4 × heads × width.
    """
    n_heads = np.ceil(model.n_heads_served / query_head_ways(model, shape, batch))
    per_head = 4.0 * model.d_head * work.n_new_tokens * work.n_context_tokens
    return batch.n_device_sequences * (n_heads * per_head)


def messages(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> tuple[Message, ...]:
    """All-to-alls into and out of batch sharding, and the copies of shared heads."""
    bytes_per_number = FORMAT_BYTES[model.activation_format]
    moved_axes = batch.batch_axes & ~shape.gathered
    n_moved = batch.n_batch_ways / shape.n_gathered
    held_tokens = batch.n_group_sequences * (work.n_new_tokens * bytes_per_number)
    projected = held_tokens * ((model.d_query + 2 * model.d_kv) / shape.n_rest)
    result = held_tokens * (model.d_query / shape.n_rest)

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

    return (
        Message(
            purpose="queries, keys, values to their sequences",
            kind=ALL_TO_ALL,
            group=moved_axes,
            n_devices=n_moved,
            n_bytes=projected,
        ),
        Message(
            purpose="attention results to their heads",
            kind=ALL_TO_ALL,
            group=moved_axes,
            n_devices=n_moved,
            n_bytes=result,
        ),
        copies("copies of shared KV heads", 2 * model.d_kv, kv_head_ways(model, shape, batch)),
        copies("copies of shared query heads", model.d_query, query_head_ways(model, shape, batch)),
    )
