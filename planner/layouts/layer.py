"""The whole of a layer: projections, attention and FFN under one layout.

`layer_work`, `head_work` and `residence` are what the floors above ask for; they compose
the families of this folder.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts import attention, weight_gathered, weight_stationary
from planner.layouts.geometry import Geometry, Pass, Spread, spread
from planner.layouts.work import HeadWork, LayerWork, Residence
from planner.specs.records import FORMAT_BYTES, ModelSpec


def microbatch(shape: Geometry, n_sequences: FloatArray) -> FloatArray:
    """Sequences of the largest micro-batch, (N, B), or (1, B) where no batch is cut."""
    if (shape.n_microbatches == 1).all():
        return n_sequences
    return np.ceil(n_sequences / shape.n_microbatches)


def layer_work(
    model: ModelSpec,
    shape: Geometry,
    work: Pass,
    *,
    n_sequences: FloatArray,
    weight_bytes_per_number: FloatArray,
) -> LayerWork:
    """Work of the busiest device in one layer, for one micro-batch of a pass.

    Args:
        model: the model, heads padded as served.
        shape: group sizes of the layouts, (N, 1).
        work: tokens of the pass, for each sequence.
        n_sequences: batch of the pass, (1, B) or (N, B).
        weight_bytes_per_number: of the weights' format, (N, 1) or a scalar array.
    """
    batch = spread(shape, microbatch(shape, n_sequences))
    n_tokens = batch.n_group_sequences * work.n_new_tokens
    params = model.layer_params_served / shape.n_rest
    return LayerWork(
        matmul_flop=n_tokens * (2.0 * params),
        attention_flop=attention.attention_flop(model, shape, batch, work),
        # gathered weights are read in full, so they cost the traffic of the whole group
        weight_bytes=params * weight_bytes_per_number,
        kv_bytes=attention.held_kv_bytes(model, shape, batch, work.n_context_tokens),
        messages=(
            weight_gathered.gather_message(model, shape, weight_bytes_per_number),
            *weight_stationary.messages(model, shape, n_tokens),
            *attention.messages(model, shape, batch, work),
        ),
    )


def head_work(
    model: ModelSpec,
    shape: Geometry,
    *,
    n_sequences: FloatArray,
    weight_bytes_per_number: FloatArray,
) -> HeadWork:
    """Work to turn the last position of each sequence into logits."""
    share = model.vocab_size * model.d_model / shape.n_tensor
    return HeadWork(
        matmul_flop=microbatch(shape, n_sequences) * (2.0 * share),
        weight_bytes=share * weight_bytes_per_number,
    )


def resident_weight_bytes(
    model: ModelSpec, shape: Geometry, weight_bytes_per_number: FloatArray
) -> FloatArray:
    """Weights at rest on the busiest device, (N, 1) [bytes].

    A pipeline's first or last stage holds one embedding matrix, a single stage all.
    """
    layers = np.ceil(model.n_layers / shape.n_stages) * model.layer_params_served
    one_matrix = model.vocab_size * model.d_model
    embeddings = np.where(shape.n_stages > 1, one_matrix, model.embedding_params)
    return (layers + embeddings) * weight_bytes_per_number / shape.n_tensor


def residence(
    model: ModelSpec,
    shape: Geometry,
    work: Pass,
    *,
    n_sequences: FloatArray,
    weight_bytes_per_number: FloatArray,
) -> Residence:
    """Memory of the busiest device during a pass, (N, B) [bytes].

    Keys and values are held for every sequence of the batch, activations for the
    micro-batch in work. A sequence rests where attention reads it, so its cache is cut in the
    ways of its micro-batch, not of the batch; micro-batches take turns in who has one more.
    """
    n_layers = np.ceil(model.n_layers / shape.n_stages)
    active = spread(shape, microbatch(shape, n_sequences))
    held = replace(active, n_device_sequences=np.ceil(n_sequences / active.n_batch_ways))
    return Residence(
        weight_bytes=resident_weight_bytes(model, shape, weight_bytes_per_number),
        kv_bytes=n_layers * attention.held_kv_bytes(model, shape, held, work.n_cached_tokens),
        activation_bytes=activation_bytes(model, shape, active, work),
        gather_bytes=weight_gathered.gather_bytes(model, shape, weight_bytes_per_number),
    )


def activation_bytes(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> FloatArray:
    """Largest set of activations alive at once in a layer of the busiest device [bytes].

    The residual stream and its successor at rest (E over all devices), the gathered input
    (E/X), and the partial sums of every hidden input, before they are scattered.
    """
    ffn, heads = model.n_ffn_inputs * model.d_ff, model.d_query + 2 * model.d_kv
    hidden = ffn + heads if model.is_parallel else max(ffn, heads)
    per_token = 2.0 * model.d_model / shape.n_rest + model.d_model / shape.n_x + hidden / shape.n_y
    n_tokens = batch.n_group_sequences * work.n_new_tokens
    return n_tokens * (per_token * FORMAT_BYTES[model.activation_format])
