"""An all-reduce as the reads of a tree, as the paper counts them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.economics import EconomicsDevice


def scale_out_read_bytes(exchanged_bytes: ArrayLike, n_nodes: ArrayLike) -> FloatArray:
    """2 (k − 1) times what is reduced, each node a single participant [bytes].

    Source: [Erdil2025] Eqs. 26 and 41.
    """
    return np.multiply(np.multiply(2.0, exchanged_bytes), np.subtract(n_nodes, 1.0))


def scale_up_read_bytes(
    exchanged_bytes: ArrayLike, n_ranks: ArrayLike, n_nodes: ArrayLike
) -> FloatArray:
    """2 (n − k) times what is reduced, the ranks of each node among themselves [bytes].

    Source: [Erdil2025] Eqs. 27 and 42.
    """
    return np.multiply(np.multiply(2.0, exchanged_bytes), np.subtract(n_ranks, n_nodes))


def reads_s(
    scale_out_bytes: ArrayLike,
    scale_up_bytes: ArrayLike,
    n_devices: ArrayLike,
    device: EconomicsDevice,
) -> FloatArray:
    """Both kinds of reads over the links of all devices, one after the other [s].

    A link carries twice the all-reduce bandwidth in one direction.

    Source: [Erdil2025] Eqs. 28 and 40.
    """
    between = np.divide(scale_out_bytes, 2 * device.scale_out_all_reduce_bytes_per_s)
    within = np.divide(scale_up_bytes, 2 * device.scale_up_all_reduce_bytes_per_s)
    return np.asarray(np.divide(between + within, n_devices))
