"""What servers of published benchmarks were told beyond their engine's defaults.

InferenceX publishes the script that starts each of its servers. Facts of scripts that read prompts
or look for requests otherwise than an engine does by itself are here, by engine, model and GPU:
SemiAnalysisAI/InferenceX at 843c625, benchmarks/single_node/fixed_seq_len, and as scripts were on
the day of a measurement where its history says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.specs.records.kernels import EngineSpec
from research.sets.rows import Served

SELDOM, OFTEN = 30, 10
"""`--scheduler-recv-interval` of SGLang's servers on Blackwell, with many and few in flight."""

POLLED_SELDOM = {"DeepSeek-V3": 16, "Qwen3.5-397B-A17B": 16}
"""From so many requests in flight; others are asked often: dsr1_*, qwen3.5_*, glm5_fp4_*.sh."""

BLACKWELL = ("b200", "b300")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Tokens of prompts that a pass reads at most, where a script says so.

    Args:
        n_chunk_tokens: of `--chunked-prefill-size`, `--max-num-batched-tokens`, `max_num_tokens`.
        n_inputs: the same, as a multiple of the named input.
        since: first day; empty where scripts always said so.
    """

    n_chunk_tokens: int = 0
    n_inputs: int = 0
    since: str = ""


CHUNKS: Mapping[tuple[str, str], Mapping[str, Told]] = {
    ("sglang", "DeepSeek-V3"): {
        **dict.fromkeys(("h200", *BLACKWELL), Told(n_chunk_tokens=32_768)),
        **dict.fromkeys(("mi300x", "mi325x"), Told(n_chunk_tokens=131_072)),
        "mi355x": Told(n_chunk_tokens=196_608),
    },
    ("sglang", "GLM-5"): dict.fromkeys(BLACKWELL, Told(n_chunk_tokens=32_768)),
    ("sglang", "Qwen3.5-397B-A17B"): dict.fromkeys(
        ("h200", *BLACKWELL), Told(n_chunk_tokens=16_384)
    ),
    ("vllm", "MiniMax-M2.5"): {
        **dict.fromkeys(BLACKWELL, Told(n_inputs=2, since="2026-04-03")),
        "h200": Told(n_chunk_tokens=32_768, since="2026-05-26"),
    },
    ("trtllm", "Llama-3.1-70B"): dict.fromkeys(("h200", "b200"), Told(n_chunk_tokens=16_384)),
    ("trtllm", "gpt-oss-120b"): dict.fromkeys(("h200", "b200"), Told(n_chunk_tokens=20_000)),
}
"""dsr1_*.sh, glm5_*.sh, qwen3.5_fp8_*.sh, minimaxm2.5_*.sh (2 × ISL since bddbf40, 32768 since
8014ee6), 70b_*_trt_*.sh (until 0b5620e) and gptoss_*_trt.sh."""

NVFP4_CHUNK = 16_384
"""Of DeepSeek-R1 in NVFP4 without attention DP: dsr1_fp4_b200.sh."""

ROUNDED, SPARE = 64, 64
LEAST_CHUNK, LEAST_SINCE = 8_192, "2026-01-21"
"""`max_num_tokens` of DeepSeek-R1 under TensorRT-LLM: a prompt and all that decode, rounded up; not
below 8192 since 64af5a7 (dsr1_*_trt.sh)."""

GATHERED = {"Llama-3.1-70B": 20, "DeepSeek-V3": 40}
"""`batch_wait_timeout_iters` of TensorRT-LLM's servers, prompts and answers of 1024 tokens: rounds
that the first prompt waits for others. 70b_*_trt_*.sh with fewer than 8 GPUs; dsr1_fp8_b200_trt.sh
with 64 in flight or more, since ec7bafa."""

GATHERS_FROM, GATHERS_SINCE = 64, "2026-01-29"

BALANCED = {"DeepSeek-V3": 60, "gpt-oss-120b": 50}
"""Rounds that ranks of attention DP wait at most until each has a prompt, where `enable_balance`
is told: `timeout_iters` of dsr1_*_trt.sh; TensorRT-LLM's default in gptoss_fp4_b200_trt.sh."""


def n_chunk_tokens(row: Served, engine: EngineSpec) -> int:
    """Most tokens of a pass."""
    series = row.series
    if series.harness != "InferenceX":
        return engine.n_chunk_tokens
    if (series.engine, series.model) == ("trtllm", "DeepSeek-V3"):
        least = LEAST_CHUNK if series.date >= LEAST_SINCE else 0
        return max(least, _rounded(row.in_flight + row.n_input + SPARE))
    told = CHUNKS.get((series.engine, series.model), {}).get(series.gpu)
    if told is None or (series.date and series.date < told.since):
        return engine.n_chunk_tokens
    if series.model == "DeepSeek-V3" and series.gpu in BLACKWELL and series.weights == "nvfp4":
        return told.n_chunk_tokens if row.data > 1 else NVFP4_CHUNK
    return told.n_inputs * row.n_input or told.n_chunk_tokens


def _rounded(n_tokens: int) -> int:
    return -(-n_tokens // ROUNDED) * ROUNDED


def n_polled_rounds(row: Served) -> int:
    """Rounds between two looks for new requests, or those in which they wait as long."""
    series = row.series
    if series.harness != "InferenceX":
        return 1
    if series.engine == "trtllm":
        return _balanced(row) if row.data > 1 else _gathered(row)
    if series.engine != "sglang" or series.gpu not in BLACKWELL or row.data > 1:
        return 1
    many = row.in_flight >= POLLED_SELDOM.get(series.model, row.in_flight + 1)
    return SELDOM if many else OFTEN


def _gathered(row: Served) -> int:
    """The first of those that are waited for waits longest, others come on the way."""
    series = row.series
    n_rounds = GATHERED.get(series.model, 0)
    if (row.n_input, row.n_output) != (1024, 1024) or not n_rounds:
        return 1
    if series.model == "DeepSeek-V3":
        is_told = series.weights.startswith("fp8") and series.gpu == "b200"
        is_told = is_told and row.in_flight >= GATHERS_FROM and series.date >= GATHERS_SINCE
    else:
        is_told = row.n_devices < 8
    n_others = (row.in_flight - 1) * n_rounds / _rounds(row)
    return round(n_rounds * (2.0 + n_others) / (1.0 + n_others)) if is_told else 1


def _balanced(row: Served) -> int:
    """Until requests that come to any rank have come to each: D (1 + 1/2 + … + 1/D) of them."""
    most = BALANCED.get(row.series.model, 1)
    n_to_come = row.data * sum(1.0 / k for k in range(1, row.data + 1))
    return max(1, min(most, round(n_to_come * _rounds(row) / row.in_flight)))


def _rounds(row: Served) -> float:
    """Of a request."""
    return row.series.mean_length * row.n_output
