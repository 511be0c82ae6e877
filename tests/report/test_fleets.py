"""Fleets as text, tables, pages and JSON: every figure is found again."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from planner.errors import SpecError
from planner.placing.floorplans import floorplan_of
from planner.report.answers.fleet_rows import bound_rows
from planner.report.answers.fleet_words import rate
from planner.report.as_json import answer_json, dumps
from planner.report.saved import read_answer
from planner.results.fleets import CURVE, FleetAlternative, FleetPlan, Refuted, Round
from tests.report.fleets import APART, FLEET, STAIRCASE
from tests.report.rendering import report_csv, report_line, report_page, report_text

SVG = "{http://www.w3.org/2000/svg}"
FLOORPLAN = floorplan_of(FLEET.request.site, FLEET.request.state)


def short() -> FleetPlan:
    """The fleet with three quarters of a class, and a target of it missed."""
    chat, mine = FLEET.classes
    first, *others = chat.percentiles
    missed = replace(first, simulated_s=0.0611)
    chat = replace(chat, served_fraction=0.75, percentiles=(missed, *others))
    return replace(FLEET, classes=(chat, mine))


def read(plan: object) -> FleetPlan:
    found: FleetPlan = read_answer(dumps(answer_json(plan)), shown="fleet.json").answer
    return found


def test_the_first_line_says_devices_rent_costs_and_what_is_kept():
    assert report_line(FLEET).startswith("2 replicas on 2 h100-sxm: $5.9/h, $")
    assert report_line(FLEET).endswith("; chat meets its targets; mine meets its targets")
    assert "chat without 25 % of its requests and TTFT p95" in report_line(short())


def test_costs_are_the_rent_over_all_tokens():
    chat, mine = FLEET.classes
    written = sum(one.rate_per_s * one.n_output_tokens for one in (chat, mine))
    assert f"${5.9 / 3600 / written * 1e6:.3g}/Mtoken out" in report_line(FLEET)


@pytest.mark.parametrize("plan", [FLEET, APART], ids=["together", "apart"])
@pytest.mark.parametrize("width", [60, 100])
def test_the_text_keeps_its_width_but_for_commands_and_tables(plan, width):
    text = report_text(plan, width, floorplan=FLOORPLAN)
    sections = text.split("\n\n")
    tables = ("latency", "hand-over", "costs", "over demand", "certificate")
    for section in sections:
        if not section.startswith(tables):
            assert all(
                len(line) <= width or line.startswith("vllm ") for line in section.split("\n")
            )


def test_each_pool_says_what_it_serves_who_says_how_much_and_how_it_is_started():
    text = report_text(APART, 200)
    assert "chat up to 200 prefill: 1 × 1 device to prefill" in text
    assert "chat, prompts up to 200 tokens, then handed to chat up to 200 decode: " in text
    assert "each of at most" in text
    assert "as simulated" in text
    assert text.count("each replica of `") == len(APART.recipes)
    assert text.count("\nvllm serve") == len(APART.recipes)


def test_an_engine_is_started_for_the_longest_request_and_not_for_a_usual_one():
    assert f"--max-model-len {400 + 12} " in report_text(FLEET, 100)
    low = next(one for one in APART.pools if one.upto_tokens == 200.0)
    assert APART.n_longest_tokens(low) == 200 + 12


def test_percentiles_stand_beside_their_targets_with_their_intervals():
    (line,) = [
        one for one in report_text(FLEET, 100).split("\n") if "≤ 50 ms" in one and "±" in one
    ]
    one = FLEET.classes[0].percentiles[0]
    assert line.split()[:3] == ["chat", "TTFT", "p95"]
    assert f"{one.simulated_s * 1e3:.3g} ms ± " in line
    assert line.endswith("yes")


def test_goodput_is_told_as_a_share():
    (line,) = [one for one in report_text(FLEET, 100).split("\n") if " goodput " in one]
    assert "≥ 90 %" in line
    assert line.endswith("yes")


def test_what_is_not_served_or_missed_is_warned_of():
    text = report_text(short(), 200)
    assert "warning: `chat` is served to 75 %: there are too few devices for 30 req/s" in text
    assert "warning: TTFT p95 of `chat` is 61.1 ms as simulated, above its target of 50 ms" in text
    assert "warning:" not in report_text(FLEET, 100)


def test_rounds_say_what_was_refuted():
    refuted = Refuted(
        pool="chat",
        target="TTFT p95",
        class_name="chat",
        at_most_s=1.0,
        simulated_s=1.25,
        before_per_s=4.0,
        after_per_s=3.0,
    )
    first = Round(usd_per_hour=2.95, n_devices=1, refuted=(refuted,))
    text = report_text(replace(FLEET, rounds=(first, *FLEET.rounds)), 200)
    assert (
        "1  $2.95/h, 1 device: refuted, TTFT p95 of chat is 25 % beyond 1 s: capacity of a "
        "replica of `chat` lowered from 4 req/s to 3 req/s"
    ) in text
    assert "2  $5.9/h, 2 devices: the simulation keeps every target" in text


def test_both_bounds_are_told_apart():
    text = report_text(replace(FLEET, fluid_usd_per_hour=2.95, most_factor=1.5), 300)
    assert "program       rent $5.9/h, bound $5.9/h, gap 0 %" in text
    assert (
        "any fleet     $2.95/h: no fleet of these deployments is cheaper, however classes share"
        in text
    )
    assert "50 % of the rent is above it" in text
    served = f"{1.5 * FLEET.request.rate_per_s:.3g} req/s"
    assert "next step     some fleet of this rent serves up to 1.5 times" in text
    assert f"what this one serves now, {served}" in text


def test_alternatives_are_priced_against_the_answer():
    some = (
        FleetAlternative(name="apart", usd_per_hour=8.85, n_devices=3),
        FleetAlternative(name="without h100-sxm", usd_per_hour=None, n_devices=None),
    )
    lines = report_text(replace(FLEET, alternatives=some), 100).split("\n")
    assert "  $8.85/h  +50 %        3  apart" in lines
    assert any(one.endswith("without h100-sxm: there is none") for one in lines)


def test_what_percentiles_are_of_is_told_of_those_that_are_there():
    text = report_text(FLEET, 200)
    assert "TTFT of a request: from its arrival to its first token; over all requests" in text
    assert "goodput: the share of requests" in text
    assert "ITL:" not in text


def test_the_table_has_a_row_a_pool():
    rows = list(csv.DictReader(io.StringIO(report_csv(APART))))
    assert [one["pool"] for one in rows] == [one.name for one in APART.pools]
    assert [float(one["usd_per_hour"]) for one in rows] == [2.95] * 4
    assert [one["upto_tokens"] for one in rows].count("") == 2  # what has no end
    assert all(one["command"].startswith("vllm serve") for one in rows)


def test_a_staircase_says_each_step_and_how_far_from_its_bound():
    text = report_text(STAIRCASE, 100)
    rate = FLEET.request.rate_per_s
    assert text.startswith("4 steps from $2.95/h to $11.8/h over 0 req/s to ")
    assert "none further than 1 % from its bound; beyond, there are too few devices" in (
        text.replace("\n", " ")
    )
    rows = list(csv.DictReader(io.StringIO(report_csv(STAIRCASE))))
    assert [float(one["upto_requests_per_s"]) for one in rows] == [
        pytest.approx(rate * k / 2) for k in (1, 2, 3, 4)
    ]


def page(plan: FleetPlan, **others: object) -> ET.Element:
    text = report_page(plan, **others)  # type: ignore[arg-type]
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>\n"))


def test_the_page_is_sound_with_map_waits_and_rents():
    found = page(FLEET, staircase=STAIRCASE, floorplan=FLOORPLAN)
    charts = {one.get("id"): one for one in found.iter(f"{SVG}svg") if one.get("id")}
    waits = {f"waits{i}-{quantity}" for i in (0, 1) for quantity in ("ttft", "tpot")}
    assert charts.keys() == waits | {"rents"}
    for name in ("waits0-ttft", "waits0-tpot"):  # TTFT p95 and TPOT p90
        rings = [one for one in charts[name].iter(f"{SVG}circle") if one.get("class") == "ring"]
        assert len(rings) == 1
    held = [one for one in found.iter(f"{SVG}rect") if (one.get("class") or "").startswith("d h")]
    assert len(held) == 2
    assert {one.get("class") for one in held} == {"d h0 s0", "d h1 s0"}  # a hue a pool
    assert len(list(charts["rents"].iter(f"{SVG}use"))) == 4


@pytest.mark.parametrize("at_most_s", [0.02, 0.001], ids=["kept", "missed"])
def test_the_curve_is_left_of_the_ring_just_if_the_target_is_kept(at_most_s):
    chat, mine = FLEET.classes
    first, tpot, *others = chat.percentiles
    asked = (first, replace(tpot, at_most_s=at_most_s), *others)
    found = page(replace(FLEET, classes=(replace(chat, percentiles=asked), mine)))
    drawing = next(one for one in found.iter(f"{SVG}svg") if one.get("id") == "waits0-tpot")
    (ring,) = (one for one in drawing.iter(f"{SVG}circle") if one.get("class") == "ring")
    (dot,) = [one for one in drawing.iter(f"{SVG}use") if one.get("y") == ring.get("cy")]
    is_left = float(dot.get("x", 0)) < float(ring.get("cx", 0))
    assert is_left == (tpot.simulated_s < at_most_s)


def test_a_class_that_is_not_served_has_no_curve_and_no_harm():
    chat, mine = FLEET.classes
    gone = replace(
        mine,
        served_fraction=0.0,
        percentiles=(),
        goodput=None,
        curve_s=((), ()),
        usd_per_hour=0.0,
    )
    plan = replace(FLEET, classes=(chat, gone))
    assert [one.get("id") for one in page(plan).iter(f"{SVG}svg") if one.get("id")] == [
        "waits0-ttft",
        "waits0-tpot",
    ]
    assert "mine without 100 % of its requests" in report_text(plan, 200)


def test_names_from_files_are_shown_and_not_obeyed():
    evil = "<script>x</script>"
    pools = (replace(FLEET.pools[0], name=evil), FLEET.pools[1])
    assert evil not in report_page(replace(FLEET, pools=pools))


@pytest.mark.parametrize("plan", [FLEET, APART, STAIRCASE], ids=["fleet", "apart", "staircase"])
def test_a_fleet_is_read_back_with_its_traffic(plan):
    assert read(plan).request == plan.request


def test_a_trace_is_read_back_once_so_that_it_is_replayed():
    """Lengths go with arrivals only of the same trace."""
    asked = read(FLEET).request.classes[1]
    assert asked.lengths.trace is asked.arrivals.trace  # type: ignore[union-attr]
    first = [next(one.requests(1)) for one in (asked, FLEET.request.classes[1])]
    assert first[0] == first[1]


@pytest.mark.parametrize("text", ["", "1 x", "1  2", "nan", 3, None, "1e400"])
def test_a_trace_that_is_no_numbers_is_refused_at_its_place(text):
    record = answer_json(FLEET)
    record["request"]["classes"][1]["lengths"]["trace"]["arrival_s"] = text
    with pytest.raises(SpecError) as refused:
        read_answer(json.dumps(record), shown="fleet.json")
    (problem,) = refused.value.problems
    assert problem.key == "/request/classes/1/lengths/trace/arrival_s"
    assert problem.fact == "is no text of numbers with a space between"


def test_curves_are_as_many_as_their_shares():
    assert all(len(curve) == len(CURVE) for one in FLEET.classes for curve in one.curve_s)


def test_what_more_traffic_costs_nothing_is_said_of_this_fleet_and_of_another():
    """Rates of its own pools say what this one serves; another of its rent may serve more."""
    more = replace(FLEET, most_factor=3.0)
    (words,) = (text for label, text in bound_rows(more) if label == "next step")
    served = sum(one.rate_per_s for one in FLEET.classes)
    own = min(one.n_replicas * one.replica_rate_per_s / one.rate_per_s for one in FLEET.pools)
    assert "some fleet of this rent serves up to 3 times what this one serves now" in words
    assert words.endswith(f"this one up to {rate(own * served)}")
    assert own < 3.0


def test_no_fleet_is_called_the_best_there_is():
    text = " ".join(report_text(FLEET, 100).split())
    assert "optimal: no cheaper fleet meets the targets in simulation" in text
    assert "no plan" not in text
