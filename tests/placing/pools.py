"""What decode gives with experts on devices of their own, beside decode on devices alike.

    python -m tests.placing.pools

writes the table of docs/apart.md: of all deployments on no more devices than the pool has, the most
output tokens a second and device within each time of a token, as predicted.
"""

from __future__ import annotations

import numpy as np

from planner import Workload, load_architecture, load_topology
from planner.estimates.serving.choices import degrees, pool_degrees
from planner.estimates.serving.timer import Timer
from planner.runtimes.engine_requests import engine_request, machines_of
from planner.specs.ask.engine import PlanOptions

JOBS = (
    ("deepseek-v3", "h200-nvl8-x4", "sglang", 4000, 1000),
    ("deepseek-v3", "h200-nvl8-x4", "sglang", 32000, 2000),
    ("deepseek-v3", "h20-nvl8-x4", "sglang", 4000, 1000),
    ("qwen3-235b-a22b", "h200-nvl8-x4", "sglang", 4000, 1000),
    ("mixtral-8x22b", "h100-nvl8-x2", "vllm", 4000, 1000),
    ("deepseek-v3", "gb200-nvl72-x1", "sglang", 4000, 1000),
    ("qwen3-235b-a22b", "gb200-nvl72-x1", "trtllm", 4000, 1000),
)
LIMITS_S = (0.02, 0.03, 0.05, 0.1)
BATCHES = (*range(1, 17), *range(24, 1025, 8))


def best(model, topology, engine, n_input, n_output, cuts_of):
    """Of each limit the rate of a device, and the deployment in words."""
    spec, cluster = load_architecture(model), load_topology(topology)
    machines = machines_of(cluster, engine)
    workload = Workload(n_input_tokens=n_input, n_output_tokens=n_output)
    options = PlanOptions(workload=workload, batches=BATCHES, confidence=0.0)
    request = engine_request(spec, cluster, machines, options)
    timer = Timer(model=spec, clock=machines.clock, request=request, role="decode")
    choices = timer.choices(cuts_of(spec, request), 1.0)
    table = choices.table
    rates = table.batch * table.n_data / choices.tpot_s / table.n_devices
    for limit_s in LIMITS_S:
        within = np.flatnonzero(choices.tpot_s <= limit_s)
        yield max(rates[within], default=0.0)


def rows():
    for model, topology, engine, n_input, n_output in JOBS:
        job = (model, topology, engine, n_input, n_output)
        alike, apart = (list(best(*job, cuts_of)) for cuts_of in (degrees, pool_degrees))
        cells = (f"{a:.0f}, {b:.0f}" for a, b in zip(alike, apart, strict=True))
        yield f"| {model}, {topology}, {n_input}/{n_output}; {engine} | {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(rows()))
