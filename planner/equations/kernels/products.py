"""How the products with weights are fitted: dense, by groups of experts, and fused."""

from __future__ import annotations

from planner.equations.kernels.experts import fused_experts_s, fused_experts_work
from planner.equations.kernels.families import FLOOR, MEMORY, SMOOTH, Family, Parameter
from planner.equations.kernels.gemm import gemm_s, gemm_work, grouped_gemm_s, grouped_gemm_work

_PARAMETERS = (
    FLOOR,
    # Tiles count what a real program also pays for elsewhere, so their share may pass one.
    Parameter(name="compute_fraction", start=0.7, low=0.05, high=1.3),
    MEMORY,
    Parameter(name="exponent", start=3.0, low=1.0, high=10.0),
    Parameter(name="prologue_k", start=80.0, low=0.0, high=1024.0),
    Parameter(name="narrow_n", start=10.0, low=0.0, high=160.0),
    Parameter(name="quant_fraction", start=0.5, low=0.05, high=10.0),
)
_FORMS = {"smooth": SMOOTH, "tiles": (*SMOOTH, "prologue_k", "narrow_n")}
_FORMATS = ("weight_bytes", "input_bytes")
_FUSED = (
    "floor_s",
    "routing_s",
    "compute_fraction",
    "memory_fraction",
    "row_traffic",
    "walk_traffic",
    "column_s",
    "narrow_columns",
    "tile_rows",
    "exponent",
)


def _grouped(name: str, title: str) -> Family:
    return Family(
        name=name,
        title=title,
        function=grouped_gemm_s,
        work=grouped_gemm_work,
        dimensions=("tokens", "n_groups_hit", "n", "k", *_FORMATS),
        optional=("output_bytes",),
        parameters=_PARAMETERS,
        forms=_FORMS,
        shape=("k", "n", "n_groups_hit"),
    )


PRODUCTS = (
    Family(
        name="gemm",
        title="matrix product",
        function=gemm_s,
        work=gemm_work,
        dimensions=("m", "n", "k", *_FORMATS),
        optional=("output_bytes",),
        parameters=_PARAMETERS,
        forms={
            **_FORMS,
            "smooth, quantising": (*SMOOTH, "quant_fraction"),
            "tiles, quantising": (*_FORMS["tiles"], "quant_fraction"),
        },
        shape=("k", "n"),
    ),
    _grouped("grouped_gemm_decode", "products of experts, decode"),
    _grouped("grouped_gemm_prefill", "products of experts, prefill"),
    Family(
        name="experts",
        title="fused experts",
        function=fused_experts_s,
        work=fused_experts_work,
        dimensions=(
            "tokens",
            "n_experts",
            "n_experts_local",
            "n_active",
            "d_model",
            "d_expert",
            *_FORMATS,
        ),
        optional=("n_up", "rows", "n_hit"),
        parameters=(
            FLOOR,
            Parameter(name="routing_s", start=1e-5, low=0.0, high=2e-4),
            Parameter(name="compute_fraction", start=0.5, low=0.02, high=1.0),
            MEMORY,
            Parameter(name="row_traffic", start=1.0, low=0.0, high=60.0),
            Parameter(name="walk_traffic", start=1.0, low=0.0, high=10.0),
            Parameter(name="column_s", start=1e-9, low=0.0, high=1e-7),
            Parameter(name="narrow_columns", start=20.0, low=0.0, high=256.0),
            Parameter(name="tile_rows", start=64.0, low=8.0, high=256.0),
            Parameter(name="exponent", start=2.0, low=1.0, high=10.0),
            Parameter(name="idle_expert_s", start=1e-8, low=0.0, high=1e-6),
        ),
        forms={"fused": _FUSED, "looking": (*_FUSED, "idle_expert_s")},
        shape=("n_experts", "n_experts_local", "n_active", "d_model", "d_expert"),
    ),
)
