"""Time of a pass's memory traffic and arithmetic in the full casework, in two parts each.

The attention projections may be scaled down to a share 1/a of a stage's devices while the
others wait; everything else always uses all of them.

Source: [Erdil2025] §3.2 and Eqs. 31-38; the scale-down is the published program's.
"""

from __future__ import annotations

from planner.equations.arrays import FloatArray
from planner.equations.economics.degrees import Degrees
from planner.equations.economics.matrices import attention_bytes
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


def projection_memory_s(
    decode: DecodePass, degrees: Degrees, n_attention: FloatArray
) -> FloatArray:
    """Reading the attention projections on `n_attention` devices of a stage [s].

    Source: [Erdil2025] Eqs. 31-35; the scale-down is the published program's.
    """
    model = decode.model
    per_layer = attention_bytes(model, degrees.n_tokens, n_attention)
    n_bytes = degrees.n_per_stage / n_attention * (model.n_layers * per_layer)
    return n_bytes / (degrees.n_per_stage * decode.device.hbm_bytes_per_s)


def projection_compute_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Arithmetic of attention projections and embeddings on all devices [s].

    Scaled down, it takes a times as long.

    Source: [Erdil2025] Eqs. 36 and 38.
    """
    n = degrees.n_requests
    rest = pass_flop(decode, n) - ffn_flop(decode, n) - attention_flop(decode, n)
    return rest / (degrees.n_devices * decode.device.flop_per_s_of(decode.model))
