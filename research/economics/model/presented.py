"""The final model as the paper prints it: Eqs. 29-44, tensor parallelism in two dimensions.

No pipeline, no expert parallelism, no casework. None of the paper's tables comes from it;
they come from `casework`.

Source: [Erdil2025] §3.6, with the factors of gated and routed FFN and of latent attention
that the published program carries along.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.economics.collectives import ALL_REDUCE, collective_s
from planner.equations.economics.transformer import (
    kv_bytes_per_token,
    n_attention_params,
    n_ffn_params,
    n_params,
    pass_flop,
    touched_fraction,
)
from planner.equations.economics.work import (
    activations_moved,
    attention_matrices,
    launch_s,
    tensor_group,
)
from planner.specs.records.economics import DecodePass, EconomicsModel


def latency_as_presented_s(
    decode: DecodePass, n_devices: ArrayLike, n_requests: ArrayLike
) -> FloatArray:
    """Network and kernels, then the longer of reading and computing; inf if too large [s].

    Args, broadcast together:
        n_devices: N ≥ 1, devices of the instance, real-valued [1].
        n_requests: B, requests in the instance, real-valued [1].

    Source: [Erdil2025] Eq. 29.
    """
    n, b = np.broadcast_arrays(np.asarray(n_devices, float), np.asarray(n_requests, float))
    device = decode.device
    reading = bytes_read(decode, n, b) / (n * device.hbm_bytes_per_s)
    computing = pass_flop(decode, b) / (n * device.flop_per_s_of(decode.model))
    latency = network_and_kernel_s(decode, n, b) + np.maximum(reading, computing)
    weights = decode.model.weight_bytes * n_params(decode.model)
    resident = weights + decode.model.activation_bytes * kv_numbers_read(decode, b)
    return np.where(n * device.hbm_bytes >= resident, latency, np.inf)


def network_and_kernel_s(
    decode: DecodePass, n_devices: FloatArray, n_requests: FloatArray
) -> FloatArray:
    """Four launches a layer and an all-reduce of the output of each product [s].

    Source: [Erdil2025] Eqs. 30 and 39-40.
    """
    n_bytes = reduced_bytes(decode, n_devices, n_requests)
    group = tensor_group(n_devices, decode.device.n_devices_per_node, is_2d=True)
    times = collective_s(ALL_REDUCE, n_bytes, group, decode.device)
    return launch_s(decode) + decode.model.n_layers * np.asarray(times.sum(axis=0))


def reduced_bytes(decode: DecodePass, n_devices: FloatArray, n_requests: FloatArray) -> FloatArray:
    """What each group of √N reduces after each product of a layer, four rows [bytes].

    Queries, keys and values; output of attention; inner and outer FFN.

    Source: [Erdil2025] Eqs. 43-44.
    """
    model = decode.model
    widths = (
        model.d_qkv,
        model.d_model,
        model.n_active_experts * model.n_ffn_in * model.d_ff,
        model.n_active_experts * model.n_ffn_out * model.d_model,
    )
    n_tokens = n_requests * decode.n_scored_tokens
    return np.multiply.outer(widths, n_tokens * model.activation_bytes / np.sqrt(n_devices))


def bytes_read(decode: DecodePass, n_devices: FloatArray, n_requests: FloatArray) -> FloatArray:
    """Traffic of all memories in a pass [bytes]. Source: [Erdil2025] Eq. 31."""
    model = decode.model
    n_tokens = n_requests * decode.n_scored_tokens
    activations = activations_read(model, n_tokens, n_devices) + kv_numbers_read(decode, n_requests)
    weights = weights_read(model, n_tokens)
    return model.weight_bytes * weights + model.activation_bytes * activations


def weights_read(model: EconomicsModel, n_tokens: FloatArray) -> FloatArray:
    """Weights of the products of all layers, as far as touched, and of the output [1].

    For plain attention this is `n_params_read`.

    Source: [Erdil2025] Eq. 32.
    """
    attention = sum(m * k for m, k in attention_matrices(model))
    expert = model.n_ffn_matrices * model.d_model * model.d_ff
    experts = touched_fraction(n_tokens, model.sparsity) * (model.n_experts * expert)
    return model.n_layers * (attention + experts) + model.vocab_size * model.d_model


def activations_read(
    model: EconomicsModel, n_tokens: FloatArray, n_devices: FloatArray
) -> FloatArray:
    """Inputs and outputs of the products of all layers [numbers].

    Source: [Erdil2025] Eqs. 33 and 35.
    """
    shapes = attention_matrices(model)
    attention = sum(activations_moved(shape, n_tokens, n_devices) for shape in shapes)
    per_expert = n_tokens / model.sparsity
    ffn = activations_moved((model.d_model, model.d_ff), per_expert, n_devices)
    n_touched = touched_fraction(n_tokens, model.sparsity) * model.n_experts
    return model.n_layers * (attention + n_touched * model.n_ffn_matrices * ffn)


def kv_numbers_read(decode: DecodePass, n_requests: FloatArray) -> FloatArray:
    """Caches of all requests, read once whatever is scored [numbers].

    Source: [Erdil2025] Eq. 34.
    """
    per_token = kv_bytes_per_token(decode.model) / decode.model.activation_bytes
    return per_token * decode.n_context_tokens * n_requests


def n_params_read(model: EconomicsModel, n_tokens: ArrayLike) -> FloatArray:
    """Parameters that a pass of t tokens reads, one of the two embeddings among them [1].

    Source: [Erdil2025] Eq. 22.
    """
    shared = model.n_layers * n_attention_params(model) + model.vocab_size * model.d_model
    return np.asarray(shared + touched_fraction(n_tokens, model.sparsity) * n_ffn_params(model))
