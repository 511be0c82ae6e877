"""Hits that are fetched of the memory of the host, by hand: Llama 3.1 8B, 131,072 bytes a token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import RequestError
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.planning.plans import plan
from planner.runtimes.predicting import predict
from planner.specs.ask.targets import Targets
from planner.specs.files.reading import load_architecture, load_cluster
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE
from planner.specs.records.served_formats import ServedFormats
from planner.verifier.plans import judge_plan
from planner.verifier.predictions import judge_prediction
from tests.report.predictions import machines

BF16 = ServedFormats(weights="bf16", experts="bf16", cache="bf16")
TOKEN_BYTES, LINK = 131_072, 50e9
FETCHED = Traffic(n_input_tokens=4000, n_output_tokens=200, hit_fraction=0.7, offload="host")


def predicted(traffic, *, batch=4, pool="h100-nvl8-x1", rate=None, **cut):
    table = deployments(formats=BF16, batch=batch, **cut)
    on = machines(pool, "vllm")
    return predict(load_architecture("llama-3.1-8b"), on, table, traffic, requests_per_s=rate)


def fetching_s(answer):
    return {part.name: part.seconds for part in answer.ttft_parts}["fetching what the host has"]


def test_what_is_found_comes_over_the_link_of_each_device():
    """70 % of 4000 tokens are 175 blocks; two devices fetch half of them each."""
    alone, two = predicted(FETCHED), predicted(FETCHED, n_tensor=2)
    assert fetching_s(alone) == pytest.approx(2800 * TOKEN_BYTES / LINK, rel=1e-12)
    assert fetching_s(two) == pytest.approx(fetching_s(alone) / 2, rel=1e-12)
    near = predicted(replace(FETCHED, offload="device"))
    assert alone.ttft_s.value - near.ttft_s.value == pytest.approx(fetching_s(alone))
    assert alone.tpot_s.value == near.tpot_s.value  # loads are asynchronous
    assert alone.memory == near.memory


def test_what_is_shared_stays_on_the_device():
    """Of 2800 tokens that are found 992 are everybody's."""
    answer = predicted(replace(FETCHED, n_shared_tokens=1000))
    assert answer.offload.fetched_bytes == (2800 - 992) * TOKEN_BYTES


def test_no_more_requests_end_than_the_link_fetches_for():
    """28,500 tokens take 75 ms: 13.4 requests a second, however many are in flight."""
    long = replace(FETCHED, n_input_tokens=30_000, n_output_tokens=2, hit_fraction=0.95)
    few, many = predicted(long, batch=1), predicted(long, batch=15)
    most = LINK / (28_512 * TOKEN_BYTES)
    assert few.requests_per_s < most
    assert many.requests_per_s <= most * (1 + 1e-9)
    assert fetching_s(many) >= fetching_s(few)


def test_what_the_host_keeps_and_what_it_saves():
    """An eighth of 2 TB has room for 453 sequences of 263 blocks of 16 tokens."""
    hits = predicted(FETCHED).offload
    assert hits.n_kept == int(2e12 / 8 / (263 * 16 * TOKEN_BYTES)) == 453
    assert predicted(FETCHED, n_data=2).offload.n_kept == 2 * 453
    cold, warm = predicted(replace(FETCHED, hit_fraction=0.0, offload="device")), predicted(FETCHED)
    again = {part.name: part.seconds for part in cold.ttft_parts}["reading 4000 tokens"]
    again -= {part.name: part.seconds for part in warm.ttft_parts}["reading 1200 tokens"]
    assert hits.again_s == pytest.approx(again, rel=1e-12)
    assert hits.fetch_s < hits.again_s / 5


@pytest.mark.parametrize("more", [{}, {"n_samples": 4}, {"n_shared_tokens": 640}])
def test_both_accounts_say_the_same(more):
    answer = predicted(replace(FETCHED, **more), batch=8, n_tensor=2, rate=2.0)
    assert judge_prediction(answer)[1] == []
    low = replace(answer.offload, fetch_s=answer.offload.fetch_s / 2)
    wrong = judge_prediction(replace(answer, offload=low))[1]
    assert [finding.path for finding in wrong] == [("offload", "fetch_s")]


def test_a_plan_waits_for_the_host_too():
    model, cluster = load_architecture("llama-3.1-8b"), load_cluster("h100-nvl8-x1")
    some = {"batches": (8, 32), "chunks": (8192,), "confidence": 0.0, "prefer": "objective"}
    some["targets"] = Targets(tpot_s=0.05, n_devices=1)
    work = Workload(n_input_tokens=4000, n_output_tokens=200, hit_fraction=0.7)
    near, far = (
        plan(model, cluster, engine="vllm", workload=replace(work, offload=store), **some)
        for store in ("device", "host")
    )
    fetch_s = 2800 * TOKEN_BYTES / LINK
    gap_s = far.deployment.ttft_s.value - near.deployment.ttft_s.value
    assert gap_s == pytest.approx(fetch_s, rel=1e-9)
    assert judge_plan(far)[1] == []


@pytest.mark.parametrize(
    ("traffic", "pool", "fact"),
    [
        (replace(FETCHED, hit_fraction=0.0), "h100-nvl8-x1", "that is nothing"),
        (FETCHED, "h20-nvl8-x1", "file says nothing"),
        (replace(FETCHED, role=DECODE, hit_fraction=0.5), "h100-nvl8-x1", "do both phases"),
        (replace(FETCHED, n_waves=3), "h100-nvl8-x1", "without waves"),
    ],
)
def test_what_nobody_can_fetch_is_refused(traffic, pool, fact):
    with pytest.raises(RequestError, match=fact) as refused:
        predicted(traffic, pool=pool)
    assert "--kv-offload" in [problem.where for problem in refused.value.problems]
