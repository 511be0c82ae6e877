"""The whole of a layer: projections, attention and FFN under one layout.

`layer_work`, `head_work` and `residence` are what the floors above ask for; they compose
the families of this folder.
"""

from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.layouts import attention, experts, weight_gathered, weight_stationary
from planner.layouts.geometry import Geometry, Pass, Spread, spread
from planner.layouts.work import (
    HeadWork,
    LayerWork,
    Message,
    Residence,
    kinds_alone,
    layer_kinds,
    only_where,
)
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec


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
    kv_bytes_per_number: FloatArray | None = None,
    has_experts: bool = False,
) -> LayerWork:
    """Work of the busiest device in one layer, for one micro-batch of a pass.

    Args:
        model: the model, heads padded as served.
        shape: group sizes of the layouts, (N, 1).
        work: tokens of the pass, for each sequence.
        n_sequences: batch of the pass, (1, B) or (N, B).
        weight_bytes_per_number: of the weights' format, (N, 1) or a scalar array.
        kv_bytes_per_number: of the cache's format, likewise; the model's own without it.
        has_experts: whether the layer's FFN is made of experts.
    """
    parts = microbatch(shape, n_sequences)
    batch = spread(shape, parts)
    n_tokens = batch.n_group_sequences * work.n_new_tokens
    copied_flop = batch.n_device_sequences * (work.n_new_tokens * 2.0 * model.copied_params)
    if has_experts:
        ffn = _expert_work(model, shape, n_tokens, parts * work.n_new_tokens)
        gathers = experts.gather_messages(model, shape, weight_bytes_per_number)
    else:
        ffn = _dense_work(model, shape, n_tokens)
        gathers = (weight_gathered.gather_message(model, shape, weight_bytes_per_number),)
    cached = _cache_width(model, kv_bytes_per_number)
    mixing = attention.mixing_work(model, shape, batch, work)
    mixing["kv_bytes"] = mixing["kv_bytes"] * cached
    return LayerWork(
        **mixing,
        matmul_flop=ffn.flop + copied_flop,
        weight_bytes=(ffn.params + model.copied_params) * weight_bytes_per_number,
        messages=(*gathers, *ffn.messages, *attention.messages(model, shape, batch, work)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _MatmulWork:
    """Projections and FFN of one layer: FLOP, parameters read, collectives."""

    flop: FloatArray
    params: FloatArray
    messages: tuple[Message, ...]


def _dense_work(model: ModelSpec, shape: Geometry, n_tokens: FloatArray) -> _MatmulWork:
    # gathered weights are read in full, so they cost the traffic of the whole group
    params = model.layer_params_served / shape.n_rest
    return _MatmulWork(
        flop=n_tokens * (2.0 * params),
        params=params,
        messages=weight_stationary.messages(model, shape, n_tokens),
    )


def _expert_work(
    model: ModelSpec, shape: Geometry, n_tokens: FloatArray, n_all_tokens: FloatArray
) -> _MatmulWork:
    """Attention and shared experts where the tokens are, routed experts where these are."""
    own_flop = 2.0 * experts.common_params(model) / shape.n_rest
    routed = experts.device_expert_params(model, shape)
    touched = experts.touched_fraction(model, n_all_tokens)
    dispatched = experts.dispatch_messages(model, shape, n_tokens / shape.n_rest, n_all_tokens)
    gathered = weight_stationary.expert_messages(model, shape, n_tokens)
    shared = weight_stationary.shared_expert_messages(model, shape, n_tokens)
    is_dispatched = shape.n_cut > 1
    return _MatmulWork(
        flop=n_tokens * own_flop + experts.routed_flop(model, shape, n_all_tokens),
        params=experts.device_common_params(model, shape) + touched * routed,
        messages=(
            *weight_stationary.attention_messages(model, shape, n_tokens),
            *(only_where(message, ~is_dispatched) for message in gathered),
            *(only_where(message, is_dispatched) for message in (*shared, *dispatched)),
        ),
    )


def _cache_width(model: ModelSpec, kv_bytes_per_number: FloatArray | None) -> FloatArray:
    if kv_bytes_per_number is None:
        return np.array([[FORMAT_BYTES[model.kv_format]]])
    return kv_bytes_per_number


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

    A pipeline's first or last stage holds one embedding matrix, a single stage all. Along
    the axes of `data` attention, dense FFNs and shared experts have copies. Encoders of images and
    sound are in 16 bits, whatever the rest is in.
    """
    own_ways = shape.n_tensor / shape.n_data
    params = np.zeros_like(shape.n_tensor)
    for kind in layer_kinds(model, shape.n_stages):
        if kind.has_experts:
            layer = experts.resident_common_params(kind.model, shape)
            layer = layer + experts.device_expert_params(kind.model, shape)
        else:  # what is an earlier layer's is in the same stage only where there is one stage
            lent = sum(each.n_borrowed_params for each in kind.model.layers)
            borrowed = np.where(shape.n_stages > 1, 0.0, lent)
            layer = (kind.model.layer_params_served - borrowed) / own_ways
        params = params + kind.n_layers * (layer + kind.model.copied_params)
    one_matrix = model.vocab_size * model.d_model
    embeddings = np.where(shape.n_stages > 1, one_matrix, model.embedding_params)
    encoders = 2.0 * model.n_encoder_params / shape.n_tensor
    return (params + embeddings / shape.n_tensor) * weight_bytes_per_number + encoders


def residence(
    model: ModelSpec,
    shape: Geometry,
    work: Pass,
    *,
    n_sequences: FloatArray,
    weight_bytes_per_number: FloatArray,
    kv_bytes_per_number: FloatArray | None = None,
) -> Residence:
    """Memory of the busiest device during a pass, (N, B) [bytes].

    Keys and values are held for every sequence of the batch, activations for the
    micro-batch in work. A sequence rests where attention reads it, so its cache is cut in the
    ways of its micro-batch, not of the batch; micro-batches take turns in who has one more.
    """
    active = spread(shape, microbatch(shape, n_sequences))
    held = replace(active, n_device_sequences=np.ceil(n_sequences / active.n_batch_ways))
    cached = _cache_width(model, kv_bytes_per_number)
    kv_bytes, found_bytes, fixed_bytes = np.zeros((3, 1, 1))
    for kind in layer_kinds(model, shape.n_stages):
        within, n_layers = kind.within(work), kind.n_layers
        cache, states = attention.held_bytes(kind.model, shape, held, within.n_cached_tokens)
        before, _ = attention.held_bytes(kind.model, shape, held, within.n_found_tokens)
        kv_bytes, found_bytes = kv_bytes + n_layers * cache, found_bytes + n_layers * before
        fixed_bytes = fixed_bytes + n_layers * states
    found_states = fixed_bytes * (work.n_found_tokens > 0)
    return Residence(
        weight_bytes=resident_weight_bytes(model, shape, weight_bytes_per_number),
        kv_bytes=kv_bytes * cached + fixed_bytes,
        written_bytes=(kv_bytes - found_bytes) * cached + fixed_bytes - found_states,
        fixed_bytes=fixed_bytes,
        activation_bytes=activation_bytes(model, shape, active, work),
        gather_bytes=np.max(
            [
                weight_gathered.gather_bytes(alone, shape, weight_bytes_per_number)
                for alone in kinds_alone(model)
            ],
            axis=0,
        ),
    )


def activation_bytes(model: ModelSpec, shape: Geometry, batch: Spread, work: Pass) -> FloatArray:
    """Largest set of activations alive at once in a layer of the busiest device [bytes].

    The residual stream and its successor at rest (E over all devices), the gathered input
    (E/X), and the partial sums of every hidden input, before they are scattered. Of a layer
    with experts, the hidden inputs of as many experts as a token visits, and its copies; a part
    of E of each along x, where their partial sums are whole.
    """
    per_token: FloatArray = np.zeros((1, 1))
    for alone in kinds_alone(model):
        widths = attention.widths_of(alone.mixer)
        heads = max(widths.made, widths.heads + (alone.mixer.d_read if alone.mixer else 0))
        ffn = alone.n_ffn_inputs * alone.d_ff if alone.n_moe_layers < alone.n_layers else 0
        hidden = ffn + heads if alone.is_parallel else max(ffn, heads)
        always = 2.0 * alone.d_model / shape.n_rest + alone.d_model / shape.n_x
        per_token = np.maximum(per_token, always + hidden / shape.n_y)
        if alone.moe:
            n_visited = alone.moe.n_active_experts + alone.moe.n_shared_experts
            partial_sums = shape.n_x * (alone.n_ffn_inputs * alone.moe.d_expert)
            visited = n_visited * (alone.d_model + partial_sums)
            per_token = np.maximum(per_token, always + visited / shape.n_rest)
    n_tokens = batch.n_group_sequences * work.n_new_tokens
    return n_tokens * (per_token * FORMAT_BYTES[model.activation_format])
