"""An audit compares what runs with what the same candidates could do."""

from __future__ import annotations

import pytest

from planner import RequestError
from planner.audit import audit
from planner.report.audit import audit_text
from planner.specs.reading import load_cluster, load_model
from planner.specs.request import Speculation, Workload

WORKLOAD = Workload(n_input_tokens=1024, n_output_tokens=256)


def audited(**seen):
    """The paper's question: Llama 3 70B in 16 bits on a DGX H100."""
    return audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        weights_format="bf16",
        workload=WORKLOAD,
        **seen,
    )


@pytest.fixture(scope="module")
def slow_and_small():
    return audited(speed_tokens_per_s=35.0, batch=8)


def test_what_runs_is_described_by_its_own_figures(slow_and_small):
    """8 × 35 tokens a second on eight devices: dollars and utilization by hand."""
    seen, cluster = slow_and_small.observed, slow_and_small.request.cluster
    assert seen.tpot_s == pytest.approx(1 / 35)
    rent = 8 * cluster.usd_per_hour / 3600
    assert seen.usd_per_token == pytest.approx(rent / 280)
    peak = 8 * cluster.device.peak_flop_per_s["bf16"]
    assert seen.mfu_fraction == pytest.approx(280 * 2 * 70.55e9 / peak, rel=0.01)


def test_a_utilization_stands_for_the_batch_that_it_implies():
    by_share = audited(speed_tokens_per_s=70.0, utilization_fraction=0.15).observed
    by_batch = audited(speed_tokens_per_s=70.0, batch=by_share.batch).observed
    assert by_share == by_batch
    assert by_share.mfu_fraction == pytest.approx(0.15, rel=0.01)


def test_the_frontier_is_no_worse_than_what_runs(slow_and_small):
    seen = slow_and_small.observed
    same_speed, same_cost = slow_and_small.equal_speed, slow_and_small.equal_cost
    assert same_speed.tpot_s <= seen.tpot_s
    assert slow_and_small.changes[0].usd_per_token < seen.usd_per_token
    assert same_cost.tpot_s < seen.tpot_s


def test_every_change_keeps_the_speed_and_all_of_them_together_gain_most(slow_and_small):
    seen, changes = slow_and_small.observed, slow_and_small.changes
    assert all(change.deployment.tpot_s <= seen.tpot_s * (1 + 1e-9) for change in changes)
    assert changes[0].name == "all of these"
    costs = [change.usd_per_token for change in changes]
    assert costs == sorted(costs)


def test_the_time_that_runs_is_split_into_what_is_possible_and_what_is_not_explained(
    slow_and_small,
):
    parts = dict(slow_and_small.excess)
    assert sum(parts.values()) == pytest.approx(slow_and_small.observed.tpot_s)
    assert parts["unexplained"] > 0


def test_a_draft_model_is_a_change_like_others():
    found = audit(
        load_model("llama-3-70b"),
        load_cluster("h100-nvl8-x1"),
        speed_tokens_per_s=70.0,
        batch=16,
        weights_format="bf16",
        workload=WORKLOAD,
        speculation=Speculation(draft=load_model("llama-3-8b")),
    )
    drafted = next(change for change in found.changes if "llama-3-8b" in change.name)
    assert drafted.deployment.draft is not None


def test_the_report_says_how_far_and_what_helps(slow_and_small):
    text = audit_text(slow_and_small, 110)
    assert "times the cost that its speed needs" in text.splitlines()[0]
    assert "fp8 weights" in text
    assert "unexplained" in text


@pytest.mark.parametrize(
    ("seen", "option"),
    [
        ({"speed_tokens_per_s": 0.0, "batch": 8}, "--speed"),
        ({"speed_tokens_per_s": float("nan"), "batch": 8}, "--speed"),
        ({"speed_tokens_per_s": 70.0}, "--batch"),
        ({"speed_tokens_per_s": 70.0, "batch": 8, "utilization_fraction": 0.2}, "--batch"),
        ({"speed_tokens_per_s": 70.0, "utilization_fraction": 1.5}, "--utilization"),
        ({"speed_tokens_per_s": 70.0, "batch": 8, "n_devices": 9}, "--devices"),
    ],
)
def test_what_cannot_be_observed_is_refused_by_its_option(seen, option):
    with pytest.raises(RequestError) as caught:
        audited(**seen)
    assert option in {problem.where for problem in caught.value.problems}
