"""Latent attention and linear attention in the tables of `aiconfigurator-core`.

A row of a whole block names the model whose projections are in it, and a row of linear attention
one of two kernels: convolution and scan are added. Rows that took half as long again as larger
ones are left out, and counted.

Source: [AIConfigurator2026]; docs/decisions/0012-experts-and-blocks.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from research.published.silicon_experts import experts
from research.published.silicon_rows import (
    MILLI,
    Origin,
    Table,
    TableRows,
    columns_of,
    first_rows,
    kept_rows,
    peak_in,
)

_WEIGHTS = {
    # name in the tables: formats whose peak bounds the products, the first known; bytes
    "bfloat16": (("bf16",), 2.0),
    "fp8_block": (("fp8", "bf16"), 1.0),
    "nvfp4": (("nvfp4", "fp4", "mxfp4"), 0.5625),
}
_CACHES = {"bfloat16": ("bf16", 2.0), "fp8": ("fp8", 1.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What a block's table does not say of its model: from the model's `config.json`."""

    d_model: int
    d_q_latent: int
    d_nope: int
    d_value: int
    n_index_heads: int = 0
    d_index: int = 0
    n_selected: int = 0


_MODELS = {
    "deepseek-ai/DeepSeek-V3": _Model(d_model=7168, d_q_latent=1536, d_nope=128, d_value=128),
    "deepseek-ai/DeepSeek-V3.2": _Model(
        d_model=7168, d_q_latent=1536, d_nope=128, d_value=128,
        n_index_heads=64, d_index=128, n_selected=2048,
    ),
    "zai-org/GLM-5": _Model(
        d_model=6144, d_q_latent=2048, d_nope=192, d_value=256,
        n_index_heads=32, d_index=128, n_selected=2048,
    ),
}  # fmt: skip
SHORTEST_SPARSE = 16
"""Prompts of sparse attention from which its kernel runs, not that of decode."""


def latent_decode(table: Table, origin: Origin) -> TableRows:
    """The kernel of absorbed latent attention, one token a sequence."""
    for name, (form, cache_bytes) in _CACHES.items():
        rows = first_rows(table, table["kv_cache_dtype"] == name, "num_heads", "batch_size", "step")
        context = table["isl"] + table["step"]
        columns = columns_of(
            len(rows),
            batch=table["batch_size"][rows],
            context=context[rows],
            n_heads=table["num_heads"][rows],
            cache_bytes=cache_bytes,
        )
        orders = (
            (("num_heads", "batch_size"), "step", 1),
            (("num_heads", "isl", "step"), "batch_size", 1),
        )
        yield from kept_rows(table, rows, origin, ("latent_decode", form, "bf16"), columns, orders)


def latent_prefill(table: Table, origin: Origin) -> TableRows:
    """The kernel of latent attention over whole prompts."""
    for name, (form, _) in _CACHES.items():
        rows = first_rows(table, table["kv_cache_dtype"] == name, "num_heads", "batch_size", "isl")
        columns = columns_of(
            len(rows),
            batch=table["batch_size"][rows],
            tokens=table["isl"][rows],
            n_heads=table["num_heads"][rows],
        )
        orders = ((("num_heads", "batch_size"), "isl", 1), (("num_heads", "isl"), "batch_size", 1))
        yield from kept_rows(table, rows, origin, ("latent_prefill", form, "bf16"), columns, orders)


def block(family: str) -> Callable[[Table, Origin], TableRows]:
    """A reader of whole blocks of latent attention, dense or sparse, decode or prefill."""

    def read(table: Table, origin: Origin) -> TableRows:
        known = np.isin(table["model"].astype(str), list(_MODELS))
        if family == "sparse_block_prefill":
            known &= table["isl"] >= SHORTEST_SPARSE
            known &= np.char.find(table["kernel_source"].astype(str), "dense_mha") < 0
        for weights, (products, weight_bytes) in _WEIGHTS.items():
            for cache, (_, cache_bytes) in _CACHES.items():
                chosen = (
                    known & (table["gemm_type"] == weights) & (table["kv_cache_dtype"] == cache)
                )
                if chosen.any():
                    rates = peak_in(origin, products)
                    bytes_of = {"weight_bytes": weight_bytes, "cache_bytes": cache_bytes}
                    form = f"{weights}+{cache}".replace("bfloat16", "bf16")
                    yield from _block(table, chosen, origin, (family, form), rates, bytes_of)

    return read


