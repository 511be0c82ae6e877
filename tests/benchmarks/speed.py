"""CPU time and memory of commands at three sizes, as ratios to a fixed piece of work beside them.

    python -m tests.benchmarks.speed             # all of them beside docs/speed.md, some minutes
    python -m tests.benchmarks.speed plan fleet  # those whose words begin so
    python -m tests.benchmarks.speed --write     # and write their rows of docs/speed.md anew

Machines are noisy: user time counts, the fixed work takes turns with the commands, and of some
rounds the least ratio counts, since a neighbour can only add. Those of `GUARDED` are in the gate
(`test_speed.py`), red where a ratio is more than a quarter above that of `docs/speed.md`.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from planner.estimates.simulation.core import is_compiled
from tests.benchmarks.measuring import Measured, measured

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "speed.md"
WORSE = 1.25
"""Times a ratio that is too much."""

ENGINES = "--model deepseek-v3 --latency-target 30ms --topology"
DENSE = "--engine vllm --model llama-3.1-70b --latency-target 30ms --topology"
TWO = (
    "place --model llama-3.1-8b --model llama-3.1-70b --demand llama-3.1-8b=9000tok/s "
    "--demand llama-3.1-70b=900tok/s --topology"
)
CHAT = (
    "fleet --engine vllm --model llama-3.1-70b --topology h100-nvl8-x2 --rate 8req/s --input 1500 "
    "--output 300 --ttft-p95 1s --tpot-p95 40ms"
)
COMMANDS = {
    "small": (
        "--help",
        "models",
        "--latency-target 30ms",
        "--latency-target 5ms",
        "predict --model llama-3.1-70b --topology h100-nvl8-x2 --engine vllm --tp 4 --batch 64",
        "pareto --model llama-3.1-8b --topology tpu-v4-2x2x2",
        "audit --engine vllm --model llama-3.1-70b --topology h100-nvl8-x1 --tp 4 --batch 16 "
        "--speed 20tok/s",
        "place --model llama-3.1-8b --topology h100-nvl8-x1 --replicas 2",
        "stages --model llama-3.1-8b --groups h100-sxm:tp1x4",
        "experts --zipf 1.0 --experts 64 --ranks 8",
        "verify examples/answer.json",
        f"{DENSE} h100-nvl8-x1",
    ),
    "medium": (
        "--model palm-540b --topology tpu-v4-8x8x8",
        "pareto --model palm-540b --topology tpu-v4-4x4x4",
        "compare --engine vllm,sglang --model qwen3-32b --topology h100-nvl8-x1",
        f"{DENSE} h100-nvl8-x16",
        f"{DENSE} h100-nvl8-x16 --demand 15000tok/s",
        f"{ENGINES} h100-nvl8-x16",
        f"{TWO} h100-nvl8-x4",
        "place --model deepseek-v3 --topology h100-fat-tree-x16 --latency-target 50ms",
        "experts --model deepseek-v3 --loads examples/loads.csv --ranks 32 --slots 9",
        "layers examples/machines/quality-10.toml",
        "verify examples/placement.json",
        CHAT,
    ),
    "large": (
        "--model palm-540b --topology tpu-v4-16x16x16",
        f"{DENSE} h100-nvl8-x128",
        f"{ENGINES} h100-nvl8-x128",
        f"{ENGINES} h100-nvl8-x512",
        f"{TWO} h100-nvl8-x64",
        "place --model palm-540b --topology tpu-v4-16x16x16",
        "fleet --engine vllm --model llama-3.1-70b --topology h100-nvl8-x8 --rate 24req/s "
        "--input 1500 --output 300 --ttft-p95 1s --tpot-p95 40ms",
    ),
}
GUARDED = (
    "--help",
    "--latency-target 30ms",
    "predict --model llama-3.1-70b --topology h100-nvl8-x2 --engine vllm --tp 4 --batch 64",
    "pareto --model llama-3.1-8b --topology tpu-v4-2x2x2",
    "experts --zipf 1.0 --experts 64 --ranks 8",
    "verify examples/placement.json",
    f"{DENSE} h100-nvl8-x16",
    f"{ENGINES} h100-nvl8-x16",
    f"{TWO} h100-nvl8-x4",
    CHAT,
)
FIXED = """
import numpy as np
values, sums = np.random.default_rng(0).random(150_000), {}
for _ in range(6):
    np.unique(np.round(values, 3), return_inverse=True)
    np.interp(values, np.linspace(0.0, 1.0, 64), np.arange(64.0))[values.argsort()].sum()
for i in range(700_000):
    sums[i % 997] = sums.get(i % 997, 0.0) + 0.5 * i
