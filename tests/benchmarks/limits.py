"""`--time-limit` against the wall clock, of every command that has one. Run by hand.

    python -m tests.benchmarks.limits                  # every command at 1 s, 2 s, 5 s and 10 s
    python -m tests.benchmarks.limits --limits 2 --only engine stages
    python -m tests.benchmarks.limits --draw 500 --busy 2   # drawn, two busy processes a core

A limit counts from the request being read: imports, files and set-up are within it, the start of
Python is not (the wall time of `plan --help` at the time is taken off). Beyond it may be half a
second and a fifth of the limit: to verify and to print what is in hand, and for single calls of a
solver that cannot be interrupted. Whoever says that there is no plan is asked again with much more
time: if there is one then, it was the clock that said so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.measuring import Measured, measured

HERE = Path(__file__).parent
DEEP = "deep.json"
"""A model of 620 layers, which takes a stage program of 100,000 columns."""

COMMANDS = {
    "plan": "--model llama-3.1-70b --topology h100-nvl8-x512 --latency-target 30ms",
    "plan any latency": "--model llama-3.1-70b --topology h100-nvl8-x512",
    "plan demand": "--model llama-3.1-70b --topology h100-nvl8-x128 --demand 20000tok/s",
    "plan drafts": "--engine roofline --model llama-3.1-70b --topology h100-nvl8-x128 "
    "--draft llama-3.1-8b --latency-target 10ms",
    "plan in vain": "--model llama-3.1-70b --topology h100-nvl8-x512 --latency-target 2ms",
    "economics": "--engine erdil2025 --model llama-3-70b --topology h100-nvl8-x128",
    "engine": "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x64 --latency-target 30ms",
    "engine of experts": "--engine vllm --model deepseek-v3 --topology h100-nvl8-x32",
    "engine in vain": "--engine vllm --model llama-3.1-70b --topology h100-nvl8-x32 "
    "--latency-target 1ms",
    "pareto": "pareto --model llama-3.1-70b --topology h100-nvl8-x128",
    "pareto rent": "pareto --y rent --model llama-3.1-70b --topology h100-nvl8-x64",
    "pareto engine": "pareto --engine vllm --model llama-3.1-70b --topology h100-nvl8-x32",
    "compare": "compare --model llama-3.1-70b,llama-3.1-405b,qwen3-32b "
    "--topology h100-nvl8-x128,b200-nvl8-x128 --by weights",
    "audit": "audit --engine roofline --model llama-3-70b --topology h100-nvl8-x128 --weights bf16 "
    "--speed 35tok/s --batch 8",
    "place": "place --model llama-3.1-70b --topology h100-nvl8-x512",
    "place fat tree": "place --model deepseek-v3 --topology h100-fat-tree-x512 --state busy.toml",
    "place torus": "place --model palm-540b --topology tpu-v4-16x16x16 --state cells.toml",
    "place small torus": "place --model palm-540b --topology tpu-v4-8x8x8 --state cells8.toml",
    "stages": "stages --model deep.json --groups h100-sxm:tp8x2,a100-80gb:tp4x3 --batch 16",
    "experts": "experts --experts 256 --zipf 0.8 --ranks 32 --slots 10 --nodes 4 --groups 8",
    "layers": "layers mixed-42.toml",
}
LIMITS = (1.0, 2.0, 5.0, 10.0)


def files(folder: Path) -> None:
    """What the commands name: a deep model, states in which a tenth of the cells is busy."""
    root = HERE.parents[1]
    config = root / "tests/specs/huggingface/configs/Llama-3.1-8B_config.json"
    deep = json.loads(config.read_text()) | {"num_hidden_layers": 620}
    (folder / DEEP).write_text(json.dumps(deep))
    machines = root / "examples/machines/mixed-42.toml"
    (folder / machines.name).write_text(machines.read_text())
    for name, n in (("cells.toml", 16), ("cells8.toml", 8)):
        cells = [(x, y, z) for x in range(n) for y in range(n) for z in range(n)]
        busy = [f"{x},{y},{z}" for x, y, z in cells if (x * 7 + y * 13 + z * 29) % 10 == 0]
        (folder / name).write_text(f"busy = {json.dumps(busy)}\n")
    (folder / "busy.toml").write_text('busy = ["node0/*"]\n')


ENGINES = ("vllm", "sglang", "trtllm")
POOLS = {
    "llama-3.1-8b": ("h100-nvl8-x1", "h200-nvl8-x4"),
    "qwen3-32b": ("h100-nvl8-x2", "b200-nvl8-x8"),
    "llama-3.1-70b": ("h100-nvl8-x2", "h100-nvl8-x16", "h200-nvl8-x4"),
    "gpt-oss-120b": ("h100-nvl8-x4", "b200-nvl8-x2"),
    "deepseek-v3": ("h200-nvl8-x4", "h100-nvl8-x8"),
}
CHOSEN = {"plan": 4, "roles": 2, "pareto": 2, "compare": 2, "place": 4, "fleet": 4}
"""Kinds of drawn requests, and how many of each to twenty: commands of `COMMANDS` are the rest."""


def drawn(draw: random.Random) -> tuple[str, str]:
    """A request by chance: its kind, and its words."""
    listed = {**CHOSEN, "others": 2}
    kind = draw.choices(list(listed), list(listed.values()))[0]
    if kind == "others":
        return kind, draw.choice(list(COMMANDS.values()))
    model = draw.choice(list(POOLS))
    pool, engine = draw.choice(POOLS[model]), draw.choice((*ENGINES[:2], "roofline", ""))
    if engine == "roofline" and (kind in ("roles", "fleet") or model in ("gpt-oss-120b",)):
        engine = "vllm"
    of = f"--model {model} --topology {pool}" + (f" --engine {engine}" if engine else "")
    lengths = f" --input {draw.choice((500, 2000, 4000))} --output {draw.choice((100, 300, 1000))}"
    tpot = f" --latency-target {draw.choice((5, 15, 30, 60, 100))}ms"
    rate = draw.choice((0.5, 2, 8, 20))
    if kind == "plan":
        return kind, of + lengths + draw.choice(("", tpot, f"{tpot} --rate {rate:g}req/s"))
    if kind == "roles":
        return kind, f"{of}{lengths}{tpot} --ttft-target 3s --rate {rate:g}req/s --roles free"
    if kind in ("pareto", "compare"):
        more = " --engine vllm,sglang" if kind == "compare" else ""
        return kind, f"{kind} {of if kind == 'pareto' else of.split(' --engine')[0]}{more}{lengths}"
    if kind == "place":
        wish = draw.choice(("", tpot, f"{tpot} --demand {model}={300 * rate:g}tok/s"))
        other = draw.choice(("", "", " --model llama-3.1-8b" if model != "llama-3.1-8b" else ""))
        return kind, f"place {of}{lengths}{wish if not other else ''}{other}"
    targets = f"--ttft-p95 {draw.choice((1, 3))}s --tpot-p95 {draw.choice((30, 60, 100))}ms"
    of = of if engine else f"{of} --engine vllm"
    return kind, f"fleet {of}{lengths} --rate {rate:g}req/s {targets}"


@contextmanager
def busy(n_a_core: int) -> Iterator[None]:
    """Processes that do nothing but take time, beside what is measured."""
    spin = [sys.executable, "-c", "while True: pass"]
    beside = [subprocess.Popen(spin) for _ in range(n_a_core * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in beside:
            one.kill()
            one.wait()


def within(wall_s: float, limit_s: float) -> bool:
    return wall_s <= 1.2 * limit_s + 0.5


def is_false(words: list[str], one: Measured, folder: Path) -> bool:
    """Whether "no plan" is refuted by the same request with ten minutes."""
    return (
        one.code == 1
        and measured([*words, "--time-limit", "600s", "--quiet"], cwd=folder).code == 0
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limits", nargs="+", type=float, default=list(LIMITS))
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of commands")
    parser.add_argument("--draw", type=int, default=0, help="so many requests by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--busy", type=int, default=0, help="busy processes a core meanwhile")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    asked = [(*drawn(draw), args.limits[i % len(args.limits)]) for i in range(args.draw)] or [
        (name, line, limit_s)
        for name, line in COMMANDS.items()
        if any(part in name for part in args.only)
        for limit_s in args.limits
    ]
    with tempfile.TemporaryDirectory() as folder, busy(args.busy):
        files(Path(folder))
        return told(asked, Path(folder))


def told(asked: list[tuple[str, str, float]], folder: Path) -> int:
    """Each request, and what they come to."""
    late, false, defects = [], [], []
    answered: dict[tuple[str, float], list[bool]] = {}
    print(f"{'command':<18} {'limit s':>7} {'start s':>7} {'wall s':>7} {'CPU s':>7}  exit  answer")
    for name, line, limit_s in asked:
        start_s = measured(["--help"]).wall_s
        words = line.split()
        one = measured([*words, "--time-limit", f"{limit_s:g}s", "--quiet"], cwd=folder)
        wall_s = max(0.0, one.wall_s - start_s)
        said = (one.stdout or one.stderr).strip().splitlines() or [""]
        mark = " " if within(wall_s, limit_s) else "!"
        print(
            f"{name:<18} {limit_s:>7g} {start_s:>7.2f} {wall_s:>6.2f}{mark} {one.cpu_s:>7.2f}  "
            f"{one.code:>4}  {said[0][:70]}",
            flush=True,
        )
        late += [] if mark == " " else [f"{line} at {limit_s:g} s: {wall_s:.1f} s"]
        defects += [f"{line} at {limit_s:g} s"] if one.code not in (0, 1, 3) else []
        false += [f"{line} at {limit_s:g} s"] if is_false(words, one, folder) else []
        answered.setdefault((name, limit_s), []).append(one.code in (0, 1))
    for (name, limit_s), each in sorted(answered.items()):
        print(f"{name:<18} {limit_s:>4g} s: {sum(each)} of {len(each)} answered")
    for what, found in (("late", late), ("false", false), ("defects", defects)):
        print(f"\n{what}: {len(found)} of {len(asked)}", *found, sep="\n  ")
    return int(bool(late or false or defects))


if __name__ == "__main__":
    sys.exit(main())
