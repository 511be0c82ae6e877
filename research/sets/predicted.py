"""What is predicted of rows: each asked as a user would ask, with what its harness is known to do.

Nothing here is reachable from tests only: formats are those that `--weights`, `--experts` and
`--kv` name, and what runs where one is asked for is found as for any user.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import holding
from planner.estimates.serving.operations import PassShape
from planner.estimates.serving.rules import is_valid
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.steps import PassTime
from planner.estimates.serving.times import kernel_errors
from planner.estimates.serving.traffic import Traffic
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import ClusterSpec
from planner.specs.records.kernels import EngineSpec, KernelTable
from planner.specs.records.served_formats import ServedFormats
from research.sets.rows import Served
from research.sets.servers import n_chunk_tokens, n_polled_rounds
from tests.estimates.serving import situations

CONFIGS = Path(__file__).parents[2] / "tests" / "specs" / "huggingface" / "configs"

CLUSTERS = {
    "h100-sxm": "h100-nvl8-x1",
    "h200": "h200-nvl8-x1",
    "b200": "b200-nvl8-x1",
    "b300": "b300-nvl8-x1",
    "gb200": "gb200-nvl72-x1",
    "mi300x": "mi300x-x1",
    "mi325x": "mi325x-x1",
    "mi355x": "mi355x-x1",
}

Choice = Callable[[Served], ServedFormats]
Clocks = Callable[[str, str], KernelClock]
Sending = Callable[[Served], Traffic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A row with what is predicted of it.

    Args:
        n_running: requests that an attention rank serves at once.
        tpot_deviation, ttft_deviation: relative, as kernels' errors have it.
    """

    row: Served
    tpot_ms: float
    ttft_ms: float
    n_running: float
    tpot_deviation: float
    ttft_deviation: float

    @property
    def tpot_error(self) -> float:
        return self.tpot_ms / self.row.tpot_ms - 1.0

    @property
    def ttft_error(self) -> float:
        return self.ttft_ms / self.row.ttft_ms - 1.0


def formats(row: Served) -> ServedFormats:
    """What a user asks for, by the checkpoints and the options of such runs.

    NVIDIA's FP8 and NVFP4 checkpoints have an FP8 cache (`hf_quant_config.json`); mixtures in
    NVFP4 and INT4 keep attention in 16 bits. gpt-oss is published in MXFP4, whatever the source
    says; its servers on B200 were told to cache in FP8 (SemiAnalysisAI/InferenceX,
    benchmarks/gptoss_fp4_b200_*.sh), those on H200 under vLLM were not.
    DeepSeek-R1 caches in FP8 but under SGLang on H200 (benchmarks/dsr1_*.sh at 1fc5d73).
    """
    series = row.series
    if series.model == "gpt-oss-120b":
        cache = "fp8" if series.gpu == "b200" else "bf16"
        return ServedFormats(weights="bf16", experts="mxfp4", cache=cache)
    if series.is_dense:
        return _dense_formats(row)
    cache = "fp8" if _caches_in_fp8(row) else "bf16"
    if series.weights in ("nvfp4", "mxfp4"):
        return ServedFormats(weights="bf16", experts=series.weights, cache=cache)
    if series.weights == "int4_wo":
        return ServedFormats(weights="bf16", experts="int4", cache="bf16")
    if series.weights in ("fp8", "fp8_block"):
        return ServedFormats(weights="fp8_block", experts="fp8_block", cache=cache)
    return ServedFormats(weights="bf16", experts="bf16", cache="bf16")


def _dense_formats(row: Served) -> ServedFormats:
    weights = row.series.weights or "bf16"
    has_scales = row.series.model == "Llama-3.1-70B" and weights in ("fp8", "nvfp4")
    return ServedFormats(weights=weights, experts=weights, cache="fp8" if has_scales else "bf16")


def _caches_in_fp8(row: Served) -> bool:
    series = row.series
    if series.model == "DeepSeek-V3" and series.engine == "sglang":
        return series.gpu != "h200"
    if (series.model, series.engine) == ("MiniMax-M2.5", "vllm"):  # minimaxm2.5_*.sh at 843c625
        return series.gpu != "h100-sxm"
    has_latents = series.model in ("DeepSeek-V3", "Kimi-K2.5", "GLM-5")
    return series.weights == "nvfp4" or (series.engine == "trtllm" and has_latents)


