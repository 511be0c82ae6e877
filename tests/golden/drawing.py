"""The requests whose answers are kept: a table by hand, and combinations drawn with a seed.

The words of a request are written beside its answer and live there from then on, so that they can
be edited when an option is renamed; what is drawn here begins a file, or adds to one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

Words = str

TORI = ("tpu-v4-4x4x4", "tpu-v4-2x2x4", "tpu-v5e-4x4", "tpu-v5p-2x2x4", "tpu-v6e-4x4", "trn2-16")
NODES = ("h100-nvl8-x2", "dgx-a100-x2", "mi300x-x1", "h200-nvl8-x1", "b200-nvl8-x1", "l40s-x1")
DENSE = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mistral-large-2", "palm-62b", "gpt-3")
ROUTED = ("mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b", "mixtral-8x22b")
GRID = "--batch 1,2,4,8,16,32,64,128,256 --prefill-batch 1,4"
TOKENS = (
    "",
    "--input 512 --output 256",
    "--input 8000 --output 1000",
    "--input 1024 --output 1024",
)
SERVED = ("qwen3-8b", "qwen3-32b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "gpt-oss-120b")
SERVERS = (
    "h100-nvl8-x1",
    "h200-nvl8-x1",
    "a100-nvl8-x1",
    "b200-nvl8-x1",
    "l40s-x1",
    "h100-nvl8-x2",
)
FEW = "--batch 1,4,16,64,256"
MEASURED = ("h100-", "h200-", "b200-", "b300-", "gb200-", "a100-", "dgx-a100", "l40s-")
CLOSED = ("palm", "mt-nlg", "gpt-3", "gpt-4")
"""Devices that engines have kernels of, and models that no engine starts."""

BY_HAND: dict[str, tuple[Words, ...]] = {
    "plan_roofline": (
        "--latency-target 30ms",
        "--latency-target 30ms --weights bf16",
        "--latency-target 5ms",
        "--topology tpu-v4-4x4x4",
        "--topology tpu-v4-4x4x4 --batch 512 --prefill-batch 512 --weights bf16",
        "--topology tpu-v4-4x4x4 --batch 64 --latency-target 29ms",
        "--objective ttft --max-cost '$400/Mtoken'",
        "--objective devices --latency-target 40ms --topology tpu-v4-4x4x8",
        "--objective rent --latency-target 40ms --topology tpu-v4-4x4x8",
        "--objective throughput --topology tpu-v4-4x4x4",
        "--model mt-nlg-530b --topology dgx-a100-x4 --input 128 --output 32",
        "--model deepseek-v3 --topology h100-nvl8-x16 --latency-target 30ms",
        "--model llama-3.1-70b --topology h100-nvl8-x16 --latency-target 40ms --demand 20000tok/s",
        "--model llama-3.1-70b --topology h100-nvl8-x1 --max-quality-loss 1%",
        "--model llama-3.1-70b --topology h100-nvl8-x4 --tp 8 --pp 2",
        "--model llama-3.1-8b --topology h100-nvl8-x1 --variants all --max-quality-loss 8%",
        "--model llama-3.1-70b --topology h100-nvl8-x1 --draft llama-3.1-8b --latency-target 10ms",
        "--model llama-3.1-70b --topology h100-nvl8-x1 --draft llama-3.1-8b --lookahead 2:4"
        " --acceptance 0.6 --speculation capped --latency-target 12ms",
        "--model palm-540b --draft palm-8b --latency-target 22ms --batch 1:16",
        "--model mini.toml --topology tpu-v4-2x2x2 --latency-target 3ms --batch 1:64",
        "--model mini.toml --topology tpu-v4-2x2x2 --objective latency",
        "--model mini.toml --topology tpu-v4-2x2x2 --latency-target 3ms --batch 1:64"
        " --demand 10000tok/s",
        "--model mini.toml --topology tpu-v4-2x2x2 --latency-target 3ms --batch 1:64"
        " --demand 1Mtok/s",
        "--model mini.toml --topology tpu-v4-2x2x2 --max-quality-loss 1%",
        "--model mini.toml --topology tpu-v4-1x1x2 --batch 8 --weights int8 --solver cpsat",
        "--model mini.toml --topology tpu-v4-1x1x2 --batch 8 --weights int8 --solver exhaustive",
        "--model mini.toml --topology tpu-v4-1x1x1 --batch 8",
        "--model mixtral-8x22b --topology h100-nvl8-x1 --latency-target 40ms --tp 4 --ep 2",
        "--model qwen3-235b-a22b --topology h200-nvl8-x2 --latency-target 40ms",
        "--model kimi-k2 --topology b200-nvl8-x4 --latency-target 50ms --allow-formats fp8",
        "--model llama-3-70b --topology h100-nvl8-x2 --allow-formats bf16,fp8",
        "--model llama-3.1-70b --topology h100-nvl8-x1 --kv bf16,fp8 --input 16000 --output 500",
        "--model llama-3.1-405b --topology h100-nvl8-x4 --latency-target 60ms --ttft-target 2s",
        "--model llama-3.1-405b --topology h100-nvl8-x1 --weights bf16",
        "--model gpt-oss-120b --topology h20-nvl8-x1 --latency-target 20ms",
        "--model llama-3.1-8b --topology dgx-a100-x1 --batch 64,256 --latency-target 30ms"
        " --demand 20ktok/s",
        "--model llama-3.1-70b --topology h100-nvl8-x2 --ttft-target 30ms --max-devices 2",
        "--model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 30ms --min-batch 4000",
        "--model llama-3.1-70b --topology h100-nvl8-x2 --max-cost '$0.5/Mtoken'"
        " --latency-target 20ms",
        "--model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 30ms --price '$2.10/h'",
        "--model llama-3.1-70b --topology gb200-nvl72-x1 --latency-target 15ms",
        "--model palm-8b --topology tpu7x-2x2x2 --latency-target 8ms",
        "--model falcon-180b --topology gaudi3-x2 --latency-target 60ms --input 1024",
        "--model gpt-j-6b --topology l4-x1 --latency-target 60ms --input 512",
        "--model gpt-4-speculated --topology h100-nvl8-x8 --latency-target 50ms " + GRID,
        "--gap 5% --topology tpu-v4-4x4x4 --latency-target 40ms",
    ),
    "plan_default": (
        "--model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 30ms",
        "--model llama-3.1-70b --topology h100-nvl8-x2 --input 1500 --output 300"
        " --ttft-target 1s --latency-target 40ms --rate 8req/s",
        "--model deepseek-v3 --topology h200-nvl8-x1 --latency-target 50ms " + FEW,
        "--model llama-3.1-70b --topology h20-nvl8-x1 --latency-target 50ms " + FEW,
        "--model llama-3.1-70b --topology mi300x-x1 --latency-target 50ms " + FEW,
        "--model mt-nlg-530b --topology h100-nvl8-x4 --input 512 --latency-target 80ms " + FEW,
        "--model qwen3-32b --topology h100-nvl8-x1 --latency-target 1ms",
        "--model qwen3-32b --topology h100-nvl8-x1 --chunk 2048 --prefill-batch 4",
        "pareto --model qwen3-32b --topology h100-nvl8-x1 --batch 1,8,64",
        "compare --model llama-3.1-70b --topology h100-nvl8-x1,tpu-v4-2x2x2,mi300x-x1"
        " --latency-target 50ms " + FEW,
        "audit --model llama-3.1-70b --topology h100-nvl8-x1 --speed 20tok/s --batch 8",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --rate 8req/s --input 1500"
        " --output 300 --ttft-target 1s --latency-target 40ms",
        "place --model palm-62b --topology h100-nvl8-x1 --replicas 1 --latency-target 60ms " + FEW,
    ),
    "plan_engines": (
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 30ms",
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 30ms"
        " --confidence 90% --prefer simplest",
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 50ms"
        " --confidence 90%",
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --latency-target 1ms",
        "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --variants all"
        " --max-quality-loss 8% --draft eagle",
        "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --variants all"
        " --max-quality-loss 8% --latency-target 30ms",
        "--engine sglang --model qwen3-30b-a3b --topology h100-nvl8-x1 --latency-target 20ms"
        " --draft eagle --lookahead 1:3 --overlap none,two-batch --batch 8:64:8 --chunk 4096",
        "--engine sglang --model qwen3-30b-a3b --topology h100-nvl8-x1 --latency-target 20ms"
        " --objective throughput --prefer simplest",
        "--engine trtllm --model Llama-3.1-70B_config.json --topology h100-nvl8-x1"
        " --latency-target 20ms --max-devices 4",
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --weights fp8"
        " --ttft-target 50ms --max-cost '$1/Mtoken'",
        "--engine vllm --model deepseek-v3 --topology h100-nvl8-x1",
        "--engine vllm --model deepseek-v3 --topology h200-nvl8-x1 --latency-target 60ms " + FEW,
        "--engine sglang --model deepseek-v3 --topology h200-nvl8-x1 --latency-target 50ms " + FEW,
        "--engine trtllm --model deepseek-v3 --topology b200-nvl8-x1 --latency-target 50ms " + FEW,
        "--engine sglang --model deepseek-v3 --topology h200-nvl8-x1 --draft mtp --lookahead 1:2"
        " --latency-target 40ms --batch 4,16,64",
        "--engine vllm --model deepseek-v3 --topology h100-nvl8-x16 --latency-target 60ms"
        " --batch 4,16,64",
        "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --input 1500 --output 300"
        " --ttft-target 1s --latency-target 40ms",
        "--engine vllm --model Llama-3.1-70B_config.json --topology h100-nvl8-x2 --input 1500"
        " --output 300 --ttft-target 1s --latency-target 40ms",
        "--engine vllm --model gemma-3-27b-it_config.json --topology h100-nvl8-x1"
        " --latency-target 30ms",
        "--engine sglang --model gpt-oss-20b_config.json --topology h100-nvl8-x1"
        " --latency-target 30ms",
        "--engine vllm --model granite-4.0-h-small_config.json --topology h100-nvl8-x1"
        " --latency-target 30ms",
        "--engine vllm --model Qwen3-Next-80B-A3B_config.json --topology h100-nvl8-x1"
        " --latency-target 30ms",
        "--engine vllm --model llama-3.1-405b --topology h200-nvl8-x1 --latency-target 60ms",
        "--engine vllm --model llama-3.1-405b --topology h100-nvl8-x1",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --objective latency",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --objective ttft --batch 1:8",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --objective devices"
        " --latency-target 20ms",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --tp 2 --latency-target 40ms",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --pp 2 --tp 2"
        " --latency-target 40ms",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --hit-rate 50% --input 8000"
        " --output 500 --latency-target 40ms",
        "--engine sglang --model mixtral-8x7b --topology h100-nvl8-x1 --ep 2 --latency-target 30ms",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --solver cpsat --batch 1,8,64",
        "--engine vllm --model qwen3-32b --topology h100-nvl8-x1 --solver exhaustive"
        " --batch 1,8,64",
        "--engine vllm --model qwen3-235b-a22b --topology gb200-nvl72-x1 --max-devices 8"
        " --latency-target 40ms --batch 8,64",
    ),
    "plan_economics": (
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --latency-target 20ms",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --latency-target 1ms",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --objective latency",
        "--engine erdil2025 --model llama-3.1-405b --topology h100-nvl8-x4 --memory one-microbatch",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --draft llama-3-8b"
        " --latency-target 8ms",
        "--engine erdil2025 --model deepseek-v3 --topology h100-nvl8-x16 --latency-target 40ms",
        "--engine erdil2025 --model mixtral-8x22b --topology h100-nvl8-x4 --weights fp8"
        " --latency-target 20ms",
        "--engine erdil2025 --model llama-3-70b --topology a100-nvl8-x2 --max-cost '$0.3/Mtoken'",
        "--engine erdil2025 --model llama-3-70b --topology a100-nvl8-x2"
        " --max-cost '$3/Mtoken' --objective throughput",
        "--engine erdil2025 --model gpt-3 --topology h200-nvl8-x2 --max-devices 8"
        " --input 1024"
        " --latency-target 40ms",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --min-batch 64"
        " --allow-formats bf16,fp8 --latency-target 30ms",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x1 --solver cpsat"
        " --batch 1,8,64",
        "--engine erdil2025 --model gpt-4-speculated --topology h100-nvl8-x8"
        " --latency-target 50ms --batch 1,8,64,512",
    ),
    "pareto": (
        "pareto --model mini.toml --topology tpu-v4-2x2x2",
        "pareto --model mini.toml --topology tpu-v4-1x2x2 --batch 1,2,4,8,16,32,64"
        " --latency-target 3ms",
        "pareto --model mini.toml,palm-8b --topology tpu-v4-1x1x2,tpu-v4-2x2x2 --batch 1,8,64",
        "pareto --topology tpu-v4-4x4x4 --batch 1,4,16,64,256,512 --prefill-batch 1,16",
        "pareto --model llama-3-70b --topology h100-nvl8-x2 --allow-formats bf16,fp8"
        " --draft llama-3-8b --batch 1,16,64,256 --prefill-batch 1,8",
        "pareto --model llama-3-70b --topology h100-nvl8-x1 --x ttft --batch 1,16,64,256"
        " --prefill-batch 1,8",
        "pareto --model llama-3-70b --topology h100-nvl8-x1 --y throughput --batch 1,16,64,256",
        "pareto --model llama-3-70b --topology h100-nvl8-x1 --y rent --batch 1,16,64,256",
        "pareto --model llama-3.1-70b --topology h100-nvl8-x2 --by weights --batch 1,16,64,256",
        "pareto --model llama-3.1-8b --topology h100-nvl8-x1 --by formats --batch 1,16,64,256",
        "pareto --model mixtral-8x7b --topology h100-nvl8-x1 --batch 1,16,64,256 --alpha 2",
        "pareto --model llama-3.1-8b --topology h100-nvl8-x1 --variants all --max-quality-loss 8%"
        " --batch 1,16,64,256",
        "pareto --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4",
        "pareto --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x1"
        " --batch 1,8,64 --by weights",
        "pareto --engine erdil2025 --model mixtral-8x7b --topology h100-nvl8-x2"
        " --batch 1,8,64 --y rent",
        "pareto --engine vllm --model qwen3-32b --topology h100-nvl8-x1",
        "pareto --engine vllm --model qwen3-32b --topology h100-nvl8-x1 --batch 1,8,64"
        " --chunk 2048 --y device-throughput --latency-target 20ms",
        "pareto --engine vllm,sglang --model qwen3-8b --topology h100-nvl8-x1 --batch 1,8,64",
        "pareto --engine trtllm --model llama-3.1-70b --topology h200-nvl8-x1 --batch 1,8,64"
        " --x ttft",
        "pareto --engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --by weights"
        " --batch 1,8,64",
        "pareto --model palm-62b --topology tpu-v4-1x1x1 --latency-target 1ms",
        "pareto --engine vllm --model qwen3-32b --topology h100-nvl8-x1 --latency-target 1ms",
        "pareto --model llama-3-70b --topology h100-nvl8-x1 --demand 3000tok/s --batch 1,16,64,256",
    ),
    "compare": (
        "compare --model palm-540b,mt-nlg-530b --by weights --input 1024 --latency-target 60ms",
        "compare --model mini.toml,palm-8b --topology tpu-v4-2x2x2 --by weights"
        " --latency-target 3ms",
        "compare --model palm-62b,palm-8b --topology tpu-v4-1x1x1 --latency-target 1ms",
        "compare --model llama-3.1-8b --topology h100-nvl8-x1 --by weights",
        "compare --model llama-3.1-70b --topology h100-nvl8-x1,dgx-a100-x1,mi300x-x1 " + FEW,
        "compare --model llama-3.1-70b,qwen3-32b --topology h100-nvl8-x1 --by formats " + FEW,
        "compare --model mixtral-8x7b,llama-3.1-8b --topology h100-nvl8-x1 --objective latency "
        + FEW,
        "compare --model llama-3.1-8b --topology h100-nvl8-x1,h100-nvl8-x2 --demand 9000tok/s "
        + FEW,
        "compare --engine vllm,sglang --model qwen3-32b --topology h100-nvl8-x1",
        "compare --engine vllm,sglang --model qwen3-32b --topology h100-nvl8-x1 --batch 1,8,64"
        " --latency-target 30ms",
        "compare --engine vllm,sglang,trtllm --model llama-3.1-70b"
        " --topology h100-nvl8-x1,h200-nvl8-x1 --latency-target 30ms --batch 1,8,64",
        "compare --engine vllm --model qwen3-8b,llama-3.1-8b --topology l40s-x1 --by weights "
        + FEW,
        "compare --engine vllm,sglang --model qwen3-32b --topology h100-nvl8-x1"
        " --latency-target 1ms",
        "compare --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4,a100-nvl8-x2"
        " --batch 1,8,64 --latency-target 30ms",
        "compare --engine erdil2025 --model llama-3-70b --topology h100-nvl8-x1 --by weights"
        " --batch 1,8,64",
    ),
    "audit": (
        "audit --model llama-3-70b --topology h100-nvl8-x1 --weights bf16 --speed 35tok/s"
        " --batch 8",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --weights bf16 --speed 35tok/s --batch 8"
        " --devices 4",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --weights bf16 --speed 35tok/s --batch 8"
        " --devices 2",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --weights bf16 --speed 3500tok/s"
        " --batch 800",
        "audit --model palm-62b --speed 5tok/s --batch 4 --devices 16",
        "audit --model palm-62b --topology tpu-v4-2x4x4 --speed 20tok/s --batch 64",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --speed 20tok/s --utilization 5%",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --speed 20tok/s --batch 16"
        " --draft llama-3-8b",
        "audit --model mixtral-8x7b --topology h100-nvl8-x1 --speed 30tok/s --batch 16 --devices 2",
        "audit --model llama-3.1-8b --topology dgx-a100-x1 --speed 30tok/s --batch 64 --devices 1"
        " --price '$1/h'",
        "audit --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --tp 4 --batch 16"
        " --speed 20tok/s",
        "audit --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --tp 8 --batch 32"
        " --speed 25tok/s --weights fp8",
        "audit --engine sglang --model qwen3-32b --topology h100-nvl8-x1 --tp 2 --batch 16"
        " --speed 30tok/s --input 4000 --output 500",
        "audit --engine trtllm --model llama-3.1-8b --topology h200-nvl8-x1 --batch 64"
        " --speed 40tok/s",
        "audit --engine sglang --model qwen3-30b-a3b --topology h100-nvl8-x1 --tp 2 --batch 32"
        " --speed 40tok/s",
        "audit --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --tp 1 --batch 16"
        " --speed 20tok/s",
        "audit --engine vllm --model qwen3-32b --topology a100-nvl8-x1 --tp 4 --pp 2 --batch 8"
        " --speed 15tok/s --hit-rate 30%",
    ),
    "predict": (
        "predict --model qwen3-8b --device h20 --engine sglang --weights fp8 --batch 64",
        "predict --model qwen3-8b --device h20 --engine sglang --weights fp8 --batch 64"
        " --input 4096 --output 2048",
        "predict --model Llama-3.1-8B_config.json --topology h100-nvl8-x1 --engine vllm --tp 2"
        " --batch 32",
        "predict --model deepseek-r1 --topology h200-nvl8-x1 --engine vllm --tp 8 --batch 32",
        "predict --model deepseek-v3 --device h20 --weights fp8",
        "predict --model deepseek-v3 --topology h800-nvl8-x16 --engine sglang --weights fp8"
        " --ep 128 --batch 64 --draft mtp --input 4096 --output 1786",
        "predict --model deepseek-v3 --topology h800-nvl8-x16 --engine sglang --weights fp8"
        " --ep 128 --batch 64 --overlap two-batch --input 4096 --output 1786",
        "predict --model llama-3.1-70b --device h20 --tp 2 --input 100000",
        "predict --model qwen3-8b --device h20 --input 4000 --shared 2000 --batch 16",
        "predict --model qwen3-8b --topology a100-nvl8-x1 --batch 64",
        "predict --model llama-3.1-70b --topology h100-nvl8-x1 --tp 8 --batch 16 --draft eagle"
        " --lookahead 3",
        "predict --model llama-3.1-70b --topology h100-nvl8-x1 --tp 4 --pp 2 --batch 16",
        "predict --model llama-3.1-70b --topology h100-nvl8-x1 --tp 1 --batch 4",
        "predict --model llama-3.1-70b --topology h100-nvl8-x1 --tp 4 --batch 16 --hit-rate 60%"
        " --input 6000 --output 300 --chunk 4096",
        "predict --model qwen3-30b-a3b --topology h100-nvl8-x1 --engine sglang --tp 2 --dp 2"
        " --ep 4 --batch 32 --weights fp8 --kv fp8",
        "predict --model granite-4.0-h-small_config.json --topology h100-nvl8-x1 --tp 2 --batch 8",
        "predict --model Qwen3-Next-80B-A3B_config.json --topology h100-nvl8-x1 --tp 4 --batch 8",
        "predict --model gemma-3-27b-it_config.json --topology h100-nvl8-x1 --tp 2 --batch 8",
        "predict --model DeepSeek-V3.2_config.json --topology h200-nvl8-x1 --tp 8 --batch 8"
        " --weights fp8",
        "predict --model gpt-oss-120b --topology h100-nvl8-x1 --engine trtllm --tp 2 --batch 8",
        "predict --model Nemotron-H-56B-Base-8K_config.json --topology h100-nvl8-x1 --tp 4"
        " --batch 8",
        "predict --model MiniMax-Text-01_config.json --topology h200-nvl8-x1 --tp 8 --batch 4"
        " --weights fp8",
    ),
    "place": (
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --state busy.toml --weights bf16"
        " --latency-target 50ms --ttft-target 1s",
        "place --model llama-3.1-8b --model llama-3.1-70b --topology h100-nvl8-x2 --weights bf16"
        " --latency-target 50ms --ttft-target 1s --demand llama-3.1-8b=2000tok/s"
        " --demand llama-3.1-70b=500tok/s",
        "place --model llama-3.1-70b --topology h100-nvl8-x1 --weights bf16 --latency-target 50ms"
        " --ttft-target 1s --demand 100000tok/s",
        "place --model llama-3.1-70b --topology h100-nvl8-x1 --weights bf16 --latency-target 50ms"
        " --max-devices 1",
        "place --model llama-3.1-8b --topology h100-nvl8-x2 --replicas 2 --latency-target 30ms",
        "place --model llama-3.1-8b --topology h100-nvl8-x2 --state slow.toml --latency-target 30ms"
        " --batch 1,16,64,256",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --demand 900tok/s --weights fp8"
        " --latency-target 50ms --batch 1,16,64,256",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --demand 900tok/s --objective devices"
        " --latency-target 50ms --batch 1,16,64,256",
        "place --model llama-3.1-70b --topology h100-nvl8-x1 --replicas 1 --objective latency"
        " --batch 1,16,64",
        "place --model llama-3.1-70b --model llama-3.1-8b --topology h100-nvl8-x1 --objective share"
        " --demand llama-3.1-8b=9000tok/s --demand llama-3.1-70b=900tok/s --batch 1,16,64,256"
        " --latency-target 60ms",
        "place --model mixtral-8x7b --topology dgx-a100-x1 --latency-target 50ms --batch 1,16,64",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --max-rent '$30/h'"
        " --latency-target 50ms --batch 1,16,64,256",
        "place --model llama-3.1-70b --topology h100-a100-x1 --latency-target 60ms"
        " --batch 1,16,64,256",
        "place --model llama-3.1-8b --topology h100-fat-tree-x2 --replicas 3 --batch 1,16,64",
        "place --model palm-62b --topology tpu-v4-4x4x4 --replicas 2 --latency-target 60ms",
        "place --model palm-62b --topology tpu-v4-4x4x4 --state torus.toml --latency-target 60ms"
        " --batch 1,16,64,256",
        "place --model palm-62b --topology tpu-v4-4x4x4 --state torus.toml --align"
        " --latency-target 60ms --batch 1,16,64,256",
        "place --model palm-62b --topology tpu-v4-2x4x4 --demand 600tok/s --latency-target 60ms"
        " --batch 1,16,64,256",
        "place --model palm-540b --topology tpu-v4-4x4x4 --replicas 2 --latency-target 60ms"
        " --batch 1,16,64,256",
        "place --model palm-8b --topology tpu-v5e-4x4 --replicas 2 --batch 1,16,64",
        "place --model palm-62b --topology tpu-v4-2x2x4 --replicas 3 --latency-target 5ms",
        "place --model llama-3.1-405b --topology h100-nvl8-x2 --replicas 1 --latency-target 80ms"
        " --batch 1,16,64",
        "place --model llama-3.1-8b --topology l40s-x1 --max-quality-loss 1% --latency-target 60ms"
        " --batch 1,16,64",
        "place --model llama-3.1-8b --topology h100-nvl8-x1 --solver cpsat --replicas 2"
        " --batch 1,16",
    ),
    "repair": (
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --state spare.toml --weights bf16"
        " --latency-target 50ms --ttft-target 1s > stands.json; repair stands.json"
        " --state failed.toml --loss 20%",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --state spare.toml --weights bf16"
        " --latency-target 50ms --ttft-target 1s > stands.json; repair stands.json"
        " --state failed.toml",
        "place --model llama-3.1-70b --topology h100-nvl8-x2 --state spare.toml --weights bf16"
        " --latency-target 50ms --batch 1,16,64 > stands.json; repair stands.json"
        " --state failed.toml --loss 50%",
        "place --model llama-3.1-8b --topology h100-nvl8-x2 --replicas 4 --batch 1,16,64"
        " > stands.json; repair stands.json --state failed.toml --loss 5%",
        "place --model llama-3.1-8b --topology h100-nvl8-x2 --replicas 4 --batch 1,16,64"
        " > stands.json; repair stands.json --state busy.toml --replicas 3",
        "place --model llama-3.1-8b --topology h100-nvl8-x2 --demand 9000tok/s --batch 1,16,64,256"
        " > stands.json; repair stands.json --state failed.toml --demand 12000tok/s",
        "place --model llama-3.1-70b --topology h100-nvl8-x1 --replicas 2 --weights bf16"
        " --latency-target 40ms --batch 1,16,64 > stands.json; repair stands.json"
        " --topology h100-nvl8-x2 --state failed.toml",
        "place --model palm-62b --topology tpu-v4-4x4x4 --replicas 2 --latency-target 60ms"
        " --batch 1,16,64,256 > stands.json; repair stands.json --state torus.toml --loss 20%",
        "place --model palm-62b --topology tpu-v4-2x4x4 --replicas 2 --latency-target 60ms"
        " --batch 1,16,64 > stands.json; repair stands.json --state torus.toml --loss 10%",
        "place --model llama-3.1-70b --topology h100-nvl8-x1 --replicas 2 --weights bf16"
        " --latency-target 40ms --batch 1,16,64 > stands.json; repair stands.json"
        " --topology h100-nvl8-x2 --state failed.toml --latency-target 2ms",
    ),
    "experts": (
        "experts --experts 8 --zipf 0.8 --ranks 4 --slots 3 --nodes 2 --groups 2 --gap 0.0001%",
        "experts --loads loads.csv --ranks 4 --slots 3",
        "experts --loads loads.csv --ranks 4 --slots 3 --split weighted",
        "experts --loads loads.csv --ranks 4 --slots 3 --present present.csv --move-price 5%",
        "experts --loads loads.csv --ranks 4 --slots 3 --present present.csv",
        "experts --loads loads.csv --ranks 4 --slots 3 --nodes 2 --coactivation pairs.csv"
        " --slack 5%",
        "experts --loads loads.csv --ranks 2 --slots 4",
        "experts --loads loads.csv --ranks 2 --slots 3",
        "experts --experts 64 --zipf 1 --ranks 6 --slots 12 --split weighted",
        "experts --zipf 1.0 --experts 64 --ranks 8 --slots 9",
        "experts --zipf 0.5 --experts 32 --ranks 4 --slots 10",
        "experts --zipf 0.7 --model qwen3-30b-a3b --ranks 8 --slots 18",
        "experts --zipf 0.6 --model mixtral-8x7b --ranks 4 --memory 70GB --weights fp8",
        "experts --zipf 0.3 --model deepseek-v3 --ranks 32 --slots 9 --gap 1%",
    ),
    "stages": (
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x2 --batch 16",
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x1,a100-80gb:tp1x1 --batch 16",
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x1,a100-80gb:tp1x1 --batch 16"
        " --objective latency",
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x1,l40s:tp1x1 --phase prefill",
        "stages --model llama-3.1-70b --groups h100-sxm:tp8x1,a100-80gb:tp4x2 --batch 16",
        "stages --model llama-3.1-70b --groups h100-sxm:tp4x1,a100-80gb:tp4x1 --batch 16"
        " --input 4096 --output 512 --micro-batches 2",
        "stages --model llama-3.1-405b --groups l4:tp8x2",
        "stages --model llama-3.1-405b --groups h100-sxm:tp8x2 --batch 4",
        "stages --model qwen3-30b-a3b --groups h100-sxm:tp2x1,h200:tp1x1 --engine sglang --batch 8",
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x1,a100-80gb:tp1x1 --batch 16"
        " --solver cpsat",
        "stages --model granite-4.0-h-small_config.json --groups h100-sxm:tp1x2 --batch 8",
        "layers machines.toml",
    ),
    "refusals": (
        "--batch 0 --gap 2 --latency-target 30",
        "--latncy-target 30ms --batch 128:16 --max-cost 20",
        "--topology tpu-v4-4x8x9",
        "--model llama-3.1-8b --topology h100-a100-x2",
        "--engine vllm --model palm-540b --topology h100-nvl8-x16",
        "--engine vllm --model llama-3.1-8b --topology tpu-v4-2x2x2",
        "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --demand 9tok/s",
        "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x4 --demand 9tok/s",
        "--engine erdil2025 --model llama-3-70b --topology tpu-v4-2x2x2",
        "--engine erdil2025 --model llama-3-8b --topology h100-nvl8-x1 --confidence 90%",
        "--model llama-3.1-8b --topology h100-nvl8-x1 --hit-rate 10%",
        "--model llama-3-70b --topology h100-nvl8-x4 --draft mixtral-8x7b",
        "audit --model llama-3-70b --topology h100-nvl8-x1 --speed 20tok/s --tp 4 --batch 8",
        "place --topology h100-nvl8-x2 --demand ten --objective speed",
        "predict --model qwen3-8b --engine vlm --tp 0 --hit-rate 2 --weights fp9",
        "stages --model llama-3.1-8b --groups h100-sxm,a100-80:tp4 --objective least",
        "experts --zipf ten --ranks 0 --slots x --model llama-3-70b",
        "predict --model llama-3.1-70b --topology tpu-v4-2x2x2",
    ),
}


def requests(seed: int = 0) -> dict[str, list[Words]]:
    """All requests by the file of their answers: those by hand, then drawn ones."""
    rng = random.Random(seed)
    drawn = {
        "plan_roofline": list(_roofline(rng, 34)),
        "plan_engines": list(_engines(rng, 30)),
        "plan_economics": list(_economics(rng, 8)),
        "predict": list(_predictions(rng, 22)),
    }
    return {
        name: [*table, *drawn.get(name, [])]
        if name == "plan_default"
        else [_named(words) for words in (*table, *drawn.get(name, []))]
        for name, table in BY_HAND.items()
    }


def _named(words: Words) -> Words:
    """A request of layouts says so where engines would plan it unasked."""
    first, *others = words.split("; ")
    said = first.split()
    verb = said[0] if not said[0].startswith("-") else "plan"
    of = {option: value for option, value in pairwise(said) if option in ("--model", "--topology")}
    if (
        "--engine" in said
        or verb not in ("plan", "pareto", "compare", "audit", "place")
        or not of.get("--topology", "").startswith(MEASURED)
        or of.get("--model", "mini.toml").startswith(("mini", *CLOSED))
    ):
        return words
    at = 0 if verb == "plan" else 1
    return "; ".join([" ".join([*said[:at], "--engine roofline", *said[at:]]), *others])


def _joined(*parts: str) -> Words:
    return " ".join(part for part in parts if part)


def _target(rng: random.Random, times: Sequence[str]) -> str:
    return rng.choice(("", *(f"--latency-target {time}" for time in times)))


def _roofline(rng: random.Random, n: int) -> Iterator[Words]:
    for _ in range(n):
        model = rng.choice((*DENSE, *ROUTED))
        pool = rng.choice((*TORI, *NODES))
        yield _joined(
            f"--model {model} --topology {pool} {GRID}",
            _target(rng, ("15ms", "40ms", "80ms", "2ms")),
            rng.choice(("", "", "--ttft-target 1s", "--max-devices 8", "--min-batch 16")),
            rng.choice(TOKENS),
            rng.choice(("", "", "--objective latency", "--objective throughput")),
            rng.choice(("", "", "--prefill cost", "--prefill latency")),
        )


def _engines(rng: random.Random, n: int) -> Iterator[Words]:
    for _ in range(n):
        yield _joined(
            f"--engine {rng.choice(('vllm', 'sglang', 'trtllm'))} --model {rng.choice(SERVED)}",
            f"--topology {rng.choice(SERVERS)} {FEW}",
            _target(rng, ("10ms", "30ms", "60ms", "1ms")),
            rng.choice(("", "", "--ttft-target 1s", "--max-devices 4", "--min-batch 16")),
            rng.choice(TOKENS),
            rng.choice(("", "", "--objective latency", "--objective throughput")),
            rng.choice(("", "", "", "--confidence 80%", "--prefer simplest")),
        )


def _economics(rng: random.Random, n: int) -> Iterator[Words]:
    for _ in range(n):
        yield _joined(
            f"--engine erdil2025 --model {rng.choice(('llama-3-8b', 'gpt-3', *ROUTED))}",
            f"--topology {rng.choice(('h100-nvl8-x2', 'a100-nvl8-x1', 'b200-nvl8-x1'))} {FEW}",
            _target(rng, ("10ms", "30ms", "1ms")),
            rng.choice(TOKENS),
            rng.choice(("", "--objective latency", "--max-devices 8")),
        )


def _predictions(rng: random.Random, n: int) -> Iterator[Words]:
    for _ in range(n):
        yield _joined(
            f"predict --model {rng.choice((*SERVED, 'mixtral-8x7b', 'llama-3.1-405b'))}",
            f"--topology {rng.choice(SERVERS)}",
            f"--engine {rng.choice(('vllm', 'sglang', 'trtllm'))}",
            f"--tp {rng.choice((1, 2, 4, 8))} --batch {rng.choice((1, 8, 32, 128))}",
            rng.choice(TOKENS),
            rng.choice(("", "", "--weights fp8", "--kv fp8", "--hit-rate 40%")),
        )
