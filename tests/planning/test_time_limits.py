"""Out of time: the best so far with an honest status, or exit 3; what was not done is said.

The clock of these tests goes on by a second each time that somebody looks at it, so that a limit
is a number of looks, on any machine.
"""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace

import pytest

from planner.errors import NoPlanError, OutOfTimeError
from planner.estimates import candidates
from planner.estimates.serving import grids, timer
from planner.placing.asking import Serve
from planner.placing.fleets.planning import fleet
from planner.placing.planning import place
from planner.planning.audit import audit
from planner.planning.comparing import compare
from planner.planning.explain import EXPLAINED, UNEXPLAINED
from planner.planning.pareto import frontier
from planner.planning.plans import plan
from planner.running import deadlines
from planner.specs.ask.fleet import FleetRequest
from planner.specs.ask.request import Workload
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.traffic.building import traffic_class
from planner_workshop.staging.asking import cut_stages
from planner_workshop.staging.cuts import flow
from tests.report.rendering import report_text

model, cluster = cache(load_model), cache(load_cluster)
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
SMALL = {"workload": WORKLOAD, "batches": (1, 16, 64), "prefill_batches": (1, 8)}
ASKED = model("llama-3.1-8b"), cluster("h100-nvl8-x2")
ENOUGH = 10_000


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Each look at the clock takes a second; candidates come in many blocks."""
    now = SimpleNamespace(s=0.0)

    def perf_counter():
        now.s += 1.0
        return now.s

    monkeypatch.setattr(deadlines, "time", SimpleNamespace(perf_counter=perf_counter))
    monkeypatch.setattr(candidates, "BLOCK", 100)
    monkeypatch.setattr(candidates, "MOST_REMEMBERED", 0)
    return now


def limited(n_looks):
    return SolverOptions(time_limit_s=float(n_looks))


def planned(n_looks, **asked):
    asked = {"weights_formats": ASKED[0].weights_formats} | asked
    return plan(*ASKED, "roofline", **SMALL, **asked, options=limited(n_looks))


def test_a_plan_of_what_was_looked_at_says_so_and_leaves_no_candidate_out_of_the_account():
    whole, cut = planned(ENOUGH), planned(8)
    assert whole.certificate.status == "optimal"
    assert cut.certificate.status == "feasible"
    assert cut.certificate.bound == 0.0
    assert cut.certificate.objective >= whole.certificate.objective
    counts = {one.name: one.n_candidates for one in cut.certificate.screens}
    assert counts["time"] > 0
    for one in (whole, cut):
        total = sum(screen.n_candidates for screen in one.certificate.screens)
        assert total + one.certificate.n_solved == one.certificate.n_candidates
    assert cut.certificate.n_candidates == whole.certificate.n_candidates
    assert "time ended before they were looked at" in report_text(cut, 100)


def test_more_time_never_gives_a_worse_plan():
    targets = Targets(tpot_s=0.005)
    found = [planned(n, targets=targets) for n in (2, 6, 15, ENOUGH)]
    values = [one.certificate.objective for one in found]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


def test_a_plan_without_time_for_gains_has_none_and_says_so(clock, monkeypatch):
    """The proof is there; what a little more of each limit would gain is not."""
    found = planned(ENOUGH, targets=Targets(tpot_s=0.02))
    assert all(use.gain_fraction is not None for use in found.limits)
    monkeypatch.setattr("planner.planning.shadow_prices.is_over", lambda: True)
    late = planned(ENOUGH, targets=Targets(tpot_s=0.02))
    assert late.certificate.status == "optimal"
    assert [use.gain_fraction for use in late.limits] == [None, None]
    assert report_text(late, 100).count("no time to see what more of it would gain") == 2


def test_nothing_met_in_time_is_exit_3_and_never_called_impossible():
    """The first block is of few devices, which are not as fast as that."""
    targets = Targets(ttft_s=0.005)
    with pytest.raises(OutOfTimeError) as caught:
        planned(1, targets=targets)
    assert caught.value.time_limit_s == 1.0
    assert caught.value.exit_code == 3
    assert planned(ENOUGH, targets=targets).deployment.n_devices > 1


def conflict_of(n_looks):
    with pytest.raises(NoPlanError) as caught:
        planned(n_looks, targets=Targets(tpot_s=1e-5))
    return caught.value.conflict


def test_that_there_is_no_plan_is_said_even_where_why_is_not_known():
    whole = conflict_of(ENOUGH)
    assert [one.name for one in whole.obstacles] == ["tpot"]
    assert whole.verified == EXPLAINED
    n_looks = next(n for n in range(25, 500, 25) if is_proved(n))
    cut = conflict_of(n_looks)
    assert (cut.obstacles, cut.closest, cut.command) == ((), None, "")
    assert cut.verified == UNEXPLAINED
    text = report_text(cut, 100)
    assert "time ended before it was known which limits stand in the way" in text
    assert "reachable" not in text


def is_proved(n_looks):
    """Whether so many looks are enough to see that there is no plan."""
    try:
        conflict_of(n_looks)
    except OutOfTimeError:
        return False
    return True


def test_variants_share_the_time():
    """The second model's blocks are not looked at either."""
    both = planned(4, variants=[model("llama-3.1-minitron-4b-width")])
    assert both.certificate.status == "feasible"


