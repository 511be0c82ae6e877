"""Time of kernels that only move numbers: norms, rotations, activations, casts, permutations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray


def elementwise_s(
    n_bytes: ArrayLike,
    n_kernels: ArrayLike = 1.0,
    *,
    hbm_bytes_per_s: ArrayLike,
    kernel_s: ArrayLike,
    memory_fraction: ArrayLike,
) -> FloatArray:
    """Time of small kernels one after the other: n kernel_s + bytes / (share × bandwidth) [s].

    Args, broadcast together:
        n_bytes: read and written by all of them together [B].
        n_kernels: how many [1].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        kernel_s: least time of one, its launch inside a graph [s].
        memory_fraction: attainable share of the bandwidth [1].

    Source: `docs/decisions/0010-kernels.md`.
    """
    traffic = np.divide(n_bytes, np.multiply(hbm_bytes_per_s, memory_fraction))
    return np.asarray(np.multiply(n_kernels, kernel_s) + traffic)


def elementwise_work(
    n_bytes: ArrayLike, n_kernels: ArrayLike = 1.0
) -> tuple[FloatArray, FloatArray]:
    """No FLOP that count, and the bytes."""
    return np.zeros(np.broadcast_shapes(np.shape(n_bytes), np.shape(n_kernels))), np.asarray(
        n_bytes, dtype=float
    )
