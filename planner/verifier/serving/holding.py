"""What one device of a group holds, in bytes: weights, caches of all sequences, buffers."""

from __future__ import annotations

from planner.specs.architecture import Architecture, FeedForward, LayerClass
from planner.specs.mixers import GroupedAttention, Recurrence
from planner.specs.stages_request import StageGroup, StagesRequest
from planner.verifier.serving.kernels import stored_bytes
from planner.verifier.serving.layers import cached_numbers
from planner.verifier.serving.mixers import kv_heads

MOST_SCORED = 1024.0
"""Sequences whose scores of all words are made at once."""


def layer_weights_bytes(layer: LayerClass, group: StageGroup, asked: StagesRequest) -> float:
    """Of one layer: matrices cut over the devices, heads of keys held by each, routers whole."""
    d_model, cut = asked.model.d_model, group.n_tensor
    dense, held = stored_bytes(asked.formats.weights), layer.n_norm_params * 2.0
    mixer, ffn = layer.mixer, layer.ffn
    if isinstance(mixer, GroupedAttention):
        keys = d_model * mixer.d_keys_and_values
        own = keys * kv_heads(mixer, cut) / mixer.n_kv_heads
        held += ((mixer.n_params(d_model) - keys) / cut + own) * dense
    elif mixer is not None:
        held += mixer.n_params(d_model) / cut * dense
    if isinstance(ffn, FeedForward):
        held += ffn.n_params(d_model) / cut * dense
    elif ffn is not None:
        each = ffn.expert_params(d_model) * stored_bytes(asked.formats.experts)
        held += ffn.n_experts * each / cut
        held += ffn.n_matrices * d_model * ffn.d_shared / cut * dense
        held += d_model * ffn.n_experts * 2.0
        held += 2 * d_model * (ffn.d_latent or 0) * dense
    return held


def layer_cache_bytes(layer: LayerClass, group: StageGroup, asked: StagesRequest) -> float:
    """Of one layer, for all sequences in flight, each at its longest: whole blocks, or states."""
    mixer, work = layer.mixer, asked.work
    if mixer is None:
        return 0.0
    if isinstance(mixer, Recurrence):
        state = mixer.n_state_numbers * mixer.state_bytes_per_number + mixer.n_conv_numbers * 2.0
        return work.n_sequences * state / group.n_tensor
    block = asked.engine.n_block_tokens
    n_tokens = _paged(work.n_input_tokens + work.n_output_tokens, block)
    if isinstance(mixer, GroupedAttention):
        if not mixer.makes_keys:
            return 0.0
        if mixer.n_span_tokens is not None:  # the window, and the block that it ends in
            n_tokens = min(n_tokens, _paged(mixer.n_span_tokens, block) + block)
    each = cached_numbers(layer, group.n_tensor) * stored_bytes(asked.formats.cache)
    return work.n_sequences * n_tokens * each


def _paged(n_tokens: int, block: int) -> int:
    return -(-n_tokens // block) * block


def fixed_bytes(group: StageGroup, asked: StagesRequest) -> float:
    """Activations of the largest pass, scores of words, and what is the engine's own."""
    model, cut = asked.model, group.n_tensor
    widest = max(_width(layer, model, group) for layer in model.layers)
    scores = min(float(asked.work.batch), MOST_SCORED) * model.vocab_size * 4.0 / cut
    activations = asked.engine.n_chunk_tokens * 2.0 * (2 * model.d_model + widest)
    return activations + scores + asked.engine.workspace_bytes


def _width(layer: LayerClass, model: Architecture, group: StageGroup) -> float:
    """Numbers of the widest that a layer makes of a token on one device."""
    mixer, ffn, widths = layer.mixer, layer.ffn, [0.0]
    if mixer is not None:
        d_head = model.d_model if isinstance(mixer, Recurrence) else mixer.d_head
        widths.append(3.0 * mixer.n_heads * d_head / group.n_tensor)
    if isinstance(ffn, FeedForward):
        widths.append(ffn.n_matrices * ffn.d_ff / group.n_tensor)
    elif ffn is not None:
        routed = ffn.n_active * (ffn.d_expert + model.d_model)
        widths.append(routed / group.n_expert_parallel)
    return max(widths)


def embedding_bytes(group: StageGroup, asked: StagesRequest) -> float:
    """The matrix of words, or the head: in 16 bits."""
    return asked.model.vocab_size * asked.model.d_model * 2.0 / group.n_tensor
