"""Closed forms of the time of kernels: one file a family, each a pure function on arrays.

Constants are data: `kernels/*.toml` holds them by device and serving engine, each with the rows
it was fitted to, `specs.kernel_files` reads them, and `plan calibrate` makes them from tables of
measured kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.equations.kernels.attention import (
    decode_attention_s,
    decode_attention_work,
    prefill_attention_s,
    prefill_attention_work,
)
from planner.equations.kernels.block_families import BLOCK_FAMILIES
from planner.equations.kernels.elementwise import elementwise_s, elementwise_work
from planner.equations.kernels.exchange import exchange_s, exchange_work
from planner.equations.kernels.families import Family, Parameter
from planner.equations.kernels.gemm import (
    gemm_s,
    gemm_work,
    grouped_gemm_s,
    grouped_gemm_work,
)
from planner.equations.kernels.latent import (
    latent_decode_s,
    latent_decode_work,
    latent_prefill_s,
    latent_prefill_work,
)
from planner.equations.kernels.sampling import sampling_s, sampling_work

_FLOOR = Parameter(name="floor_s", start=5e-6, low=0.0, high=2e-4)
_COMPUTE = Parameter(name="compute_fraction", start=0.7, low=0.05, high=1.0)
_MEMORY = Parameter(name="memory_fraction", start=0.8, low=0.05, high=1.0)
_EXPONENT = Parameter(name="exponent", start=3.0, low=1.0, high=10.0)

_PRODUCTS = (
    _FLOOR,
    # Tiles count what a real program also pays for elsewhere, so their share may pass one.
    Parameter(name="compute_fraction", start=0.7, low=0.05, high=1.3),
    _MEMORY,
    _EXPONENT,
    Parameter(name="prologue_k", start=80.0, low=0.0, high=1024.0),
    Parameter(name="narrow_n", start=10.0, low=0.0, high=160.0),
    Parameter(name="quant_fraction", start=0.5, low=0.05, high=10.0),
)
_SMOOTH = ("floor_s", "compute_fraction", "memory_fraction", "exponent")
_PRODUCT_FORMS = {
    "smooth": _SMOOTH,
    "tiles": (*_SMOOTH, "prologue_k", "narrow_n"),
}
_FORMATS = ("weight_bytes", "input_bytes")
_LATENT = (
    Parameter(name="sequence_s", start=1e-8, low=0.0, high=1e-6),
    Parameter(name="sequence_head_s", start=1e-10, low=0.0, high=1e-7),
    Parameter(name="idle_sequences", start=0.2, low=0.0, high=3.0),
)


def _grouped(name: str, title: str) -> Family:
    return Family(
        name=name,
        title=title,
        function=grouped_gemm_s,
        work=grouped_gemm_work,
        dimensions=("tokens", "n_groups_hit", "n", "k", *_FORMATS),
        optional=("output_bytes",),
        parameters=_PRODUCTS,
        forms=_PRODUCT_FORMS,
        shape=("k", "n", "n_groups_hit"),
    )


def _exchange(name: str, title: str, mode: str) -> Family:
    return Family(
        name=name,
        title=title,
        function=exchange_s,
        work=exchange_work,
        dimensions=("tokens", "d_model", "n_active", "bytes_per_number", "n_nodes"),
        optional=("n_nodes_hit",) if mode == "normal" else (),
        parameters=(
            Parameter(name="floor_s", start=2e-5, low=0.0, high=1.5e-4),
            Parameter(name="scale_up_bytes_per_s", start=2e11, low=1e9, high=2e12),
            Parameter(name="scale_out_bytes_per_s", start=5e10, low=1e9, high=1e12),
        ),
        forms={mode: ("floor_s", "scale_up_bytes_per_s", "scale_out_bytes_per_s")},
        shape=("n_nodes",),
        fixed={"mode": mode},
        rates=(),
    )


_ALL = (
    Family(
        name="gemm",
        title="matrix product",
        function=gemm_s,
        work=gemm_work,
        dimensions=("m", "n", "k", *_FORMATS),
        optional=("output_bytes",),
        parameters=_PRODUCTS,
        forms={
            **_PRODUCT_FORMS,
            "smooth, quantising": (*_SMOOTH, "quant_fraction"),
            "tiles, quantising": (*_PRODUCT_FORMS["tiles"], "quant_fraction"),
        },
        shape=("k", "n"),
    ),
    _grouped("grouped_gemm_decode", "products of experts, decode"),
    _grouped("grouped_gemm_prefill", "products of experts, prefill"),
    Family(
        name="decode_attention",
        title="attention, decode",
        function=decode_attention_s,
        work=decode_attention_work,
        dimensions=("batch", "context", "n_heads", "n_kv_heads", "d_head", "cache_bytes"),
        parameters=(
            _FLOOR,
            _COMPUTE,
            _MEMORY,
            Parameter(name="exponent", start=3.0, low=1.0, high=20.0),
            Parameter(name="sequence_head_s", start=1e-8, low=0.0, high=1e-6),
        ),
        forms={
            "smooth": _SMOOTH,
            "by sequence and head": (*_SMOOTH, "sequence_head_s"),
        },
        shape=("n_heads", "n_kv_heads", "d_head"),
    ),
    Family(
        name="prefill_attention",
        title="attention, prefill",
        function=prefill_attention_s,
        work=prefill_attention_work,
        dimensions=("batch", "tokens", "n_heads", "n_kv_heads", "d_head"),
        optional=("past_tokens", "cache_bytes"),
        parameters=(
            _FLOOR,
            _COMPUTE,
            _MEMORY,
            Parameter(name="ramp_tokens", start=300.0, low=0.0, high=4096.0),
        ),
        forms={
            "ramp": ("floor_s", "compute_fraction", "ramp_tokens"),
            "traffic": ("floor_s", "compute_fraction", "memory_fraction"),
            "ramp and traffic": ("floor_s", "compute_fraction", "memory_fraction", "ramp_tokens"),
        },
        shape=("n_heads", "n_kv_heads", "d_head"),
    ),
    Family(
        name="latent_decode",
        title="latent attention, decode",
        function=latent_decode_s,
        work=latent_decode_work,
        dimensions=("batch", "context", "n_heads", "cache_bytes"),
        optional=("d_latent", "d_rope"),
        parameters=(
            _FLOOR,
            _COMPUTE,
            _MEMORY,
            Parameter(name="exponent", start=3.0, low=1.0, high=20.0),
            *_LATENT,
        ),
        forms={
            "smooth": _SMOOTH,
            "by sequence and head": (*_SMOOTH, *(one.name for one in _LATENT)),
        },
        shape=("n_heads",),
    ),
    Family(
        name="latent_prefill",
        title="latent attention, prefill",
        function=latent_prefill_s,
        work=latent_prefill_work,
        dimensions=("batch", "tokens", "n_heads"),
        optional=("past_tokens",),
        parameters=(
            _FLOOR,
            _COMPUTE,
            Parameter(name="ramp_tokens", start=300.0, low=0.0, high=4096.0),
            _MEMORY,
            Parameter(name="sequence_head_s", start=1e-9, low=0.0, high=1e-6),
        ),
        forms={
            "flat": ("floor_s", "compute_fraction"),
            "ramp": ("floor_s", "compute_fraction", "ramp_tokens"),
            "by sequence and head": (
                "floor_s",
                "compute_fraction",
                "ramp_tokens",
                "memory_fraction",
                "sequence_head_s",
            ),
        },
        shape=("n_heads",),
    ),
    Family(
        name="elementwise",
        title="small kernels",
        function=elementwise_s,
        work=elementwise_work,
        dimensions=("n_bytes",),
        optional=("n_kernels",),
        parameters=(Parameter(name="kernel_s", start=3e-6, low=0.0, high=1e-4), _MEMORY),
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
        parameters=(
            _FLOOR,
            Parameter(name="n_passes", start=5.0, low=1.0, high=100.0),
            _MEMORY,
        ),
        forms={"additive": ("floor_s", "n_passes")},
        shape=("vocab",),
        fixed={},
        rates=("hbm_bytes_per_s",),
    ),
    _exchange("dispatch_low_latency", "dispatch, low latency", "low-latency"),
    _exchange("combine_low_latency", "combine, low latency", "low-latency"),
    _exchange("dispatch_normal", "dispatch", "normal"),
    _exchange("combine_normal", "combine", "normal"),
    *BLOCK_FAMILIES,
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in _ALL}
"""Every family, by the name that kernel files give it."""
