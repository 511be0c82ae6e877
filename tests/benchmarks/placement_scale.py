"""Placement from 8 to 4096 devices, a tenth of them busy; and four models on two kinds.

python -m tests.benchmarks.placement_scale
"""

from __future__ import annotations

import random
import time

from planner import Placement, Serve, State, Targets, load_model, load_pool, place
from planner.topology.graph import device_names
from planner.topology.pools import pool_graph

TARGETS = Targets(tpot_s=0.050, ttft_s=2.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
FOUR = (
    ("deepseek-v3", 8_000.0, "fp8"),
    ("llama-3.1-70b", 24_000.0, "bf16"),
    ("qwen3-32b", 24_000.0, "bf16"),
    ("gpt-oss-120b", 80_000.0, "mxfp4"),
)


def busy(pool: str, share: float, *, seed: int = 0) -> State:
    """A state in which a random share of the devices is busy."""
    names = device_names(pool_graph(load_pool(pool)))
    return State(busy=tuple(random.Random(seed).sample(names, round(len(names) * share))))


def one_model(n_nodes: int) -> Placement:
    """DeepSeek-V3 on nodes of eight H100, at the most output."""
    pool = f"h100-fat-tree-x{n_nodes}"
    wish = Serve(model=load_model("deepseek-v3"), weights_formats=["fp8"])
    return place(load_pool(pool), wish, targets=TARGETS, state=busy(pool, 0.1))


def four_models(objective: str, pool: str = "h100-a100-x64") -> Placement:
    """Four models with demands, on as many H100 as A100."""
    wishes = [
        Serve(model=load_model(name), demand_tokens_per_s=demand, weights_formats=[weights])
        for name, demand, weights in FOUR
    ]
    state = busy(pool, 0.1)
    return place(load_pool(pool), wishes, targets=TARGETS, state=state, objective=objective)


def _told(name: str, begun: tuple[float, float], found: Placement) -> None:
    wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
    proof = found.certificate
    print(
        f"{name:<24}{len(found.replicas):>5} replicas{found.n_used:>6} of {found.n_free:<5}"
        f"{proof.n_candidates:>9} layouts{proof.n_solved:>5} columns  gap {proof.gap:.0e}"
        f"{proof.solve_s:>7.2f} s solve{wall:>7.2f} s wall{cpu:>7.2f} s CPU",
        flush=True,
    )


if __name__ == "__main__":
    for n_nodes in SIZES:
        begun = time.perf_counter(), time.process_time()
        _told(f"{8 * n_nodes} devices", begun, one_model(n_nodes))
    for objective in ("throughput", "devices"):
        begun = time.perf_counter(), time.process_time()
        _told(f"four models, {objective}", begun, four_models(objective))
