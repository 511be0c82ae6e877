"""What a deployment holds in memory, as engines account for it, and what fits beside it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.estimates.pools import copies_width, pool_bytes
from planner.estimates.serving.deployments import (
    DeploymentTable,
    cached_numbers_per_device,
    deployments,
)
from planner.estimates.serving.operations import number_bytes
from planner.estimates.serving.passes import layer_bytes, parameter_bytes
from planner.estimates.serving.traffic import Drafts
from planner.specs.records.architecture import Architecture, LayerClass
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.mixers import GroupedAttention, Recurrence
from planner.specs.records.served_formats import ServedFormats, as_run


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Memory of the fullest device of each deployment, (N,) [bytes].

    Args:
        weights_bytes: parameters.
        drafter_bytes: parameters of what proposes tokens ahead; 0 without drafts.
        activation_bytes: of the largest pass.
        workspace_bytes: buffers, graphs and the runtime.
        limit_bytes: what the engine may take of the device.
        sequence_bytes: cache and states of one sequence at its longest, the drafter's too, and of
            the prompt of a request with several its part.
        held_bytes: that one sequence has room for on average, while it grows.
        shared_bytes: blocks of a prefix that all sequences have.
        n_samples: sequences of a request.
        pool_weights_bytes, pool_activation_bytes: of a device of experts, where they have their
            own; the others are then of devices of attention.
    """

    weights_bytes: FloatArray
    drafter_bytes: FloatArray
    activation_bytes: FloatArray
    workspace_bytes: float
    limit_bytes: float
    sequence_bytes: FloatArray
    held_bytes: FloatArray
    shared_bytes: FloatArray
    pool_weights_bytes: FloatArray
    pool_activation_bytes: FloatArray
    n_samples: int = 1

    @property
    def pool_bytes(self) -> FloatArray:
        """All that the engine holds on a device of experts; 0 where there is none."""
        held = self.pool_weights_bytes + self.pool_activation_bytes
        return np.where(held > 0.0, held + self.workspace_bytes, 0.0)

    @property
    def room_bytes(self) -> FloatArray:
        """What is left for the cache; negative where weights alone do not fit."""
        held = self.weights_bytes + self.drafter_bytes
        held = held + self.activation_bytes + self.workspace_bytes
        return self.limit_bytes - held - self.shared_bytes

    @property
    def largest_batch(self) -> FloatArray:
        """Sequences of an attention rank that fit as they grow; none where the longest does not.

        Those of one request together.
        """
        n = self.n_samples
        fits = n * np.floor(self.room_bytes / np.maximum(n * self.held_bytes, 1.0))
        longest = n * self.sequence_bytes
        can = (self.room_bytes >= longest) & (self.pool_bytes <= self.limit_bytes)
        return np.where(can, np.maximum(fits, n), 0.0)


