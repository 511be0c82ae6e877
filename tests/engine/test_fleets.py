"""Replicas of an engine: enough for a demand, on devices of their own, at the least rent."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from planner import RequestError, Targets, load_architecture, load_cluster, plan
from planner.commands.options.parsing import parse
from planner.commands.options.reading import read_request
from planner.errors import NoPlanError
from planner.programs.blocks import Objective
from planner.programs.engine import pose_engine
from planner.runtimes.registry import candidates_of
from planner.specs.ask.engine import PlanOptions
from planner.specs.records.devices import Workload
from planner.topology.packing import n_node_places

POOL, N_OUTPUT = "h100-nvl8-x2", 300
ASKED = {
    "workload": Workload(n_input_tokens=1500, n_output_tokens=N_OUTPUT),
    "batches": (4, 16, 32, 64),
    "chunks": (2048,),
    "weights_formats": ("bf16",),
}


def solve(engine="vllm", pool=POOL, **targets):
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster(pool)
    objective = targets.pop("objective", "cost")
    prefer = {"prefer": "objective"}
    return plan(
        model, cluster, engine, targets=Targets(**targets), objective=objective, **ASKED, **prefer
    )


def enumerated(demand, **targets):
    """The least rent of a fleet of any choice, counted one choice after the other."""
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster(POOL)
    among = candidates_of(model, cluster, "vllm", PlanOptions(targets=Targets(**targets), **ASKED))
    (part,) = among.parts
    found, best = part.choices, math.inf
    table = found.table
    for j in range(len(table)):
        if targets.get("tpot_s") and found.tpot_high_s[j] > targets["tpot_s"]:
            continue
        size = int(table.n_devices[j])
        stay_s = found.ttft_high_s[j] + (N_OUTPUT - 1) * found.tpot_high_s[j]
        rate = table.batch[j] * table.n_data[j] * N_OUTPUT / stay_s
        n = max(1, math.ceil(demand / rate * (1 - 1e-9)))
        room = 2 * (8 // size) if size <= 8 else 1
        if n <= room:
            best = min(best, n * size * cluster.usd_per_hour)
    return best


@pytest.mark.parametrize("demand", [100.0, 900.0, 2400.0, 5000.0])
@pytest.mark.parametrize("tpot_s", [None, 0.04])
def test_a_demand_is_served_at_the_least_rent_of_all_fleets(demand, tpot_s):
    expected = enumerated(demand, tpot_s=tpot_s)
    if math.isinf(expected):
        with pytest.raises(NoPlanError):
            solve(demand_tokens_per_s=demand, tpot_s=tpot_s)
        return
    best = solve(demand_tokens_per_s=demand, tpot_s=tpot_s).deployment
    assert best.usd_per_hour == pytest.approx(expected)
    assert best.output_tokens_per_s >= demand * (1 - 1e-9)
    assert best.usd_per_token == pytest.approx(best.usd_per_hour / 3600 / demand)
    assert best.n_devices == best.n_replicas * best.n_replica_devices


@pytest.mark.parametrize("engine", ["vllm", "sglang", "erdil2025"])
def test_more_demand_never_costs_less_by_the_hour(engine):
    targets = {"tpot_s": 0.05}
    asked = dict(ASKED)
    if engine == "erdil2025":
        asked.pop("chunks")
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster(POOL)
    rents = [
        plan(
            model, cluster, engine, targets=Targets(demand_tokens_per_s=d, **targets), **asked
        ).deployment.usd_per_hour
        for d in (300.0, 1200.0, 2400.0)
    ]
    assert all(one <= other * (1 + 1e-9) for one, other in pairwise(rents))


def test_replicas_multiply_what_one_does():
    found = solve(n_replicas=2, tpot_s=0.05).deployment
    one = solve(n_devices=found.n_replica_devices, tpot_s=0.05).deployment
    assert (found.n_replicas, one.n_replicas) == (2, 1)
    assert found.usd_per_token == pytest.approx(one.usd_per_token)
    assert found.output_tokens_per_s == pytest.approx(2 * one.output_tokens_per_s)


def test_a_demand_beyond_the_pool_names_what_is_served_and_a_pool_that_serves_it():
    with pytest.raises(NoPlanError) as caught:
        solve(demand_tokens_per_s=20_000.0, tpot_s=0.04)
    conflict = caught.value.conflict
    (obstacle,) = conflict.obstacles
    best = solve(n_replicas=4, tpot_s=0.04, objective="throughput").deployment
    assert obstacle.name == "demand"
    assert obstacle.reachable >= best.output_tokens_per_s * (1 - 1e-9)
    assert "--topology h100-nvl8-x" in conflict.command
    pool = conflict.command.split("--topology ")[1].split()[0]
    assert solve(pool=pool, demand_tokens_per_s=20_000.0, tpot_s=0.04).deployment.n_replicas > 4


def test_a_rate_of_requests_is_a_demand_of_what_they_write():
    words = ["--rate", "8req/s", "--input", "1500", "--output", "300"]
    said = parse(words)
    targets = read_request(said)["targets"]
    assert targets == Targets(demand_tokens_per_s=2400.0, max_utilisation=0.85)
    assert not said.problems
    both = parse([*words, "--demand", "2400tok/s"])
    read_request(both)
    assert [one.where for one in both.problems] == ["--rate"]


def test_throughput_is_no_objective_beside_a_demand():
    with pytest.raises(RequestError, match="--demand"):
        solve(demand_tokens_per_s=100.0, objective="throughput")


@pytest.mark.parametrize("n_devices", [1, 7, 8, 16, 20, 72])
@pytest.mark.parametrize("n_per_node", [1, 4, 8])
def test_places_are_dealt_out_node_by_node(n_devices, n_per_node):
    sizes = np.arange(1, n_devices + 5)
    for size, places in zip(
        sizes.tolist(), n_node_places(n_devices, n_per_node, sizes), strict=True
    ):
        nodes = [min(n_per_node, n_devices - i) for i in range(0, n_devices, n_per_node)]
        if size <= n_per_node:
            expected = sum(node // size for node in nodes)
        else:
            whole = sum(node == n_per_node for node in nodes)
            expected = max(whole // math.ceil(size / n_per_node), size <= n_devices)
        assert places == max(expected, size <= n_devices)


def test_the_program_has_a_slot_of_replicas_only_where_they_are_chosen():
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster(POOL)
    for targets, slots in (
        (Targets(), ("serving",)),
        (Targets(n_replicas=2), ("serving", "replicas")),
        (Targets(demand_tokens_per_s=100.0), ("serving", "replicas")),
    ):
        (part,) = candidates_of(model, cluster, "vllm", PlanOptions(targets=targets, **ASKED)).parts
        assert (
            pose_engine(part.choices, part.request, Objective(objective="cost")).program.slots
            == slots
        )
