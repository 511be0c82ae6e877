"""What [Erdil2025] §2 says of its toy model besides what `planner` answers: Eqs. 1-9 and 19."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.economics import EconomicsDevice, EconomicsModel
from research.economics.model.optimum import N_REDUCES_SERIAL, ToySystem, table_1_system

N_REDUCES_PARALLEL = 2


def figure_1_system(model: EconomicsModel, device: EconomicsDevice) -> ToySystem:
    """Sustained rates, two all-reduces in a parallel block, 6 µs to start one.

    Source: [Erdil2025] Figure 1, Eqs. 6-7; rates and base of the published program.
    """
    return replace(
        table_1_system(model, device),
        hbm_bytes_per_s=device.hbm_bytes_per_s,
        flop_per_s=device.flop_per_s_of(model),
        hbm_bytes=device.hbm_bytes,
        n_reduces_per_layer=N_REDUCES_PARALLEL if model.is_parallel_block else N_REDUCES_SERIAL,
        base_s=6e-6,
    )


def single_device_latency_s(system: ToySystem, n_requests: ArrayLike) -> FloatArray:
    """max(W/M, 2PB/F) [s]. Source: [Erdil2025] Eq. 1."""
    return np.maximum(system.read_s, np.multiply(system.compute_s, n_requests))


def single_device_s_per_token(system: ToySystem, n_requests: ArrayLike) -> FloatArray:
    """max(W/(M B), 2P/F) [s]. Source: [Erdil2025] Eq. 2."""
    return np.divide(single_device_latency_s(system, n_requests), n_requests)


def all_reduce_s(system: ToySystem, n_devices: ArrayLike) -> FloatArray:
    """2 (√N − 1) hops of a ring over √N ranks, and the base [s].

    Source: [Erdil2025] §2.2.1, in Eqs. 5 and 8; the base is the published program's.
    """
    hops = np.maximum(np.sqrt(n_devices) - 1.0, 0.0)
    return np.asarray(2.0 * system.hop_s * hops + system.base_s)


def latency_s(system: ToySystem, n_devices: ArrayLike, n_requests: ArrayLike) -> FloatArray:
    """All-reduces, then the longer of reading and computing; inf if too large [s].

    Source: [Erdil2025] Eqs. 3, 5 and 8.
    """
    n = np.asarray(n_devices, dtype=float)
    work = single_device_latency_s(system, n_requests) / n
    n_reduces = system.n_layers * system.n_reduces_per_layer
    latency = n_reduces * all_reduce_s(system, n) + work
    fits = n * system.hbm_bytes >= system.n_params * system.weight_bytes
    return np.where(fits, latency, np.inf)


def device_s_per_token(
    system: ToySystem, n_devices: ArrayLike, n_requests: ArrayLike
) -> FloatArray:
    """N latency / B [s]. Source: [Erdil2025] Eq. 4."""
    latency = latency_s(system, n_devices, n_requests)
    return np.divide(np.multiply(n_devices, latency), n_requests)


def latency_at_optimal_batch_s(system: ToySystem, n_devices: ArrayLike) -> FloatArray:
    """c (√N − 1) + W / (N M), for N ≥ 1 [s]. Source: [Erdil2025] Eq. 9."""
    hops = system.reduces_s * (np.sqrt(n_devices) - 1.0)
    return np.asarray(hops + np.divide(system.read_s, n_devices))


def scaled(system: ToySystem, factor: float) -> ToySystem:
    """So many times the parameters, with layers as the fourth root of it.

    Eq. 18 then grows as the square root of the parameters.

    Source: [Erdil2025] Eq. 19.
    """
    return replace(
        system, n_params=system.n_params * factor, n_layers=system.n_layers * factor ** (1 / 4)
    )
