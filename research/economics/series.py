"""Which search each row of a table or curve came from, and what it asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from planner.specs.records.economics import TreeCollectives
from research.economics import facts
from research.economics.model.search import N_LATENCY_CAPS, GridOptimum
from research.economics.rows import Row
from research.economics.surfaces import Series, search

DRAFT = "Llama_3_8B"
DRAFT_OF_FIGURES = "Llama_3_8B_MQA"
LONG_CONTEXT = 100_000.0

MODELS = {
    "GPT-4 (16-bit, speculative)": "GPT_4",
    "Llama 3.1 405B (8-bit)": "Llama_3_405B_8_bit",
    "Llama 3.1 405B (16-bit)": "Llama_3_405B",
    "Llama 3.1 405B 16-bit": "Llama_3_405B",
    "Llama 3.1 405B": "Llama_3_405B",
    "Llama 3 70B (8-bit)": "Llama_3_70B_8_bit",
    "Llama 3 70B (16-bit)": "Llama_3_70B",
    "Llama 3 70B 8-bit": "Llama_3_70B_8_bit",
    "LLaMa 3 70B 8-bit H100": "Llama_3_70B_8_bit",
    "Llama 3 70B 16-bit": "Llama_3_70B",
    "Llama 3 70B": "Llama_3_70B",
    "Mixtral 8x22B (16-bit)": "Mixtral_8x22B",
    "DeepSeek-V3 (8-bit)": "DeepSeek_V3",
    "DeepSeek V3 H100": "DeepSeek_V3",
    "DeepSeek-V3": "DeepSeek_V3",
    "Mistral Large 2": "Mistral_Large_2",
    "16-bit weights": "Llama_3_70B",
    "8-bit weights": "Llama_3_70B_8_bit",
    "4-bit weights": "Llama_3_70B_4_bit",
    "H100 SXM": "Llama_3_70B_8_bit",
    "A100 SXM": "Llama_3_70B_8_bit",
    "V100 SXM": "Llama_3_70B_8_bit",
}

PLAIN = Series(model="")
NO_SCALE_DOWN = replace(PLAIN, casework=replace(PLAIN.casework, scales_attention_down=False))
VARIANTS: Mapping[str, Series] = {
    "no attn scaledown": NO_SCALE_DOWN,
    "no scaledown": NO_SCALE_DOWN,
    "no pp": replace(PLAIN, casework=replace(PLAIN.casework, has_stages=False)),
    "sum intra+inter": replace(PLAIN, collectives=TreeCollectives(tiers_overlap=False)),
    "H100 zero base latency": replace(PLAIN, collectives=TreeCollectives(protocols=facts.NO_BASE)),
}


def series_of(row: Row) -> Series:
    """The search that a row's number is from."""
    if row.table in ("GRID", "ABLATION"):
        name, _, variant = (part.strip() for part in row.name.partition("|"))
        key, _, number = variant.partition("=")
        series = VARIANTS[variant.removeprefix("DS ")] if not number else PLAIN
        if key == "grid":
            series = replace(series, n_points=int(number))
        return replace(series, model=MODELS[name])
    name, device, draft, n_context = row.name, "H100", "", 0.0
    for gpu in ("A100", "V100"):
        if gpu in row.name:
            device, name = gpu, name.removesuffix(f" {gpu}")
    if row.table.startswith("Fig"):
        draft = DRAFT_OF_FIGURES if "speculative" in name else ""
        n_context = LONG_CONTEXT if "Long" in name else 0.0
        name = name.partition(" Short")[0].partition(" Long")[0]
    if row.table == "FRONT":
        n_context = LONG_CONTEXT if "100k" in name else 0.0
        name = name.removesuffix(" no draft").removesuffix(" 100k")
    if row.table in ("2", "3") or name.endswith(" (S)"):
        draft, name = DRAFT, name.removesuffix(" (S)")
    return Series(model=MODELS[name], device=device, draft=draft, n_context_tokens=n_context)


FASTEST = ("max_tokens_per_s", "cost_at_max", "optimal_instance", "batch_at_max")
PREFERRED = ("tokens_per_s", "cost", "instance", "batch")

QUANTITIES: Mapping[str, Callable[[GridOptimum], object]] = {
    "max_tokens_per_s": lambda found: found.fastest.tokens_per_s,
    "cost_at_max": lambda found: found.fastest.usd_per_token * 1e6,
    "optimal_instance": lambda found: found.fastest.n_devices,
    "batch_at_max": lambda found: found.fastest.n_requests,
    "tokens_per_s": lambda found: found.preferred.tokens_per_s,
    "cost": lambda found: found.preferred.usd_per_token * 1e6,
    "instance": lambda found: found.preferred.n_devices,
    "batch": lambda found: found.preferred.n_requests,
    "mfu_vs_peak": lambda found: found.preferred_mfu_fraction,
}

SYNONYMS = {
    **dict(zip(("max_tps", "max_cost", "max_gpus", "max_batch"), FASTEST, strict=True)),
    **dict(zip(("p3_tps", "p3_cost", "p3_gpus", "p3_batch"), PREFERRED, strict=True)),
    **{f"pref3_{quantity}": quantity for quantity in PREFERRED},
    "max_instance": "optimal_instance",
}


def canonical(row: Row) -> str:
    """The row's quantity by one name, whatever its table calls it."""
    return SYNONYMS.get(row.quantity, row.quantity)


def quantity(row: Row) -> float:
    """What the search finds for a row."""
    _, _, n_caps = row.name.partition("n_it=")
    found = search(series_of(row), int(n_caps) if n_caps else N_LATENCY_CAPS)
    if row.table == "FRONT":
        edge = found.frontier
        affordable = edge.usd_per_token * 1e6 <= float(row.quantity.partition("<=")[2])
        return float(edge.tokens_per_s[affordable].max())
    return float(QUANTITIES[canonical(row)](found))
