"""PaLM 540B on tori that others use in part: seconds, columns and gaps. Run by hand.

    python -m tests.benchmarks.torus_scale            # the 4096-chip torus and its growth
    python -m tests.benchmarks.torus_scale --seeds 5
    python -m tests.benchmarks.torus_scale --singles --limit 20   # 8×8×8, single chips busy

Occupied cells are other tenants' slices at random: `cubes`, where slices of four or more start at
the cubes of the torus, as pools with optical switches hand them out; `anywhere`, at any chip;
`cells`, single chips at random.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from itertools import product

import numpy as np

from planner import SolverError, SolverOptions, Targets, load_cluster, load_model
from planner.errors import PlannerError
from planner.placing.planning import place
from planner.specs.files.state import State
from planner.specs.records.devices import Workload

DIMS = (1, 2, 4, 4, 4, 8)


def occupied(shape: tuple[int, int, int], kind: str, *, seed: int, share: float = 0.3) -> State:
    """A state in which a share of the cells is busy."""
    rng = np.random.default_rng(seed)
    busy = np.zeros(shape, bool)
    if kind == "cells":
        busy = rng.random(shape) < share
    tries = 0
    while kind != "cells" and busy.mean() < share and tries < 20_000:
        tries += 1
        dims = np.minimum(rng.choice(DIMS, 3), shape)
        start = rng.integers(0, shape, 3)
        if kind == "cubes":
            start -= start % np.minimum(dims, 4)
        box = np.ix_(*((start[a] + np.arange(dims[a])) % shape[a] for a in range(3)))
        if not busy[box].any() and busy.sum() + dims.prod() <= share * busy.size + 8:
            busy[box] = True
    names = (",".join(map(str, cell)) for cell in np.argwhere(busy).tolist())
    return State(busy=tuple(names))


MODELS = ("palm-540b", "llama-3.1-70b", "mt-nlg-530b", "deepseek-v3")
SHARES = (0.05, 0.1, 0.2, 0.3)
WORKLOAD = Workload(n_input_tokens=1024, n_output_tokens=64)
"""One that the contexts of all these models hold."""


def single(model: str, share: float, seed: int, limit_s: float) -> str:
    """One row of the table of single busy chips."""
    cluster = load_cluster("tpu-v4-8x8x8")
    state = occupied(cluster.fabric.shape, "cells", seed=seed, share=share)
    began_s, cpu_s = time.perf_counter(), _cpu_s()
    head = f"8×8×8 {share:5.0%} {seed:>2} {model:<14}"
    try:
        found = place(
            cluster,
            load_model(model),
            state=state,
            workload=WORKLOAD,
            options=SolverOptions(threads=2, time_limit_s=limit_s),
        )
    except (PlannerError, SolverError) as error:
        return f"{head} {type(error).__name__}: {str(error)[:60]}"
    proof = found.certificate
    return (
        f"{head} {proof.n_solved:>5} columns  {proof.objective:9.1f} of {proof.bound:9.1f} token/s "
        f"at most  gap {proof.gap:7.2%}  {time.perf_counter() - began_s:5.1f} s wall "
        f"{_cpu_s() - cpu_s:5.1f} s CPU  {', '.join(proof.vouched_by)}"
    )


def _cpu_s() -> float:
    """Of this process and of those that it waited for [s]."""
    return sum(os.times()[:4])


def measure(pool: str, kind: str, seed: int, limit_s: float, tpot_s: float | None) -> str:
    cluster = load_cluster(pool)
    state = occupied(cluster.fabric.shape, kind, seed=seed)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    head = f"{pool:<18} {kind:<9} {seed:>2}  {len(state.busy):>5} busy"
    try:
        found = place(
            cluster,
            load_model("palm-540b"),
            state=state,
            targets=Targets(tpot_s=tpot_s),
            options=replace(SolverOptions(), threads=2, time_limit_s=limit_s),
        )
    except (PlannerError, SolverError) as error:
        return f"{head}  {type(error).__name__}: {str(error)[:60]}"
    wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    proof = found.certificate
    return (
        f"{head}  {proof.n_contexts:>6} places {proof.n_solved:>6} columns  "
        f"{len(found.replicas):>3} replicas {found.output_tokens_per_s:8.1f} token/s  "
        f"gap {proof.gap:8.2%}  {wall_s:6.2f} s wall {cpu_s:6.2f} s CPU"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0)
    parser.add_argument("--singles", action="store_true")
    asked = parser.parse_args()
    if asked.singles:
        for model, share, seed in product(MODELS, SHARES, range(asked.seeds)):
            print(single(model, share, seed, asked.limit), flush=True)
        return
    for pool in ("tpu-v4-4x8x8", "tpu-v4-8x8x8", "tpu-v4-8x16x16", "tpu-v4-16x16x16"):
        print(measure(pool, "cubes", 0, asked.limit, 0.03), flush=True)
    for kind in ("cubes", "anywhere", "cells"):
        for seed in range(asked.seeds):
            line = measure("tpu-v4-16x16x16", kind, seed, asked.limit, 0.03)
            print(line, flush=True)


if __name__ == "__main__":
    main()
