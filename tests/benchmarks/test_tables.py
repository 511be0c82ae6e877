"""A table of 5,000 rows for each of three kinds of devices is read, placed and proved in time."""

from __future__ import annotations

import csv
import time
from dataclasses import replace

import numpy as np

from planner.placing.planning import place
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import Targets
from planner.specs.files.deployment_tables import COLUMNS
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture
from planner.specs.records.devices import Workload

KINDS = {"h100-sxm": "h100-nvl8-x16", "h200": "h200-nvl8-x16", "b200": "b200-nvl8-x16"}
N_ROWS = 5_000


def _written(path, rng):
    """Rows of all roles and sizes, half of them with rents of their own."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number, kind in enumerate(KINDS, start=1):
            for i in range(N_ROWS):
                n_devices = int(rng.choice([1, 2, 4, 8, 8, 16]))
                rent = round(n_devices * rng.uniform(2, 3), 2) if i % 2 else ""
                role = ("together", "together", "prefill", "decode")[i % 4]
                engine = ("vllm", "sglang", "trtllm")[i % 3]
                rate = round(n_devices * number * rng.uniform(0.05, 0.4), 4)
                times = round(rng.uniform(50, 2000), 2), round(rng.uniform(8, 60), 3)
                batch, held = int(rng.integers(1, 513)), round(rng.uniform(2e10, 7e10))
                head = f"r{i}", "llama-3.1-70b", kind, n_devices, role, engine, rate
                writer.writerow((*head, *times, batch, "bf16", "bf16", held, rent, 1500, 300))


def test_fifteen_thousand_rows_are_placed_in_two_seconds_of_cpu(tmp_path):
    path = tmp_path / "rows.csv"
    _written(path, np.random.default_rng(0))
    pools = {kind: load_site(name) for kind, name in KINDS.items()}
    groups = tuple(replace(pool.groups[0], name=kind) for kind, pool in pools.items())
    pool = replace(pools["h100-sxm"], name="three-kinds", groups=groups)
    began = time.process_time()
    placed = place(
        pool,
        Serve(model=load_architecture("llama-3.1-70b"), demand_tokens_per_s=20 * 300),
        engine=f"table:{path}",
        workload=Workload(n_input_tokens=1500, n_output_tokens=300),
        targets=Targets(tpot_s=0.04, ttft_s=1.0),
    )
    spent = time.process_time() - began
    print(f"{len(KINDS) * N_ROWS} rows on {placed.n_free} devices: {spent:.2f} s")
    assert placed.n_free == 384
    assert placed.certificate.status == "optimal"
    assert spent < 2.0
