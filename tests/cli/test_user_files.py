"""A file of the user's is what every command uses, in place of the one that ships; and it is said.

Each file is the one that ships, changed so that no answer can be what it was.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.specs.files.places import Kind
from tests.cli.conftest import Ran

ROOT = Path(__file__).parents[2]
MODEL = "--model llama-3.1-8b"
POOL = "--topology h100-nvl8-x1"

ON_DEVICES = {
    "plan": f"{MODEL} {POOL} --batch 8 --latency-target 30ms --json",
    "engine": f"{MODEL} {POOL} --engine vllm --batch 8 --tp 4 --pp 1 --json",
    "economics": f"{MODEL} {POOL} --engine erdil2025 --batch 8 --json",
    "place": f"place {MODEL} {POOL} --batch 8 --json",
    "predict by device": f"predict {MODEL} --device h100-sxm --batch 8 --json",
    "predict by topology": f"predict {MODEL} {POOL} --tp 4 --batch 8 --json",
    "stages": f"stages {MODEL} --groups h100-sxm:tp4x2 --json",
    "compare": f"compare {MODEL} {POOL} --batch 8 --json",
    "compare engines": f"compare {MODEL} {POOL} --engine vllm --batch 8 --tp 4 --pp 1 --json",
    "pareto": f"pareto {MODEL} {POOL} --batch 8,16 --json",
    "pareto of an engine": f"pareto {MODEL} {POOL} --engine vllm --batch 8 --tp 4 --pp 1 --json",
    "audit": f"audit --engine roofline {MODEL} {POOL} --weights bf16 --speed 35tok/s --batch 8"
    " --json",
    "audit of an engine": f"audit {MODEL} {POOL} --engine vllm --tp 4 --batch 8 --speed 35tok/s"
    " --json",
    "devices": "devices --json",
    "one device": "devices h100-sxm",
    "topologies": "topologies h100-nvl8-x1",
}
ON_MODELS = {
    **{name: line for name, line in ON_DEVICES.items() if "device" not in name},
    "models": "models llama-3.1-8b",
    "experts": "experts --model deepseek-v3 --zipf 1 --ranks 32 --slots 9 --memory 60GB --json",
}
del ON_MODELS["topologies"]
ENGINES = {
    name: line for name, line in ON_DEVICES.items() if "engine" in name or "predict" in name
} | {"stages": ON_DEVICES["stages"]}


def shipped(kind: Kind, name: str) -> str:
    return (ROOT / kind.folder / f"{name}.toml").read_text(encoding="utf-8")


def put(folder: Path, kind: Kind, name: str, text: str) -> None:
    (folder / kind.folder).mkdir(parents=True, exist_ok=True)
    (folder / kind.folder / f"{name}.toml").write_text(text, encoding="utf-8")


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


_BEFORE: dict[str, Ran] = {}
"""Answers of commands where no file of the user's is there."""


def seen(answer: str) -> str:
    """An answer without how long its solvers took."""
    return re.sub(r'"(wall|solve)_s": [^,\n]*', "", answer)


def differs(plan, folder: Path, line: str, kind: Kind, name: str, text: str) -> None:
    """The answer of a command with a file of the user's is another one, and says whose it is."""
    if line not in _BEFORE:
        _BEFORE[line] = plan(line)
    before = _BEFORE[line]
    put(folder, kind, name, text)
    after = plan(line)
    assert (before.code, after.code) == (0, 0), after.err
    assert seen(after.out) != seen(before.out)
    said = f"note: `{kind.folder}/{name}.toml` replaces the {kind.word} `{name}` that ships"
    assert said not in before.err
    assert said in " ".join(after.err.split())