def _block(
    table: Table,
    chosen: BoolArray,
    origin: Origin,
    named: tuple[str, str],
    product_flop_per_s: float,
    bytes_of: Mapping[str, float],
) -> TableRows:
    family, form = named
    rows = first_rows(table, chosen, "model", "num_heads", "batch_size", "isl", "step")
    models = [_MODELS[str(one)] for one in table["model"][rows]]
    widths = ("d_model", "d_q_latent", "d_nope", "d_value")
    index = ("n_index_heads", "d_index", "n_selected") if family.startswith("sparse") else ()
    columns: dict[str, object] = {
        "batch": table["batch_size"][rows],
        "n_heads": table["num_heads"][rows],
        "weight_bytes": bytes_of["weight_bytes"],
        "product_flop_per_s": product_flop_per_s,
        **{
            key: np.array([getattr(one, key) for one in models], float) for key in (*widths, *index)
        },
    }
    if index:
        columns["index_flop_per_s"] = peak_in(origin, ("fp8", "bf16"))
    if family.endswith("decode"):
        columns |= {"context": (table["isl"] + table["step"])[rows]}
        columns |= {"cache_bytes": bytes_of["cache_bytes"]}
    else:
        columns |= {"tokens": table["isl"][rows], "past_tokens": table["step"][rows]}
    longer = "step" if family.endswith("decode") else "isl"
    other = "isl" if family.endswith("decode") else "step"
    orders = (
        (("model", "num_heads", "batch_size", other), longer, 1),
        (("model", "num_heads", "isl", "step"), "batch_size", 1),
        (("model", "batch_size", "isl", "step"), "num_heads", 1),
    )
    whole = columns_of(len(rows), **columns)
    yield from kept_rows(table, rows, origin, (family, form, "bf16"), whole, orders)


def recurrence(kind: str) -> Callable[[Table, Origin], TableRows]:
    """A reader of linear attention: a row for each convolution that has its scan."""

    def read(table: Table, origin: Origin) -> TableRows:
        for phase, family in (
            ("generation", "recurrence_decode"),
            ("context", "recurrence_prefill"),
        ):
            chosen = table["phase"] == phase
            if phase == "context":
                chosen &= table["seq_len"] >= SHORTEST_SPARSE
            rows, seconds = _joined(table, chosen)
            keys, values = (table[f"num_{one}_heads"][rows] for one in ("k", "v"))
            d_key, d_value = table["head_k_dim"][rows], table["head_v_dim"][rows]
            columns = columns_of(
                len(rows),
                batch=table["batch_size"][rows],
                n_heads=values,
                d_key=d_key,
                d_value=d_value,
                d_conv=2 * keys * d_key + values * d_value,
            )
            if phase == "context":
                columns |= columns_of(len(rows), tokens=table["seq_len"][rows])
            else:
                state = 2.0 if origin.engine == "trtllm" else 4.0
                columns |= columns_of(len(rows), state_bytes=state)
            shape = ("num_v_heads", "num_k_heads", "d_model")
            orders = (
                ((*shape, "batch_size"), "seq_len", 1),
                ((*shape, "seq_len"), "batch_size", 1),
            )
            named = (family, kind, "bf16")
            yield from kept_rows(table, rows, origin, named, columns, orders, seconds)

    return read


def _joined(table: Table, chosen: BoolArray) -> tuple[np.ndarray, FloatArray]:
    """Rows of scans, and the time of each with its convolution [s]."""
    keys = ("batch_size", "seq_len", "d_model", "num_k_heads", "num_v_heads", "model_name")
    sources = table["kernel_source"].astype(str)
    conv = np.char.find(sources, "conv") >= 0
    fused = np.isin(sources, ("kda_fused_decode", "fused_kda_decode"))
    latency = table["latency"].astype(float) * MILLI
    times = {_key(table, keys, row): latency[row] for row in np.flatnonzero(chosen & conv)[::-1]}
    rows = first_rows(table, chosen & ~conv & ~fused, *keys)
    rows = np.array([row for row in rows if _key(table, keys, row) in times], dtype=np.int64)
    return rows, np.array([latency[row] + times[_key(table, keys, row)] for row in rows])


def _key(table: Table, keys: tuple[str, ...], row: int) -> tuple[object, ...]:
    return tuple(table[key][row] for key in keys)


READERS: Mapping[str, Callable[[Table, Origin], TableRows]] = {
    "moe_perf": experts,
    "generation_mla_perf": latent_decode,
    "context_mla_perf": latent_prefill,
    "mla_generation_module_perf": block("latent_block_decode"),
    "mla_context_module_perf": block("latent_block_prefill"),
    "dsa_generation_module_perf": block("sparse_block_decode"),
    "dsa_context_module_perf": block("sparse_block_prefill"),
    "gdn_perf": recurrence("delta"),
    "kda_perf": recurrence("kda"),
}
"""By the name of the file, without its ending."""
