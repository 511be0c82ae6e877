"""Experts, latent attention and linear attention in the tables of `aiconfigurator-core`.

A row of experts names the distribution of its routing (`routing` rebuilds it), a row of a whole
block the model whose projections are in it, and a row of linear attention one of two kernels: the
convolution and the scan are added. Rows that took half as long again as larger ones are refused.

Source: [AIConfigurator2026]; docs/decisions/0012-experts-and-blocks.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.calibration.contradictions import slower_than_larger
from planner.calibration.routing import routed
from planner.calibration.tables import Measured, Refused, columns_of
from planner.equations.arrays import BoolArray, FloatArray

Table = Mapping[str, np.ndarray]
Found = Iterator[Measured | Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose table it is.

    Args:
        file: as the user knows it.
        engine: whose kernels.
        peaks: datasheet FLOP/s by number format, of the device.
        programs: names of the engine's kernels to read of tables that hold several; all that are
            not rare if empty.
    """

    file: str
    engine: str
    peaks: Mapping[str, float]
    programs: frozenset[str] = frozenset()


_EXPERTS: Mapping[str, tuple[str, str, float, float]] = {
    # name in the tables: name here, format of the peak, bytes of a weight and of an input
    "bfloat16": ("bf16", "bf16", 2.0, 2.0),
    "fp8": ("fp8", "fp8", 1.0, 1.0),
    "fp8_block": ("fp8_block", "fp8", 1.0, 1.0),
    "nvfp4": ("nvfp4", "nvfp4", 0.5625, 0.5625),
    "w4a16_mxfp4": ("mxfp4", "bf16", 0.53125, 2.0),
    "int4_wo": ("int4", "bf16", 0.53125, 2.0),
    "w4a8_mxfp4_mxfp8": ("mxfp4_mxfp8", "fp8", 0.53125, 1.0),
}
_WITHOUT_GATE = {(8192, 5120), (2048, 5120), (2688, 1856), (4096, 2688), (1024, 2688)}
"""Width and expert of Nemotron's models: one product less, which only TensorRT-LLM's tables say."""

LEAST_OF_MOST = 0.1
"""Kernels with fewer rows than this share of the most common one's are left out."""

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

_MILLI = 1e-3


def experts(table: Table, origin: Origin) -> Found:
    """Fused experts: routing is rebuilt; shapes without a gate and rare kernels are left out."""
    gate = [pair not in _WITHOUT_GATE for pair in _pairs(table, "hidden_size", "inter_size")]
    whole = table["num_experts"] % table["moe_ep_size"] == 0
    for name, (form, peak, weight_bytes, input_bytes) in _EXPERTS.items():
        named = (table["moe_dtype"] == name) & whole
        chosen = named & np.array(gate, dtype=bool) & _programs(table, named, origin.programs)
        rows = np.flatnonzero(chosen)
        if named.sum() > len(rows):
            what = "of other kernels, or of shapes without a gate"
            reason = f"experts {form}: {named.sum() - len(rows)} rows {what}, are left out"
            yield Refused(file=origin.file, line=0, reason=reason)
        stay, hit = routed(
            tokens=table["num_tokens"][rows],
            n_experts=table["num_experts"][rows],
            n_active=table["topk"][rows],
            ways=table["moe_ep_size"][rows],
            law=table["distribution"][rows],
        )
        columns = columns_of(
            len(rows),
            tokens=table["num_tokens"][rows],
            n_experts=table["num_experts"][rows],
            n_experts_local=table["num_experts"][rows] / table["moe_ep_size"][rows],
            n_active=table["topk"][rows],
            d_model=table["hidden_size"][rows],
            d_expert=table["inter_size"][rows] / table["moe_tp_size"][rows],
            weight_bytes=weight_bytes,
            input_bytes=input_bytes,
            rows=stay,
            n_hit=hit,
        )
        shape = (
            "kernel_source",
            "hidden_size",
            "inter_size",
            "topk",
            "num_experts",
            "distribution",
        )
        orders = (
            ((*shape, "num_tokens", "moe_tp_size"), "moe_ep_size", -1),
            ((*shape, "num_tokens", "moe_ep_size"), "moe_tp_size", -1),
            ((*shape, "moe_ep_size", "moe_tp_size"), "num_tokens", 1),
        )
        yield from _kept(table, rows, origin, ("experts", form, peak), columns, orders)


def latent_decode(table: Table, origin: Origin) -> Found:
    """The kernel of absorbed latent attention, one token a sequence."""
    for name, (form, cache_bytes) in _CACHES.items():
        rows = _first(table, table["kv_cache_dtype"] == name, "num_heads", "batch_size", "step")
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
        yield from _kept(table, rows, origin, ("latent_decode", form, "bf16"), columns, orders)


def latent_prefill(table: Table, origin: Origin) -> Found:
    """The kernel of latent attention over whole prompts."""
    for name, (form, _) in _CACHES.items():
        rows = _first(table, table["kv_cache_dtype"] == name, "num_heads", "batch_size", "isl")
        columns = columns_of(
            len(rows),
            batch=table["batch_size"][rows],
            tokens=table["isl"][rows],
            n_heads=table["num_heads"][rows],
        )
        orders = (
            (("num_heads", "batch_size"), "isl", 1),
            (("num_heads", "isl"), "batch_size", 1),
        )
        yield from _kept(table, rows, origin, ("latent_prefill", form, "bf16"), columns, orders)