def test_a_frontier_of_what_was_looked_at_claims_no_bound():
    whole = frontier(*ASKED, "roofline", **SMALL, options=limited(ENOUGH))
    cut = frontier(*ASKED, "roofline", **SMALL, options=limited(6))
    assert whole.proof.status == "optimal"
    assert cut.proof.status == "feasible"
    assert cut.points
    assert all(point.bound == 0.0 for point in cut.points)
    assert cut.proof.vouched_by == ()


def test_a_frontier_of_rates_claims_no_bound_either():
    cut = frontier(*ASKED, "roofline", **SMALL, y="throughput", options=limited(6))
    assert {point.bound for point in cut.points} == {math.inf}


def test_cases_of_a_comparison_share_one_limit():
    """The first takes all the time there is; the second is not looked at."""
    models = [model(name) for name in ("llama-3.1-8b", "llama-3.1-70b")]
    asked = {**SMALL, "targets": Targets(tpot_s=0.005)}
    found = compare(models, [ASKED[1]], ["roofline"], **asked, options=limited(60))
    assert found.rows[0].plan is not None
    assert found.rows[1].plan is None
    assert "no plan within 60 s" in found.rows[1].reason


OBSERVED = {"speed_tokens_per_s": 50.0, "batch": 16, "weights_format": "bf16", "workload": WORKLOAD}


def test_an_audit_names_the_changes_that_there_was_no_time_for():
    whole = audit(*ASKED, **OBSERVED, options=limited(ENOUGH))
    assert whole.untried == ()
    n_looks = next(n for n in range(200, 5000, 200) if audited(n))
    cut = audit(*ASKED, **OBSERVED, options=limited(n_looks))
    assert cut.untried
    assert cut.equal_speed == whole.equal_speed
    assert "time ended before these were tried" in " ".join(report_text(cut, 100).split())


def audited(n_looks):
    """Whether so many looks are enough for the distance, which is the least of an audit."""
    try:
        audit(*ASKED, **OBSERVED, options=limited(n_looks))
    except OutOfTimeError:
        return False
    return True


IN_BLOCKS = {
    "workload": WORKLOAD,
    "batches": (1, 8, 16, 32, 64, 128),
    "chunks": (2048, 8192),
    "weights_formats": ("bf16", "fp8"),
    "kv_formats": ("bf16", "fp8"),
}


@pytest.fixture
def _in_small_blocks(monkeypatch):
    """Of an engine's deployments some at a time, so that time may end before all are looked at."""
    monkeypatch.setattr(grids, "ROWS_AT_ONCE", 8)
    monkeypatch.setattr(timer, "MOST_ROWS", 8)
    monkeypatch.setitem(timer.Timer.blocks.__kwdefaults__, "n_first", 8)
    monkeypatch.setitem(grids.blocks.__kwdefaults__, "n_most", 8)


@pytest.mark.usefixtures("_in_small_blocks")
def test_an_engine_plans_over_the_deployments_that_were_timed():
    asked = load_architecture("llama-3.1-8b"), cluster("h100-nvl8-x1")
    whole = plan(*asked, "vllm", **IN_BLOCKS, options=limited(ENOUGH))
    cut = plan(*asked, "vllm", **IN_BLOCKS, options=limited(2))
    assert whole.certificate.status == "optimal"
    assert cut.certificate.status == "feasible"
    assert cut.certificate.objective >= whole.certificate.objective
    assert {one.name: one.n_candidates for one in cut.certificate.screens}["time"] > 0
    total = sum(screen.n_candidates for screen in cut.certificate.screens)
    assert total + cut.certificate.n_solved == whole.certificate.n_candidates
    assert {use.gain_fraction for use in cut.limits} == {None}
    assert cut.alternatives == ()
    with pytest.raises(OutOfTimeError):
        plan(*asked, "vllm", **IN_BLOCKS, targets=Targets(tpot_s=1e-5), options=limited(2))


@pytest.mark.usefixtures("_in_small_blocks")
@pytest.mark.parametrize("n_looks", [4, 7, 19, 28, 43, 58])
def test_wherever_time_ends_an_engine_s_plan_is_what_it_says(n_looks):
    """It goes through the verifier: ties that are listed, what a simpler one gives up."""
    asked = load_architecture("llama-3.1-8b"), cluster("h100-nvl8-x1")
    one = plan(*asked, "vllm", **IN_BLOCKS, options=limited(n_looks))
    assert one.certificate.status in ("optimal", "feasible")
    assert one.n_ties >= sum(it.is_tie for it in one.alternatives)


