"""What one device of the fullest stage holds, in bytes: weights, caches, buffers, a drafter."""

from dataclasses import dataclass, replace
from math import ceil, fsum

from planner.results.experts import RedundantExperts
from planner.specs.records.architecture import Architecture, Experts, FeedForward, LayerClass
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import GroupedAttention, Recurrence
from planner.verifier.serving.drafts import Draft
from planner.verifier.serving.feeding import levelled
from planner.verifier.serving.kernels import stored_bytes
from planner.verifier.serving.layers import cached_numbers
from planner.verifier.serving.mixers import kv_heads
from planner.verifier.serving.pools import copies_numbers, held_bytes
from planner.verifier.serving.ranks import Rank

MOST_SCORED = 1024.0
"""Sequences whose scores of all words are made at once."""


def weights_bytes(rank: Rank) -> float:
    """Layers of the fullest stage; embedding and head in 16 bits, both where there is one stage.

    Encoders of images and sound are in 16 bits too, beside the embedding.
    """
    model = rank.model
    layers = sum(one.n_layers * layer_weights_bytes(one, rank) for one in model.layers)
    both = rank.n_stages == 1 and not model.tied_embeddings
    return (
        layers * fullest_share(rank) + (2 if both else 1) * word_bytes(rank) + encoder_bytes(rank)
    )


def copies_of(rank: Rank) -> RedundantExperts | None:
    """How level copies of experts leave devices, in the worst layer, and what they hold."""
    if not rank.n_redundant:
        return None
    n_ranks = rank.n_expert_parallel
    ffns = [one.ffn for one in rank.model.layers if isinstance(one.ffn, Experts)]
    return RedundantExperts(
        n_redundant=rank.n_redundant,
        fullest_factor=max(
            fsum(levelled(ffn, n_ranks, rank.n_redundant)) * n_ranks / ffn.n_active for ffn in ffns
        ),
        copies_bytes=_held(rank) - _held(replace(rank, n_redundant=0)),
    )


def _held(rank: Rank) -> float:
    """Weights of a device that has experts."""
    return held_bytes(rank, 0.0)[0] if rank.n_expert_devices else weights_bytes(rank)


def encoder_bytes(rank: Rank) -> float:
    """Towers of vision and sound, cut over a rank."""
    return 2.0 * rank.model.n_encoder_params / rank.n_tensor


def word_bytes(rank: Rank) -> float:
    """A matrix of words, cut over a rank."""
    return rank.model.vocab_size * rank.model.d_model * 2.0 / rank.n_tensor


def fullest_share(rank: Rank) -> float:
    """Of all layers those of the fullest stage."""
    n_layers = sum(one.n_layers for one in rank.model.layers)
    return ceil(n_layers / rank.n_stages) / n_layers


def layer_weights_bytes(layer: LayerClass, rank: Rank) -> float:
    """Of one layer: matrices cut over a rank, heads of keys held by each, routers whole."""
    d_model, cut = rank.model.d_model, rank.n_tensor
    dense, held = stored_bytes(rank.formats.weights), layer.n_norm_params * 2.0
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
        if not rank.n_expert_devices:
            each = ffn.expert_params(d_model) * stored_bytes(rank.formats.experts)
            held += (ffn.n_experts + rank.n_redundant) * each / rank.n_group
            held += ffn.n_matrices * d_model * ffn.d_shared / cut * dense
        held += d_model * ffn.n_experts * 2.0
        held += 2 * d_model * (ffn.d_latent or 0) * dense
    return held


def sequence_bytes(rank: Rank, n_tokens: float, block: int, first: float = 0.0) -> float:
    """Whole blocks of one sequence in all layers of the fullest stage, without states.

    Args:
        first: of its tokens, those whose blocks are another's.
    """
    layers = rank.model.layers
    held = sum(it.n_layers * layer_cache_bytes(it, rank, n_tokens, block, first) for it in layers)
    return held * fullest_share(rank)


def state_bytes(rank: Rank) -> float:
    """States of one sequence in the recurrent layers of the fullest stage."""
    held = sum(one.n_layers * layer_state_bytes(one, rank) for one in rank.model.layers)
    return held * fullest_share(rank)


def layer_state_bytes(layer: LayerClass, rank: Rank) -> float:
    mixer = layer.mixer
    if not isinstance(mixer, Recurrence):
        return 0.0
    held = mixer.n_state_numbers * mixer.state_bytes_per_number + mixer.n_conv_numbers * 2.0
    return held / rank.n_tensor


