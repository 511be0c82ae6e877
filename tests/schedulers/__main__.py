"""The simulators against schedulers of engines, on many workloads, and how fast they are.

python -m tests.schedulers engines FOLDER     300 random workloads, beside vLLM's own scheduler
python -m tests.schedulers record FOLDER      what it does with a few of these, as tests have it
    --engine sglang                           the same of SGLang's
python -m tests.schedulers stations           500 random stations, beside the verifier's simulation
python -m tests.schedulers speed              requests a second of README's station

FOLDER has the package of the engine, see docs/rules.md; no GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from planner.estimates.simulation.arrays import PoolOfReplicas, Routes, Sent, serve
from planner.estimates.simulation.core import is_compiled
from planner.specs.records.roles import LEAST_PRESENT
from tests.schedulers.recorded import SOURCES, differing, driven, file_of
from tests.schedulers.stations import differs, readme_station
from tests.schedulers.workloads import ENGINES, N_REQUESTS, by_arrays, by_verifier, workload

FEW, N_FEW = 40, 20
"""Requests of a recorded workload, and how many are recorded."""

TELLING = (
    *(0, 1, 2, 5, 9, 16, 20, 41, 65, 89, 117, 471, 481, 529, 585),
    *(913, 1049, 1065, 1457, 1729),
)
"""Of SGLang's those that tell an altered clause, each at least one."""


def engines(folder: str, engine: str, n: int, first: int) -> int:
    """How many of n workloads differ in the first or the last token of any request."""
    works = [workload(seed, N_REQUESTS, engine) for seed in range(first, first + n)]
    wrong, n_lost = 0, 0
    for work, outcome in zip(works, driven(folder, works), strict=True):
        n_lost += outcome["preempted"] > 0
        for ours in (by_verifier, by_arrays):
            found = differing(ours(work), outcome)
            wrong += bool(found)
            if found:
                print(f"workload {work['seed']}, {ours.__name__}: requests {found[:5]} …")
    print(f"{n} workloads, {n_lost} of them with preemptions: {wrong} differ")
    return wrong


def record(folder: str, engine: str) -> int:
    """Of 150 workloads the first with preemptions, and as few others; or those that tell most."""
    seeds = TELLING if engine == "sglang" else range(150)
    works = [workload(seed, FEW, engine) for seed in seeds]
    rows = zip(works, driven(folder, works), strict=True)
    kept = [{**work, **outcome} for work, outcome in rows]
    kept.sort(key=lambda it: (it["preempted"] == 0, it["seed"]))
    kept = kept[: N_FEW - 6] + kept[-6:]
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in kept)
    text = f'{{"source": {json.dumps(SOURCES[engine])}, "workloads": [\n{lines}\n]}}\n'
    file_of(engine).write_text(text, encoding="utf-8")
    return 0


def stations(n: int, first: int) -> int:
    wrong = [seed for seed in range(first, first + n) if differs(seed)]
    print(f"{n} stations: {len(wrong)} differ", *wrong[:20])
    return len(wrong)


def speed(n: int) -> int:
    """The best of five, at 70 % of what two replicas carry."""
    nowhere, nothing = np.full(1, -1), np.zeros(n, np.int64)
    arrived_s = np.cumsum(np.random.default_rng(0).exponential(1.0 / 5.5, n))
    sent = Sent(
        arrived_s=arrived_s,
        n_input=np.full(n, 1500),
        n_output=np.full(n, 300),
        of_class=nothing,
        route=nothing,
    )
    pool = PoolOfReplicas(
        station=readme_station(), n_replicas=2, router=LEAST_PRESENT, chances=np.zeros(0)
    )
    routes = Routes(pool=nothing[:1], then=nowhere, links=nowhere, of_links=np.zeros((0, 5)))
    times = [time.process_time()]
    for _ in range(5):
        serve([pool], routes, sent, n_classes=1, edges=[0], counts_gaps=False)
        times.append(time.process_time())
    best_s = min(after - before for before, after in pairwise(times))
    kind = "compiled" if is_compiled() else "text"
    print(f"{kind}: {n / best_s:,.0f} requests/s")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("what", choices=("engines", "record", "stations", "speed"))
    parse.add_argument("folder", nargs="?", default="")
    parse.add_argument("--engine", choices=ENGINES, default="vllm")
    parse.add_argument("--count", type=int)
    parse.add_argument("--first", type=int, default=0)
    said = parse.parse_args(argv)
    if said.what == "record":
        return record(said.folder, said.engine)
    if said.what == "engines":
        return min(1, engines(said.folder, said.engine, said.count or 300, said.first))
    if said.what == "stations":
        return min(1, stations(said.count or 500, said.first))
    return speed(said.count or (20_000 if is_compiled() else 4_000))


if __name__ == "__main__":
    raise SystemExit(main())
