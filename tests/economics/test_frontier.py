"""The frontier under the reference model, against every layout counted one by one."""

from __future__ import annotations

from itertools import pairwise, product
from math import ceil

import pytest

from planner import NoPlanError, RequestError, frontier
from planner.equations.speculation import expected_tokens
from planner.estimates.economics.choices import tables_of
from planner.planning.plans import plan
from planner.results.erdil2025 import Split
from planner.runtimes.erdil_requests import economics_request
from planner.specs.ask.targets import SolverOptions, Speculation, Targets
from planner.specs.files.reading import load_cluster, load_model
from planner.verifier.runtimes.erdil_passes import count_bytes, count_pass
from tests.programs.test_tradeoff import non_dominated
from tests.report.economics_examples import (
    BATCHES,
    ECONOMICS_COMPARISON,
    ECONOMICS_CURVE,
    ECONOMICS_MISSING,
    ECONOMICS_MIXTURE,
)
from tests.report.rendering import report_csv, report_page, report_text

LLAMA, POOL = load_model("llama-3-70b"), load_cluster("h100-nvl8-x1")
DRAFT = Speculation(draft=load_model("llama-3-8b"))


def traced(model=LLAMA, cluster=POOL, **choices):
    filled = {"batches": BATCHES, "engine": "erdil2025"} | choices
    return frontier(model, cluster, **filled)


def enumerated(request):
    """(TPOT, USD per token) of every format, layout and batch that fits, by the scalar model.

    Experts are spread over micro-batches of two requests or more for each share of them only.
    """
    asked, found = economics_request(request), []
    for served, tables in zip(asked.served, tables_of(asked), strict=True):
        ways = tables.target.ways
        for row, batch in product(range(len(ways.n_devices)), asked.batches):
            way = Split(
                n_stages=int(ways.n_stages[row]),
                n_tensor=int(ways.n_tensor[row]),
                n_expert=int(ways.n_expert[row]),
                n_attention=int(ways.n_attention[row]),
            )
            if way.n_stages > batch or way.n_devices > asked.n_devices:
                continue
            model = served.target.model
            least = 2 * model.n_experts / model.n_active_experts
            if way.n_expert > 1 and ceil(batch / way.n_stages) < least:
                continue
            rule, cached = asked.memory, asked.n_cached_tokens
            held = count_bytes(model, way, batch, n_cached_tokens=cached, rule=rule)
            if sum(held) <= asked.hbm_bytes:
                seconds = count_pass(served.target, way, batch).total_s
                rent = way.n_devices * asked.usd_per_hour / 3600
                found.append((seconds, rent * seconds / batch))
    return found


@pytest.mark.parametrize("model", ["llama-3-70b", "mixtral-8x7b"])
def test_the_frontier_is_what_no_layout_dominates(model):
    found = traced(load_model(model), weights_formats=["bf16", "fp8"])
    everything = enumerated(found.request)
    assert len(everything) > 200
    expected = non_dominated(everything)
    assert len(found.points) == len(expected) >= 5
    for point, (x, y) in zip(reversed(found.points), expected, strict=True):
        assert (point.x, point.y) == pytest.approx((x, y), rel=1e-9)


def test_every_point_is_proved_and_every_candidate_accounted_for():
    found = traced()
    proof = found.proof
    assert proof.status == "optimal"
    assert sum(one.n_candidates for one in proof.screens) + proof.n_solved == proof.n_candidates
    assert len(proof.verified) == 3
    for point in found.points:
        assert point.gap <= 1e-9
        assert (point.x, point.y) == (point.deployment.tpot_s, point.deployment.usd_per_token)
    for slow, fast in pairwise(found.points):
        assert fast.x < slow.x
        assert fast.y > slow.y


@pytest.mark.parametrize("speculation", [None, DRAFT])
def test_the_cheapest_point_within_a_target_is_the_plan_for_it(speculation):
    targets = Targets(tpot_s=0.014)
    found = traced(targets=targets, speculation=speculation)
    best = plan(LLAMA, POOL, "erdil2025", batches=BATCHES, targets=targets, speculation=speculation)
    assert found.points[found.at_target].y == pytest.approx(best.deployment.usd_per_token, rel=1e-9)