def layer_cache_bytes(
    layer: LayerClass, rank: Rank, n_tokens: float, block: int, first: float = 0.0
) -> float:
    """Whole blocks of one sequence in one layer, behind its first tokens."""
    held = _cached_tokens(layer, n_tokens, block, first)
    if not held:
        return 0.0
    return held * cached_numbers(layer, rank.n_tensor) * stored_bytes(rank.formats.cache)


def _cached_tokens(layer: LayerClass, n_tokens: float, block: int, first: float = 0.0) -> float:
    """Places of whole blocks that a sequence has in one layer."""
    mixer = layer.mixer
    if mixer is None or isinstance(mixer, Recurrence):
        return 0.0
    held = last = ceil(n_tokens / block) * block
    if isinstance(mixer, GroupedAttention):
        if not mixer.makes_keys:
            return 0.0
        if mixer.n_span_tokens is not None:  # the window, and the block that it ends in
            held = min(held, ceil(mixer.n_span_tokens / block) * block + block)
    # from which token on it keeps any, and which are not another's
    return min(held, last - first)


def handed_bytes(model: Architecture, cache_format: str, n_tokens: float, block: int = 1) -> float:
    """The cache of one request, of the whole model, each head and latent once, and its states."""
    held = 0.0
    for layer in model.layers:
        cached = _cached_tokens(layer, n_tokens, block)
        if cached:
            held += layer.n_layers * cached * cached_numbers(layer, 1) * stored_bytes(cache_format)
        mixer = layer.mixer
        if isinstance(mixer, Recurrence):
            states = mixer.n_state_numbers * mixer.state_bytes_per_number
            held += layer.n_layers * (states + mixer.n_conv_numbers * 2.0)
    return held


def activation_bytes(rank: Rank, chunk: float, batch: float) -> float:
    """Of the largest pass: residual, norm and widest result; scores of all words in 4 bytes."""
    model = rank.model
    widest = max(_width(layer, model, rank) for layer in model.layers)
    scores = min(batch, MOST_SCORED) * model.vocab_size * 4.0 / rank.n_tensor
    return chunk * 2.0 * (2 * model.d_model + widest) + scores


def _width(layer: LayerClass, model: Architecture, rank: Rank) -> float:
    mixer, ffn, widths = layer.mixer, layer.ffn, [0.0]
    if isinstance(mixer, Recurrence):  # what enters its state and what leaves it
        widths.append((mixer.n_input_columns + mixer.n_output_rows) / rank.n_tensor)
    elif mixer is not None:
        widths.append(3.0 * mixer.n_heads * mixer.d_head / rank.n_tensor)
    if isinstance(ffn, FeedForward):
        widths.append(ffn.n_matrices * ffn.d_ff / rank.n_tensor)
    elif ffn is not None and rank.n_expert_devices:
        widths.append(copies_numbers(ffn, model.d_model) / rank.n_tensor)
    elif ffn is not None:
        routed = ffn.n_active * (ffn.d_expert + model.d_model)
        widths.append(rank.n_data * routed / rank.n_expert_parallel)
    return max(widths)


def draft_bytes(draft: Draft, rank: Rank) -> float:
    """Weights of what drafts, on the last stage; other ends of a pipeline hold copies of words."""
    if not draft.n_layers:
        return 0.0
    there = replace(rank, model=draft.model, n_stages=1)
    matrix = draft.model.d_model**2 * stored_bytes(rank.formats.weights)
    if draft.has_heads:
        return draft.n_layers * (matrix / rank.n_tensor + word_bytes(there))
    held = 0.0
    for layer in draft.model.layers:
        held += draft.n_layers * (layer_weights_bytes(layer, there) + 2 * matrix)
    copied = rank.n_stages > 1 and not draft.model.tied_embeddings
    return held + (word_bytes(there) if copied else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Which tokens of a sequence others have too.

    Args:
        of_all: first tokens that are those of every sequence, in full blocks.
        of_request: those of every sample of its prompt, which begin with the former.
        n_samples: of a prompt.
    """

    of_all: float
    of_request: float
    n_samples: int = 1


def cached_bytes(
    rank: Rank, draft: Draft | None, engine: EngineSpec, n_tokens: float, shared: Shared
) -> tuple[float, float]:
    """Of one sequence and its part of a prompt, and of what all sequences share; drafters' too."""
    block = engine.n_block_tokens

    def held(on: Rank) -> tuple[float, float]:
        whole, apart, own = (
            sequence_bytes(on, n_tokens, block, first)
            for first in (0.0, shared.of_all, shared.of_request)
        )
        return own + (apart - own) / shared.n_samples + state_bytes(on), whole - apart

    each, once = held(rank)
    if draft is not None and draft.n_layers:
        beside = held(replace(rank, model=draft.model, n_stages=1))
        each, once = each + draft.n_layers * beside[0], once + draft.n_layers * beside[1]
    return each, once
