"""A sweep of 2,000 plans, whoever shares it and whatever is killed. Run by hand.

    python -m tests.benchmarks.sweeping            # processes; and Dask where it is installed
    python -m tests.benchmarks.sweeping --plans 200

Rows of one process are the reference. Two processes are killed whole at half and resumed, then
one of the resumed loses a worker; two workers of a local Dask cluster lose one as well. Every run
has to end with the same rows, each once. The ratio of times is of runs that nothing interrupts.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

MODELS = ["llama-3.1-8b", "qwen3-8b", "llama-3.1-70b", "qwen3-32b", "gpt-oss-120b"]
TOPOLOGIES = ["h100-nvl8-x4", "h200-nvl8-x4", "b200-nvl8-x4", "a100-nvl8-x4", "h100-nvl8-x8"]
LENGTHS = [(512, 128), (1024, 512), (4096, 512), (8192, 256)]
BATCHES = [4, 8, 16, 32]


def sweep_file(path: Path, n_plans: int) -> None:
    """A grid of as many requests as are wanted; some have no plan."""
    each = len(MODELS) * len(TOPOLOGIES) * len(LENGTHS) * len(BATCHES)
    targets = [f"{5 * (i + 1)}ms" for i in range(max(1, n_plans // each))]
    lines = [
        '[options]\nengine = "roofline"\n[grid]',
        f"model = {json.dumps(MODELS)}",
        f"topology = {json.dumps(TOPOLOGIES)}",
        f"latency-target = {json.dumps(targets)}",
        f"batch = {json.dumps([str(n) for n in BATCHES])}",
        *(f"[[grid.workload]]\ninput = {a}\noutput = {b}" for a, b in LENGTHS),
    ]
    path.write_text("\n".join(lines) + "\n")


def begun(file: Path, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "planner", "sweep", str(file), "--folder", str(folder)]
    return subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL)


def done(folder: Path) -> int:
    """Rows that are on the disk."""
    return sum(part.read_bytes().count(b"\n") for part in folder.glob("rows-*.jsonl"))


def rows(folder: Path) -> dict[int, dict[str, object]]:
    """Rows by request, without what a clock says; each index once."""
    found: dict[int, dict[str, object]] = {}
    for part in sorted(folder.glob("rows-*.jsonl")):
        for line in part.read_bytes().splitlines():
            row = json.loads(line)
            if row["index"] in found:
                raise SystemExit(f"row {row['index']} is there twice")
            found[row["index"]] = {k: v for k, v in row.items() if k != "wall_s"}
    return found


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not holds() and process.poll() is None:
        time.sleep(0.05)


def workers_of(pid: int) -> list[int]:
    """Children of a process that have spent processor time, most first."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append((int(fields[11]) + int(fields[12]), int(stat.parent.name)))
    return [child for _, child in sorted(found, reverse=True)]


def timed(file: Path, folder: Path, *words: str) -> float:
    began_s = time.perf_counter()
    begun(file, folder, *words).wait()
    return time.perf_counter() - began_s


def killed(file: Path, folder: Path, n: int) -> None:
    """Two processes, killed whole at half, resumed, one worker killed at three quarters."""
    process = begun(file, folder, "--workers", "2")
    until(lambda: done(folder) >= n // 2, process)
    process.kill()
    process.wait()
    print(f"killed at {done(folder)} of {n}", flush=True)
    process = begun(file, folder, "--workers", "2")
    until(lambda: done(folder) >= 3 * n // 4, process)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    print(f"a worker killed at {done(folder)} of {n}", flush=True)
    process.wait()


def on_dask(file: Path, folder: Path, n: int, victim: bool) -> float:
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        began_s = time.perf_counter()
        process = begun(file, folder, "--dask", cluster.scheduler_address)
        if victim:
            until(lambda: done(folder) >= n // 2, process)
            os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
            print(f"a worker of Dask killed at {done(folder)} of {n}", flush=True)
        process.wait()
        return time.perf_counter() - began_s


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", type=int, default=2000)
    n = parser.parse_args().plans
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "sweep.toml"
        sweep_file(file, n)
        times = {"one process": timed(file, folder / "one", "--workers", "1")}
        reference = rows(folder / "one")
        times["two processes"] = timed(file, folder / "two", "--workers", "2")
        killed(file, folder / "killed", len(reference))
        compared = ["two", "killed"]
        if find_spec("distributed") is not None:
            times["Dask, two workers"] = on_dask(file, folder / "dask", len(reference), False)
            on_dask(file, folder / "lost", len(reference), True)
            compared += ["dask", "lost"]
        plans = sum(row["code"] == 0 for row in reference.values())
        print(f"{len(reference)} requests, {plans} plans")
        for who, wall_s in times.items():
            print(f"{who:20} {wall_s:7.1f} s  {times['one process'] / wall_s:5.2f} times one")
        same = {who: rows(folder / who) == reference for who in compared}
        print(
            *(
                f"{who}: {'same rows' if is_same else 'OTHER ROWS'}"
                for who, is_same in same.items()
            ),
            sep="\n",
        )
        return 0 if all(same.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
