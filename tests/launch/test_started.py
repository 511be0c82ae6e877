"""Requests whose best is what engines refuse: commands that start the answer, or why none does."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from planner.commands.cli import main
from planner.results.predictions import Launch
from tests.launch.answers import answered
from tests.report.launches import flags_of, n_devices_of

CONFIGS = Path(__file__).parents[1] / "specs/huggingface/configs"
APART = "--roles apart --batch 1,8,64 --json"
STARTED = {
    "decode of stages by NIXL": "--model llama-3.1-70b --topology l40s-x8 --engine vllm "
    f"--input 2000 --output 500 --ttft-target 10s --latency-target 120ms --rate 1req/s {APART}",
    "stages of roles over uneven nodes": "--model deepseek-v3 --topology h100-nvl8-x4 "
    "--engine vllm --input 4000 --output 500 --ttft-target 5s --latency-target 80ms "
    f"--rate 4req/s {APART}",
    "attention data parallel with heads cut": "--model deepseek-v3 --topology h100-nvl8-x16 "
    "--latency-target 30ms --batch 1,2,8 --json",
}


@pytest.mark.parametrize("name", STARTED)
def test_everything_that_is_answered_is_started_by_a_command(name):
    code, found, _ = answered(shlex.split(STARTED[name]))
    assert code == 0
    assert found
    for one in found:
        launch = Launch(**{**one["launch"], "remarks": tuple(one["launch"]["remarks"])})
        assert flags_of(one["engine"], launch)
        assert n_devices_of(one["engine"], launch) == one["n_devices"]
        assert one["n_stages"] == 1 or one["role"] == "together" or one["engine"] != "vllm"


REFUSED = {
    "too much for what starts": (
        "place --model llama-3.1-70b --topology l40s-x4 --engine vllm --input 2000 --output 500 "
        "--ttft-target 10s --latency-target 120ms --roles apart --rate 2req/s --batch 1,8,32,64",
        (1, "keeps `demand llama-3.1-70b`"),
    ),
    "states under TensorRT-LLM": (
        f"--model {CONFIGS}/AI21-Jamba-1.5-Mini_config.json --engine trtllm "
        "--topology h200-nvl8-x1 --input 2000 --output 500",
        (2, "TensorRT-LLM has no class for models of this family"),
    ),
    "lightning attention under TensorRT-LLM": (
        f"--model {CONFIGS}/MiniMax-Text-01_config.json --engine trtllm "
        "--topology h200-nvl8-x1 --input 2000 --output 500 --weights fp8",
        (2, "TensorRT-LLM has no class for models of this family"),
    ),
    "a rate without lengths": (
        "--rate 20req/s --max-power 20kW",
        (2, "a rate of requests says how much only with their lengths"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_command_starts_is_refused_with_the_reason(name, capsys):
    words, (code, fact) = REFUSED[name]
    assert main(shlex.split(words)) == code
    assert fact in " ".join(capsys.readouterr().err.split())
