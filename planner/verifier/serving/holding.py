"""What one device of a group holds, in bytes: weights, caches of all sequences, buffers."""

from __future__ import annotations

from planner.specs.architecture import LayerClass
from planner.specs.stages_request import StageGroup, StagesRequest
from planner.verifier.serving import held
from planner.verifier.serving.ranks import rank_of


def layer_weights_bytes(layer: LayerClass, group: StageGroup, asked: StagesRequest) -> float:
    """Of one layer, on one device of a group."""
    return held.layer_weights_bytes(layer, rank_of(group, asked))


def layer_cache_bytes(layer: LayerClass, group: StageGroup, asked: StagesRequest) -> float:
    """Of one layer, for all sequences in flight, each at its longest: whole blocks, or states."""
    work, n_tokens = asked.work, asked.work.n_input_tokens + asked.work.n_output_tokens
    rank = rank_of(group, asked)
    each = held.layer_cache_bytes(layer, rank, n_tokens, asked.engine.n_block_tokens)
    return work.n_sequences * (each + held.layer_state_bytes(layer, rank))


def fixed_bytes(group: StageGroup, asked: StagesRequest) -> float:
    """Activations of the largest pass, scores of words, and what is the engine's own."""
    rank, engine = rank_of(group, asked), asked.engine
    activations = held.activation_bytes(rank, engine.n_chunk_tokens, float(asked.work.batch))
    return activations + engine.workspace_bytes


def embedding_bytes(group: StageGroup, asked: StagesRequest) -> float:
    """The matrix of words, or the head: in 16 bits."""
    return held.word_bytes(rank_of(group, asked))
