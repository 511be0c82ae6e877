"""What publishers say of the models whose configs are kept here.

`configs/NAME_config.json` have the fields of the files on Hugging Face: copies as NVIDIA's
aiconfigurator carries them where it does, else put together from public copies, or written down
from what is published of the model where no copy was at hand. `test_transformers.py` holds all of
them against the classes of transformers, whose counts are those of the config. Each row names what
its figure counts and where it stands. Vision towers are counted in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.specs.huggingface.reading import read_config
from planner.specs.records.architecture import Architecture

CONFIGS = Path(__file__).parent / "configs"

UNTIMED = ("LFM2-1.2B", "Zamba2-1.2B", "Zamba2-7B", "v6-Finch-1B6-HF")
"""Configs of what no engine's time is known of: `engines/rules/cuts.toml` refuses them."""

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
    _row("Bamba-9B-v2", 9.78e9, SAVED),
    _row("Falcon-H1-7B-Base", 7.59e9, SAVED),
    _row("Zamba2-1.2B", 1_215_064_704, SAVED),
    _row("Zamba2-7B", 7.36e9, SAVED),
    _row("Kimi-Linear-48B-A3B-Instruct", 49_122_681_728, SAVED),
    _row("LFM2-1.2B", 1_170_340_608, CARD),
    _row("v6-Finch-1B6-HF", 1.60e9, "Eagle and Finch, arXiv 2404.05892, table 2"),
    _row("c4ai-command-r-v01", 35e9, CARD),
    _row("c4ai-command-r-plus", 104e9, CARD),
    _row("c4ai-command-a-03-2025", 111e9, CARD),
    _row("OLMo-2-1124-13B", 13.7e9, SAVED),
    _row("Olmo-3-32B-Think", 32_233_522_176, SAVED),
    _row("OLMoE-1B-7B-0924", 6.92e9, "OLMoE, arXiv 2409.02060, table 1"),
    _row("dbrx-base", 132e9, CARD),
    _row("Phi-3.5-MoE-instruct", 41.9e9, SAVED),
    _row("Hunyuan-A13B-Instruct", 80.4e9, SAVED),
    _row("Hunyuan-7B-Instruct", 7.5e9, SAVED),
    _row("LLaDA-8B-Instruct", 8.02e9, SAVED),
    _row("starcoder2-3b", 3.03e9, SAVED),
    _row("stablelm-2-12b", 12_143_605_760, CARD),
    _row("mpt-7b", 6.65e9, SAVED),
    _row("phi-2", 2_779_683_840, SAVED),
    _row("GLM-4-32B-0414", 32.57e9, GGUF),
    _row("GLM-4.7-Flash", 29.94e9, GGUF),
    _row("EXAONE-4.0-32B", 30.95e9 + 2 * 102_400 * 5_120, "model card, without embeddings"),
    _row("SmolLM3-3B", 3_075_098_624, SAVED),
    _row("ERNIE-4.5-0.3B-PT", 0.36e9, CARD),
    _row("ERNIE-4.5-21B-A3B-PT", 21.83e9, GGUF),
    _row("dots.llm1.inst", 142.77e9, GGUF),
    _row("Apertus-8B-2509", 8.05e9, SAVED),
    _row("Seed-OSS-36B-Instruct", 36_151_104_512, SAVED),
    _row("Minitron-8B-Base", 8.27e9, SAVED),
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

BY_HAND = (
    ("Bamba-9B-v2", 3 * 2 * 8 * 128, 29 * (4 * 128 * 64 * 128 + 2 * 3 * (8192 + 2 * 128))),
    ("Falcon-H1-7B-Base", 44 * 2 * 2 * 128, 44 * (4 * 24 * 128 * 256 + 2 * 3 * (3072 + 2 * 256))),
    ("Zamba2-1.2B", 6 * 2 * 32 * 128, 38 * (4 * 64 * 64 * 128 + 2 * 3 * (4096 + 2 * 128))),
    ("Zamba2-7B", 13 * 2 * 32 * 224, 81 * (4 * 112 * 64 * 64 + 2 * 3 * (7168 + 2 * 2 * 64))),
    ("Kimi-Linear-48B-A3B-Instruct", 7 * (512 + 64),
     20 * (4 * 32 * 128 * 128 + 2 * 3 * 3 * 32 * 128)),
    ("LFM2-1.2B", 6 * 2 * 8 * 64, 10 * 2 * 2 * 2048),
    ("v6-Finch-1B6-HF", 0, 24 * (4 * 32 * 64 * 64 + 2 * 2 * 2048)),
    ("c4ai-command-r-v01", 40 * 2 * 64 * 128, 0),
    ("c4ai-command-r-plus", 64 * 2 * 8 * 128, 0),
    ("c4ai-command-a-03-2025", 64 * 2 * 8 * 128, 0),
    ("OLMo-2-1124-13B", 40 * 2 * 40 * 128, 0),
    ("Olmo-3-32B-Think", 64 * 2 * 8 * 128, 0),
    ("OLMoE-1B-7B-0924", 16 * 2 * 16 * 128, 0),
    ("dbrx-base", 40 * 2 * 8 * 128, 0),
    ("Phi-3.5-MoE-instruct", 32 * 2 * 8 * 128, 0),
    ("Hunyuan-A13B-Instruct", 32 * 2 * 8 * 128, 0),
    ("Hunyuan-7B-Instruct", 32 * 2 * 8 * 128, 0),
    ("LLaDA-8B-Instruct", 32 * 2 * 32 * 128, 0),
    ("starcoder2-3b", 30 * 2 * 2 * 128, 0),
    ("stablelm-2-12b", 40 * 2 * 8 * 160, 0),
    ("mpt-7b", 32 * 2 * 32 * 128, 0),
    ("phi-2", 32 * 2 * 32 * 80, 0),
    ("GLM-4-32B-0414", 61 * 2 * 2 * 128, 0),
    ("GLM-4.7-Flash", 47 * (512 + 64), 0),
    ("EXAONE-4.0-32B", 64 * 2 * 8 * 128, 0),
    ("SmolLM3-3B", 36 * 2 * 4 * 128, 0),
    ("ERNIE-4.5-0.3B-PT", 18 * 2 * 2 * 128, 0),
    ("ERNIE-4.5-21B-A3B-PT", 28 * 2 * 4 * 128, 0),
    ("dots.llm1.inst", 62 * 2 * 32 * 128, 0),
    ("Apertus-8B-2509", 32 * 2 * 8 * 128, 0),
    ("Seed-OSS-36B-Instruct", 64 * 2 * 8 * 128, 0),
    ("Minitron-8B-Base", 32 * 2 * 8 * 128, 0),
)  # fmt: skip
"""Config, numbers that one token leaves in the caches of layers that attend, bytes of the states of
one sequence: in fp32, and the last inputs of convolutions in 16 bits."""


def path_of(config: str) -> Path:
    return CONFIGS / f"{config}_config.json"


def read(config: str) -> Architecture:
    """A kept config."""
    return read_config(path_of(config))


def every_config() -> list[str]:
    names = (path.name.removesuffix("_config.json") for path in CONFIGS.glob("*_config.json"))
    return sorted(name for name in names if not name.endswith("_hf_quant"))
