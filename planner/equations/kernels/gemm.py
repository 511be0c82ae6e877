"""Time of matrix products, dense and by groups of experts.

    t = floor + (cᵖ + bᵖ)^(1/p) + q

c is the arithmetic at an attainable share of the peak. Where the number of multiprocessors is
known it is that of whole waves of tiles, so that a product with few tiles leaves some idle:
A 2(k + k₀) SMs / (share × peak), A = min over tiles of ⌈tiles / SMs⌉ mₜ (nₜ + n₀); k₀ stands for
the pipeline's prologue and epilogue, n₀ for the price of narrow tiles. b is the traffic of
weights, inputs and outputs, and q the quantisation of the inputs while the program runs.

Source: [InferSim] for the measurements, `docs/decisions/0010-kernels.md` for the form.
"""

from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import smooth_roofline_s

TILE_ROWS = (64, 128)
TILE_COLUMNS = tuple(range(16, 161, 16))
"""Tiles that DeepGEMM chooses from; a product takes the best of them."""

ROUNDING = 1e-9
"""Relative, of sums of tokens in another order."""
BYTES_TO_QUANTISE = 3.0
"""Traffic of quantising one input number: two bytes are read, one is written [B]."""


class Usual(TypedDict, total=False):
    """What of a product has a usual value.

    output_bytes: of one output number; 2 unless given [B].
    n_sms: multiprocessors; None counts work and not tiles [1].
    prologue_k: k₀, further rows that each tile costs [1].
    narrow_n: n₀, further columns that each tile costs [1].
    quant_fraction: share of the bandwidth at which inputs are quantised; None if they arrive
        quantised [1].
    """

    output_bytes: ArrayLike
    n_sms: float | None
    prologue_k: float
    narrow_n: float
    quant_fraction: float | None


class Product(Usual):
    """Formats of a product, rates of the device, and constants, as arrays that broadcast.

    weight_bytes: of one weight [B].
    input_bytes: of one input number, scales included [B].
    peak_flop_per_s: datasheet peak of the number format [FLOP/s].
    hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
    floor_s: launch and whatever else no work explains [s].
    compute_fraction: attainable share of the peak [1].
    memory_fraction: attainable share of the bandwidth [1].
    exponent: p ≥ 1, how far arithmetic and traffic hide each other [1].
    """

    weight_bytes: ArrayLike
    input_bytes: ArrayLike
    peak_flop_per_s: ArrayLike
    hbm_bytes_per_s: ArrayLike
    floor_s: ArrayLike
    compute_fraction: ArrayLike
    memory_fraction: ArrayLike
    exponent: float


def gemm_s(m: ArrayLike, n: ArrayLike, k: ArrayLike, **product: Unpack[Product]) -> FloatArray:
    """Time of one product of inputs [m, k] and weights [k, n] on one device [s].

    Args, broadcast together:
        m: tokens [1].
        n: columns of the weights, as sharded [1].
        k: rows of the weights, as sharded [1].
        product: see `Product` and `Usual`.

    Raises:
        ValueError: the exponent is below one.
    """
    return grouped_gemm_s(m, 1.0, n, k, **product)


