"""Sizes of a pass that the papers' tables are counted from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import BoolArray, FloatArray
from planner.equations.economics.transformer import n_params
from planner.equations.economics.work import kv_bytes
from planner.specs.records.economics import DecodePass


def exchanged_bytes(decode: DecodePass, n_requests: ArrayLike) -> FloatArray:
    """Outputs of every matrix product of a pass, all of which are all-reduced [bytes].

    Width of queries, keys and values, of the residual stream twice, and of the FFN; a
    gated FFN has its inner width twice.

    Source: [Erdil2025] Eq. 25 with the factors c_in, c_out and K of Eqs. 43-44.
    """
    model = decode.model
    inner = model.n_active_experts * model.n_ffn_in * model.d_ff
    outer = model.n_active_experts * model.n_ffn_out * model.d_model
    words = model.n_layers * (model.d_qkv + model.d_model + inner + outer)
    n_tokens = np.multiply(n_requests, decode.n_scored_tokens)
    return np.asarray(words * model.activation_bytes * n_tokens)


def fits_memory(decode: DecodePass, n_devices: FloatArray, n_cached: FloatArray) -> BoolArray:
    """Whether all weights and the caches of `n_cached` requests fit all devices together.

    Nothing else is counted: no activations, no workspace, no draft model.

    Source: [Erdil2025] §3.6.
    """
    needed = kv_bytes(decode, n_cached) + decode.model.weight_bytes * n_params(decode.model)
    return np.greater_equal(n_devices * decode.device.hbm_bytes, needed)
