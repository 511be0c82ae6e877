"""What people type first, and the word that answers it: each hint is taken, and has an answer."""

from __future__ import annotations

import re
import shlex

import pytest

from planner.commands.cli import main

SMALL = "--engine roofline --max-devices 1 --batch 8"
ON_GPU = f"--model llama-3.1-8b --topology h100-nvl8-x1 {SMALL}"
AT_RATE = (
    "--model llama-3.1-8b --topology h100-nvl8-x1 --engine vllm --batch 8 --input 1500 --output 300"
)
OF_POOL = f"--model llama-3.1-8b --topology {{}} {SMALL}"
OF_MODEL = "models {}"
WHOLE = "--model llama-3.1-8b --topology {} --engine roofline --batch 8"

CASES = [
    (OF_POOL, "h100", "h100-nvl8-x1"),
    (OF_POOL, "H100", "h100-nvl8-x1"),
    (OF_POOL, "h100-sxm", "h100-nvl8-x1"),
    (OF_POOL, "H100-SXM-80GB", "h100-nvl8-x1"),
    (OF_POOL, "nvidia-h100", "h100-nvl8-x1"),
    (OF_POOL, "dgx-h100", "h100-nvl8-x1"),
    (OF_POOL, "8xH100", "h100-nvl8-x1"),
    (OF_POOL, "8x-h100", "h100-nvl8-x1"),
    (OF_POOL, "h100x8", "h100-nvl8-x1"),
    (OF_POOL, "h100:16", "h100-nvl8-x2"),
    (OF_POOL, "h100-nvl16-x2", "h100-nvl8-x2"),
    (OF_POOL, "h100-nvl8-x", "h100-nvl8-x1"),
    (WHOLE, "2xh100", "h100-nvl8-x1 --max-devices 2"),
    (WHOLE, "2xh100-pcie", "h100-pcie-x1 --max-devices 2"),
    (WHOLE, "4xl40s", "l40s-x1 --max-devices 4"),
    (OF_POOL, "a100", "a100-nvl8-x1"),
    (OF_POOL, "A100-40GB", "a100-40-nvl8-x1"),
    (OF_POOL, "a100-80gb", "a100-nvl8-x1"),
    (OF_POOL, "h200", "h200-nvl8-x1"),
    (OF_POOL, "8xh20", "h20-nvl8-x1"),
    (OF_POOL, "b200", "b200-nvl8-x1"),
    (OF_POOL, "gb200", "gb200-nvl72-x1"),
    (OF_POOL, "v6e-8", "tpu-v6e-2x4"),
    (WHOLE, "v5e-16", "tpu-v5e-4x4"),
    (OF_POOL, "v5p-128", "tpu-v5p-4x4x4"),
    (OF_POOL, "tpu-v4-32", "tpu-v4-2x2x4"),
    (OF_POOL, "8xh100-x4", "h100-nvl8-x4"),
    (OF_POOL, "h100_nvl8_x2", "h100-nvl8-x2"),
    (OF_POOL, "tpuv4", "tpu-v4-4x4x4"),
    (OF_MODEL, "llama3-70b", "llama-3-70b"),
    (OF_MODEL, "llama-70b", "llama-3-70b"),
    (OF_MODEL, "deepseek", "deepseek-v3"),
    (OF_MODEL, "gpt-4", "gpt-4-speculated"),
    (OF_MODEL, "qwen3", "qwen3-8b"),
    ("devices {}", "h100-80gb", "h100-sxm"),
    ("engines {}", "tensorrt-llm", "trtllm"),
    ("engines {}", "vLLM", "vllm"),
    (f"{AT_RATE} --rate {{}}", "2rps", "2req/s"),
    (f"{AT_RATE} --rate {{}}", "2qps", "2req/s"),
    (f"{AT_RATE} --rate {{}}", "2", "2req/s"),
    (f"{AT_RATE} --rate {{}}", "2reqs/s", "2req/s"),
    (f"{AT_RATE} --rate {{}}", "2reqs/sec", "'8 req/s'"),
    (f"{AT_RATE} --rate {{}}", "90rpm", "90req/min"),
    (f"{AT_RATE} --rate {{}}", "0rps", "'8 req/s'"),
    (f"{AT_RATE} --rate {{}}", "-3", "'8 req/s'"),
    (f"{AT_RATE} --rate {{}}", "2rps/gpu", "'8 req/s'"),
    (f"{AT_RATE} --rate {{}}", "2/s", "2request/s"),
    (f"{AT_RATE} --rate {{}}", "120/min", "120request/min"),
    (f"{AT_RATE} --demand {{}}", "100tps", "100tok/s"),
    (f"{ON_GPU} --latency-target {{}}", "30", "30ms"),
    (f"{ON_GPU} --latency-target {{}}", "'30 msec'", "'30 ms'"),
    (f"{ON_GPU} --latency-target {{}}", "30MS", "30ms"),
    (f"{ON_GPU} --time-limit {{}}", "1m", "1min"),
    (f"{ON_GPU} --time-limit {{}}", "30", "30ms"),
    (f"{ON_GPU} --max-cost {{}}", "20", "20USD/Mtoken"),
    (f"{ON_GPU} --max-cost {{}}", "20usd", "20USD/Mtoken"),
    (f"{ON_GPU} --max-cost {{}}", "'$20'", "'$20/Mtoken'"),
    (f"{ON_GPU} --max-rent {{}}", "90", "90USD/h"),
    (f"{ON_GPU} --max-rent {{}}", "'$90/month'", "'3.22 USD/h'"),
    (f"{ON_GPU} --max-rent {{}}", "'$90'", "'$90/h'"),
    (f"{ON_GPU} --price {{}}", "'$2.5/hour'", "'$2.5/h'"),
    (f"{ON_GPU} --weights {{}}", "FP8", "fp8"),
    (f"{ON_GPU} --weights {{}}", "float8", "fp8"),
    (f"{ON_GPU} --kv {{}}", "fp8_e4m3", "fp8"),
    (f"{ON_GPU} --objective {{}}", "cheapest", "cost"),
    (f"{ON_GPU} --objective {{}}", "tput", "throughput"),
    (f"{ON_GPU} --input {{}}", "1k", "1000"),
    (f"{ON_GPU} --input {{}}", "1,500", "1500"),
    (f"{ON_GPU} {{}} 1s", "--max-ttft", "--ttft-target"),
    (f"{ON_GPU} {{}} 1000", "--isl", "--input"),
    (f"{WHOLE.format('h100-nvl8-x1')} {{}} 1", "--gpus", "--max-devices"),
    (f"{WHOLE.format('h100-nvl8-x1')} {{}} 1", "--max-gpu", "--max-devices"),
    (f"{SMALL} --model llama-3.1-8b {{}} h100-nvl8-x1", "--gpu", "--topology"),
    ("predict --engine vllm --model qwen3-8b --batch 8 {} h20", "--gpu", "--device"),
    ("{} --model llama-3.1-8b --topology h100-nvl8-x1", "simulate", "predict"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "typed", "meant"), CASES, ids=[f"{typed}-{line[:12]}" for line, typed, _ in CASES]
)
def test_the_first_name_of_a_hint_is_the_likely_one_and_has_an_answer(line, typed, meant, capsys):
    assert main(shlex.split(line.format(typed))) == 2
    hint = " ".join(capsys.readouterr().err.split())
    first, *rest = meant.split(" -")
    word = shlex.split(first)[-1] if first.startswith("'") else first
    named = re.findall(r"(?:did you mean|write) `(?:plan )?([^`]*)`", hint)
    assert named[:1] == [word], hint
    assert all(f"`-{option}`" in hint for option in rest), hint
    assert main(shlex.split(line.format(meant))) == 0, capsys.readouterr().err


def test_a_kind_of_device_is_answered_with_all_its_pools(capsys):
    assert main(["--topology", "h100"]) == 2
    hint = " ".join(capsys.readouterr().err.split())
    assert "`h100-nvl8-x1`, `h100-pcie-x1` or `h100-erdil2025-x1`?" in hint


@pytest.mark.parametrize("name", ["--hbm", "--slo", "--foo"])
def test_an_option_that_is_like_none_is_answered_with_none(name, capsys):
    assert main([name, "1"]) == 2
    err = capsys.readouterr().err
    assert "`plan --help` lists the options" in err
    assert "did you mean" not in err


@pytest.mark.parametrize("words", [["--topology", "rtx4090"], ["--model", "foo-7b"]])
def test_what_is_like_nothing_is_answered_with_the_list_alone(words, capsys):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "lists them all" in err
    assert "did you mean" not in err