def grouped_gemm_s(
    tokens: ArrayLike,
    n_groups_hit: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    *,
    weight_bytes: ArrayLike,
    input_bytes: ArrayLike,
    output_bytes: ArrayLike = 2.0,
    peak_flop_per_s: ArrayLike,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    compute_fraction: ArrayLike,
    memory_fraction: ArrayLike,
    exponent: float,
    n_sms: float | None = None,
    prologue_k: float = 0.0,
    narrow_n: float = 0.0,
    quant_fraction: float | None = None,
) -> FloatArray:
    """Time of one product for each group, all in one kernel [s].

    Args, broadcast together; those not here are as in `Product` and `Usual`:
        tokens: rows of all groups together [1].
        n_groups_hit: groups that have any row; only their weights are read [1].
        n: columns of the weights of one group [1].
        k: rows of the weights of one group [1].
    """
    tokens, groups = np.asarray(tokens, dtype=float), np.asarray(n_groups_hit, dtype=float)
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    if n_sms is None:
        flop = 2.0 * tokens * n * k
    else:
        area = tile_area(tokens, groups, n, n_sms=n_sms, narrow_n=narrow_n)
        flop = 2.0 * area * n_sms * (k + prologue_k)
    inputs = tokens * k
    traffic = (
        groups * n * k * np.asarray(weight_bytes)
        + inputs * np.asarray(input_bytes)
        + tokens * n * np.asarray(output_bytes)
    )
    compute = flop / (np.asarray(peak_flop_per_s) * compute_fraction)
    memory = traffic / (np.asarray(hbm_bytes_per_s) * memory_fraction)
    total = np.asarray(floor_s) + smooth_roofline_s(compute, memory, exponent=exponent)
    if quant_fraction is None:
        return np.asarray(total)
    to_quantise = BYTES_TO_QUANTISE * inputs / np.multiply(hbm_bytes_per_s, quant_fraction)
    return np.asarray(total + to_quantise)


def tile_area(
    tokens: ArrayLike, n_groups_hit: ArrayLike, n: ArrayLike, *, n_sms: float, narrow_n: float = 0.0
) -> FloatArray:
    """Area that the busiest multiprocessor works through, with the best of the tiles [1].

    Args, broadcast together:
        tokens: rows of all groups together; each group has its own tiles [1].
        n_groups_hit: groups that have any row [1].
        n: columns [1].
        n_sms: multiprocessors [1].
        narrow_n: further columns that each tile costs [1].

    >>> float(tile_area(64, 1, 12800, n_sms=100))  # 100 tiles of 64 × 128, in one wave
    8192.0
    """
    groups = np.maximum(np.asarray(n_groups_hit, dtype=float), 1e-9)
    each, n = np.divide(tokens, groups), np.asarray(n, dtype=float)
    high, wide, n = np.broadcast_arrays(groups / n_sms, each, n)
    tiles = np.array(TILE_COLUMNS, dtype=float).reshape(-1, *(1,) * n.ndim)
    across, cost = np.ceil(n / tiles), tiles + narrow_n
    wide = wide * (1.0 - ROUNDING)  # 4416.000000000001 tokens fill no further tile
    areas = [
        (np.ceil(high * np.ceil(wide / rows) * across) * cost).min(axis=0) * rows
        for rows in TILE_ROWS
    ]
    return np.asarray(np.minimum(*areas))


def grouped_gemm_work(
    tokens: ArrayLike,
    n_groups_hit: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    *,
    weight_bytes: ArrayLike,
    input_bytes: ArrayLike,
    output_bytes: ArrayLike = 2.0,
) -> tuple[FloatArray, FloatArray]:
    """The least that any program must do: FLOP, and bytes of weights, inputs, outputs."""
    inputs, outputs = np.multiply(tokens, k), np.multiply(tokens, n)
    weights = np.multiply(n_groups_hit, np.multiply(n, k))
    flop = 2.0 * np.multiply(inputs, n)
    ends = np.multiply(inputs, input_bytes) + np.multiply(outputs, output_bytes)
    return flop, np.multiply(weights, weight_bytes) + ends


def gemm_work(
    m: ArrayLike,
    n: ArrayLike,
    k: ArrayLike,
    *,
    weight_bytes: ArrayLike,
    input_bytes: ArrayLike,
    output_bytes: ArrayLike = 2.0,
) -> tuple[FloatArray, FloatArray]:
    """`grouped_gemm_work` of one group."""
    ends = {"input_bytes": input_bytes, "output_bytes": output_bytes}
    return grouped_gemm_work(m, 1.0, n, k, weight_bytes=weight_bytes, **ends)
