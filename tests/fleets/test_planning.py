"""Fleets for traffic: the cheapest that the simulation confirms, and what stands in its way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from planner.errors import NoPlanError, OutOfTimeError
from planner.placing.fleets import planning
from planner.placing.fleets.capacity import PRECISION
from planner.placing.fleets.choosing.searching import settled
from planner.placing.fleets.choosing.staircase import staircase
from planner.placing.fleets.planning import fleet
from planner.planning.verification import verify
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.running.deadlines import out_of_time
from planner.specs.ask.fleet import FleetRequest
from planner.specs.files.pools import load_site
from planner.specs.files.reading import load_architecture, load_connector
from planner.specs.records.roles import ALL_TOGETHER, RoleOptions
from planner.specs.traffic.arrivals import POISSON_ARRIVALS, replaying
from planner.specs.traffic.building import traffic_class
from planner.specs.traffic.lengths import TraceLengths
from planner.specs.traffic.records import TrafficClass
from planner.specs.traffic.trace_files import load_trace
from planner.verifier.fleets.judging import recounted
from tests.report.rendering import report_line, report_text

DATA = Path(__file__).parents[1] / "data" / "fleet"
CHAT = {"ttft_p95": "1 s", "tpot_p95": "40 ms"}


def chat(model="llama-3.1-8b", rate=20.0, name="chat", targets=CHAT, **others):
    given = {"input": 1500, "output": 300, **others}
    return traffic_class(name, load_architecture(model), rate_per_s=rate, targets=targets, **given)


def request(*classes, topology="h100-nvl8-x1", **others):
    given = {"most_devices": 1, "chunks": (2048,), "n_simulated": 3000, "confidence": 0.0, **others}
    return FleetRequest(site=load_site(topology), classes=classes, engines=("vllm",), **given)


def keeps_its_targets(answer):
    return all(one.is_met for each in answer.classes for one in each.percentiles)


@cache
def start_up(rate):
    asked = chat("llama-3.1-70b", rate)
    return fleet(request(asked, topology="h100-nvl8-x2", most_devices=8, n_simulated=4000))


@pytest.mark.parametrize(("rate", "n_devices"), [(8.0, 8), (20.0, 16)])
def test_a_start_up_is_told_gpus_degrees_and_what_users_wait(rate, n_devices):
    """70B on H100, p95 of TTFT within a second and of TPOT within 40 ms."""
    answer = start_up(rate)
    assert answer.n_devices == n_devices
    assert {one.deployment.n_tensor for one in answer.recipes} == {4}
    assert all("--tensor-parallel-size 4" in str(one.deployment.launch) for one in answer.recipes)
    assert keeps_its_targets(answer)
    assert answer.certificate.status == "optimal"
    assert answer.fluid_usd_per_hour <= answer.certificate.bound <= answer.usd_per_hour * (1 + 1e-9)
    for pool in answer.pools:  # none is sent more than it is said to serve
        assert pool.rate_per_s <= pool.n_replicas * pool.replica_rate_per_s * (1 + 1e-9)


def test_where_time_ends_what_was_carried_by_then_goes_out(monkeypatch):
    asked = request(chat(targets={"ttft_p95": "300 ms", "tpot_p95": "12 ms"}))

    def ends(market):
        settled(market)
        raise out_of_time()

    monkeypatch.setattr(planning, "weighed", ends)
    answer = fleet(asked)
    assert keeps_its_targets(answer)
    assert answer.certificate.bound > answer.fluid_usd_per_hour  # what was looked at counts
    monkeypatch.undo()
    assert answer.usd_per_hour == fleet(asked).usd_per_hour


def test_where_time_ends_before_anything_is_carried_there_is_no_fleet(monkeypatch):
    def ends(market):
        raise out_of_time()

    monkeypatch.setattr(planning, "weighed", ends)
    with pytest.raises(OutOfTimeError):
        fleet(request(chat()))


def test_the_same_rent_serves_as_much_as_it_says_and_no_more():
    answer = start_up(8.0)
    asked = answer.request.classes[0]

    def rent(times):
        more = replace(asked, rate_per_s=asked.rate_per_s * answer.most_factor * times)
        return fleet(replace(answer.request, classes=(more,))).usd_per_hour

    assert rent(0.9) == pytest.approx(answer.usd_per_hour)
    assert rent(1.02) > answer.usd_per_hour


def replayed(name, arrivals=None) -> TrafficClass:
    trace = load_trace(DATA / f"azure2023_{name}.csv.gz")
    return TrafficClass(
        name=name,
        models=(load_architecture("llama-3.1-8b"),),
        rate_per_s=trace.rate_per_s,
        lengths=TraceLengths(trace=trace),
        arrivals=arrivals or replaying(trace),
        targets=chat(targets={"ttft_p95": "2 s", "tpot_p95": "50 ms"}).targets,
    )


def test_bursts_cost_what_a_mean_rate_does_not_see():
    """Azure's code trace: its busiest minute has four times the requests of a mean one."""
    steady = fleet(request(replayed("code", POISSON_ARRIVALS)))
    bursty = fleet(request(replayed("code")))
    assert steady.n_devices < bursty.n_devices
    assert keeps_its_targets(bursty)
    assert bursty.simulated.n_requests == len(load_trace(DATA / "azure2023_code.csv.gz"))


