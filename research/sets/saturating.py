"""Throughput of a server that all requests are sent to at once, beside TensorRT-LLM's page.

As many requests run as their caches leave room for; each that ends gives its place to the next. A
page's dataset is of equal lengths, so n requests on b places take n // b turns of b and one of what
is left. Mixtures run by TP, as the page's columns say, with whole experts dealt to all devices. The
page's options name attention DP among those of CUDA graphs, where no such option is; by attention
DP rows would be 40 % off on Hopper and all too fast, by TP it is 16 %.

Places and tokens of a pass are what `trtllm-bench` takes where it is not told: `Tuned`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from planner.estimates.kernel_files import kernel_table
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.memory import holding
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import place_s
from planner.estimates.serving.traffic import Traffic
from planner.specs.records.mixers import GroupedAttention
from planner.specs.records.served_formats import ServedFormats
from research.sets.predicted import architecture, clock
from research.sets.rows import Saturated

MOST_PLACES, MOST_TOKENS = 4096, 32_768
"""`max_batch_size` and `max_num_tokens` that `trtllm-bench` goes up to."""

EXPERTS_BACKEND = "CUTLASS"
"""What TensorRT-LLM 1.0 takes where nothing is said (llm_args.py: MoeConfig), on any device.

Later versions choose. NVFP4 on B200 is 8 % off by what these would choose,
all too fast but for prompts, and 10 % by CUTLASS, all too slow: it is no choice by errors.
"""

CACHE_FRACTION = 0.95
"""Of the memory beside weights, that `trtllm-bench` takes for the cache when it tunes."""

_BYTES = {"nvfp4": 0.5, "fp8": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What `trtllm-bench` sets where it is not told, from lengths and memory.

    Args:
        n_places: `max_batch_size`.
        n_tokens: `max_num_tokens`; a prompt is read whole, as chunks of contexts are off.

    Source: NVIDIA/TensorRT-LLM, tensorrt_llm/bench/build/tuning.py at 04cba88.
    """

    n_places: int
    n_tokens: int


def tuned(row: Saturated) -> Tuned:
    """The settings of a row's run."""
    series, model = row.series, architecture(row.series.model)
    mixer = next(m for layer in model.layers if isinstance(m := layer.mixer, GroupedAttention))
    heads = max(row.tensor, mixer.n_kv_heads)
    token_bytes = 2.0 * model.n_layers * heads * mixer.d_head * _BYTES["fp8"]
    memory = clock(series.gpu, series.engine).device.hbm_bytes * row.tensor
    spare = memory - model.n_params * _BYTES[series.weights]
    fits = CACHE_FRACTION * spare / (token_bytes * (row.n_input + row.n_output))
    places = min(fits, MOST_PLACES)
    tokens = min(places * (1.0 + row.n_input / row.n_output), MOST_TOKENS)
    return Tuned(
        n_places=max(64, _rounded(places, ((256, 32), (1024, 128)), 256)),
        n_tokens=max(2048, row.n_input, _rounded(tokens, ((4096, 256), (8192, 512)), 1024)),
    )


def _rounded(number: float, below: tuple[tuple[int, int], ...], step: int) -> int:
    """Up to a multiple of the step of numbers below a limit, or of the last."""
    step = next((multiple for limit, multiple in below if number < limit), step)
    return step * math.ceil(number / step)


WHOLE = frozenset({"Qwen3-235B-A22B"})
"""Mixtures whose attention is in NVFP4 too: `hf_quant_config.json` of NVIDIA's checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """A row with what is predicted of it."""

    row: Saturated
    output_tokens_per_s: float
    n_running: float

    @property
    def error(self) -> float:
        return self.output_tokens_per_s / self.row.output_tokens_per_s - 1.0


def formats(row: Saturated) -> ServedFormats:
    """NVIDIA's checkpoints: attention of most mixtures in 16 bits in NVFP4, a cache in FP8."""
    weights = row.series.weights
    if weights == "nvfp4":
        is_whole = row.series.is_dense or row.series.model in WHOLE
        return ServedFormats(weights="nvfp4" if is_whole else "bf16", experts="nvfp4", cache="fp8")
    return ServedFormats(weights="fp8", experts="fp8", cache="fp8")


def throughputs(rows: Iterable[Saturated]) -> list[Throughput]:
    """Predictions of all rows that are said to run."""
    return [one for row in rows if (one := _throughput(row)) is not None]


def _throughput(row: Saturated) -> Throughput | None:
    series, chosen = row.series, formats(row)
    model = architecture(series.model)
    timing = clock(series.gpu, series.engine)
    if not series.is_dense:
        table = kernel_table(timing.device.name, series.engine, EXPERTS_BACKEND)
        timing = replace(timing, table=table)
    n_groups = 1 if series.is_dense else row.tensor
    setting = tuned(row)
    degrees = {
        "n_tensor": row.tensor,
        "n_expert_parallel": n_groups,
        "chunk_tokens": setting.n_tokens,
    }
    sent = Traffic(n_input_tokens=row.n_input, n_output_tokens=row.n_output)
    one = deployments(formats=chosen, **degrees)
    held = holding(
        model,
        one,
        chosen,
        timing.engine,
        hbm_bytes=timing.device.hbm_bytes,
        n_tokens=sent.n_tokens,
    )
    n_running = min(float(held.largest_batch[0]), row.n_requests, setting.n_places)
    if n_running < 1:
        return None
    n_turns, n_left = divmod(row.n_requests, n_running)
    both = deployments(formats=chosen, batch=[n_running, max(1.0, n_left)], **degrees)
    serving = Serving(model=model, formats=chosen, engine=timing.engine, clock=timing)
    times = serving_times(serving, both, sent)
    # prompts of others that come before count as well: a request waits for them on its place
    first_s = times.ttft_parts["others"] + times.prompt_s
    stay = place_s(sent, ttft_s=first_s, tpot_s=times.tpot_s, prompt_s=times.prompt_s)
    total_s = float(np.dot(stay, [n_turns, float(n_left >= 1.0)]))
    return Throughput(
        row=row,
        output_tokens_per_s=row.n_requests * row.n_output / total_s,
        n_running=n_running,
    )
