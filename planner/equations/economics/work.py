"""Time of a pass's memory traffic and arithmetic in the full casework, in two parts each.

The attention projections may be scaled down to a share 1/a of a stage's devices while the
others wait; everything else always uses all of them.

Source: [Erdil2025] §3.2 and Eqs. 31-38; the scale-down is the published program's.
"""

from __future__ import annotations

from planner.equations.arrays import FloatArray
from planner.equations.economics.degrees import Degrees
from planner.equations.economics.matrices import attention_bytes, ffn_bytes
from planner.equations.economics.transformer import (
    attention_flop,
    ffn_flop,
    kv_bytes_per_token,
    pass_flop,
)
from planner.specs.economics.records import DecodePass


def kv_bytes(decode: DecodePass, n_requests: FloatArray) -> FloatArray:
    """Caches of some requests [bytes]. Source: [Erdil2025] Eq. 34."""
    return kv_bytes_per_token(decode.model) * decode.n_context_tokens * n_requests


def shared_memory_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Reading caches, experts and the output embedding: all but the projections [s].

    Every stage reads its weights for every micro-batch, and a token passes all stages.

    Source: [Erdil2025] Eqs. 31-35 with §3.5.
    """
    model = decode.model
    experts = model.n_layers * ffn_bytes(model, degrees.n_tokens, degrees.n_ffn)
    embedding = model.weight_bytes * model.vocab_size * model.d_model
    return _memory_s(decode, degrees, kv_bytes(decode, degrees.n_microbatch) + experts + embedding)


def projection_memory_s(
    decode: DecodePass, degrees: Degrees, n_attention: FloatArray
) -> FloatArray:
    """Reading the attention projections on `n_attention` devices of a stage [s].

    Source: [Erdil2025] Eqs. 31-35; the scale-down is the published program's.
    """
    model = decode.model
    per_layer = attention_bytes(model, degrees.n_tokens, n_attention)
    scaled_down = degrees.n_per_stage / n_attention
    return _memory_s(decode, degrees, scaled_down * (model.n_layers * per_layer))


def _memory_s(decode: DecodePass, degrees: Degrees, n_bytes: FloatArray) -> FloatArray:
    return n_bytes / (degrees.n_per_stage * decode.device.hbm_bytes_per_s)


def shared_compute_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Arithmetic of the experts and of the scores [s]. Source: [Erdil2025] Eqs. 36-37."""
    shared = ffn_flop(decode, degrees.n_requests) + attention_flop(decode, degrees.n_requests)
    return _compute_s(decode, degrees, shared)


def projection_compute_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Arithmetic of attention projections and embeddings on all devices [s].

    Scaled down, it takes a times as long.

    Source: [Erdil2025] Eqs. 36 and 38.
    """
    n = degrees.n_requests
    rest = pass_flop(decode, n) - ffn_flop(decode, n) - attention_flop(decode, n)
    return _compute_s(decode, degrees, rest)


def _compute_s(decode: DecodePass, degrees: Degrees, flop: FloatArray) -> FloatArray:
    return flop / (degrees.n_devices * decode.device.flop_per_s_of(decode.model))
