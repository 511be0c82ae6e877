"""What arrives at deployments: as many requests end as come, at times that the simulation has."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.planning.plans import plan
from planner.results.arrivals import Load
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.plans import AnyPlan, EnginePlan
from planner.results.predictions import Prediction
from planner.runtimes.loads import load_of_plan
from planner.runtimes.predicting import Speculating, predict
from planner.specs.ask.targets import Targets
from planner.specs.files.reading import load_architecture, load_cluster, load_model
from planner.specs.records.devices import Workload
from planner.specs.records.roles import DECODE, PREFILL
from planner.verifier.plans import judge_plan
from planner.verifier.predictions import judge_prediction
from planner.verifier.simulation.fleets import saturated_per_s
from tests.report.predictions import FP8, machines
from tests.report.rendering import report_text
from tests.verifier.simulation.queueing import one_server_s
from tests.verifier.simulation.stations import station

N_INPUT, N_OUTPUT = 1000, 200


@cache
def loaded(
    rate: float,
    *,
    batch: int = 32,
    n_shared: int = 0,
    n_samples: int = 1,
    n_drafted: int = 0,
    hit_fraction: float = 0.0,
    role: str = "together",
    **degrees: int,
) -> Prediction:
    drafts = Speculating(kind="eagle", n_drafted=n_drafted, acceptance=(0.8,) * n_drafted)
    return predict(
        load_architecture("qwen3-8b"),
        machines("h100-nvl8-x1", "vllm"),
        deployments(formats=FP8, batch=batch, **degrees),
        Traffic(
            n_input_tokens=N_INPUT,
            n_output_tokens=N_OUTPUT,
            hit_fraction=hit_fraction,
            n_shared_tokens=n_shared,
            n_samples=n_samples,
            role=role,
        ),
        speculating=drafts if n_drafted else None,
        requests_per_s=rate,
    )


def load(one: Prediction) -> Load:
    assert one.load is not None
    return one.load


def percentile_s(one: Load, quantity: str, share: float) -> float:
    return next(
        it.simulated_s for it in one.percentiles if (it.quantity, it.share) == (quantity, share)
    )


def test_a_request_now_and_then_is_alone() -> None:
    """Times are those of one request by itself, within what lies between timed passes."""
    alone, found = loaded(1.0, batch=1), load(loaded(0.001))
    assert found.tpot_s == pytest.approx(alone.itl_s.value, rel=0.01)
    assert found.ttft_s == pytest.approx(alone.ttft_s.value, rel=0.03)
    assert percentile_s(found, "ttft", 0.95) == pytest.approx(alone.ttft_s.value, rel=0.03)


def test_in_flight_is_what_stays_by_littles_law() -> None:
    found = load(loaded(8.0))
    assert found.ttft_s is not None
    assert found.tpot_s is not None
    stay_s = found.ttft_s + (N_OUTPUT - 1) * found.tpot_s
    assert found.n_in_flight == pytest.approx(8.0 * stay_s, rel=1e-9)


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_who_always_waits_is_served_as_fast_as_a_closed_loop_is(batch: int) -> None:
    """Two theories of one thing, that know nothing of each other."""
    one = loaded(1.0, batch=batch)
    closed = one.total_tokens_per_s / N_OUTPUT
    received_s = next(it.seconds for it in one.ttft_parts if "receiving" in it.name)
    if batch == 1:  # who waits has been received meanwhile
        closed = 1.0 / (1.0 / closed - received_s)
    assert load(one).most_requests_per_s == pytest.approx(closed, rel=0.06)


def test_a_place_is_served_as_often_as_its_time_goes_into_a_second() -> None:
    """One place and 10 ms for a prompt of one token; with answers 4 passes of 100 ms more.

    Who waits has been received meanwhile, however long that takes.
    """
    one = station(most_running=1, pass_s=0.01, step_s=0.1, chunk_tokens=1, request_s=7.0)
    assert saturated_per_s(one, 1, 1) == pytest.approx(100.0)
    assert saturated_per_s(one, 1, 5) == pytest.approx(1.0 / 0.41)


def test_ranks_share_what_arrives() -> None:
    one, two = load(loaded(6.0)), load(loaded(12.0, n_data=2))
    assert two.most_requests_per_s == pytest.approx(2.0 * one.most_requests_per_s)
    assert two.n_in_flight == pytest.approx(one.n_in_flight, rel=0.05)


def test_waits_grow_towards_what_is_served_and_have_no_end_beyond() -> None:
    most = load(loaded(1.0)).most_requests_per_s
    half, near, beyond = (load(loaded(share * most)) for share in (0.5, 0.97, 2.5))
    for name in ("ttft", "tpot"):
        assert percentile_s(half, name, 0.99) < percentile_s(near, name, 0.99)
        assert percentile_s(near, name, 0.5) < percentile_s(near, name, 0.95)
    assert (half.is_carried, near.is_carried, beyond.is_carried) == (True, True, False)
    assert near.utilization_fraction == pytest.approx(0.97)
    assert (beyond.n_in_flight, beyond.tpot_s, beyond.ttft_s) == (None, None, None)
    assert (near.n_needed(1), beyond.n_needed(1), beyond.percentiles) == (1, 3, ())
    assert beyond.n_needed(3) == 8  # of 2.5 times three
    assert replace(beyond, requests_per_s=most).n_needed(3) == 4  # as many as end are not carried


def test_prompts_alone_are_a_queue_with_one_server() -> None:
    """M/D/1: a chunk has room for one prompt, and one is read at a time."""
    one = loaded(1.0, role=PREFILL, batch=1, chunk_tokens=N_INPUT)
    most = load(one).most_requests_per_s
    busy = load(loaded(0.6 * most, role=PREFILL, batch=1, chunk_tokens=N_INPUT))
    alone_s = load(loaded(0.0001, role=PREFILL, batch=1, chunk_tokens=N_INPUT)).ttft_s
    assert busy.ttft_s is not None
    assert alone_s is not None
    wait_s = one_server_s(0.6 * most, 1.0 / most)
    assert busy.ttft_s - alone_s == pytest.approx(wait_s, rel=0.15)
    assert busy.tpot_s == 0.0
    assert {it.quantity for it in busy.percentiles} == {"ttft"}


def test_what_is_cached_is_not_read_and_what_is_drafted_is_written_faster() -> None:
    plain, cached, drafted = (
        load(loaded(6.0, **more)) for more in ({}, {"hit_fraction": 0.5}, {"n_drafted": 2})
    )
    times = [(it.ttft_s or 0.0, it.tpot_s or 0.0) for it in (plain, cached, drafted)]
    assert times[1][0] < times[0][0]
    assert times[2][1] < times[0][1]
    assert cached.most_requests_per_s > plain.most_requests_per_s


def test_what_is_shared_leaves_room_for_more() -> None:
    most = loaded(1.0, batch=1024).memory.largest_batch
    few, many = (load(loaded(1.0, batch=most + 100, n_shared=n)) for n in (0, 900))
    assert many.station.room_bytes < few.station.room_bytes  # shared blocks lie there once
    assert many.most_requests_per_s > few.most_requests_per_s


@pytest.mark.parametrize(
    "more",
    [
        {"n_data": 2, "n_drafted": 2},
        {"n_tensor": 2, "n_stages": 2, "hit_fraction": 0.3, "n_shared": 100},
        {"role": DECODE},
        {"n_samples": 4, "n_shared": 100, "n_drafted": 2},
        {"n_samples": 4, "role": DECODE},
    ],
    ids=str,
)
def test_the_verifier_serves_the_requests_again(more: dict[str, int]) -> None:
    assert judge_prediction(loaded(6.0, **more))[1] == []


def test_what_is_altered_of_a_load_is_found() -> None:
    one = loaded(6.0, role=PREFILL)
    says = load(one)
    low = says.percentiles[-1]
    better = (*says.percentiles[:-1], replace(low, simulated_s=0.9 * low.simulated_s))
    for altered, path in (
        (None, ("load",)),
        (replace(says, percentiles=better), ("load", "percentiles", "2", "simulated_s")),
        (replace(says, most_requests_per_s=99.0), ("load", "most_requests_per_s")),
        (replace(says, n_in_flight=None), ("load", "n_in_flight")),
        (replace(says, station=says.station.slowed(decode=1.0, reading=0.5)), ("load", "station")),
    ):
        _, wrong = judge_prediction(replace(one, load=altered))
        assert wrong[0].path[: len(path)] == path


def test_the_report_says_whether_it_is_carried() -> None:
    one, beyond = loaded(6.0), loaded(1e4)
    carried, lost = (" ".join(report_text(it, 100).split()) for it in (one, beyond))
    share = load(one).utilization_fraction
    assert f"carries 6 req/s, {100 * share:.3g} %" in carried
    assert "simulated, with requests that arrive at random times" in carried
    first, _, rest = carried.partition(" latency ")
    assert [it.count(", p50 ") for it in (first, rest)] == [2, 2]
    assert [it.count(", p99 ") for it in (first, rest)] == [2, 2]
    assert "does not carry 10000 req/s" in lost
    assert f"{load(beyond).n_needed(1)} replicas carry it" in lost


@pytest.fixture(scope="module")
def planned() -> EnginePlan:
    found = plan(
        load_architecture("qwen3-8b"),
        load_cluster("h100-nvl8-x1"),
        "vllm",
        workload=Workload(n_input_tokens=N_INPUT, n_output_tokens=N_OUTPUT),
        targets=Targets(tpot_s=0.03, demand_tokens_per_s=20.0 * N_OUTPUT),
        batches=(16, 32),
        chunks=(2048,),
    )
    return found  # type: ignore[return-value]


def test_a_plan_for_a_rate_says_mean_and_tail_of_its_replicas(planned: EnginePlan) -> None:
    best, found = planned.deployment, planned.load
    assert found is not None
    assert found.requests_per_s == pytest.approx(20.0)
    assert found.is_carried
    assert found.most_requests_per_s * N_OUTPUT == pytest.approx(best.output_tokens_per_s, rel=0.1)
    assert found.tpot_s is not None
    assert found.tpot_s < best.planned_tpot_s  # at less than full load
    assert "at 20 req/s" in report_text(planned, 100)


def test_what_a_plan_for_most_cases_counts_is_carried_in_as_many() -> None:
    """A margin is in times once: full batches end what is counted, with the TPOT of the plan."""
    found = plan(
        load_architecture("llama-3.1-70b"),
        load_cluster("h100-nvl8-x2"),
        "vllm",
        workload=Workload(n_input_tokens=1500, n_output_tokens=300),
        targets=Targets(ttft_s=1.0, tpot_s=0.04, demand_tokens_per_s=3800.0),
    )
    best, at = found.deployment, found.load
    assert isinstance(best, EngineDeployment)
    assert at is not None
    assert at.tpot_s is not None
    assert best.planned_tpot_s > 1.2 * best.tpot_s.value
    assert at.most_requests_per_s * 300 == pytest.approx(best.output_tokens_per_s, rel=0.02)
    assert at.tpot_s == pytest.approx(best.planned_tpot_s, rel=0.02)
    asked = replace(best, demand_tokens_per_s=3.0)
    median = {"planned_tpot_s": best.tpot_s.value, "planned_ttft_s": best.ttft_s.value}
    alone_s, usual_s = (
        load_of_plan(found.request, one).ttft_s or 0.0 for one in (asked, replace(asked, **median))
    )
    ratio = best.planned_ttft_s / best.ttft_s.value
    assert alone_s == pytest.approx(ratio * usual_s, rel=0.02)
    assert judge_plan(found)[1] == []


def test_the_verifier_serves_the_requests_of_a_plan_again(planned: EnginePlan) -> None:
    assert judge_plan(planned)[1] == []
    assert planned.load is not None
    faster = replace(planned.load, ttft_s=0.5 * (planned.load.ttft_s or 0.0))
    (wrong,) = judge_plan(replace(planned, load=faster))[1]
    assert wrong.path == ("load", "ttft_s")


@pytest.fixture(scope="module", params=["roofline", "erdil2025"])
def of_layouts(request: pytest.FixtureRequest) -> AnyPlan:
    return plan(
        load_model("llama-3.1-8b"),
        load_cluster("h100-nvl8-x1"),
        request.param,
        workload=Workload(n_input_tokens=N_INPUT, n_output_tokens=N_OUTPUT),
        targets=Targets(tpot_s=0.03, demand_tokens_per_s=2.0 * N_OUTPUT),
        batches=(16, 32),
    )


def test_layouts_for_a_rate_end_as_many_requests_as_their_plan_counts(of_layouts: AnyPlan) -> None:
    best, found = of_layouts.deployment, of_layouts.load
    assert found is not None
    assert found.is_carried
    assert found.most_requests_per_s * N_OUTPUT == pytest.approx(best.output_tokens_per_s, rel=0.02)
    times = found.station.decode
    assert times is not None
    mean = N_INPUT + (N_OUTPUT + 1) / 2
    full_s = times.seconds[-1][times.context_tokens.index(mean)]
    assert full_s == pytest.approx(best.tpot_s, rel=1e-9)  # the account and the arrays agree
    assert "at 2 req/s" in report_text(of_layouts, 100)


def test_reading_as_many_prompts_as_planned_takes_a_layout_its_ttft(of_layouts: AnyPlan) -> None:
    assert of_layouts.load is not None
    times = of_layouts.load.station.reading
    assert (times is None) == isinstance(of_layouts.deployment, EconomicsDeployment)
    if times is not None and isinstance(of_layouts.deployment, Deployment):
        seconds = times.seconds[0][-1][times.span_tokens.index(N_INPUT / 2)]
        assert seconds == pytest.approx(of_layouts.deployment.ttft_s, rel=1e-9)


def test_the_verifier_serves_the_requests_of_layouts_again(of_layouts: AnyPlan) -> None:
    assert judge_plan(of_layouts)[1] == []
    assert of_layouts.load is not None
    slower = of_layouts.load.station.slowed(decode=1.5, reading=1.0)
    for altered in (
        replace(of_layouts.load, n_in_flight=0.5),
        replace(of_layouts.load, station=slower),
    ):
        wrong = judge_plan(replace(of_layouts, load=altered))[1]
        assert wrong
        assert all(one.path[0] == "load" for one in wrong)
