"""Plans and placements of prompts that begin alike, and of several samples of each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planner import Serve, load_architecture, load_cluster, place, plan
from planner.errors import RequestError
from planner.specs.ask.targets import Targets
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE, PREFILL
from planner.verifier.placing.placements import judge_placement
from planner.verifier.plans import judge_plan

WORK = Workload(n_input_tokens=3000, n_output_tokens=100)
SOME = {"batches": (1, 4, 8, 16, 32, 64, 128), "chunks": (2048, 8192), "confidence": 0.0}


@cache
def best(workload, **targets):
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    asked = {"targets": Targets(tpot_s=0.06, **targets), "prefer": "objective"}
    return plan(model, cluster, engine="vllm", workload=workload, **asked, **SOME)


def cost(workload):
    return best(workload).deployment.usd_per_token


def test_the_least_cost_falls_with_what_is_shared():
    costs = [cost(replace(WORK, n_shared_tokens=n)) for n in (0, 500, 1500, 2900)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0] / 2


def test_several_samples_cost_less_each():
    costs = [cost(replace(WORK, n_samples=n)) for n in (1, 2, 4, 8)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0] / 2


@pytest.mark.parametrize("n_samples", [4, 8])
def test_a_plan_has_whole_requests_in_its_batch(n_samples):
    answer = best(replace(WORK, n_samples=n_samples))
    assert answer.deployment.batch % n_samples == 0
    assert judge_plan(answer)[1] == []
    odd = replace(answer, deployment=replace(answer.deployment, batch=answer.deployment.batch + 1))
    assert judge_plan(odd)[1][0].path == ("deployment", "batch")


def test_what_is_said_of_memory_holds_a_shared_prefix_too():
    answer = best(replace(WORK, n_shared_tokens=1500))
    low = answer.deployment.used_bytes - 1e6
    lower = replace(answer, deployment=replace(answer.deployment, used_bytes=low))
    assert ("deployment", "used_bytes") in [one.path for one in judge_plan(lower)[1]]


def test_a_demand_counts_all_answers_of_a_request():
    """100 tokens of four answers to each of 2 requests a second are 800 tokens a second."""
    answer = best(replace(WORK, n_samples=4), demand_tokens_per_s=800.0)
    assert answer.load is not None
    assert answer.load.requests_per_s == 2.0
    assert judge_plan(answer)[1] == []


@pytest.mark.parametrize("batches", [(1, 2, 3), (6,)])
def test_batches_of_parts_of_requests_are_refused(batches):
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    some = {**SOME, "batches": batches, "workload": replace(WORK, n_samples=4)}
    with pytest.raises(RequestError, match="counts all samples of a request"):
        plan(model, cluster, engine="vllm", **some)


@pytest.mark.parametrize("engine", ["roofline", "erdil2025"])
@pytest.mark.parametrize(
    ("field", "option"),
    [("n_samples", "--samples"), ("n_shared_tokens", "--shared"), ("hit_fraction", "--hit-rate")],
)
def test_layouts_refuse_what_they_know_nothing_of(engine, field, option):
    value = 0.5 if field == "hit_fraction" else 64
    workload = replace(WORK, **{field: value})
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster("h100-nvl8-x1")
    with pytest.raises(RequestError) as refused:
        plan(model, cluster, engine=engine, workload=workload)
    assert [problem.where for problem in refused.value.problems] == [option]
    if engine == "roofline":
        with pytest.raises(RequestError, match=option):
            place(cluster, Serve(model=model, workload=workload), engine=engine)


@cache
def apart(workload, requests_per_s=2.0):
    model, cluster = load_architecture("llama-3.1-70b"), load_cluster("h100-nvl8-x4")
    tokens_per_s = requests_per_s * workload.n_written_tokens
    wish = Serve(model=model, demand_tokens_per_s=tokens_per_s, workload=workload)
    return place(cluster, wish, engine="vllm", roles="apart", confidence=0.0, batches=(16, 64, 256))


def test_a_prompt_is_handed_over_once_for_all_its_samples():
    """Of each request 3000 tokens in 188 blocks of 16, of 80 layers of 8 heads of 128."""
    answer = apart(replace(WORK, n_samples=4))
    assert judge_placement(answer)[1] == []
    size = 188 * 16 * 2 * 80 * 8 * 128 * 2
    assert {it.request_bytes for it in answer.handovers} == {size}
    rate = sum(it.requests_per_s for it in answer.handovers)
    assert rate == pytest.approx(answer.served[0].output_tokens_per_s / 400, rel=1e-6)
    assert rate >= 2.0 * (1 - 1e-9)


def test_workers_of_each_phase_do_their_part_of_what_is_shared():
    plain, shared = apart(WORK), apart(replace(WORK, n_shared_tokens=1600))
    assert judge_placement(shared)[1] == []
    assert shared.served[0].usd_per_hour <= plain.served[0].usd_per_hour
    reads, alike = (
        {recipe.role: recipe.deployment for recipe in answer.recipes} for answer in (shared, plain)
    )
    of_a_device = [
        each[PREFILL].output_tokens_per_s / each[PREFILL].n_devices for each in (reads, alike)
    ]
    assert of_a_device[0] > 1.5 * of_a_device[1]
    assert reads[DECODE].batch >= alike[DECODE].batch


def test_hits_shorten_prefill_of_workers_too():
    assert apart(replace(WORK, hit_fraction=0.5)).served[0].usd_per_hour <= (
        apart(WORK).served[0].usd_per_hour
    )
