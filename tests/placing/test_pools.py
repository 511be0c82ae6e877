"""Decode whose experts have devices of their own: placed, against enumeration, judged, refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from planner import (
    RequestError,
    Serve,
    Targets,
    Workload,
    load_architecture,
    load_topology,
    place,
    verify,
)
from planner.estimates.serving.choices import degrees, pool_degrees
from planner.estimates.serving.memory import handed_bytes
from planner.estimates.serving.timer import Timer
from planner.placing.engines import serving_engine
from planner.placing.fabrics.site import Fabric, graph_in
from planner.runtimes.engine_requests import engine_request, machines_of
from planner.specs.ask.engine import PlanOptions
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_connector
from planner.specs.files.state import State
from planner.specs.records.roles import ANY
from planner.verifier.findings import Invalid
from planner.verifier.placing.parts import pieces_of
from planner.verifier.placing.placements import judge_placement

MODEL, ENGINE = "qwen3-30b-a3b", "trtllm"
WORKLOAD = Workload(n_input_tokens=2000, n_output_tokens=500)
TARGETS = Targets(tpot_s=0.02)
BATCHES = (1, 8, 64)


def placed(site="h200-nvl8-x1", model=MODEL, engine=ENGINE, **asked):
    usual = {"workload": WORKLOAD, "targets": TARGETS, "objective": "throughput"}
    usual |= {"confidence": 0.0, "batches": BATCHES, "roles": "apart"}
    model = Serve(model=load_architecture(model))
    cluster = load_topology(site) if isinstance(site, str) else site
    return place(cluster, model, engine=engine, **usual | asked)


@cache
def best_rates(role, cuts_of, n_pool=None):
    """The most output tokens a second of one replica of each number of devices, 0 … 8."""
    model, cluster = load_architecture(MODEL), load_topology("h200-nvl8-x1")
    machines = machines_of(cluster, ENGINE)
    options = PlanOptions(workload=WORKLOAD, batches=BATCHES, confidence=0.0)
    request = engine_request(model, cluster, machines, options)
    cuts = cuts_of(model, request)
    timer = Timer(model=model, clock=machines.clock, request=request, role=role)
    choices = timer.choices(cuts, 1.0)
    table = choices.table
    rates = table.batch * table.n_data / choices.place_s
    holding = table.n_devices - table.n_expert_devices
    fabric = cluster.fabric
    wire = holding * fabric.scale_up_bytes_per_s * fabric.scale_up_fraction
    caches = handed_bytes(
        model, "bf16", n_tokens=2000.0, n_block_tokens=machines.engine.n_block_tokens
    )
    rates = np.minimum(rates, wire / caches * WORKLOAD.n_output_tokens)
    kept = (choices.tpot_s <= TARGETS.tpot_s) if role == "decode" else np.ones(len(rates), bool)
    if n_pool:
        kept &= table.n_expert_devices == n_pool
    best = np.zeros(9)
    np.maximum.at(best, table.n_devices[kept], rates[kept])
    return best


def of_several(each):
    """Of any number of replicas on so many devices together."""
    most = np.zeros(len(each))
    for n in range(1, len(each)):
        most[n] = max(each[k] + most[n - k] for k in range(1, n + 1))
        most[n] = max(most[n], most[n - 1])
    return most


@pytest.mark.parametrize("expert_devices", [None, ANY, 2, 4])
def test_the_best_of_one_node_is_that_of_all_choices(expert_devices):
    """All deployments of either role, on 8 devices in all: what is read is what is written."""
    decode = best_rates("decode", degrees)
    if expert_devices is not None:
        apart = best_rates("decode", pool_degrees, expert_devices)
        decode = apart if expert_devices else np.maximum(decode, apart)
    read, written = of_several(best_rates("prefill", degrees)), of_several(decode)
    most = max(min(read[k], written[8 - k]) for k in range(9))
    answer = placed(expert_devices=expert_devices, connector=load_connector("wire"))
    assert answer.output_tokens_per_s == pytest.approx(most, rel=1e-6)
    assert not verify(answer).falsehoods
    pools = {it.n_expert_devices for it in answer.recipes if it.role == "decode"}
    assert pools == {expert_devices} if expert_devices else pools <= {0, 1, 2, 4}


def test_to_ask_for_less_never_gives_more():
    rates = {
        (roles, n): placed(roles=roles, expert_devices=n).output_tokens_per_s
        for roles, n in product(("apart", "free"), (None, ANY, 2))
    }
    for roles in ("apart", "free"):
        assert rates[roles, ANY] >= max(rates[roles, None], rates[roles, 2]) * (1 - 1e-9)
    assert rates["free", ANY] >= rates["apart", ANY] * (1 - 1e-9)


@pytest.fixture(scope="module")
def spread():
    """Attention and experts of DeepSeek-V3 on nodes of their own: H200 hold 8 devices each."""
    return placed(
        "h200-nvl8-x4",
        "deepseek-v3",
        "sglang",
        expert_devices=8,
        workload=Workload(n_input_tokens=4000, n_output_tokens=1000),
        targets=Targets(ttft_s=2.0, tpot_s=0.05),
        batches=(8, 32, 64, 96),
        connector=load_connector("wire"),
    )


def decoding(answer):
    """A replica of two pools, with its recipe and where it stands."""
    return next(
        (i, it, answer.recipes[it.recipe])
        for i, it in enumerate(answer.replicas)
        if answer.recipes[it.recipe].role == "decode"
    )


def test_no_node_is_of_both_pools(spread):
    _, replica, recipe = decoding(spread)
    assert recipe.n_expert_devices == 8
    attention, experts = replica.ranks[:-8], replica.ranks[-8:]
    assert not {it.node for it in attention} & {it.node for it in experts}
    assert {it.stage for it in attention} == {0}
    assert {it.stage for it in experts} == {1}
    (pools,) = (it for it in replica.channels if it.axis == "pools")
    assert pools.n_devices == len(replica.ranks)


def test_shares_of_nodes_are_of_one_pool(spread):
    """Of all that is timed; and no share of eight has four of attention and four of experts."""
    site = Fabric(spread.request.site, graph_in(spread.request.site, None))
    (wish,) = spread.request.models
    engine = serving_engine("sglang", spread.request, wish, site)
    (kind,) = site.inventory.kinds
    n_timed = 0
    for domain in site.ground.domains(kind):
        table = engine.source(domain, "decode", has_pools=True).choices.table
        n_timed += len(table)
        if domain.span != "node":
            assert not np.any(table.n_group % domain.per_node)
            assert not np.any(table.n_expert_devices % domain.per_node)
    assert n_timed
    _, _, recipe = decoding(spread)
    mixed = replace(recipe.deployment, n_data=4, n_expert_devices=12, n_expert_parallel=12)
    with pytest.raises(Invalid, match="parts groups"):
        pieces_of(replace(recipe, deployment=mixed, pieces=(8, 8)))
    assert pieces_of(replace(recipe, deployment=mixed, pieces=(4,))) == (4, 4, 4, 4)


def test_caches_go_to_devices_of_attention_alone(spread):
    replica = decoding(spread)[1]
    fabric = load_topology("h200-nvl8-x4").fabric
    rate = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
    (handed,) = (it for it in spread.handovers if it.target == replica.name)
    source = next(it for it in spread.replicas if it.name == handed.source)
    n_least = min(len(source.ranks), len(replica.ranks) - 8)
    assert handed.seconds == pytest.approx(handed.request_bytes / (n_least * rate))


def test_pools_may_lie_on_two_leaves_as_narrow_as_the_spine():
    """Four devices are free on a node of either leaf, and attention and experts take eight."""
    free = {*(f"node{n}/gpu{i}" for n in (0, 32) for i in range(4)), "node1/gpu0", "node1/gpu1"}
    every = (f"node{n}/gpu{i}" for n in range(64) for i in range(8))
    answer = placed(
        load_site("h100-fat-tree-x64"),
        "gpt-oss-120b",
        "vllm",
        expert_devices=4,
        targets=Targets(tpot_s=0.05),
        state=State(busy=tuple(name for name in every if name not in free)),
    )
    _, replica, recipe = decoding(answer)
    assert recipe.span == "pool"
    assert replica.leaves == ("leaf0", "leaf1")
    (pools,) = replica.channels
    assert pools.bytes_per_s == pools.counted_bytes_per_s == 25e9
    assert not verify(answer).falsehoods


def test_either_pool_is_counted_in_memory_and_no_engine_starts_it(spread):
    _, _, recipe = decoding(spread)
    deployment = recipe.deployment
    layer = 3 * 7168 * 2048 * (1 + 4 / 128**2)
    assert deployment.weights_bytes == pytest.approx(58 * (256 / 8 + 1) * layer)
    assert deployment.used_bytes <= deployment.capacity_bytes
    assert deployment.launch is None
    assert "--expert-devices 8 --micro-batches" in deployment.command


def test_it_is_verified_and_proved_again(spread):
    found = verify(spread, prove=True)
    assert not found.falsehoods
    assert found.proofs


@pytest.mark.parametrize(
    "changes",
    [
        {"n_microbatches": 5},
        {"n_expert_devices": 16, "n_expert_parallel": 16},
        {"n_expert_devices": None, "n_microbatches": None},
        {"weights_bytes": 1e9},
        {"n_expert_tensor": 2},
    ],
)
def test_an_altered_deployment_is_found(spread, changes):
    number = decoding(spread)[1].recipe
    recipes = [*spread.recipes]
    it = recipes[number]
    recipes[number] = replace(it, deployment=replace(it.deployment, **changes))
    _, wrong = judge_placement(replace(spread, recipes=tuple(recipes)))
    assert wrong


def test_a_node_of_both_pools_is_found(spread):
    """The last rank of attention changes places with the first of experts."""
    i, replica, _ = decoding(spread)
    names = [it.device for it in replica.ranks]
    names[-9], names[-8] = names[-8], names[-9]
    ranks = (replace(it, device=name) for it, name in zip(replica.ranks, names, strict=True))
    replicas = [*spread.replicas]
    replicas[i] = replace(replica, ranks=tuple(ranks))
    _, wrong = judge_placement(replace(spread, replicas=tuple(replicas)))
    assert any("several nodes" in it.fact for it in wrong)


def test_experts_apart_that_nobody_asked_for_are_found(spread):
    roles = replace(spread.request.roles, expert_devices=None)
    _, wrong = judge_placement(replace(spread, request=replace(spread.request, roles=roles)))
    assert any("nobody offered" in it.fact for it in wrong)


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"roles": "together", "expert_devices": 2}, "has no effect"),
        ({"expert_devices": 2, "model": "llama-3.1-8b"}, "of models with experts"),
        ({"expert_devices": 2, "engine": "roofline"}, "without a serving engine"),
        ({"expert_devices": 3}, "equal parts of 128 experts: nearest"),
        ({"expert_devices": -1}, "is negative"),
    ],
)
def test_what_means_nothing_is_refused(asked, fact):
    with pytest.raises(RequestError, match=fact):
        placed(**asked)