def test_the_preferred_point_has_the_most_speed_to_the_alpha_for_its_price():
    preferred = []
    for alpha in (0.0, 1.0, 3.0, 20.0):
        found = traced(alpha=alpha)
        worths = [point.x**-alpha / point.y for point in found.points]
        assert found.preferred == worths.index(max(worths))
        preferred.append(found.preferred)
    assert preferred == sorted(preferred)
    assert preferred[0] == 0 < preferred[-1]


def test_a_draft_moves_the_whole_frontier_and_is_said():
    """Something is as fast and as cheap as each point without a draft, and often better."""
    alone, drafted = traced().points, traced(speculation=DRAFT).points
    for point in alone:
        assert any(
            one.x <= point.x * (1 + 1e-9) and one.y <= point.y * (1 + 1e-9) for one in drafted
        )
    best = drafted[-1].deployment
    assert best.draft is not None
    assert best.draft.n_yielded == pytest.approx(expected_tokens(best.draft.n_drafted, 0.8))
    assert drafted[-1].x < 0.8 * alone[-1].x


@pytest.mark.parametrize("solver", ["cpsat", "exhaustive"])
def test_all_solvers_prove_the_same_frontier(solver):
    one, two = traced(), traced(options=SolverOptions(solver=solver))
    assert two.proof.solver.startswith(solver if solver == "cpsat" else "enumeration")
    assert [point.deployment for point in one.points] == [point.deployment for point in two.points]


@pytest.mark.parametrize("y", ["cost", "rent", "throughput"])
def test_each_price_has_its_frontier(y):
    """More throughput is dearer speed, like more rent."""
    found = traced(y=y)
    values = [point.y for point in found.points]
    assert found.y_name == y
    assert values == sorted(values, reverse=y == "throughput")


def test_counting_memory_as_the_paper_does_lets_more_fit():
    """A micro-batch's caches instead of all that is in flight."""
    strict, loose = traced(), traced(memory="one-microbatch")
    assert loose.points[0].y <= strict.points[0].y
    assert (strict.cost_model.memory, loose.cost_model.memory) == ("in-flight", "one-microbatch")


@pytest.mark.parametrize(
    ("choices", "option"),
    [
        ({"x": "ttft"}, "--x"),
        ({"cluster": load_cluster("tpu-v4-2x2x2")}, "--engine"),
        ({"engine": "guess"}, "--engine"),
        ({"memory": "none"}, "--memory"),
        ({"targets": Targets(ttft_s=1.0)}, "--ttft-target"),
    ],
)
def test_what_cannot_be_asked_is_refused(choices, option):
    with pytest.raises(RequestError) as caught:
        traced(**choices)
    assert [problem.where for problem in caught.value.problems] == [option]


def test_without_any_deployment_the_conflict_says_why():
    with pytest.raises(NoPlanError) as caught:
        traced(load_model("llama-3.1-405b"), weights_formats=["bf16"])
    assert [one.name for one in caught.value.conflict.obstacles] == ["hbm"]


class TestReports:
    def test_the_text_has_the_columns_of_this_model_and_says_which_it_is(self):
        text = report_text([ECONOMICS_CURVE, ECONOMICS_MISSING], 110, is_whole=False)
        assert "of Erdil 2025" in text
        assert "no plan: `tpu-v4-2x2x2`: is not made of nodes" in " ".join(text.split())
        head = next(line for line in text.splitlines() if line.strip().startswith("TPOT"))
        assert head.split() == [
            "TPOT", "speed", "cost", "devices", "weights", "batch", "drafted"
        ]  # fmt: skip

    def test_the_page_draws_every_point_with_what_it_is(self):
        text = report_page([ECONOMICS_CURVE, ECONOMICS_MIXTURE])
        assert "of Erdil 2025" in text
        assert text.count("fp8 weights") > 2
        assert "EP " in text

    def test_the_csv_has_a_row_for_each_point(self):
        rows = report_csv([ECONOMICS_CURVE, ECONOMICS_MISSING]).splitlines()
        assert len(rows) == 1 + len(ECONOMICS_CURVE.frontier.points)
        assert "n_attention" in rows[0]
        assert "ttft_s" not in rows[0]

    def test_a_comparison_has_a_row_for_each_pool_and_the_reason_of_a_missing_one(self):
        text = report_text(ECONOMICS_COMPARISON, 120)
        assert "of Erdil 2025" in text
        assert "TTFT" not in text
        assert text.count("is not made of nodes") >= 2
        assert sum(row.plan is not None for row in ECONOMICS_COMPARISON.rows) == 2
