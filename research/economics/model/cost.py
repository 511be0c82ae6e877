"""What a token costs and how well it uses the devices, from the latency of a pass.

Source: [Erdil2025] Eqs. 2 and 4, §2.2.2 and §4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.economics.transformer import pass_flop
from planner.specs.records.economics import DecodePass, EconomicsDevice

SECONDS_PER_HOUR = 3600.0


def device_s_per_token(
    latency_s: ArrayLike, n_devices: ArrayLike, n_requests: ArrayLike
) -> FloatArray:
    """N latency / B: device-seconds of one token [s]. Source: [Erdil2025] Eqs. 2 and 4."""
    return np.divide(np.multiply(n_devices, latency_s), n_requests)


def usd_per_token(
    latency_s: ArrayLike, n_devices: ArrayLike, n_requests: ArrayLike, device: EconomicsDevice
) -> FloatArray:
    """Rent of the devices for one token [USD]. Source: [Erdil2025] §2.2.2."""
    per_second = device.usd_per_hour / SECONDS_PER_HOUR
    return per_second * device_s_per_token(latency_s, n_devices, n_requests)


def mfu_fraction(
    decode: DecodePass, latency_s: ArrayLike, n_devices: ArrayLike, n_requests: ArrayLike
) -> FloatArray:
    """Arithmetic of one token a request over the peak of all devices [1].

    Drafted and rejected tokens do not count; scores against the context do.

    Source: [Erdil2025], published program.
    """
    peak = np.multiply(n_devices, decode.device.peak_flop_per_s_of(decode.model))
    one_token = pass_flop(replace(decode, n_scored_tokens=1.0), n_requests)
    return np.divide(one_token, np.multiply(peak, latency_s))


def preference(tokens_per_s: ArrayLike, usd_per_token: ArrayLike, *, exponent: float) -> FloatArray:
    """speedᵅ / price: what a client gets for the money, who values speed at its α-th power.

    Source: [Erdil2025] Eq. 45.
    """
    return np.divide(np.power(tokens_per_s, exponent), usd_per_token)