def holding(
    model: Architecture,
    table: DeploymentTable,
    formats: ServedFormats,
    engine: EngineSpec,
    *,
    hbm_bytes: float,
    n_tokens: ArrayLike,
    n_held_tokens: ArrayLike | None = None,
    n_shared_tokens: float = 0.0,
    n_forked_tokens: float = 0.0,
    n_samples: int = 1,
    drafts: Drafts | None = None,
) -> Holding:
    """Memory of deployments whose sequences grow to `n_tokens`.

    Blocks are shared by reference: a block that several sequences refer to is written no more, so
    that each has the block that its own tokens begin in by itself. Source: [Kwon2023] §4.4,
    [Lecture] §4.2, copy-on-write.

    Args:
        formats: as they are asked for.
        hbm_bytes: of one device.
        n_tokens: input and output of one sequence.
        n_held_tokens: that one has room for on average; at its longest all the time if None.
        n_shared_tokens: first tokens that all sequences have in common; their full blocks are held
            once a rank.
        n_forked_tokens: those that all samples of one request have in common, the shared ones
            among them.
        n_samples: sequences of a request.
        drafts: what proposes tokens ahead, beside the model.
    """
    formats = as_run(model, formats, engine)
    block, longest_tokens = engine.n_block_tokens, float(np.max(n_tokens))
    once, forked = (
        min(n, longest_tokens) // block * block
        for n in (n_shared_tokens, max(n_shared_tokens, n_forked_tokens))
    )
    there, states = _unstaged(table), state_bytes(model, table)
    n_drafting = drafts.n_layers if drafts is not None else 0
    if drafts is not None and n_drafting:
        states += n_drafting * state_bytes(drafts.drafter, there)

    def cached(n: ArrayLike, before: float) -> FloatArray:
        held = cache_bytes(model, table, formats, n, block, n_before=before)
        if drafts is None or not n_drafting:
            return held
        beside = cache_bytes(drafts.drafter, there, formats, n, block, n_before=before)
        return held + n_drafting * beside

    def sequence(n: ArrayLike) -> FloatArray:
        own = cached(n, forked)
        return own + (cached(n, once) - own) / n_samples + states

    pool_weights, pool_activations = pool_bytes(model, table, formats)
    longest = sequence(n_tokens)
    held = longest if n_held_tokens is None else sequence(np.maximum(n_held_tokens, forked))
    return Holding(
        weights_bytes=parameter_bytes(model, table, formats),
        drafter_bytes=drafter_bytes(drafts, table, formats),
        activation_bytes=activation_bytes(model, table),
        workspace_bytes=engine.workspace_bytes,
        limit_bytes=hbm_bytes * engine.memory_fraction,
        sequence_bytes=longest,
        held_bytes=held,
        shared_bytes=cached(n_tokens, 0.0) - cached(n_tokens, once),
        pool_weights_bytes=pool_weights,
        pool_activation_bytes=pool_activations,
        n_samples=n_samples,
    )


def drafter_bytes(
    drafts: Drafts | None, table: DeploymentTable, formats: ServedFormats
) -> FloatArray:
    """Weights of a drafter on one device, (N,) [bytes].

    Engines keep it where the head is, on the last stage, and cut it over the ranks as they do the
    model. MTP and EAGLE take the model's embedding and head; a pipeline has its embedding at the
    other end, so the last stage holds a copy. Medusa has a head for each token
    (arXiv 2401.10774 §2.1.1).
    """
    total: FloatArray = np.zeros(len(table))
    if drafts is None or not drafts.n_layers:
        return total
    drafter, there = drafts.drafter, _unstaged(table)
    matrix = drafter.d_model**2 * number_bytes(formats.weights)
    words = drafter.vocab_size * drafter.d_model * 2.0 / table.n_tensor
    if drafts.n_heads:  # each a residual block of one square matrix, and its own head
        return drafts.n_heads * (matrix / table.n_tensor + words)
    for layer in drafter.layers:
        held = layer_bytes(layer, drafter.d_model, there, formats)
        total = total + drafts.n_layers * (held + drafts.n_joined * matrix)
    copied = (table.n_stages > 1) & (not drafter.tied_embeddings)
    return total + np.where(copied, words, 0.0)


def _unstaged(table: DeploymentTable) -> DeploymentTable:
    """The group of one stage: a drafter is not cut into stages."""
    return replace(table, n_stages=np.ones_like(table.n_stages))


def cache_bytes(
    model: Architecture,
    table: DeploymentTable,
    formats: ServedFormats,
    n_tokens: ArrayLike,
    n_block_tokens: int,
    *,
    n_before: float = 0.0,
) -> FloatArray:
    """Whole blocks of one sequence's cache on one device of the fullest stage, (N,) [bytes].

    Layers with a window keep the blocks of the window, and one that it ends in.

    Args:
        n_before: first tokens, in whole blocks, that others hold for it; a window moves on from
            them, so that those that it has left are no part of what it keeps.
    """
    total: FloatArray = np.zeros(len(table))
    for layer in model.layers:
        mixer = layer.mixer
        if mixer is None or isinstance(mixer, Recurrence):
            continue
        last = held = paged_tokens(n_tokens, n_block_tokens=n_block_tokens)
        if isinstance(mixer, GroupedAttention):
            if not mixer.makes_keys:
                continue
            if mixer.n_span_tokens is not None:
                window = paged_tokens(mixer.n_span_tokens, n_block_tokens=n_block_tokens)
                held = np.minimum(held, window + n_block_tokens)
        held = held - np.maximum(0.0, n_before - (last - held))
        each = cached_numbers_per_device(mixer, table) * number_bytes(formats.cache)
        total = total + layer.n_layers * held * each
    return total * _fullest(model, table)


