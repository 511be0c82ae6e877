"""Hostile cases by the thousand: `python -m tests.fuzz --cases 20000 --seed 1`.

Workers are processes of their own: one that hangs, or that dies, is a failing case and is
replaced. `--case KIND:NUMBER` runs one case here, and shows how it ends. `--seconds` ends a run
early, and `--first` goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict

from tests.fuzz.cases import case, numbered, standing, told, wrong_with
from tests.fuzz.running import HANGS_S, ROOT, in_process

Verdict = tuple[str, int, str, list[str], float]


def work() -> None:
    """Judge cases that come by lines of stdin, until it ends."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no verdict
    for line in sys.stdin:
        kind, _, number = line.strip().rpartition(":")
        began_s = time.perf_counter()
        said = ""
        try:
            made = case(kind, int(number))
            said, found = told(made), wrong_with(kind, int(number))
        except Exception as error:
            found = [f"the fuzzer failed: {type(error).__name__}: {error}"[:300]]
        verdict = [kind, int(number), said, found, time.perf_counter() - began_s]
        answer.write(json.dumps(verdict) + "\n")
        answer.flush()


class Worker:
    """A process that judges, started anew whenever it is lost."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def judge(self, kind: str, number: int) -> Verdict:
        if self.process is None or self.process.poll() is not None:
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(f"{kind}:{number}\n")
        self.process.stdin.flush()
        try:
            line = self.lines.get(timeout=(2 * HANGS_S))
        except queue.Empty:
            self.process.kill()
            self.process.wait()
            return kind, number, "", [f"hangs for {(2 * HANGS_S):g} s"], (2 * HANGS_S)
        if not line:
            return kind, number, "", [f"the process died: {self.process.wait()}"], 0.0
        verdict: Verdict = tuple(json.loads(line))
        return verdict

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()

    def _read(self, process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()


def judged(cases: list[tuple[str, int]], n_jobs: int, seconds: float = math.inf) -> list[Verdict]:
    """Verdicts on the cases in their order, failing ones told as they come.

    Args:
        seconds: after so many no further case is begun.
    """
    waiting: queue.Queue[tuple[str, int]] = queue.Queue()
    for one in cases:
        waiting.put(one)
    verdicts: list[Verdict] = []
    lock = threading.Lock()
    until_s = time.monotonic() + seconds

    def run() -> None:
        worker = Worker()
        while time.monotonic() < until_s:
            try:
                kind, number = waiting.get_nowait()
            except queue.Empty:
                break
            verdict = worker.judge(kind, number)
            with lock:
                verdicts.append(verdict)
                if verdict[3]:
                    tell(verdict)
        worker.end()

    threads = [threading.Thread(target=run) for _ in range(n_jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


def tell(verdict: Verdict) -> None:
    kind, number, said, found, _ = verdict
    print(f"{kind}:{number}  {said}")
    for one in found:
        print(f"    {one}")
    print(f"    python -m tests.fuzz --case {kind}:{number}", flush=True)


def summed_up(verdicts: list[Verdict]) -> str:
    """A line for each kind: cases, failing ones, the slowest, all seconds."""
    rows = ["kind          cases  failing  slowest     all"]
    walls: dict[str, list[float]] = defaultdict(list)
    failing: Counter[str] = Counter()
    for kind, _, _, found, wall_s in verdicts:
        walls[kind].append(wall_s)
        failing[kind] += bool(found)
    for kind in [*sorted(walls), "all"]:
        times = [t for times in walls.values() for t in times] if kind == "all" else walls[kind]
        n_failing = sum(failing.values()) if kind == "all" else failing[kind]
        rows.append(
            f"{kind:12} {len(times):6,} {n_failing:8} {max(times):6.1f} s {sum(times):5.0f} s"
        )
    return "\n".join(rows)


def show(kind: str, number: int) -> int:
    """Run one case here, and print how it ends."""
    made = case(kind, number)
    print(made.said[:2000])
    found = wrong_with(kind, number)
    if made.call is None:
        ran = in_process(made.line, standing(made), made.environment)
        for name, content in made.files.items():
            print(f"--- {name}\n{content if isinstance(content, str) else content[:3000]!r}"[:3000])
        print(f"--- exit {ran.code} after {ran.cpu_s:.2f} s\n{ran.out[:3000]}\n{ran.err[:3000]}")
    print("--- " + ("; ".join(found) or "nothing is wrong"))
    return int(bool(found))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="leave out so many of the cases")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no case after them")
    parser.add_argument("--kind", help="only cases of this kind")
    parser.add_argument("--case", help="KIND:NUMBER, this one alone")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work()
        return 0
    if asked.case:
        kind, _, number = asked.case.rpartition(":")
        return show(kind, int(number))
    cases = numbered(asked.cases, asked.seed)
    cases = [one for one in cases if asked.kind in (None, one[0])][asked.first :]
    verdicts = judged(cases, asked.jobs, asked.seconds)
    print(summed_up(verdicts))
    if len(verdicts) < len(cases):
        print(f"{len(cases) - len(verdicts):,} are left: --first {asked.first + len(verdicts)}")
    return int(any(found for _, _, _, found, _ in verdicts))


if __name__ == "__main__":
    sys.exit(main())