def block(family: str) -> Callable[[Table, Origin], Found]:
    """A reader of whole blocks of latent attention, dense or sparse, decode or prefill."""

    def read(table: Table, origin: Origin) -> Found:
        known = np.isin(table["model"].astype(str), list(_MODELS))
        if family == "sparse_block_prefill":
            known &= table["isl"] >= SHORTEST_SPARSE
            known &= np.array(["dense_mha" not in str(one) for one in table["kernel_source"]])
        for weights, (products, weight_bytes) in _WEIGHTS.items():
            for cache, (_, cache_bytes) in _CACHES.items():
                chosen = (
                    known & (table["gemm_type"] == weights) & (table["kv_cache_dtype"] == cache)
                )
                if chosen.any():
                    rates = _peak(origin, products)
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
) -> Found:
    family, form = named
    rows = _first(table, chosen, "model", "num_heads", "batch_size", "isl", "step")
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
        columns["index_flop_per_s"] = _peak(origin, ("fp8", "bf16"))
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
    yield from _kept(table, rows, origin, (family, form, "bf16"), whole, orders)


def _peak(origin: Origin, formats: Sequence[str]) -> float:
    """Datasheet peak of the first format that the device has; infinite of none [FLOP/s]."""
    return next((origin.peaks[name] for name in formats if name in origin.peaks), np.inf)


def recurrence(kind: str) -> Callable[[Table, Origin], Found]:
    """A reader of linear attention: a row for each convolution that has its scan."""

    def read(table: Table, origin: Origin) -> Found:
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
            yield from _kept(table, rows, origin, named, columns, orders, seconds)

    return read


def _joined(table: Table, chosen: BoolArray) -> tuple[np.ndarray, FloatArray]:
    """Rows of scans, and the time of each with its convolution [s]."""
    keys = ("batch_size", "seq_len", "d_model", "num_k_heads", "num_v_heads", "model_name")
    sources = np.array([str(one) for one in table["kernel_source"]])
    conv = np.char.find(sources, "conv") >= 0
    fused = np.isin(sources, ("kda_fused_decode", "fused_kda_decode"))
    latency = table["latency"].astype(float) * _MILLI
    found = {_key(table, keys, row): latency[row] for row in np.flatnonzero(chosen & conv)[::-1]}
    rows = _first(table, chosen & ~conv & ~fused, *keys)
    rows = np.array([row for row in rows if _key(table, keys, row) in found], dtype=np.int64)
    return rows, np.array([latency[row] + found[_key(table, keys, row)] for row in rows])


def _key(table: Table, keys: tuple[str, ...], row: int) -> tuple[object, ...]:
    return tuple(table[key][row] for key in keys)


def _pairs(table: Table, one: str, other: str) -> list[tuple[int, int]]:
    return list(zip(table[one].tolist(), table[other].tolist(), strict=True))


def _programs(table: Table, named: BoolArray, asked: frozenset[str]) -> BoolArray:
    """Rows of the kernels asked for where they have any, or of those that are not rare."""
    sources = np.array([str(one) for one in table["kernel_source"]])
    wanted = np.isin(sources, sorted(asked))
    if (named & wanted).any():
        return wanted
    usual = np.char.find(sources, "min_latency") < 0
    names, counts = np.unique(sources[named & usual], return_counts=True)
    if not len(names):
        return np.zeros(len(sources), dtype=bool)
    return usual & np.isin(sources, names[counts >= LEAST_OF_MOST * counts.max()])


def _first(table: Table, chosen: BoolArray, *keys: str) -> np.ndarray:
    """Chosen rows; of equal ones, which differ in what no form knows, the first."""
    rows = np.flatnonzero(chosen)
    codes = [np.unique(table[key][rows].astype(str), return_inverse=True)[1] for key in keys]
    _, first = np.unique(np.stack(codes, axis=1), axis=0, return_index=True)
    return rows[np.sort(first)]


def _kept(
    table: Table,
    rows: np.ndarray,
    origin: Origin,
    named: tuple[str, str, str],
    columns: dict[str, FloatArray],
    orders: tuple[tuple[tuple[str, ...], str, int], ...],
    seconds: FloatArray | None = None,
) -> Found:
    """The rows that no larger one contradicts, and how many one does."""
    if not len(rows):
        return
    family, form, peak = named
    measured = table["latency"][rows].astype(float) * _MILLI if seconds is None else seconds
    against = np.zeros(len(rows), dtype=bool)
    for same, larger, sign in orders:
        kind = [table[key][rows].astype(str) for key in same]
        against |= slower_than_larger(kind, sign * table[larger][rows], measured)
    if against.any():
        rows_said = f"{against.sum()} row{'s' * int(against.sum() > 1)}"
        reason = f"{family} {form}: {rows_said} took half as long again as larger ones"
        yield Refused(file=origin.file, line=0, reason=reason)
    kept = Measured(
        family=family,
        format=form,
        peak_format=peak,
        columns=columns,
        measured_s=measured,
        file=origin.file,
        lines=rows + 1,
    )
    yield kept.taking(~against)


READERS: Mapping[str, Callable[[Table, Origin], Found]] = {
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
