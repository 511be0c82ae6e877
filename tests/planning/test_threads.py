"""Four threads ask at once, for the same and for other things: each has what it has alone.

In a process of its own, because a deadlock would stop the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

ASKED = """
import dataclasses, os, random, sys, threading
import planner
from planner import Serve, SolverOptions, State, Targets, Workload

small, large = planner.load_model("llama-3.1-8b"), planner.load_model("llama-3.1-70b")
pool, torus = planner.load_cluster("h100-nvl8-x1"), planner.load_cluster("tpu-v4-2x2x2")
layered = planner.load_architecture("llama-3.1-8b")
few = {"batches": (1, 8), "workload": Workload(n_input_tokens=256, n_output_tokens=32)}
machines = planner.load_layers("examples/machines/quality-10.toml")
machines = dataclasses.replace(machines, machines=machines.machines[:2])
standing = planner.place(pool, Serve(model=small, replicas=2), engine="roofline", **few)

def solved(**options):
    return lambda: planner.plan(small, pool, "roofline", options=SolverOptions(**options), **few)

ASKED = {
    "highs": solved(),
    "highs with two threads": solved(threads=2),
    "cpsat": solved(solver="cpsat"),
    "no plan": lambda: planner.plan(large, pool, "roofline", targets=Targets(tpot_s=1e-6), **few),
    "frontier": lambda: planner.frontier(small, torus, **few),
    "compare": lambda: planner.compare([small, large], [pool], ["roofline"], **few),
    "engine": lambda: planner.plan(layered, pool, "vllm", **few),
    "place": lambda: planner.place(
        pool, Serve(model=small, demand_tokens_per_s=2000.0), engine="roofline", **few
    ),
    "slices": lambda: planner.place(torus, Serve(model=small, replicas=1), **few),
    "repair": lambda: planner.repair(standing, state=State(failed=("node0/gpu0",))),
    "stages": lambda: planner.cut_stages(layered, "h100-sxm:tp1x3"),
    "layers": lambda: planner.place_layers(machines, time_limit_s=20.0),
    "experts": lambda: planner.place_experts([9.0, 4.0, 1.0, 3.0], n_ranks=2, n_slots=3),
    "a model": lambda: planner.load_model("deepseek-v3"),
    "a file that is not there": lambda: planner.load_model("nowhere.toml"),
}
SECONDS = ("wall_s", "solve_s", "proofs", "moved_proofs", "certificate", "proof")

def plain(found):
    if dataclasses.is_dataclass(found):
        names = [field.name for field in dataclasses.fields(found) if field.name not in SECONDS]
        return {name: plain(getattr(found, name)) for name in names}
    return [plain(one) for one in found] if isinstance(found, (list, tuple)) else found

def ask(name):
    try:
        return plain(ASKED[name]())
    except planner.PlannerError as error:
        return type(error).__name__ + str(error)[:100]

alone = {name: ask(name) for name in ASKED}
wrong = []

def run(seed):
    names = list(ASKED)
    random.Random(seed).shuffle(names)
    for name in names:
        try:
            if ask(name) != alone[name]:
                wrong.append(name)
        except BaseException as error:
            wrong.append(f"{name}: {error!r}")

threads = [threading.Thread(target=run, args=(seed,), daemon=True) for seed in (0, 0, 1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(90)
print([thread.is_alive() for thread in threads], wrong)
sys.stdout.flush()
os._exit(0)
"""


def test_four_threads_have_what_each_has_alone():
    ran = subprocess.run(
        [sys.executable, "-c", ASKED],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=110,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == "[False, False, False, False] []\n"
