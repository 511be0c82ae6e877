"""`--time-limit` against the wall clock, of every command that has one. Run by hand, when idle.

    python -m tests.benchmarks.limits                  # every command at 1 s, 2 s, 5 s and 10 s
    python -m tests.benchmarks.limits --limits 2 --only engine stages

A limit counts from the start of the command: imports, files and set-up are within it. Beyond it
may be 1 s and a tenth of the limit: to verify and to print what is in hand, and for single calls of
a solver that cannot be interrupted (the presolve of HiGHS above all).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.measuring import measured

HERE = Path(__file__).parent
DEEP = "deep.json"
"""A model of 620 layers, which takes a stage program of 100,000 columns."""

COMMANDS = {
    "plan": "--model llama-3.1-70b --topology h100-nvl8-x512 --latency-target 30ms",
    "plan any latency": "--model llama-3.1-70b --topology h100-nvl8-x512",
    "plan demand": "--model llama-3.1-70b --topology h100-nvl8-x128 --demand 20000tok/s",
    "plan drafts": "--model llama-3.1-70b --topology h100-nvl8-x128 --draft llama-3.1-8b "
    "--latency-target 10ms",
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
    "audit": "audit --model llama-3-70b --topology h100-nvl8-x128 --weights bf16 --speed 35tok/s "
    "--batch 8",
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


def within(wall_s: float, limit_s: float) -> bool:
    return wall_s <= 1.1 * limit_s + 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", nargs="+", type=float, default=list(LIMITS))
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of commands")
    args = parser.parse_args()
    late = []
    print(f"{'command':<18} {'limit s':>7} {'wall s':>7} {'CPU s':>7}  exit  answer")
    with tempfile.TemporaryDirectory() as folder:
        files(Path(folder))
        for name, line in COMMANDS.items():
            if not any(part in name for part in args.only):
                continue
            for limit_s in args.limits:
                words = [*line.split(), "--time-limit", f"{limit_s:g}s", "--quiet"]
                one = measured(words, cwd=Path(folder))
                said = (one.stdout or one.stderr).strip().splitlines() or [""]
                mark = " " if within(one.wall_s, limit_s) else "!"
                print(
                    f"{name:<18} {limit_s:>7g} {one.wall_s:>6.2f}{mark} {one.cpu_s:>7.2f}  "
                    f"{one.code:>4}  {said[0][:80]}",
                    flush=True,
                )
                late += [] if mark == " " else [f"{name} at {limit_s:g} s"]
    print(f"\nbeyond 1 s and a tenth of the limit: {', '.join(late) or 'none'}")
    return int(bool(late))


if __name__ == "__main__":
    sys.exit(main())
