"""Fused experts in the tables of `aiconfigurator-core`: their routing is rebuilt.

Source: [AIConfigurator2026]; docs/decisions/0012-experts-and-blocks.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.equations.arrays import BoolArray
from planner.estimates.calibration.routing import routed
from planner.estimates.calibration.silicon_rows import Found, Origin, Table, kept_rows
from planner.estimates.calibration.tables import Refused, columns_of

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


def experts(table: Table, origin: Origin) -> Found:
    """Fused experts: routing is rebuilt; shapes without a gate and rare kernels are left out."""
    gate = [pair not in _WITHOUT_GATE for pair in _pairs(table, "hidden_size", "inter_size")]
    known = sorted({*table["kernel_source"].astype(str).tolist()})
    if origin.programs and not origin.programs & {*known}:
        reason = f"none of the kernels asked for is in it, so all are read: {', '.join(known)}"
        yield Refused(file=origin.file, line=0, reason=reason)
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
        yield from kept_rows(table, rows, origin, ("experts", form, peak), columns, orders)


def _pairs(table: Table, one: str, other: str) -> list[tuple[int, int]]:
    return list(zip(table[one].tolist(), table[other].tolist(), strict=True))


def _programs(table: Table, named: BoolArray, asked: frozenset[str]) -> BoolArray:
    """Rows of the kernels asked for where they have any, or of those that are not rare."""
    sources = table["kernel_source"].astype(str)
    wanted = np.isin(sources, sorted(asked))
    if (named & wanted).any():
        return wanted
    usual = np.char.find(sources, "min_latency") < 0
    names, counts = np.unique(sources[named & usual], return_counts=True)
    if not len(names):
        return np.zeros(len(sources), dtype=bool)
    return usual & np.isin(sources, names[counts >= LEAST_OF_MOST * counts.max()])
