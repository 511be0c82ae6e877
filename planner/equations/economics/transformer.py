"""What one Transformer weighs, computes, caches and exchanges: Eqs. 20-22, 25 and 36-38.

Source: [Erdil2025] §3.1-3.4; forms and roundings of the published program.
"""

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.economics import DecodePass, EconomicsModel


def n_attention_params(model: EconomicsModel) -> float:
    """Attention parameters of one layer [1].

    Plain: A d + H h d, with A the width of queries, keys and values. Latent: the down
    projection is counted twice, once for the keys and once for the values, and the
    rotary part is left out.

    Source: [Erdil2025] §3.2 for P_attn of Eq. 20; latent form of the published program.
    """
    d, heads = model.d_model, model.d_heads
    if model.latent is None:
        return model.d_qkv * d + heads * d
    d_kv, d_query = model.latent.d_kv, model.latent.d_query
    down = 2 * d_kv * d + d_query * d
    up = model.n_kv_heads * model.d_head * d_kv + heads * d_query
    return down + up + heads * d


def n_ffn_params(model: EconomicsModel) -> float:
    """Parameters of all experts of all layers [1]. Source: [Erdil2025] P_ff of Eq. 20."""
    per_expert = model.n_ffn_matrices * model.d_model * model.d_ff
    return model.n_layers * model.n_experts * per_expert


def n_embedding_params(model: EconomicsModel) -> float:
    """Input and output embeddings, never tied [1]. Source: the published program."""
    return 2 * model.vocab_size * model.d_model


def n_params(model: EconomicsModel) -> float:
    """Parameters in all [1]. Source: [Erdil2025] Eq. 20, with the embeddings."""
    attention = model.n_layers * n_attention_params(model)
    return attention + n_ffn_params(model) + n_embedding_params(model)


def n_active_params(model: EconomicsModel) -> float:
    """Parameters that compute for one token, both embeddings among them [1].

    Source: [Erdil2025] Eq. 21, with the rounded-down sparsity.
    """
    attention = model.n_layers * n_attention_params(model)
    return attention + n_ffn_params(model) // model.sparsity + n_embedding_params(model)


def touched_fraction(n_tokens: ArrayLike, sparsity: float) -> FloatArray:
    """1 − (1 − 1/s)ᵗ: share of experts that t independently routed tokens reach [1].

    Source: [Erdil2025] §3.2, the factor of Eq. 22; t may be a fraction.
    """
    return np.asarray(1.0 - np.power(1.0 - 1.0 / sparsity, n_tokens))


def kv_bytes_per_token(model: EconomicsModel) -> float:
    """Cache of one token, over all layers [bytes].

    Keys and values of all groups, or the latent without its rotary key.

    Source: [Erdil2025] §3.1.
    """
    width = model.latent.d_kv if model.latent else model.n_kv_heads * model.d_head
    return width * model.n_layers * model.activation_bytes


def attention_flop(decode: DecodePass, n_requests: ArrayLike) -> FloatArray:
    """Scores and weighted values of all requests against their contexts [FLOP].

    4 × width of a score × heads × layers × context × tokens.

    Source: [Erdil2025] Eq. 37; the latent's width for latent attention, §3.1.
    """
    model = decode.model
    per_token = 4 * model.d_score * model.n_heads * model.n_layers * decode.n_context_tokens
    return np.asarray(per_token * np.multiply(n_requests, decode.n_scored_tokens))


def pointwise_flop(decode: DecodePass, n_requests: ArrayLike) -> FloatArray:
    """A multiply-add for each active parameter and token [FLOP].

    Source: [Erdil2025] Eq. 38.
    """
    n_tokens = np.multiply(n_requests, decode.n_scored_tokens)
    return np.asarray(2 * n_active_params(decode.model) * n_tokens)


def ffn_flop(decode: DecodePass, n_requests: ArrayLike) -> FloatArray:
    """The part of `pointwise_flop` that is spent in experts [FLOP].

    Source: [Erdil2025], published program: P_ff / s without rounding.
    """
    active = n_ffn_params(decode.model) / decode.model.sparsity
    return np.asarray(2 * active * np.multiply(n_requests, decode.n_scored_tokens))


def pass_flop(decode: DecodePass, n_requests: ArrayLike) -> FloatArray:
    """All arithmetic of one pass [FLOP]. Source: [Erdil2025] Eq. 36."""
    return pointwise_flop(decode, n_requests) + attention_flop(decode, n_requests)
