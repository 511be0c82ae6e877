"""What stands beside a fleet: the cheapest that was measured, and if all predictions held."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planner import fleet, load_architecture, load_pool, traffic_class, verify
from planner.placing.floorplans import floorplan_of
from planner.planning.proving.comparing import same_beliefs
from planner.report.as_json import answer_json, digest_of
from planner.verifier.fleets.judging import recounted
from tests.report.rendering import report_page, report_text

CHAT = traffic_class(
    "chat",
    load_architecture("llama-3.1-70b"),
    rate_per_s=6.0,
    input=2000,
    output=500,
    targets={"ttft_p95": "4 s", "tpot_p95": "100 ms"},
)
ASKED = {"weights_formats": ("fp8",), "batches": (4, 24, 256), "chunks": (2048,)}
"""Which TensorRT-LLM was measured at on H100, but for the largest batch."""


@cache
def found(**asked):
    site = load_pool("h100-nvl8-x2")
    return fleet(CHAT, site, "trtllm", n_simulated=4000, **{**ASKED, **asked})


def outside(some):
    return [one.deployment.outside for one in some.recipes if one.deployment.outside]


def test_the_cheapest_inside_is_that_of_batches_that_were_measured():
    best, few = found(), found(batches=(4, 24))
    assert outside(best)
    assert not outside(best.inside)
    assert not outside(few)
    assert best.inside.objective == pytest.approx(few.usd_per_hour)
    assert few.inside.objective == pytest.approx(few.usd_per_hour)
    assert few.inside.recipes == few.recipes


def test_the_cheapest_as_predicted_is_the_fleet_without_confidence():
    best, bare = found(), found(confidence=0.0)
    assert best.anywhere.objective == pytest.approx(bare.usd_per_hour)
    assert bare.inside is bare.anywhere is None


def test_rents_beside_a_fleet_are_those_of_their_pools_and_lose_what_is_said():
    best = found()
    for one in (best.inside, best.anywhere):
        assert sum(it.usd_per_hour for it in one.pools) == pytest.approx(one.objective)
        assert one.objective == pytest.approx(best.usd_per_hour * (1.0 + one.loss_fraction))
        assert all(it.is_met for it in one.classes[0].percentiles if it.at_most_s)
        assert {len(it.deployment.launch.command) > 0 for it in one.recipes} == {True}
    assert best.anywhere.loss_fraction < 0.0 < best.inside.loss_fraction


def test_stations_are_planned_as_predicted_anywhere_and_as_the_fleet_plans_them_inside():
    best = found()
    for one, is_planned in ((best.inside, True), (best.anywhere, True), (best, False)):
        times = [(it.deployment.planned_tpot_s, it.deployment.tpot_s.value) for it in one.recipes]
        assert all(planned == value for planned, value in times) == is_planned


def test_all_of_it_is_true():
    assert verify(found()).is_true


ALTERED = [
    ("inside", "objective"),
    ("inside", "pools", 0, "usd_per_hour"),
    ("inside", "classes", 0, "percentiles", 0, "simulated_s"),
    ("anywhere", "loss_fraction"),
    ("anywhere", "pools", 0, "station", "request_s"),
    ("anywhere", "recipes", 0, "deployment", "planned_tpot_s"),
]


@pytest.mark.parametrize("path", ALTERED, ids=lambda it: ".".join(map(str, it)))
def test_altered_figures_beside_a_fleet_are_told(path):
    record = answer_json(found())
    inner = record["answer"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = inner[path[-1]] * 0.9 + 0.001
    record["digest"] = digest_of(record)
    assert any(one.pointer.startswith(f"/answer/{path[0]}") for one in verify(record).falsehoods)


def test_one_that_was_not_measured_is_not_inside_and_dearer_ones_are_not_the_best():
    best = found()
    swapped = replace(best, inside=best.anywhere)
    assert any(one.path[0] == "inside" for one in recounted(swapped)[1])
    dearer = replace(best, anywhere=best.inside)
    assert any(one.path[0] == "anywhere" for one in recounted(dearer)[1])
    (told,) = same_beliefs(dearer, best, None)
    assert told.path == ("anywhere", "objective")
    assert not [*same_beliefs(best, best, None)]


def test_reports_say_what_stands_beside():
    best = found()
    page = report_page(best, floorplan=floorplan_of(load_pool("h100-nvl8-x2"), None))
    for text in (" ".join(report_text(best, 100).split()), page):
        assert "easured region" in text
        assert "256 requests in flight (judged near it by fewer than 10" in text
        assert "$23.6/h, 33.3 % worse, by 4 × 2 devices TP 2, fp8 weights" in text
        assert "$11.8/h, 33.3 % better, by 1 × 4 devices TP 4, fp8 weights" in text
    assert "measured region" not in report_text(found(confidence=0.0), 100)
