"""Time of a pass: of its memory traffic, its arithmetic, and between devices, term by term.

The attention projections may be scaled down to a share 1/a of a stage's devices while the
others wait; everything else always uses all of them.

Source: [Erdil2025] §3.2-3.5 and Eqs. 31-38; the scale-down, groups and widths are the published
program's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.economics.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    POINT_TO_POINT,
    collective_s,
)
from planner.equations.economics.transformer import (
    attention_flop,
    ffn_flop,
    kv_bytes_per_token,
    pass_flop,
    touched_fraction,
)
from planner.specs.records.economics import DecodePass, EconomicsModel

ROUNDING = 1e-12
"""Relative slack where a real-valued degree meets a bound: 8 × (1 + an ulp) fills one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Degrees of parallelism, one entry a point; real numbers, nothing has to divide anything.

    `n_per_stage` is T = N/P, `n_microbatch` the requests b = B/P of one of P micro-batches,
    `n_tokens` what a micro-batch scores, `n_expert` and `n_ffn` how the T devices are
    split in the FFN.
    """

    n_devices: FloatArray
    n_requests: FloatArray
    n_stages: FloatArray
    n_per_stage: FloatArray
    n_microbatch: FloatArray
    n_tokens: FloatArray
    n_expert: FloatArray
    n_ffn: FloatArray


def n_nodes(n_devices: ArrayLike, n_devices_per_node: int) -> FloatArray:
    """Nodes that hold the devices [1]. Source: [Erdil2025] §3.3."""
    return np.ceil(np.multiply(n_devices, (1.0 - ROUNDING) / n_devices_per_node))


def tensor_group(
    n_devices: FloatArray, n_devices_per_node: int, *, is_2d: bool
) -> tuple[FloatArray, FloatArray]:
    """Ranks and nodes of one collective of a tensor-parallel product [1].

    Sharded in two dimensions, t devices form √t groups of √t ranks on √nodes nodes; in
    one dimension all of them are one group.

    Source: [Erdil2025] §3.3 for two dimensions, footnote 3 for one.
    """
    nodes = n_nodes(n_devices, n_devices_per_node)
    return (np.sqrt(n_devices), np.sqrt(nodes)) if is_2d else (n_devices, nodes)


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


N_LAUNCHES_PER_LAYER = 4
"""Kernels of one layer, whatever its architecture. Source: [Erdil2025] Eq. 30."""


def launch_s(decode: DecodePass) -> float:
    """Launches of a pass's kernels [s]. Source: [Erdil2025] Eq. 30."""
    return N_LAUNCHES_PER_LAYER * decode.model.n_layers * decode.device.kernel_launch_s


def attention_network_s(
    decode: DecodePass, degrees: Degrees, n_attention: FloatArray, *, is_2d: bool
) -> FloatArray:
    """All-reduces around attention [s].

    In two dimensions the outputs of both products, the residual stream and the queries,
    keys and values, each within its own groups; in one dimension the residual stream.

    Source: [Erdil2025] Eqs. 39-44.
    """
    model = decode.model
    ranks, nodes = tensor_group(n_attention, decode.device.n_devices_per_node, is_2d=is_2d)
    widths = (model.d_model, model.d_qkv) if is_2d else (model.d_model,)
    n_groups = n_attention / ranks
    return _all_reduces_s(decode, degrees, widths, (ranks, nodes, n_groups))


def ffn_network_s(decode: DecodePass, degrees: Degrees, *, is_2d: bool) -> FloatArray:
    """All-reduces around the FFN [s].

    Widths are those of all active experts, spread over the groups of a stage.

    Source: [Erdil2025] Eqs. 39-44.
    """
    model = decode.model
    ranks, nodes = tensor_group(degrees.n_ffn, decode.device.n_devices_per_node, is_2d=is_2d)
    outer = model.n_active_experts * model.n_ffn_out * model.d_model
    inner = model.n_active_experts * model.n_ffn_in * model.d_ff
    widths = (inner, outer) if is_2d else (outer,)
    n_groups = degrees.n_per_stage / ranks
    return _all_reduces_s(decode, degrees, widths, (ranks, nodes, n_groups))


def _all_reduces_s(
    decode: DecodePass,
    degrees: Degrees,
    widths: tuple[float, ...],
    group: tuple[FloatArray, FloatArray, FloatArray],
) -> FloatArray:
    """One all-reduce a width and layer; the group is its ranks, its nodes, and how many."""
    ranks, nodes, n_groups = group
    bytes_per_word = degrees.n_tokens * (decode.model.activation_bytes / n_groups)
    n_bytes = np.multiply.outer(widths, bytes_per_word)
    times = collective_s(ALL_REDUCE, n_bytes, (ranks, nodes), decode.device)
    return decode.model.n_layers * np.asarray(times.sum(axis=0))


def expert_network_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Dispatch to the experts and return, once a layer each [s].

    The all-to-all spans as many ranks as there are active experts, not as experts are
    spread over, so its latency does not grow with the spread.

    Source: [Erdil2025] §3.5.
    """
    model, device = decode.model, decode.device
    ranks = np.minimum(model.n_active_experts, degrees.n_expert)
    nodes = n_nodes(ranks, device.n_devices_per_node)
    per_device = degrees.n_tokens * (model.d_model * model.activation_bytes) / degrees.n_per_stage
    time = collective_s(ALL_TO_ALL, per_device * ranks, (ranks, nodes), device)
    return 2 * model.n_layers * time


def pipeline_network_s(decode: DecodePass, degrees: Degrees) -> FloatArray:
    """Hand-over between stages, always between nodes [s]. Source: [Erdil2025] §3.5."""
    model = decode.model
    per_device = degrees.n_tokens * (model.d_model * model.activation_bytes) / degrees.n_per_stage
    return (degrees.n_stages - 1) * collective_s(
        POINT_TO_POINT, per_device, (2.0, 2.0), decode.device
    )


def activations_moved(
    shape: tuple[float, float], n_columns: ArrayLike, n_devices: ArrayLike
) -> FloatArray:
    """t₁ k n + t₂ m n: inputs and outputs over all devices [numbers].

    A weight of m × k meets an activation of k × n on t devices, arranged as a grid of t₁ × t₂ in
    the proportion of the weight, t₁ = √(m t / k) kept within [1, t]. Each device reads its block of
    the weight once; the activation is read t₁ times and the output t₂ times over.

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
    model: EconomicsModel, shape: tuple[float, float], n_columns: ArrayLike, n_devices: ArrayLike
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
