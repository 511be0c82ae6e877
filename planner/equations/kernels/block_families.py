"""Families of products, of whole blocks, and of programs that no roofline alone describes."""

from planner.equations.kernels.experts import fused_experts_s, fused_experts_work
from planner.equations.kernels.families import FLOOR, MEMORY, SMOOTH, Family, Parameter
from planner.equations.kernels.gemm import gemm_s, gemm_work, grouped_gemm_s, grouped_gemm_work
from planner.equations.kernels.latent_block import (
    latent_block_decode_s,
    latent_block_prefill_s,
    latent_block_work,
)
from planner.equations.kernels.sparse_block import sparse_block_decode_s, sparse_block_prefill_s

_FLOOR = Parameter(name="floor_s", start=3e-5, low=1e-6, high=4e-3)
_EITHER = Parameter(name="compute_fraction", start=0.5, low=0.02, high=2.0)  # in 16 or in 8 bits
_MEMORY = Parameter(name="memory_fraction", start=0.7, low=0.03, high=1.0)
_SEQUENCE_HEAD = Parameter(name="sequence_head_s", start=1e-9, low=1e-13, high=1e-6)

_EXPERTS = (
    _FLOOR,
    Parameter(name="routing_s", start=1.5e-5, low=0.0, high=2e-4),
    Parameter(name="compute_fraction", start=0.5, low=0.05, high=1.0),
    Parameter(name="memory_fraction", start=0.7, low=0.1, high=1.0),
    Parameter(name="row_traffic", start=1.0, low=0.0, high=60.0),
    Parameter(name="walk_traffic", start=0.5, low=0.0, high=60.0),
    Parameter(name="column_s", start=1e-9, low=0.0, high=1e-7),
    Parameter(name="narrow_columns", start=10.0, low=0.0, high=400.0),
    Parameter(name="tile_rows", start=64.0, low=8.0, high=128.0),
    Parameter(name="exponent", start=3.0, low=1.0, high=10.0),
)
_PRODUCTS = (
    Parameter(name="product_compute_fraction", start=0.6, low=0.1, high=1.0),
    Parameter(name="product_memory_fraction", start=0.7, low=0.2, high=1.0),
)
_DECODE = (
    _FLOOR,
    *_PRODUCTS,
    _EITHER,
    _MEMORY,
    Parameter(name="sequence_s", start=1e-8, low=0.0, high=1e-5),
    _SEQUENCE_HEAD,
    Parameter(name="idle_sequences", start=0.2, low=0.0, high=3.0),
)
_PREFILL = (
    _FLOOR,
    *_PRODUCTS,
    _EITHER,
    _MEMORY,
    Parameter(name="ramp_tokens", start=100.0, low=0.0, high=2000.0),
    _SEQUENCE_HEAD,
)
_CHOICE = (
    Parameter(name="index_fraction", start=0.3, low=0.005, high=1.0),
    Parameter(name="select_s", start=1e-11, low=0.0, high=1e-7),
)
_SPARSE_PREFILL = (
    Parameter(name="host_s", start=2e-4, low=0.0, high=4e-3),
    _FLOOR,
    *_PRODUCTS,
    _EITHER,
    _MEMORY,
    *_CHOICE,
    Parameter(name="min_heads", start=32.0, low=1.0, high=128.0),
)
_FORMATS = ("weight_bytes", "input_bytes")
_OF_EXPERTS = ("n_experts", "n_experts_local", "n_active", "d_model", "d_expert")
_BLOCK = ("n_heads", "d_model", "d_q_latent", "weight_bytes", "product_flop_per_s")
_WIDTHS = ("d_latent", "d_rope", "d_nope", "d_value")
_INDEXER = ("n_index_heads", "d_index", "n_selected", "index_flop_per_s")


def _names(parameters: tuple[Parameter, ...]) -> tuple[str, ...]:
    return tuple(one.name for one in parameters)


def _block(
    name: str, title: str, *, parameters: tuple[Parameter, ...], more: tuple[str, ...]
) -> Family:
    is_decode = name.endswith("decode")
    is_sparse = name.startswith("sparse")
    dense = latent_block_decode_s if is_decode else latent_block_prefill_s
    sparse = sparse_block_decode_s if is_decode else sparse_block_prefill_s
    return Family(
        name=name,
        title=title,
        function=sparse if is_sparse else dense,
        work=latent_block_work,
        dimensions=("batch", *more, *_BLOCK, *(_INDEXER if is_sparse else ())),
        optional=_WIDTHS if is_decode else ("past_tokens", *_WIDTHS),
        parameters=parameters,
        forms={"whole": _names(parameters)},
        shape=("n_heads", "d_model"),
    )


BLOCKS = (
    Family(
        name="dispatched_experts",
        title="experts, their tokens dispatched before",
        function=fused_experts_s,
        work=fused_experts_work,
        dimensions=("tokens", *_OF_EXPERTS, *_FORMATS),
        optional=("n_up", "rows", "walked_rows", "n_hit"),
        parameters=_EXPERTS,
        forms={"walked": _names(_EXPERTS)},
        shape=("n_experts_local", "d_model", "d_expert"),
    ),
    _block(
        "latent_block_decode",
        "latent attention with its projections, decode",
        parameters=_DECODE,
        more=("context", "cache_bytes"),
    ),
    _block(
        "latent_block_prefill",
        "latent attention with its projections, prefill",
        parameters=_PREFILL,
        more=("tokens",),
    ),
    _block(
        "sparse_block_decode",
        "sparse latent attention with its projections, decode",
        parameters=(*_DECODE, *_CHOICE),
        more=("context", "cache_bytes"),
    ),
    _block(
        "sparse_block_prefill",
        "sparse latent attention with its projections, prefill",
        parameters=_SPARSE_PREFILL,
        more=("tokens",),
    ),
)
"""Families of blocks, beside those of single kernels."""


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
_FUSED = (
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
)
_IDLE = Parameter(name="idle_expert_s", start=1e-8, low=0.0, high=1e-6)


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
        dimensions=("tokens", *_OF_EXPERTS, *_FORMATS),
        optional=("n_up", "rows", "n_hit"),
        parameters=(*_FUSED, _IDLE),
        forms={"fused": _names(_FUSED), "looking": _names((*_FUSED, _IDLE))},
        shape=_OF_EXPERTS,
    ),
)
