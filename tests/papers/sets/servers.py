"""What servers of published benchmarks were told beyond their engine's defaults.

InferenceX publishes the script that starts each of its servers. Facts of scripts that read prompts
or look for requests otherwise than an engine does by itself are here, by engine, model and GPU:
SemiAnalysisAI/InferenceX at 843c625, benchmarks/single_node/fixed_seq_len. How scripts were on the
day of a measurement is not known of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.specs.kernels import EngineSpec
from tests.papers.sets.rows import Served

SELDOM, OFTEN = 30, 10
"""`--scheduler-recv-interval` of SGLang's servers on Blackwell, with many and few in flight."""

POLLED_SELDOM = {"DeepSeek-V3": 16, "Qwen3.5-397B-A17B": 16}
"""From so many requests in flight; others are asked often: dsr1_*, qwen3.5_*, glm5_fp4_*.sh."""

BLACKWELL = ("b200", "b300")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Tokens of prompts that a pass reads at most, where a script says so.

    Args:
        n_chunk_tokens: of `--chunked-prefill-size`, or `--max-num-batched-tokens`.
        n_inputs: the same, as a multiple of the named input.
    """

    n_chunk_tokens: int = 0
    n_inputs: int = 0


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
        **dict.fromkeys(BLACKWELL, Told(n_inputs=2)),
        "h200": Told(n_chunk_tokens=32_768),
    },
}
"""dsr1_*.sh, glm5_*.sh, qwen3.5_fp8_*.sh and minimaxm2.5_*.sh."""

NVFP4_CHUNK = 16_384
"""Of DeepSeek-R1 in NVFP4 without attention DP: dsr1_fp4_b200.sh."""


def n_chunk_tokens(row: Served, engine: EngineSpec) -> int:
    """Most tokens of a pass."""
    series = row.series
    told = CHUNKS.get((series.engine, series.model), {}).get(series.gpu)
    if told is None or series.harness != "InferenceX":
        return engine.n_chunk_tokens
    if series.model == "DeepSeek-V3" and series.gpu in BLACKWELL and series.weights == "nvfp4":
        return told.n_chunk_tokens if row.data > 1 else NVFP4_CHUNK
    return told.n_inputs * row.n_input or told.n_chunk_tokens


def n_polled_rounds(row: Served) -> int:
    """Rounds between two looks for new requests."""
    series = row.series
    on_blackwell = series.engine == "sglang" and series.gpu in BLACKWELL
    if not on_blackwell or series.harness != "InferenceX" or row.data > 1:
        return 1
    many = row.in_flight >= POLLED_SELDOM.get(series.model, row.in_flight + 1)
    return SELDOM if many else OFTEN