def traffic(row: Served) -> Traffic:
    """What the row's harness sends."""
    client, share = row.series.client, row.series.mean_length
    return Traffic(
        n_input_tokens=share * row.n_input,
        n_output_tokens=share * row.n_output,
        n_waves=client.n_waves if client else 0,
        client=client,
    )


@cache
def architecture(model: str) -> Architecture:
    return load_architecture(str(CONFIGS / f"{model}_config.json"))


@cache
def cluster(gpu: str) -> ClusterSpec:
    return load_cluster(CLUSTERS[gpu])


@cache
def clock(gpu: str, engine: str) -> KernelClock:
    return situations.clock(CLUSTERS[gpu], engine)


_PASSES: dict[tuple[object, ...], tuple[KernelTable, PassTime]] = {}
"""Each with its kernels, so that no other table gets their `id`."""


class Remembering(Serving):
    """Times no pass twice: what passes take is of kernels, whatever fitted constants are."""

    def pass_time(self, table: DeploymentTable, work: PassShape) -> PassTime:
        kernels = self.clock
        assert isinstance(kernels, KernelClock)
        what = (self.model.name, self.run_formats, kernels.device.name, id(kernels.table))
        arrays = (*vars_of(table)[:-2], *vars_of(work))
        key = (*what, kernels.engine.name, *(np.asarray(one).tobytes() for one in arrays))
        if key not in _PASSES:
            _PASSES[key] = kernels.table, super().pass_time(table, work)
        return _PASSES[key][1]


def vars_of(record: DeploymentTable | PassShape) -> tuple[Any, ...]:
    return tuple(getattr(record, one.name) for one in fields(record))


def compared(
    rows: Iterable[Served],
    choice: Choice = formats,
    clocks: Clocks = clock,
    sending: Sending = traffic,
) -> list[Compared]:
    """Predictions of all rows; those that are said not to run have none, see `refused`."""
    groups: dict[tuple[object, ...], list[Served]] = defaultdict(list)
    for row in rows:
        what = (row.series.model, row.series.gpu, row.series.engine)
        asked = (choice(row), sending(row), n_polled_rounds(row), row.series.statistic)
        groups[(*what, *asked)].append(row)
    return [
        one
        for group in groups.values()
        for one in _compared(group, choice(group[0]), sending(group[0]), clocks)
    ]


def refused(rows: Iterable[Served], found: Iterable[Compared]) -> list[Served]:
    """Rows that ran, and that are said not to."""
    names = {one.row.name for one in found}
    return [row for row in rows if row.name not in names]


def table_of(rows: Sequence[Served], chosen: ServedFormats, engine: EngineSpec) -> DeploymentTable:
    return deployments(
        formats=chosen,
        n_tensor=[row.tensor for row in rows],
        n_data=[row.data for row in rows],
        n_expert_parallel=[row.expert for row in rows],
        batch=[max(1.0, row.batch) for row in rows],
        chunk_tokens=[float(n_chunk_tokens(row, engine)) for row in rows],
    )


def _compared(
    rows: list[Served], chosen: ServedFormats, sent: Traffic, clocks: Clocks
) -> list[Compared]:
    series = rows[0].series
    model, timing = architecture(series.model), clocks(series.gpu, series.engine)
    engine = replace(timing.engine, n_polled_rounds=n_polled_rounds(rows[0]))
    table = table_of(rows, chosen, engine)
    held = holding(
        model,
        table,
        chosen,
        engine,
        hbm_bytes=timing.device.hbm_bytes,
        n_tokens=sent.n_tokens,
        n_held_tokens=sent.held_tokens(engine.reserved_fraction),
    )
    serving = Remembering(model=model, formats=chosen, engine=engine, clock=timing)
    times = serving_times(serving, table, sent, largest_batch=held.largest_batch)
    tpot_off, ttft_off = kernel_errors(times, serving.prefill_host_s)
    first_s = times.later_waves_s if series.statistic == "median" else times.ttft_s
    runs = is_valid(model, table) & (held.largest_batch >= 1)
    return [
        Compared(
            row=row,
            tpot_ms=1e3 * float(times.tpot_s[i]),
            ttft_ms=1e3 * float(first_s[i] + times.queue_s[i]),
            n_running=float(times.n_running[i]),
            tpot_deviation=float(tpot_off[i]),
            ttft_deviation=float(ttft_off[i]),
        )
        for i, row in enumerate(rows)
        if runs[i]
    ]