def test_who_comes_first_is_served_first():
    first = chat("llama-3.1-8b", 60.0, name="first", priority=1)
    second = chat("llama-3.1-8b", 200.0, name="second")
    answer = fleet(request(first, second, topology="h100-nvl8-x1"))
    served = {one.name: one.served_fraction for one in answer.classes}
    assert served["first"] == 1.0
    assert 0.0 < served["second"] < 1.0
    assert not answer.is_whole
    assert keeps_its_targets(answer)


def test_a_target_that_no_replica_meets_is_told_with_the_least():
    with pytest.raises(NoPlanError) as refused:
        fleet(request(chat(targets={"tpot_p50": "1 ms", "ttft_p95": "1 s"})))
    (obstacle,) = refused.value.conflict.obstacles
    assert obstacle.name == "TPOT p50 of chat"
    assert obstacle.asked == 1e-3 < obstacle.reachable < 0.02
    assert "$2.95/h; as predicted, " in obstacle.reason
    assert "error" not in obstacle.reason


def test_what_misses_a_target_by_less_than_times_are_off_is_said_to():
    """The least TTFT is no bound: an hour of measuring may find it within the target."""

    def refused(ttft):
        with pytest.raises(NoPlanError) as caught:
            fleet(request(chat(targets={"ttft_p50": ttft})))
        return caught.value.conflict.obstacles[0]

    least_s = refused("1 ms").reachable
    close = refused(f"{950 * least_s} ms")
    assert "as predicted, 5.26 % beyond: within the error of prediction" in close.reason
    assert "at least" not in close.reason


def test_classes_of_a_model_share_replicas_where_that_is_cheaper():
    some = [chat(rate=rate, name=name) for rate, name in ((3.0, "a"), (4.0, "b"))]
    shared = fleet(request(*some))
    apart = fleet(request(*some, sharing=False))
    assert shared.n_devices == 1 < apart.n_devices == 2
    assert shared.pools[0].classes == ("a", "b")
    assert keeps_its_targets(shared)


def test_long_prompts_have_replicas_of_their_own_where_that_is_cheaper():
    lengths = {"input": "lognormal:1500:p99=16000:max=32000", "output": 200}
    targets = {"ttft_p95": "500 ms", "tpot_p95": "20 ms"}
    asked = chat(rate=40.0, targets=targets, **lengths)
    one = fleet(request(asked, most_devices=2))
    divided = fleet(request(replace(asked, cuts="free"), most_devices=2))
    assert divided.usd_per_hour <= one.usd_per_hour
    assert keeps_its_targets(divided)
    ends = sorted({(pool.above_tokens, pool.upto_tokens) for pool in divided.pools})
    assert ends[0][0] == 0.0
    assert ends[-1][1] == float("inf")
    assert all(upto == above for (_, upto), (above, _) in pairwise(ends))


@cache
def by_roles(name, connector=None):
    """8B with long prompts and a strict TPOT: others' prompts are what tokens wait for."""
    asked = chat(
        rate=20.0,
        input=4000,
        output=200,
        targets={"ttft_p95": "1 s", "tpot_p95": "12 ms"},
    )
    roles = RoleOptions(name=name, connector=load_connector(connector)) if connector else None
    return fleet(request(asked, most_devices=2, roles=roles or ALL_TOGETHER))


