"""What publishers say of the models whose configs are kept here.

`configs/NAME_config.json` have the fields of the files on Hugging Face: copies as NVIDIA's
aiconfigurator carries them where it does, else put together from public copies. Each row
names what its figure counts and where it stands. Vision towers are counted in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.specs.huggingface.reading import read_config
from planner.specs.records.architecture import Architecture

CONFIGS = Path(__file__).parent / "configs"

CARD, SAVED, GGUF = "model card", "safetensors total on Hugging Face", "llama-bench of the GGUF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A published number of parameters.

    Args:
        with_predictors: it counts the predictors of further tokens.
        n_copies: copies of the embedding that the checkpoint holds besides.
    """

    config: str
    n_params: float
    source: str
    with_predictors: bool = False
    n_copies: int = 0


def _row(config: str, n_params: float, source: str, **counted: int) -> Count:
    return Count(
        config=config,
        n_params=n_params,
        source=source,
        with_predictors=bool(counted.get("predictors", 0)),
        n_copies=counted.get("copies", 0),
    )


COUNTS = (
    _row("Llama-3.1-8B", 8_030_261_248, SAVED),
    _row("Llama-3.1-70B", 70_553_706_496, SAVED),
    _row("Llama-3.1-405B", 405e9, CARD),
    _row("Llama-4-Scout", 107.77e9, GGUF),
    _row("Llama-4-Maverick", 400.71e9, GGUF),
    _row("Qwen2.5-72B", 72.7e9, CARD),
    _row("Qwen3-8B", 8.19e9, SAVED),
    _row("Qwen3-32B", 32.8e9, CARD),
    _row("Qwen3-30B-A3B", 30.53e9, GGUF),
    _row("Qwen3-235B-A22B", 235e9, CARD),
    _row("Qwen3-Next-80B-A3B", 79.67e9, GGUF),
    _row("Qwen3.5-27B", 26.90e9, GGUF),
    _row("Qwen3.5-35B-A3B", 34.66e9, GGUF),
    _row("Qwen3.5-397B-A17B", 396.35e9, GGUF),
    _row("Mistral-7B-v0.1", 7_241_732_096, SAVED),
    _row("Mistral-Large-Instruct-2407", 123e9, CARD),
    _row("Mixtral-8x7B-v0.1", 46.7e9, "arXiv 2401.04088, Mistral's announcement"),
    _row("Mixtral-8x22B-v0.1", 141e9, "Mistral's announcement"),
    _row("gemma-2-27b", 1_180e6 + 26_047e6, "Gemma 2 report, arXiv 2408.00118, table 1"),
    _row("gemma-3-27b-it", 1_416e6 + 25_600e6, "Gemma 3 report, arXiv 2503.19786, table 1"),
    _row("gemma-4-26B-A4B", 25.2e9, CARD),
    _row("Phi-3-mini-4k-instruct", 3.82e9, SAVED),
    _row("phi-4", 14.7e9, SAVED),
    _row("DeepSeek-V2", 236e9, "arXiv 2405.04434"),
    _row("DeepSeek-V3", 671e9, "arXiv 2412.19437"),
    _row("DeepSeek-V3.2", 685.4e9, SAVED, predictors=1, copies=2),
    _row("Kimi-K2-Instruct", 1.03e12, GGUF),
    _row("GLM-4.5", 358_337_791_296, SAVED, predictors=1, copies=2),
    _row("GLM-4.5-Air", 110_468_824_832, SAVED, predictors=1, copies=2),
    _row("GLM-5", 753_864_139_008, SAVED, predictors=1),
    _row("gpt-oss-20b", 20.91e9, "gpt-oss model card, arXiv 2508.10925, table 1"),
    _row("gpt-oss-120b", 116.83e9, "gpt-oss model card, arXiv 2508.10925, table 1"),
    _row("MiniMax-M2.5", 228.7e9, SAVED),
    _row("MiniMax-Text-01", 456e9, "arXiv 2501.08313"),
    _row("falcon-7b", 7.22e9, SAVED, copies=1),
    _row("falcon-40b", 41.8e9, SAVED, copies=1),
    _row("falcon-180B", 179.5e9, SAVED, copies=1),
    _row("AI21-Jamba-1.5-Mini", 51.6e9, SAVED),
    _row("AI21-Jamba-1.5-Large", 398e9, "arXiv 2408.12570"),
    _row("Mamba-Codestral-7B-v0.1", 7_285_403_648, CARD),
    _row("Nemotron-3-Nano-30B-A3B", 31.6e9, CARD),
    _row("Nemotron-3-Super-120B-A12B-FP8", 120.6e9, CARD),
    _row("Llama-3_3-Nemotron-Super-49B-v1", 49.9e9, SAVED),
    _row("granite-3.1-8b-base", 8.17e9, SAVED),
    _row("granite-4.0-h-small", 32.2e9, SAVED),
    _row("Hunyuan-A52B-Instruct", 389e9, "arXiv 2411.02265"),
)

_ISCA = "arXiv 2505.09343, table 1"
_JAMBA = "Jamba 1.5, arXiv 2408.12570, table 1: GB at 256K tokens, 16 bits"
_JAMBA_TOKENS = 256 * 1024

CACHES = (
    ("DeepSeek-V3", 70_272, _ISCA),
    ("Qwen2.5-72B", 327_680, _ISCA),
    ("Llama-3.1-405B", 516_096, _ISCA),
    *(
        (config, gigabytes * 2**30 / _JAMBA_TOKENS, _JAMBA)
        for config, gigabytes in (
            ("Mistral-7B-v0.1", 32),
            ("Mixtral-8x7B-v0.1", 32),
            ("Llama-3.1-8B", 32),
            ("Mixtral-8x22B-v0.1", 56),
            ("Mistral-Large-Instruct-2407", 88),
            ("Llama-3.1-70B", 80),
            ("AI21-Jamba-1.5-Mini", 4),
            ("AI21-Jamba-1.5-Large", 9),
        )
    ),
)
"""Config, bytes that one token leaves in the cache at 16 bits a number, source."""

ACTIVE = (
    ("Mixtral-8x7B-v0.1", 12.9e9, "arXiv 2401.04088"),
    ("Mixtral-8x22B-v0.1", 39e9, "Mistral's announcement"),
    ("AI21-Jamba-1.5-Large", 94e9, "arXiv 2408.12570"),
    ("gemma-4-26B-A4B", 3.8e9, CARD),
    ("Nemotron-3-Super-120B-A12B-FP8", 12.7e9, CARD),
)
"""Config, parameters that one token meets, source."""


def path_of(config: str) -> Path:
    return CONFIGS / f"{config}_config.json"


def read(config: str) -> Architecture:
    """A kept config."""
    return read_config(path_of(config))


def every_config() -> list[str]:
    names = (path.name.removesuffix("_config.json") for path in CONFIGS.glob("*_config.json"))
    return sorted(name for name in names if not name.endswith("_hf_quant"))