def test_a_frontier_of_an_engine_is_not_called_empty_where_time_ended(monkeypatch):
    """One device does not hold the model; of those that do the first are timed all the same."""
    monkeypatch.setattr(grids, "ROWS_AT_ONCE", 8)
    asked = load_architecture("llama-3.1-70b"), cluster("h100-nvl8-x1")
    small = {"workload": WORKLOAD, "batches": (1, 8), "chunks": (2048, 8192)}
    whole, cut = (
        frontier(*asked, "vllm", **small, options=limited(n_looks)) for n_looks in (ENOUGH, 2)
    )
    assert 0 < len(cut.points) < len(whole.points)
    assert cut.proof.status == "feasible"


def test_stages_without_time_to_write_their_program_are_exit_3(monkeypatch):
    monkeypatch.setattr(flow, "AT_ONCE", 4)
    asked = load_architecture("llama-3.1-8b"), "h100-sxm:tp1x2"
    with pytest.raises(OutOfTimeError) as caught:
        cut_stages(*asked, batch=4, time_limit_s=3.0)
    assert caught.value.time_limit_s == 3.0
    found = cut_stages(*asked, batch=4, time_limit_s=1e6)
    assert found.certificate.status == "optimal"


def test_economics_without_time_to_evaluate_is_exit_3():
    with pytest.raises(OutOfTimeError):
        plan(*ASKED, "erdil2025", workload=WORKLOAD, batches=(1, 16), options=limited(1))


def test_a_placement_of_the_ways_that_were_made_claims_no_bound():
    wish = Serve(model=ASKED[0], weights_formats=["bf16"])
    asked = {"workload": WORKLOAD, "batches": (1, 16)}
    whole = place(ASKED[1], wish, engine="roofline", **asked, options=limited(ENOUGH))
    cut = place(ASKED[1], wish, engine="roofline", **asked, options=limited(60))
    assert whole.certificate.status == "optimal"
    assert cut.certificate.status == "feasible"
    assert cut.certificate.objective <= whole.certificate.objective
    assert cut.certificate.vouched_by == ()
    assert math.isinf(cut.certificate.bound)


def fleet_within(n_looks, rate):
    """70B on sixteen H100: `rate` requests a second, within percentiles."""
    targets = {"ttft_p95": "1 s", "tpot_p95": "40 ms"}
    asked = traffic_class(
        "chat",
        load_architecture("llama-3.1-70b"),
        rate_per_s=rate,
        targets=targets,
        input=1500,
        output=300,
    )
    pool = load_site("h100-nvl8-x2")
    options = limited(n_looks)
    given = {"engines": ("vllm",), "chunks": (2048,), "most_devices": 8, "n_simulated": 500}
    return fleet(FleetRequest(site=pool, classes=(asked,), options=options, **given))


@pytest.mark.parametrize("rate", [8.0, 200.0], ids=["served", "too few devices"])
def test_a_fleet_is_not_impossible_because_time_ran_out(clock, rate):
    """At whatever look time ends: nothing yet, or a first fleet that holds its targets."""
    ends = []
    for n_looks in (1, 60, 200, 600, ENOUGH):
        try:
            answer = fleet_within(n_looks, rate)
        except OutOfTimeError:
            ends.append("nothing")
            continue
        ends.append(answer.certificate.status)
        assert all(one.is_met for each in answer.classes for one in each.percentiles)
        assert answer.certificate.bound <= answer.certificate.objective * (1 + 1e-9)
        assert 0.0 <= answer.certificate.gap < math.inf
    assert ends[0] == "nothing"
    assert "feasible" in ends
    assert ends[-1] == "optimal"
    order = [ends.index(one) for one in ("nothing", "feasible", "optimal")]
    assert order == sorted(order)


def test_a_frontier_that_time_ends_has_some_of_its_points_and_claims_no_proof():
    whole = frontier(*ASKED, "roofline", **SMALL)
    seen = set()
    for n_looks in range(4, 60, 8):
        try:
            cut = frontier(*ASKED, "roofline", **SMALL, options=limited(n_looks))
        except OutOfTimeError:
            continue
        seen.add(len(cut.points))
        assert cut.proof.status == (
            "optimal" if len(cut.points) == len(whole.points) else "feasible"
        )
    assert len(whole.points) > min(seen)


def test_no_case_of_a_comparison_in_time_is_a_matter_of_time_and_not_of_plans():
    models = [model(name) for name in ("llama-3.1-8b", "llama-3.1-70b")]
    asked, ends = {**SMALL, "targets": Targets(tpot_s=0.005)}, set()
    for n_looks in range(1, 42, 8):
        try:
            found = compare(models, [ASKED[1]], ["roofline"], **asked, options=limited(n_looks))
        except OutOfTimeError:
            ends.add("time")
        else:
            ends.add("a plan" if found.best is not None else "none")
    assert ends == {"time", "a plan"}
