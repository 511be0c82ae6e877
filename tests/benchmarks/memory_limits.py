"""Commands under `ulimit -v`: `python -m tests.benchmarks.memory_limits`.

Each ends with its answer, or with one sentence and 3; never with a trace, a signal, or the last
words of a library.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter

from tests.benchmarks.interrupts import ROOT

MIB = 2**20
COMMANDS = (
    "models",
    "--latency-target 30ms --quiet",
    "--latency-target 5ms --json",
    "--model deepseek-v3 --topology h100-nvl8-x64 --latency-target 40ms --quiet",
    "--topology tpu-v4-4x4x4 --solver cpsat --quiet",
    "pareto --model llama-3.1-8b --topology h100-nvl8-x1 --html a.html --json",
    "place --model llama-3.1-8b --topology h100-nvl8-x4 --quiet",
    "--engine vllm --model llama-3.1-8b --topology h100-nvl8-x1 --json",
    "predict --model llama-3.1-8b --topology h100-nvl8-x1 --html a.html",
    "experts --zipf 1.0 --experts 64 --ranks 8 --quiet",
    "stages --model llama-3.1-8b --groups h100-sxm:tp1x4 --quiet",
    "layers {root}/examples/machines/quality-10.toml --quiet",
)
LIMITS_MIB = (1000, 600, 450, 350, 300, 260, 220, 180, 140, 100)
HANGS, HANGS_S = 124, 120.0
OURS = ("error: ", "hint: ", "wrote ", "<jemalloc>")
"""How a line on stderr may begin: the last is told by pandas' allocator, in whatever it is used."""


def run(line: str, limit_mib: int | None) -> subprocess.CompletedProcess[str]:
    """Run a command with so much address space."""

    def limit() -> None:
        if limit_mib is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit_mib * MIB, limit_mib * MIB))

    words = [sys.executable, "-m", "planner.__main__", *line.format(root=ROOT).split()]
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(
                words,
                capture_output=True,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                preexec_fn=limit,
                timeout=HANGS_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, HANGS, "", f"it hangs for {HANGS_S:g} s")


def fault(ran: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with how a command ended; empty if nothing is."""
    if ran.returncode not in (0, 1, 3):
        return f"exit {ran.returncode}: {ran.stderr[-300:]!r}"
    if "Traceback" in ran.stderr:
        return f"a traceback: {ran.stderr[-300:]!r}"
    if ran.returncode == 3 and "error: out of memory" not in ran.stderr:
        return f"no sentence: {ran.stderr[-300:]!r}"
    others = [at for at in ran.stderr.splitlines() if at.strip() and not at.startswith(OURS)]
    has_no_plan = "error: no plan" in ran.stderr or ran.stdout
    is_told = ran.returncode == 3 or (ran.returncode == 1 and not has_no_plan)
    return f"a stranger's words: {others[:3]!r}" if is_told and others else ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--limits", type=int, nargs="*", default=LIMITS_MIB, help="MiB")
    n_wrong, ends = 0, Counter[tuple[int, int]]()
    for limit_mib in parser.parse_args().limits:
        for line in COMMANDS:
            ran = run(line, limit_mib)
            ends[limit_mib, ran.returncode] += 1
            wrong = fault(ran)
            n_wrong += bool(wrong)
            if wrong:
                print(f"{limit_mib} MiB: plan {line}: {wrong}", flush=True)
    for (limit_mib, code), count in sorted(ends.items(), reverse=True):
        print(f"{limit_mib:6} MiB  exit {code:4}  {count:3} commands")
    print(f"{n_wrong} of {sum(ends.values())} are wrong")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