def test_the_connector_decides_whether_phases_are_apart():
    together, quick, measured = (
        by_roles("together"),
        by_roles("free", "wire"),
        by_roles("free", "nixl"),
    )
    assert quick.usd_per_hour <= 0.85 * together.usd_per_hour
    assert {one.role for one in quick.recipes} == {"prefill", "decode"}
    assert quick.handovers
    assert measured.usd_per_hour == pytest.approx(together.usd_per_hour)
    assert {one.role for one in measured.recipes} == {"together"}
    assert by_roles("apart", "nixl").usd_per_hour > 1.15 * together.usd_per_hour
    assert all(map(keeps_its_targets, (together, quick, measured, by_roles("apart", "nixl"))))


def test_steps_follow_each_other_and_each_is_proved():
    asked = request(chat(rate=10.0))
    found = staircase(asked, lowest_per_s=1.0, highest_per_s=60.0)
    assert found.is_whole
    assert found.steps[0].above_factor == pytest.approx(0.1)
    assert found.steps[-1].upto_factor == pytest.approx(6.0)
    for before, after in pairwise(found.steps):
        assert after.above_factor == pytest.approx(before.upto_factor, rel=1e-5)
        assert after.usd_per_hour > before.usd_per_hour
    assert all(one.bound_usd_per_hour == pytest.approx(one.usd_per_hour) for one in found.steps)
    parted = staircase(asked, lowest_per_s=1.0, highest_per_s=60.0, workers=2)
    assert [one.usd_per_hour for one in parted.steps] == [one.usd_per_hour for one in found.steps]
    assert [one.upto_factor for one in parted.steps] == pytest.approx(
        [one.upto_factor for one in found.steps], rel=PRECISION
    )


def test_answers_of_one_token_are_planned_too():
    asked = chat(output=1, targets={"ttft_p95": "1 s"})
    answer = fleet(request(asked, n_simulated=2000))
    assert answer.pools[0].rate_per_s == pytest.approx(20.0)
    assert keeps_its_targets(answer)


def test_a_rent_that_serves_only_a_part_ends_with_that_part():
    asked = request(chat(rate=60.0), limits={"rent": 6.0}, n_simulated=2000)
    answer = fleet(asked)
    assert 0.2 < answer.classes[0].served_fraction < 1.0
    assert answer.usd_per_hour <= 6.0


def test_nobody_is_counted_before_a_fleet_is_full():
    """More come while one stays than a short run has: it is lengthened."""
    answer = fleet(request(chat(rate=150.0), topology="h100-nvl8-x2", n_simulated=1000))
    assert answer.simulated.n_requests > 1000
    stay_s = 300 * answer.classes[0].percentiles[1].simulated_s / 2.0
    assert answer.simulated.n_warm_up > 150.0 * stay_s


def test_however_much_comes_what_can_be_served_is():
    """A million requests a second: eight devices serve some hundreds of them."""
    answer = fleet(request(chat(rate=1e6, targets={"ttft_p95": "1 s"})))
    (served,) = answer.classes
    assert 0.0 < served.served_fraction < 1e-3
    assert answer.usd_per_hour == pytest.approx(8 * 2.95, rel=0.01)


def test_a_class_that_no_simulated_request_is_of_is_not_said_to_be_within_its_targets():
    """One request of a million: 3000 are simulated."""
    goal = {"goodput": "99%", "e2e": "10 s"}
    some = chat(rate=1.0, name="few", targets=goal), chat(rate=1e6, name="many")
    answer = fleet(request(*some, sharing=False))
    few, _ = answer.classes
    assert not few.is_tried
    assert few.goodput.is_met is None
    assert "few without all but" in report_line(answer)
    assert "its targets rest on replicas simulated by themselves" in " ".join(
        report_text(answer, 100).split()
    )
    again = read_answer(dumps(answer_json(answer)), shown="fleet.json").answer
    assert recounted(again)[1] == []


def test_stations_that_nobody_measured_are_as_slow_as_nine_of_ten_are_quick():
    """What is outside is slower by its own interval; a fleet of it is no cheaper, and verified."""
    plain, usual = (fleet(request(chat(), confidence=one)) for one in (0.0, None))
    assert usual.usd_per_hour >= plain.usd_per_hour
    for pool, recipe in zip(usual.pools, usual.recipes, strict=True):
        one = recipe.deployment
        assert one.outside
        assert one.planned_tpot_s > one.tpot_s.value * 1.05
        slower = one.planned_tpot_s / one.tpot_s.value
        as_predicted = fleet(
            request(chat(), confidence=0.0, batches=(one.batch,), chunks=(one.chunk_tokens,))
        )
        seconds = as_predicted.pools[0].station.decode.seconds
        assert pool.station.decode.seconds[0][0] == pytest.approx(slower * seconds[0][0])
    assert verify(usual).is_true