@pytest.mark.parametrize("name", ON_DEVICES)
def test_a_device_of_the_user_is_that_of_every_command(plan, folder, name):
    text = changed(shipped(Kind.DEVICE, "h100-sxm"), ('"79.18 GiB"', '"60 GiB"'))
    text = changed(text, ('"3350 GB/s"', '"2500 GB/s"'))
    differs(plan, folder, ON_DEVICES[name], Kind.DEVICE, "h100-sxm", text)


@pytest.mark.parametrize("name", ON_MODELS)
def test_a_model_of_the_user_is_that_of_every_command(plan, folder, name):
    asked = "deepseek-v3" if name == "experts" else "llama-3.1-8b"
    text = re.sub(r"(?m)^tolerance.*", "tolerance = 0.1", shipped(Kind.MODEL, asked))
    text = text.replace("n_experts = 256", "n_experts = 264")
    text = text.replace("n_kv_heads = 8", "n_kv_heads = 4")
    differs(plan, folder, ON_MODELS[name], Kind.MODEL, asked, text)


@pytest.mark.parametrize("name", [name for name, line in ON_DEVICES.items() if POOL in line])
def test_a_topology_of_the_user_is_that_of_every_command(plan, folder, name):
    """Under a name of the shipped pattern, four servers of two devices for one of eight."""
    text = shipped(Kind.CLUSTER, "h100-nvl8")
    text = text.replace('"h100-nvl8-x{n}"', '"h100-nvl8-x1"').replace('"{n}"', "4")
    text = re.sub(r"\[pattern\]\n.*\n", "", text)
    half = 'n_devices_per_node = { value = 2, source = "mine" }'
    text = re.sub(r"n_devices_per_node = .*", half, text)
    differs(plan, folder, ON_DEVICES[name], Kind.CLUSTER, "h100-nvl8-x1", text)


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_of_the_user_is_that_of_every_command(plan, folder, name):
    gap = '[steps]\nlayer_gap = { value = "35 µs", source = "ours" }'
    text = changed(shipped(Kind.ENGINE, "vllm"), ("[steps]", gap))
    differs(plan, folder, ENGINES[name], Kind.ENGINE, "vllm", text)


@pytest.mark.parametrize("name", ENGINES)
def test_kernels_of_the_user_are_those_of_every_command(plan, folder, name):
    """Every product of a matrix takes 0.1 ms more."""
    text = re.sub(r"floor_s = .*", "floor_s = 1e-4", shipped(Kind.KERNELS, "h100-sxm-vllm"))
    differs(plan, folder, ENGINES[name], Kind.KERNELS, "h100-sxm-vllm", text)


def test_nothing_is_said_where_no_file_of_the_user_is_read(plan, folder):
    put(folder, Kind.DEVICE, "a100-80gb", "it would not load")
    assert plan(ON_DEVICES["predict by topology"]).err == ""


def test_a_repair_knows_the_users_device(plan, folder):
    """A quarter of the bandwidth: what stands serves less than it was placed for."""
    asked = f"place {MODEL} {POOL} --batch 8 --replicas 2 --json"
    (folder / "placement.json").write_text(plan(asked).out, encoding="utf-8")
    (folder / "state.toml").write_text('failed = ["node0/gpu7"]', encoding="utf-8")
    line = f"repair placement.json {POOL} {MODEL} --batch 8 --replicas 2 --state state.toml --json"
    text = changed(shipped(Kind.DEVICE, "h100-sxm"), ('"3350 GB/s"', '"840 GB/s"'))
    differs(plan, folder, line, Kind.DEVICE, "h100-sxm", text)


def test_files_of_planner_path_win_over_those_that_ship(plan, folder, monkeypatch):
    text = changed(shipped(Kind.DEVICE, "h100-sxm"), ('"3350 GB/s"', '"2500 GB/s"'))
    put(folder / "far", Kind.DEVICE, "h100-sxm", text)
    monkeypatch.setenv("PLANNER_PATH", "far")
    assert "note: `far/topologies/devices/h100-sxm.toml` replaces" in plan(ON_DEVICES["plan"]).err
