"""Ctrl-C at random instants of several commands: `python -m tests.benchmarks.interrupts`.

Each run ends in one line and 130, or in the complete answer and 0; the files that stood there
stand there still, or are replaced whole; nothing else is left in the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINE = "error: interrupted before a plan was found\n"
OLD = "what stood there\n"
COMMANDS = (
    "--help",
    "models",
    "--latency-target 30ms",
    "--latency-target 30ms --json",
    "--latency-target 5ms --json",
    "--topology tpu-v4-4x4x4 --solver cpsat --json",
    "pareto --model llama-3.1-8b --topology h100-nvl8-x1 --html a.html --csv b.csv --json",
    "audit --model llama-3-70b --topology h100-nvl8-x1 --weights bf16 --speed 35tok/s --batch 8"
    " --html a.html --json",
    "predict --model llama-3.1-8b --topology h100-nvl8-x1 --batch 8 --html a.html",
    "place --model llama-3.1-8b --topology h100-nvl8-x1 --replicas 2 --html a.html --svg b.svg",
    "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --json",
    "experts --zipf 1.0 --experts 64 --ranks 8 --html a.html --json",
    "stages --model llama-3.1-8b --groups h100-sxm:tp1x4 --html a.html",
    "layers {root}/examples/machines/mixed-42.toml --html a.html",
)
"""Command lines: from those that only read to those that search long and write files."""

_CHILD = """\
import os, sys
from planner.__main__ import main
os.write({ready}, b".")
sys.exit(main())
"""


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Args:
        signalled: it was still running when it was interrupted.
        files: text by name, of all that is in its folder.
    """

    code: int
    out: str
    err: str
    wall_s: float
    signalled: bool
    files: dict[str, str]


def hear_ctrl_c() -> None:
    """Ctrl-C is heard, also where the parent ignores it, as a job in the background does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(
    line: str,
    *,
    after_s: float | None,
    number: int = signal.SIGINT,
    prepare: Callable[[], object] = hear_ctrl_c,
) -> Ended:
    """Run a command in a folder of its own, interrupted some time after its first instant.

    Args:
        after_s: None lets it end by itself.
        number: the signal.
        prepare: what the new process does before it is Python.
    """
    words = line.format(root=ROOT).split()
    with tempfile.TemporaryDirectory() as folder:
        for name in names(line):
            (Path(folder) / name).write_text(OLD, encoding="utf-8")
        read, write = os.pipe()
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            process = subprocess.Popen(
                [sys.executable, "-c", _CHILD.format(ready=write), *words],
                stdout=out,
                stderr=err,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
                pass_fds=(write,),
                preexec_fn=prepare,
            )
            os.close(write)
            os.read(read, 1)
            os.close(read)
            began_s = time.perf_counter()
            signalled = False
            try:
                process.wait(after_s)
            except subprocess.TimeoutExpired:
                signalled = True
                process.send_signal(number)
                process.wait(60)
            wall_s = time.perf_counter() - began_s
            out.seek(0)
            err.seek(0)
            files = {p.name: p.read_text(encoding="utf-8") for p in Path(folder).iterdir()}
            return Ended(process.returncode, out.read(), err.read(), wall_s, signalled, files)


def names(line: str) -> list[str]:
    """Files that a command line writes."""
    words = line.split()
    return [word for word in words if word in ("a.html", "b.svg", "b.csv")]


def faults(line: str, ended: Ended, whole: Ended) -> list[str]:
    """What is wrong with how a run ended.

    Args:
        whole: the same run without a signal.
    """
    found = []
    if "Traceback" in ended.out + ended.err:
        found.append("a traceback")
    if ended.code == 130:
        if ended.err != LINE:
            found.append(f"stderr is {ended.err!r}")
        if ended.out and not ("--json" in line and _is_error(ended.out)):
            found.append(f"half an answer: {ended.out[:200]!r}")
    elif ended.code != whole.code:
        found.append(f"exit {ended.code}: {ended.err[-300:]!r}")
    elif not _is_whole(line, ended, whole):
        found.append(f"not the whole answer: {ended.out[-200:]!r}")
    if set(ended.files) != set(names(line)):
        found.append(f"files are left: {sorted(ended.files)}")
    for name, text in ended.files.items():
        if text != OLD and not _is_page(name, text):
            found.append(f"{name} is half written: {text[-80:]!r}")
    return found


def _is_whole(line: str, ended: Ended, whole: Ended) -> bool:
    if "--json" in line:
        try:
            return bool(json.loads(ended.out)["schema"])
        except ValueError:
            return False
    return ended.out.count("\n") >= 0.5 * whole.out.count("\n") and ended.out.endswith("\n")


def _is_error(out: str) -> bool:
    try:
        return bool(json.loads(out)["answer"]["exit_code"] == 130)
    except (ValueError, KeyError):
        return False


def _is_page(name: str, text: str) -> bool:
    ends = {"html": "</html>", "svg": "</svg>"}
    return text.rstrip().endswith(ends.get(name.rpartition(".")[2], "")) and len(text) > len(OLD)


def drawn(seed: int, n_runs: int, lines: tuple[str, ...] = COMMANDS) -> list[tuple[str, float]]:
    """Command lines, each with the share of its own time at which it is interrupted."""
    rng = random.Random(seed)
    return [(lines[i % len(lines)], rng.uniform(0.0, 1.1)) for i in range(n_runs)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    whole = {line: run(line, after_s=None) for line in COMMANDS}
    for line, one in whole.items():
        print(f"{one.wall_s:6.2f} s  exit {one.code}  {line}")
    ends: Counter[str] = Counter()
    n_wrong = 0
    for line, share in drawn(asked.seed, asked.runs):
        after_s = share * whole[line].wall_s
        ended = run(line, after_s=after_s)
        wrong = faults(line, ended, whole[line])
        n_wrong += bool(wrong)
        before = "interrupted" if ended.signalled else "ended before"
        ends[f"{before}, exit {ended.code}"] += 1
        if wrong:
            print(f"plan {line}: after {after_s:.4f} s: {'; '.join(wrong)}")
    for end, count in sorted(ends.items()):
        print(f"{count:5}  {end}")
    print(f"{n_wrong} of {asked.runs} are wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