"""
"""Arrays and Python, as a plan is: half of its time each."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """User time and peak memory of a command, in those of the fixed work beside it."""

    cpu: float
    memory: float

    def worse_than(self, other: Ratios) -> list[str]:
        """What is more than a quarter above another."""
        pairs = {"CPU": (self.cpu, other.cpu), "memory": (self.memory, other.memory)}
        return [
            f"{name} {mine:.3g} times the fixed work, was {before:.3g}"
            for name, (mine, before) in pairs.items()
            if mine > WORSE * before
        ]


class Bench:
    """Commands and the fixed work in turns: one before a command, one after it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._before = folder, self.fixed()

    def fixed(self) -> Measured:
        return measured(["-c", FIXED], program=Path(sys.executable))

    def run(self, line: str) -> tuple[Ratios, Measured]:
        """A command once.

        Raises:
            RuntimeError: it did not answer.
        """
        words = [
            str(ROOT / word) if word.startswith("examples/") else word for word in line.split()
        ]
        cwd = Path(mkdtemp(dir=self._folder))  # of its own: what was begun there would go on
        ran = measured(words, cwd=cwd)
        after = self.fixed()
        user_s = min(self._before.user_s, after.user_s)
        self._before = after
        if ran.code not in (0, 1):
            raise RuntimeError(f"plan {line}: {ran.stderr}")
        return Ratios(ran.user_s / user_s, ran.peak_mb / after.peak_mb), ran

    def least(self, line: str, *, n_rounds: int = 2) -> tuple[Ratios, Measured]:
        """The least ratios of some rounds, and the quickest of these."""
        rounds = [self.run(line) for _ in range(n_rounds)]
        ratios = [ratio for ratio, _ in rounds]
        least = Ratios(min(one.cpu for one in ratios), min(one.memory for one in ratios))
        return least, min((ran for _, ran in rounds), key=lambda ran: ran.user_s)


ROW = re.compile(r"\| `plan (.+?)` .*\| ([\d.]+) \| [\d.]+ \| ([\d.]+) \| [\d.]+ \|$", re.MULTILINE)


def known() -> dict[str, Ratios]:
    """What `docs/speed.md` says of each command."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {line: Ratios(float(cpu), float(memory)) for line, cpu, memory in ROW.findall(text)}


def _measure(bench: Bench, names: list[str]) -> dict[str, str]:
    """The row of the page of each command, printed as it comes."""
    before, rows = known(), {}
    for line in (line for lines in COMMANDS.values() for line in lines):
        if names and not line.startswith(tuple(names)):
            continue
        ratios, ran = bench.least(line)
        mark = " (guarded)" if line in GUARDED else ""
        rows[line] = (
            f"| `plan {line}`{mark} | {ratios.cpu:.2f} | {ran.user_s:.2f} "
            f"| {ratios.memory:.2f} | {ran.peak_mb:.0f} |"
        )
        told = before.get(line)
        beside = "" if told is None else f"  was {told.cpu:.2f}, {told.memory:.2f}"
        print(f"{rows[line]}{beside}", flush=True)
    return rows


def _kept() -> dict[str, str]:
    """The rows that stand on the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return {row[1]: row[0] for row in ROW.finditer(text)}


def _page(rows: dict[str, str], fixed: Measured) -> str:
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    machine = f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores"
    lines = [
        "# Speed",
        "",
        "User CPU time and peak memory of commands, the least of two rounds, and their ratios to a",
        "fixed piece of work that takes turns with them "
        f"({fixed.user_s:.2f} s, {fixed.peak_mb:.0f} MB): what compares",
        "machines and revisions. Those that are guarded are in the gate, red where a ratio",
        f"is more than {WORSE - 1:.0%} above what stands here.",
        "",
        f"Last measured {datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d} on {machine}, Python "
        f"{platform.python_version()}, by `python -m tests.benchmarks.speed --write`.",
    ]
    for size, listed in COMMANDS.items():
        head = f"| {size} | CPU, ratio | s | memory, ratio | MB |"
        lines += ["", head, "| --- | --- | --- | --- | --- |"]
        lines += [rows[line] for line in listed if line in rows]
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only commands whose words begin so")
    parser.add_argument("--write", action="store_true", help="write docs/speed.md anew")
    asked = parser.parse_args()
    if not is_compiled():
        print("the simulator is not compiled here: fleets take far longer", file=sys.stderr)
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        rows = _measure(bench, asked.names)
        if asked.write:
            PAGE.write_text(_page({**_kept(), **rows}, bench.fixed()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
