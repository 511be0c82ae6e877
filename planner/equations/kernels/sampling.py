"""Time to choose the next token from the scores of a vocabulary."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray

BYTES_OF_A_SCORE = 4.0
"""Engines widen the scores to fp32 before they choose [B]."""


def sampling_s(
    batch: ArrayLike,
    vocab: ArrayLike,
    *,
    hbm_bytes_per_s: ArrayLike,
    floor_s: ArrayLike,
    n_passes: ArrayLike,
    memory_fraction: ArrayLike,
) -> FloatArray:
    """floor + passes × batch × vocabulary × 4 B / (share × bandwidth) [s].

    Args, broadcast together:
        batch: sequences [1].
        vocab: scores of each [1].
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
        floor_s: launches of the kernels that choose [s].
        n_passes: times that the scores are read or written: widen, divide by the temperature,
            normalise, limit, draw [1].
        memory_fraction: attainable share of the bandwidth [1].

    Source: `docs/decisions/0010-kernels.md`.
    """
    _, once = sampling_work(batch, vocab)
    traffic = np.multiply(n_passes, once) / np.multiply(hbm_bytes_per_s, memory_fraction)
    return np.add(traffic, floor_s)


def sampling_work(batch: ArrayLike, vocab: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """No FLOP that count, and the bytes of one pass."""
    scores = np.multiply(np.asarray(batch, dtype=float), vocab)
    return np.zeros_like(scores), scores * BYTES_OF_A_SCORE
