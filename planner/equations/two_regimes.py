"""Collectives as measured: the faster of a low-latency form and one of high bandwidth.

    time of n bytes in a group of k    min(α₁ + n/B₁, α₂ + n/B₂)

Latencies and seconds a byte are fitted at a few sizes of groups. Between them both are taken
as linear in log₂ k, from nothing at k = 1. Beyond the largest size K, a latency grows as
log₂ k, as steps of a tree do, and seconds a byte as (k − 1)/k, the share that is transferred:
an assumption, no measurement.

Source: fits to the tables of aiconfigurator-core 0.12.0; single α–β misses them by 3 to 28 %,
two regimes by 2 to 14 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.collectives import transferred_fraction


def two_regimes_s(
    n_bytes: ArrayLike,
    short: tuple[ArrayLike, ArrayLike],
    long: tuple[ArrayLike, ArrayLike],
) -> FloatArray:
    """The faster of two forms, less what an empty message takes [s].

    Args, broadcast together:
        n_bytes: buffer of a device [bytes].
        short, long: latency [s] and seconds a byte [s/bytes] of each form.

    Source: the module's.
    """
    idle = np.minimum(short[0], long[0])
    quick = np.multiply(n_bytes, short[1]) + np.subtract(short[0], idle)
    wide = np.multiply(n_bytes, long[1]) + np.subtract(long[0], idle)
    return np.asarray(np.minimum(quick, wide))


def group_latency_s(
    n_devices: ArrayLike, sizes: Sequence[int], latency_s: Sequence[float]
) -> FloatArray:
    """Latency in a group of any size, from those at some; none for one device [s].

    Args:
        n_devices: k ≥ 1, may be no whole number [1].
        sizes: fitted, ascending, at least two [1].
        latency_s: one for each of them.

    Source: the module's.
    """
    doublings = np.log2(np.asarray(n_devices, dtype=float))
    beyond = np.maximum(doublings / np.log2(sizes[-1]), 1.0)
    return np.asarray(_interpolated(doublings, sizes, latency_s) * beyond)


def group_s_per_byte(
    n_devices: ArrayLike, sizes: Sequence[int], bytes_per_s: Sequence[float]
) -> FloatArray:
    """Seconds a byte in a group of any size, from the bandwidths at some [s/bytes].

    Args as `group_latency_s`; `bytes_per_s` are of the buffer, not of a link.

    Source: the module's.
    """
    doublings = np.log2(np.asarray(n_devices, dtype=float))
    at_sizes = np.divide(1.0, bytes_per_s)
    share = transferred_fraction(n_devices) / transferred_fraction(sizes[-1])
    return _interpolated(doublings, sizes, at_sizes) * np.maximum(share, 1.0)


def _interpolated(doublings: FloatArray, sizes: Sequence[int], values: ArrayLike) -> FloatArray:
    """Linear in log₂ k, from zero at one device; the last value beyond the last size."""
    at = np.concatenate([[0.0], np.log2(sizes)])
    known = np.concatenate([[0.0], np.asarray(values, dtype=float)])
    return np.asarray(np.interp(doublings, at, known))