def handed_bytes(
    model: Architecture, cache_format: str, *, n_tokens: float, n_block_tokens: int = 1
) -> float:
    """The KV cache of one request that is handed over to another replica [bytes].

    Of the whole model, each head and each latent once, however many ranks hold copies of it;
    whole blocks, the windows that are kept, and states.

    Args:
        n_tokens: cached; of a prompt that was read, its input.
        n_block_tokens: of a block of the engine that holds it.
    """
    formats = ServedFormats(weights=cache_format, experts=cache_format, cache=cache_format)
    whole = deployments(formats=formats)
    held = cache_bytes(model, whole, formats, n_tokens, n_block_tokens)
    return float((held + state_bytes(model, whole))[0])


def state_bytes(model: Architecture, table: DeploymentTable) -> FloatArray:
    """Recurrent and convolution states of one sequence on one device, (N,) [bytes]."""
    total: FloatArray = np.zeros(len(table))
    for layer in model.layers:
        if isinstance(layer.mixer, Recurrence):
            mixer = layer.mixer
            held = mixer.n_state_numbers * mixer.state_bytes_per_number
            held += mixer.n_conv_numbers * 2.0
            total = total + layer.n_layers * held / table.n_tensor
    return total * _fullest(model, table)


def activation_bytes(model: Architecture, table: DeploymentTable) -> FloatArray:
    """Activations of the largest pass on one device, (N,) [bytes].

    The residual and its norm, and the widest intermediate result of any layer, in 16 bits, for
    every token of a chunk; and one score of 4 bytes for each word and sequence.
    """
    widest = np.max([_width(layer, model.d_model, table) for layer in model.layers], axis=0)
    scores = np.minimum(table.batch, 1024.0) * (model.vocab_size * 4.0 / table.n_tensor)
    total: FloatArray = table.chunk_tokens * 2.0 * (2.0 * model.d_model + widest) + scores
    return total


def _width(layer: LayerClass, d_model: int, table: DeploymentTable) -> FloatArray:
    """Numbers of the widest intermediate result of one token on one device (N,)."""
    width: FloatArray = np.zeros(len(table))
    mixer = layer.mixer
    if isinstance(mixer, Recurrence):
        width = width + (mixer.n_input_columns + mixer.n_output_rows) / table.n_tensor
    elif mixer is not None:
        width = width + 3.0 * mixer.n_heads * mixer.d_head / table.n_tensor
    if layer.ffn is not None:
        d_ff = getattr(layer.ffn, "d_ff", 0)
        if not d_ff and table.has_pools:
            copies = copies_width(layer.ffn, d_model)  # type: ignore[arg-type]
            return np.maximum(width, copies / table.n_tensor)
        if not d_ff:
            routed = layer.ffn.n_active * (layer.ffn.d_expert + d_model)  # type: ignore[union-attr]
            return np.maximum(width, table.n_data * routed / table.n_expert_parallel)
        width = np.maximum(width, layer.ffn.n_matrices * d_ff / table.n_tensor)
    return width


def _fullest(model: Architecture, table: DeploymentTable) -> FloatArray:
    """Share of all layers that the fullest stage has (N,)."""
    return np.ceil(model.n_layers / table.n_stages) / model.n_layers


def paged_tokens(n_tokens: ArrayLike, *, n_block_tokens: ArrayLike) -> FloatArray:
    """Places for tokens in the whole blocks that sequences take [tokens].

    Args, broadcast together:
        n_tokens: cached tokens of each sequence.
        n_block_tokens: tokens of a block, at least 1.

    Source: [Kwon2023] §4.1, [Lecture] §4.2.
    """
    return np.multiply(np.ceil(np.divide(n_tokens, n_block_tokens)), n_block_tokens)
