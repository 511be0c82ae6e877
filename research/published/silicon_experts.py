"""Fused experts in the tables of `aiconfigurator-core`: their routing is rebuilt.

Source: [AIConfigurator2026]; docs/decisions/0012-experts-and-blocks.md.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner_workshop.calibration.tables import RejectedRow
from research.published.silicon_rows import Origin, Table, TableRows, columns_of, kept_rows

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


def experts(table: Table, origin: Origin) -> TableRows:
    """Fused experts: routing is rebuilt; shapes without a gate and rare kernels are left out."""
    widths, inner = table["hidden_size"].tolist(), table["inter_size"].tolist()
    gate = [pair not in _WITHOUT_GATE for pair in zip(widths, inner, strict=True)]
    known = sorted({*table["kernel_source"].astype(str).tolist()})
    if origin.programs and not origin.programs & {*known}:
        reason = f"none of the kernels asked for is in it, so all are read: {', '.join(known)}"
        yield RejectedRow(file=origin.file, line=0, reason=reason)
    whole = table["num_experts"] % table["moe_ep_size"] == 0
    for name, (form, peak, weight_bytes, input_bytes) in _EXPERTS.items():
        named = (table["moe_dtype"] == name) & whole
        chosen = named & np.array(gate, dtype=bool) & _programs(table, named, origin.programs)
        rows = np.flatnonzero(chosen)
        if named.sum() > len(rows):
            what = "of other kernels, or of shapes without a gate"
            reason = f"experts {form}: {named.sum() - len(rows)} rows {what}, are left out"
            yield RejectedRow(file=origin.file, line=0, reason=reason)
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


def _programs(table: Table, named: BoolArray, allowed: frozenset[str]) -> BoolArray:
    """Rows of the kernels asked for where they have any, or of those that are not rare."""
    sources = table["kernel_source"].astype(str)
    wanted = np.isin(sources, sorted(allowed))
    if (named & wanted).any():
        return wanted
    usual = np.char.find(sources, "min_latency") < 0
    names, counts = np.unique(sources[named & usual], return_counts=True)
    if not len(names):
        return np.zeros(len(sources), dtype=bool)
    return usual & np.isin(sources, names[counts >= LEAST_OF_MOST * counts.max()])


N_DRAWS = 16
"""Draws of one row: their mean is then known to a tenth of their scatter, a quarter of it."""

_MOST_ROUNDS = 200  # of handing out what rounding left over
_FEW_ROWS = (0.01, 2.0)  # range of the law where not every expert can have a token
_MOST_SHARE = 0.8  # of all tokens, that one expert may be asked for by the law


def routed(
    *, tokens: IntArray, n_experts: IntArray, n_active: IntArray, ways: IntArray, law: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """Rows that stay on the timed device, and its experts that any of them hits, (N,) each.

    Tables name the distribution that routing was drawn from, not the draw. Balanced routing deals
    experts in turn, so it is rebuilt exactly, and of it the first device is timed; of a power law
    the busiest of all devices is timed, and the mean of several draws is taken.

    Source: the collector of [AIConfigurator2026], as documented;
    docs/decisions/0012-experts-and-blocks.md.

    Args:
        tokens: routed together.
        ways: devices that the experts are dealt to.
        law: `balanced`, or `power_law_` and the exponent.
    """
    counts = [
        _counts(*(int(one) for one in row[:4]), str(row[4]))
        for row in zip(tokens, n_experts, n_active, ways, law, strict=True)
    ]
    rows, hit = np.array(counts, dtype=float).reshape(-1, 2).T
    return rows, hit


@cache
def _counts(tokens: int, n_experts: int, n_active: int, ways: int, law: str) -> tuple[float, float]:
    held = n_experts // ways
    if law == "balanced":
        counts = balanced(tokens, n_experts, n_active)[None, :held]
    else:
        drawn = power_law(tokens, n_experts, n_active, float(law.rpartition("_")[2]))
        groups = drawn.reshape(N_DRAWS, ways, held)
        busiest = groups.sum(axis=2).argmax(axis=1)
        counts = groups[np.arange(N_DRAWS), busiest]
    return float(counts.sum(axis=1).mean()), float((counts > 0).sum(axis=1).mean())


def balanced(tokens: int, n_experts: int, n_active: int) -> IntArray:
    """Tokens of each expert (n_experts,), dealt in turn, a token's experts evenly apart.

    >>> balanced(4, 8, 2).tolist()
    [1, 1, 1, 1, 1, 1, 1, 1]
    """
    stride = -(-n_experts // n_active)
    apart = np.arange(n_active) * stride
    first = np.arange(tokens % n_experts if tokens >= stride else tokens)
    if tokens < stride:
        first = (first * stride / tokens).astype(np.int64)
    each = np.array([sorted({*((one + apart) % n_experts)}) for one in first.tolist()], object)
    counts = np.bincount(
        np.array([expert for token in each for expert in token], np.int64), minlength=n_experts
    )
    n_periods = tokens // n_experts if tokens >= stride else 0
    return np.asarray(counts + n_periods * len({*(apart % n_experts)}))


@cache
def power_law(tokens: int, n_experts: int, n_active: int, exponent: float) -> IntArray:
    """Tokens of each expert in several draws (N_DRAWS, n_experts): all of them add up."""
    seed = (tokens, n_experts, n_active, round(1000 * exponent))
    random = np.random.default_rng(seed)
    low, high = (1.0, _MOST_SHARE * tokens) if tokens * n_active > n_experts else _FEW_ROWS
    high = max(high, low + 1e-6)
    power = 1.0 - exponent
    spread = random.random((N_DRAWS, n_experts)) * (high**power - low**power) + low**power
    weights = spread ** (1.0 / power)
    shares = weights / weights.sum(axis=1, keepdims=True)
    counts = np.rint(shares * tokens * n_active).astype(np.int64)
    return np.stack([_completed(one, tokens, n_active, random) for one in counts])


def _completed(
    counts: IntArray, tokens: int, n_active: int, random: np.random.Generator
) -> IntArray:
    """No expert more than all tokens, all rows dealt; the least loaded give way first."""
    counts = np.minimum(counts, tokens)
    missing = tokens * n_active - int(counts.sum())
    order = np.argsort(counts + random.random(len(counts)) * 1e-3)
    for _ in range(_MOST_ROUNDS):
        if not missing:
            break
        step = 1 if missing > 0 else -1
        free = counts[order] < tokens if missing > 0 else counts[order] > 0
        changed = order[free][: abs(missing)]
        counts[changed] += step
        missing -= step * len(changed)
    return counts
