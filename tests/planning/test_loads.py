"""What arrives at one deployment: as many requests end as come, and no more than it serves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner.equations.queueing import one_server, several_servers
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.traffic import Traffic
from planner.report.prediction import prediction_text
from planner.results.arrivals import Load
from planner.results.predictions import Prediction
from planner.runtimes.predicting import predict
from planner.specs.reading import load_architecture
from planner.verifier.predictions import judge_prediction
from tests.report.predictions import FP8, machines

N_OUTPUT = 200


def loaded(rate: float, *, batch: int = 32, **degrees: int) -> Prediction:
    return predict(
        load_architecture("qwen3-8b"),
        machines("h100-nvl8-x1", "vllm"),
        deployments(formats=FP8, batch=batch, **degrees),
        Traffic(n_input_tokens=1000, n_output_tokens=N_OUTPUT),
        requests_per_s=rate,
    )


def stay_s(one: Prediction) -> float:
    """From its prompt to its last token a request has a place."""
    return one.ttft_s.value + (N_OUTPUT - 1) * one.tpot_s.value


def load(one: Prediction) -> Load:
    assert one.load is not None
    return one.load


@pytest.mark.parametrize("n", [1, 2, 7, 31])
def test_as_many_requests_end_as_come(n: int) -> None:
    """L = λ W: where n at a time would end at a rate, that rate has n in flight, at its times."""
    alone = loaded(1.0, batch=n)
    found = load(loaded(n / stay_s(alone)))
    assert found.n_in_flight == pytest.approx(n)
    assert found.tpot_s == pytest.approx(alone.tpot_s.value)


def test_between_two_numbers_in_flight_all_lies_between() -> None:
    few, many = loaded(1.0, batch=7), loaded(1.0, batch=8)
    rates = 7 / stay_s(few), 8 / stay_s(many)
    found = load(loaded(0.75 * rates[0] + 0.25 * rates[1]))
    assert found.n_in_flight == pytest.approx(7.25)
    assert found.tpot_s == pytest.approx(0.75 * few.tpot_s.value + 0.25 * many.tpot_s.value)


def test_a_first_token_waits_for_prompts_and_places_that_random_times_bring() -> None:
    """What one finds under way is half of a round; prompts before it are M/D/1, places M/D/c."""
    n, batch = 24, 26
    closed, full = loaded(1.0, batch=n), loaded(1.0, batch=batch)
    rate = n / stay_s(closed)
    found = load(loaded(rate, batch=batch))
    assert found.n_in_flight == pytest.approx(n)
    parts = {part.name: part.seconds for part in closed.ttft_parts}
    mixed = parts["reading 1000 tokens"] + parts["decodes beside them"]
    rest = closed.ttft_s.value - parts["rest of a pass under way"]
    rest -= parts["others' prompts before it"]
    prompts = one_server(rate, mixed / 8)  # eight prompts of 1000 share a pass of 8192
    places = several_servers(full.n_running, rate, n / rate)
    waits = prompts.mean_s + places.mean_s
    assert found.prompts_wait_s == pytest.approx(prompts.mean_s)
    assert found.place_wait_s == pytest.approx(places.mean_s)
    assert found.ttft_s == pytest.approx(rest + closed.itl_s.value / 2 + waits)
    assert found.ttft_median_s is not None
    assert found.ttft_median_s < found.ttft_s


def test_at_random_times_less_is_carried_than_ends_where_all_places_are_taken() -> None:
    most = load(loaded(1.0)).most_requests_per_s
    waits = [load(loaded(share * most)).place_wait_s for share in (0.5, 0.9, 0.99)]
    assert waits[0] < waits[1] < waits[2]
    assert not load(loaded(most)).is_carried


def test_a_request_now_and_then_is_alone() -> None:
    """Times are those of one request by itself, which is there λ W of the time."""
    alone = loaded(1.0, batch=1)
    found = load(loaded(0.01))
    assert found.n_in_flight == pytest.approx(0.01 * stay_s(alone))
    assert found.tpot_s == alone.tpot_s.value


def test_a_full_deployment_carries_what_it_serves_and_no_more() -> None:
    one = loaded(1.0)
    most = load(one).most_requests_per_s
    assert most == pytest.approx(one.total_tokens_per_s / N_OUTPUT)
    full, beyond = load(loaded(0.999 * most)), load(loaded(most * 2.5))
    assert full.n_in_flight == pytest.approx(32, abs=0.1)
    assert full.is_carried
    assert full.utilization_fraction == pytest.approx(0.999)
    assert full.n_needed == 1
    assert not beyond.is_carried
    assert (beyond.n_in_flight, beyond.tpot_s, beyond.ttft_s, beyond.n_needed) == (
        None,
        None,
        None,
        3,
    )


def test_ranks_share_what_arrives() -> None:
    one, two = load(loaded(6.0)), load(loaded(12.0, n_data=2))
    assert two.n_in_flight == pytest.approx(one.n_in_flight)
    assert two.most_requests_per_s == pytest.approx(2 * one.most_requests_per_s)


def test_where_memory_has_room_for_fewer_the_load_is_of_those() -> None:
    """A batch that does not fit leaves what arrives no more places."""
    most = loaded(1.0, batch=32).memory.largest_batch
    crowded = loaded(1.0, batch=most + 8)
    full = loaded(1.0, batch=crowded.n_running)
    assert crowded.n_running < most + 8
    assert load(crowded).most_requests_per_s == pytest.approx(load(full).most_requests_per_s)


def test_the_verifier_counts_the_load_anew() -> None:
    for rate in (0.01, 5.0, 1e6):
        one = loaded(rate)
        truth, wrong = judge_prediction(one)
        assert wrong == []
        said = load(one).n_in_flight
        if said is None:
            altered = replace(load(one), n_in_flight=3.0, tpot_s=0.01, ttft_s=0.1)
        else:
            altered = replace(load(one), n_in_flight=said + 1.5)
        _, wrong = judge_prediction(replace(one, load=altered))
        assert next(finding.path[:2] for finding in wrong) == ("load", "n_in_flight")
        assert load(truth).n_in_flight == pytest.approx(said)


def test_the_report_says_whether_it_is_carried() -> None:
    carried, beyond = prediction_text(loaded(5.0), 100), prediction_text(loaded(1e4), 100)
    share = load(loaded(5.0)).utilization_fraction
    assert f"carries 5 req/s, {100 * share:.3g} %" in " ".join(carried.split())
    assert "carried, arriving at random times" in " ".join(carried.split())
    assert "in flight" in carried
    assert "does not carry 10000 req/s" in " ".join(beyond.split())
    n_needed = math.ceil(load(loaded(1e4)).utilization_fraction)
    assert f"{n_needed} like it carry them" in " ".join(beyond.split())
    assert "Little" not in beyond
