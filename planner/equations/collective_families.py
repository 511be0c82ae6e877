"""How measured collectives are fitted: the faster of two forms, for each size of groups.

Source: `docs/decisions/0007-collectives.md`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.kernels.families import Family, Parameter


def collective_s(
    n_bytes: ArrayLike,
    n_devices: ArrayLike = 1.0,
    *,
    short_latency_s: ArrayLike,
    short_bytes_per_s: ArrayLike,
    long_latency_s: ArrayLike,
    long_bytes_per_s: ArrayLike,
) -> FloatArray:
    """Time of one collective in groups of one size: min(α₁ + n/B₁, α₂ + n/B₂) [s].

    Args, broadcast together:
        n_bytes: the whole buffer of one device: reduced, gathered, before it is scattered, or
            exchanged [B].
        n_devices: of the group, to which the constants belong [1].
        short_latency_s, long_latency_s: of an empty message in each form [s].
        short_bytes_per_s, long_bytes_per_s: of the buffer, not of a link [B/s].
    """
    volume = np.asarray(n_bytes, dtype=float)
    short = np.divide(volume, short_bytes_per_s) + np.asarray(short_latency_s)
    long = np.divide(volume, long_bytes_per_s) + np.asarray(long_latency_s)
    return np.asarray(np.minimum(short, long) + 0.0 * np.asarray(n_devices, dtype=float))


def collective_work(
    n_bytes: ArrayLike, n_devices: ArrayLike = 1.0
) -> tuple[FloatArray, FloatArray]:
    """No FLOP, and the buffer, which each device reads or writes once at least."""
    shape = np.broadcast_shapes(np.shape(n_bytes), np.shape(n_devices))
    return np.zeros(shape), np.broadcast_to(np.asarray(n_bytes, dtype=float), shape)


PARAMETERS = (
    Parameter(name="short_latency_s", start=1e-5, low=1e-7, high=1e-2),
    Parameter(name="short_bytes_per_s", start=5e10, low=1e7, high=1e13),
    Parameter(name="long_latency_s", start=3e-5, low=1e-7, high=1e-2),
    Parameter(name="long_bytes_per_s", start=2e11, low=1e7, high=1e13),
)

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

COLLECTIVES: Mapping[str, Family] = {
    kind: Family(
        name=kind,
        title=kind.replace("_", "-"),
        function=collective_s,
        work=collective_work,
        dimensions=("n_devices", "n_bytes"),
        parameters=PARAMETERS,
        forms={"two regimes": tuple(one.name for one in PARAMETERS)},
        shape=("n_bytes",),
        rates=(),
    )
    for kind in KINDS
}
"""By the name that tables give them."""
