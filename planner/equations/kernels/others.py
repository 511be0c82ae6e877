"""How the rest is fitted: small kernels, sampling, dispatch and combine."""

from __future__ import annotations

from planner.equations.kernels.elementwise import elementwise_s, elementwise_work
from planner.equations.kernels.exchange import exchange_s, exchange_work
from planner.equations.kernels.families import FLOOR, MEMORY, Family, Parameter
from planner.equations.kernels.sampling import sampling_s, sampling_work

_LINKS = (
    Parameter(name="floor_s", start=2e-5, low=0.0, high=1.5e-4),
    Parameter(name="scale_up_bytes_per_s", start=2e11, low=1e9, high=2e12),
    Parameter(name="scale_out_bytes_per_s", start=5e10, low=1e9, high=1e12),
)


def _exchange(name: str, title: str, mode: str) -> Family:
    return Family(
        name=name,
        title=title,
        function=exchange_s,
        work=exchange_work,
        dimensions=("tokens", "d_model", "n_active", "bytes_per_number", "n_nodes"),
        optional=("n_nodes_hit",) if mode == "normal" else (),
        parameters=_LINKS,
        forms={mode: tuple(one.name for one in _LINKS)},
        shape=("n_nodes",),
        fixed={"mode": mode},
        rates=(),
    )


MOVERS = (
    Family(
        name="elementwise",
        title="small kernels",
        function=elementwise_s,
        work=elementwise_work,
        dimensions=("n_bytes",),
        optional=("n_kernels",),
        parameters=(Parameter(name="kernel_s", start=3e-6, low=0.0, high=1e-4), MEMORY),
        forms={"additive": ("kernel_s", "memory_fraction")},
        shape=("n_bytes",),
        rates=("hbm_bytes_per_s",),
    ),
    Family(
        name="sampling",
        title="sampling",
        function=sampling_s,
        work=sampling_work,
        dimensions=("batch", "vocab"),
        parameters=(FLOOR, Parameter(name="n_passes", start=5.0, low=1.0, high=100.0), MEMORY),
        # Passes and the share of the bandwidth only appear as their ratio: all of it is taken.
        forms={"additive": ("floor_s", "n_passes")},
        shape=("vocab",),
        completing={"memory_fraction": 1.0},
        rates=("hbm_bytes_per_s",),
    ),
    _exchange("dispatch_low_latency", "dispatch, low latency", "low-latency"),
    _exchange("combine_low_latency", "combine, low latency", "low-latency"),
    _exchange("dispatch_normal", "dispatch", "normal"),
    _exchange("combine_normal", "combine", "normal"),
)
