"""Traffic of a sharded matrix product, and of a layer made of them: Eqs. 31-35.

A weight of m × k meets an activation of k × n on t devices, arranged as a grid of t₁ × t₂
in the proportion of the weight, t₁ = √(m t / k) kept within [1, t]. Each device reads its
block of the weight once; the activation is read t₁ times and the output t₂ times over.

Source: [Erdil2025] Eqs. 31-35; the grid is that of the published program.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.economics.transformer import touched_fraction
from planner.specs.economics.records import EconomicsModel


def activations_moved(
    shape: tuple[float, float], n_columns: ArrayLike, n_devices: ArrayLike
) -> FloatArray:
    """t₁ k n + t₂ m n: inputs and outputs over all devices [numbers].

    Args, broadcast together:
        shape: (m, k) of the weight.
        n_columns: n, tokens; may be a fraction [1].
        n_devices: t ≥ 1; may be a fraction [1].

    Source: [Erdil2025] Eqs. 33 and 35.
    """
    m, k = shape
    t = np.asarray(n_devices, dtype=float)
    t_1 = np.minimum(np.maximum(np.sqrt(t * (m / k)), 1.0), t)
    return np.asarray((t_1 * k + t / t_1 * m) * n_columns)


def matrix_bytes(
    model: EconomicsModel,
    shape: tuple[float, float],
    n_columns: ArrayLike,
    n_devices: ArrayLike,
) -> FloatArray:
    """Weight, inputs and outputs of one product over all devices [bytes].

    Source: [Erdil2025] Eqs. 31-35.
    """
    m, k = shape
    moved = activations_moved(shape, n_columns, n_devices)
    return np.asarray(m * k * model.weight_bytes + moved * model.activation_bytes)


def attention_matrices(model: EconomicsModel) -> tuple[tuple[float, float], ...]:
    """Shapes of the products around attention, in order.

    Latent attention goes through its compressed width; the product from there to the
    heads is taken as wide as queries, keys and values together, and so reads more than
    `transformer.n_attention_params` counts.

    Source: [Erdil2025], published program.
    """
    output = (model.d_model, model.d_heads)
    if model.latent is None:
        return (model.d_qkv, model.d_model), output
    d_latent = model.latent.d_kv + model.latent.d_query
    return (d_latent, model.d_model), (model.d_qkv, d_latent), output


def attention_bytes(model: EconomicsModel, n_tokens: ArrayLike, n_devices: ArrayLike) -> FloatArray:
    """Traffic of one layer's attention projections over all devices [bytes].

    Source: [Erdil2025] Eqs. 31-35.
    """
    shapes = attention_matrices(model)
    terms = [matrix_bytes(model, shape, n_tokens, n_devices) for shape in shapes]
    return np.asarray(sum(terms))


def ffn_bytes(model: EconomicsModel, n_tokens: ArrayLike, n_devices: ArrayLike) -> FloatArray:
    """Traffic of one layer's experts, as far as the tokens reach them [bytes].

    Each expert meets t/s tokens on `n_devices` devices.

    Source: [Erdil2025] Eqs. 22 and 31-35.
    """
    shape = (model.d_model, model.d_ff)
    per_matrix = matrix_bytes(model, shape, np.divide(n_tokens, model.sparsity), n_devices)
    n_matrices = model.n_experts * model.n_ffn_matrices
    return touched_fraction(n_tokens, model.sparsity) * n_matrices * per_matrix
