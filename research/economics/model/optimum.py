"""The toy model: arithmetic, parameter reads and the latency of all-reduces. Eqs. 1-19.

Dense, short contexts, bandwidth of the network without bound. With W the bytes of the parameters,
M and F the memory and FLOP rate of one device, and c the time that each layer's all-reduces would
add if √N grew by one:

    latency(N, B) = c (√N − 1) + max(W / (N M), 2 P B / (N F))

Source: [Erdil2025] §2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from planner.equations.economics.transformer import n_params
from planner.specs.records.economics import EconomicsDevice, EconomicsModel

N_REDUCES_SERIAL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToySystem:
    """A model and a device, as far as the toy model knows them.

    `hop_s` is one step of an all-reduce's ring, `base_s` what any all-reduce costs.
    """

    n_params: float
    n_layers: float
    weight_bytes: float
    hbm_bytes_per_s: float
    flop_per_s: float
    hbm_bytes: float = inf
    n_reduces_per_layer: int = N_REDUCES_SERIAL
    hop_s: float = 1e-6
    base_s: float = 0.0

    @property
    def read_s(self) -> float:
        """W / M: one device reads all parameters."""
        return self.n_params * self.weight_bytes / self.hbm_bytes_per_s

    @property
    def compute_s(self) -> float:
        """2 P / F: one device computes one token."""
        return 2 * self.n_params / self.flop_per_s

    @property
    def reduces_s(self) -> float:
        """c = layers × all-reduces a layer × 2 hops."""
        return self.n_layers * self.n_reduces_per_layer * 2 * self.hop_s


def table_1_system(model: EconomicsModel, device: EconomicsDevice) -> ToySystem:
    """Peak rates, every parameter of every expert, four all-reduces whatever the block.

    Source: [Erdil2025] Table 1; hops of 1 µs, §2.2.1.
    """
    return ToySystem(
        n_params=n_params(model),
        n_layers=model.n_layers,
        weight_bytes=model.weight_bytes,
        hbm_bytes_per_s=device.peak_hbm_bytes_per_s,
        flop_per_s=device.peak_flop_per_s_of(model),
    )


def optimal_n_requests(system: ToySystem) -> float:
    """p F / (2 M), with p bytes a parameter: reading takes as long as computing [1].

    Source: [Erdil2025] §2.1, below Eq. 2.
    """
    return system.weight_bytes * system.flop_per_s / (2 * system.hbm_bytes_per_s)


def optimal_n_devices(system: ToySystem) -> float:
    """max(1, (2 W / (c M))^(2/3)) [1]. Source: [Erdil2025] Eqs. 10-13."""
    return max(1.0, float((2 * system.read_s / system.reduces_s) ** (2 / 3)))


def least_latency_s(system: ToySystem) -> float:
    """3 · 2^(−2/3) c^(2/3) (W/M)^(1/3) − c beyond one device, else W/M [s].

    Source: [Erdil2025] Eq. 14.
    """
    if optimal_n_devices(system) == 1.0:
        return system.read_s
    return large_model_latency_s(system) - system.reduces_s


def large_model_latency_s(system: ToySystem) -> float:
    """3 · 2^(−2/3) c^(2/3) (W/M)^(1/3): Eq. 14 for many devices [s].

    Source: [Erdil2025] Eq. 18.
    """
    return float(3 * 2 ** (-2 / 3) * system.reduces_s ** (2 / 3) * system.read_s ** (1 / 3))


def device_s_per_token_at_least_latency(system: ToySystem) -> float:
    """(2 P / F) (3 − 2^(2/3) (c M / W)^(1/3)) beyond one device, else 2 P / F [s].

    Source: [Erdil2025] Eqs. 15-17.
    """
    if optimal_n_devices(system) == 1.0:
        return system.compute_s
    ratio = system.reduces_s / system.read_s
    return float(system.compute_s * (3 - 2 ** (2 / 3) * ratio ** (1 / 3)))
