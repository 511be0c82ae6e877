"""Whose times an answer has, how far off such times were, and how sure that makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.report.accuracy import accuracy_sections
from planner.report.as_json import answer_json
from planner.report.region import outside_words
from planner.report.times import times_of
from planner.specs.ask.request import repriced
from planner.specs.files.pools import GroupSpec, PoolSpec
from planner.specs.files.reading import load_cluster
from planner.specs.records.runtimes import judged_on
from planner.specs.region import Outside
from tests.report import (
    economics_examples,
    engines,
    examples,
    fleets,
    floorplans,
    placements,
    predictions,
    staging,
    surveys,
)
from tests.report.rendering import report_text

WIDTH = 100
ANSWERS = {
    "plan": examples.PLAN,
    "engine": engines.ENGINE_PLAN,
    "engine audit": engines.ENGINE_AUDIT,
    "audit": surveys.AUDIT,
    "prediction": predictions.PREDICTION,
    "economics": economics_examples.ECONOMICS_PLAN,
    "comparison": surveys.COMPARISON,
    "frontiers": [engines.ENGINE_CURVE],
    "placement": placements.PLACEMENT,
    "repair": floorplans.REPAIR,
    "conflict": examples.CONFLICT,
    "engine conflict": engines.ENGINE_CONFLICT,
}


def rows_of(answer):
    pairs = [block for each in accuracy_sections(answer) for block in each.blocks]
    return [row for block in pairs for row in block.rows if row[1]]


def said_of(answer, label):
    return [text for name, text in rows_of(answer) if name == label]


def times_text(answer):
    """Whose times they are, and how far off."""
    return " ".join(text for label, text in rows_of(answer) if label in ("times", ""))


@pytest.mark.parametrize("name", ANSWERS)
def test_every_report_says_whose_times_it_has_and_on_its_first_screen_how_sure_they_are(name):
    answer = ANSWERS[name]
    (sure,) = said_of(answer, "how sure")
    first, _, rest = (
        " ".join(it.split()) for it in report_text(answer, WIDTH).partition("\naccuracy\n")
    )
    assert f"how sure {sure}" in first
    assert "accuracy" not in rest
    assert all((text in rest) is (label != "how sure") for label, text in rows_of(answer))


def test_how_sure_an_answer_is_follows_from_where_its_settings_were_measured():
    plan, inside = engines.ENGINE_PLAN, replace(engines.ENGINE_PLAN.deployment, outside=())
    (sure,) = said_of(plan, "how sure")
    assert sure.startswith("outside of what was measured: TP 1; bf16 weights; 2,048 tokens in")
    assert sure.endswith("; planned so that 90 % of cases hold")
    (sure,) = said_of(replace(plan, deployment=inside), "how sure")
    known = {
        one.quantity: one for one in sorted(times_of(plan)[0].judged, key=lambda it: it.n_rows)
    }
    errors = [
        f"mean error {100 * one.mean_error_fraction:.3g} % of {name} in {one.n_rows} measurements "
        "on h100-sxm"
        for name, one in known.items()
    ]
    assert sure == f"inside of what was measured: {', '.join(errors)}"
    as_predicted = replace(plan, request=replace(plan.request, confidence=0.0))
    (sure,) = said_of(as_predicted, "how sure")
    assert "planned" not in sure
    (sure,) = said_of(examples.PLAN, "how sure")
    assert sure == "never compared with measurements: layouts on a roofline, dense models on toy"
    assert not rows_of(staging.STAGES)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("engine audit", "bf16 weights; 2,048 tokens in, 64 out; TP 1"),
        ("engine conflict", "bf16 weights; 2,048 tokens in, 64 out; planned so that 90 % of cases"),
        ("frontiers", "TP 1; bf16 weights; 2,048 tokens in, 64 out; PP 3"),
    ],
)
def test_answers_of_several_deployments_are_as_sure_as_the_least_of_those_they_show(name, says):
    (sure,) = said_of(ANSWERS[name], "how sure")
    assert sure.startswith(f"outside of what was measured: {says}")


def test_a_conflict_has_the_times_of_the_engine_of_its_hint():
    conflict, best = engines.ENGINE_CONFLICT, engines.ENGINE_CONFLICT.closest
    other = replace(conflict.request, engine="trtllm")
    moved = replace(best, engine="trtllm")
    asked = replace(conflict, closest=moved, relaxations=(), other_requests=(other,))
    assert [one.runtime for one in times_of(asked)] == ["trtllm"]
    assert [one.runtime for one in times_of(replace(asked, closest=None))] == ["vllm"]


def test_requests_in_flight_are_one_or_from_the_least_to_the_most():
    def words(*loads):
        outside = (Outside(property="batch", value=n, deviation_fraction=0.1) for n in loads)
        return outside_words(outside, "trtllm", "h100-sxm", "dense")

    assert words("1") == ["1 request in flight: nearest judged 8"]
    assert words("1", "3", "2", "1") == ["1 to 3 requests in flight: nearest judged 8"]


def test_nearly_all_cases_are_not_called_all_of_them():
    plan = engines.ENGINE_PLAN
    sure = replace(plan, request=replace(plan.request, confidence=0.999999))
    assert said_of(sure, "how sure")[0].endswith("; planned so that over 99.9 % of cases hold")


def test_replicas_of_one_phase_have_no_prompts_of_others_in_their_tpot():
    said = said_of(fleets.APART, "schedule")
    assert len(said) == 2
    assert all(text.startswith("apart: ") for text in said)


def test_replicas_of_more_devices_than_any_that_was_measured_are_outside_and_it_is_said_how_far():
    """64 chips are the most of [Pope2022]'s tables; of more its Figure 1 has one figure."""
    slices = load_cluster("tpu-v4-4x8x8")
    mesh, request = examples.DEPLOYMENT.mesh, replace(examples.PLAN.request, cluster=slices)
    for n_devices, is_outside in ((64, False), (128, True)):
        deployment = replace(examples.DEPLOYMENT, mesh=replace(mesh, n_devices=n_devices))
        plan = replace(examples.PLAN, request=request, deployment=deployment)
        said = "".join(said_of(plan, "outside"))
        beyond = "128 devices (measured on 64 at most; the least step of [Pope2022] on"
        assert said.startswith(beyond) is bool(said) is is_outside
        assert said_of(plan, "how sure")[0].startswith("outside") is is_outside


def test_a_report_says_what_its_times_were_judged_on_and_no_more():
    plan = engines.ENGINE_PLAN
    known = judged_on("vllm", "h100-sxm", "dense")
    (found,) = times_of(plan)
    assert found.judged == known
    assert [one.quantity for one in known] == ["TPOT", "TPOT", "TTFT"]
    assert ["nobody says how requests were sent" in one.rows for one in known] == [0, 1, 0]
    text = times_text(plan)
    assert "vLLM's schedule, kernels measured under vllm 0.24.0 for h100-sxm TPOT" in text
    for one in known:
        assert f"{100 * one.mean_error_fraction:.3g} % off in {one.n_rows} measurements" in text
        assert one.rows in text
    elsewhere = replace(plan.request.cluster, device="l40s")
    moved = replace(plan, request=replace(plan.request, cluster=elsewhere))
    (found,) = times_of(moved)
    assert found.judged == ()
    assert "for l40s: not judged on dense models there" in times_text(moved)


def test_other_kernels_than_measured_ones_are_called_assumed():
    bare = replace(predictions.PREDICTION, measured_by=())
    assert "SGLang's schedule, kernels assumed for h20" in times_text(bare)


@pytest.mark.parametrize(
    ("curve", "whose"),
    [
        (surveys.CURVE, "layouts on a roofline"),
        (economics_examples.ECONOMICS_CURVE, "decoding by Erdil 2025"),
        (economics_examples.ECONOMICS_MIXTURE, "decoding by Erdil 2025"),
        (engines.ENGINE_CURVE, "vLLM's schedule"),
    ],
)
def test_a_frontier_has_the_times_of_what_traced_it(curve, whose):
    (found,) = times_of([curve])
    assert found.whose.startswith(whose)
    assert times_of(curve.frontier) == (found,)


def test_the_paper_of_2025_was_judged_on_no_measurement():
    assert rows_of(economics_examples.ECONOMICS_PLAN) == [
        ("how sure", "never compared with measurements: decoding by Erdil 2025"),
        ("times", "decoding by Erdil 2025: not judged on measurements"),
        ("schedule", "turns: TPOT is a decode pass by itself; prefill is not planned"),
    ]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_report_says_what_its_tpot_and_its_cache_are(name):
    """Once, and the answer as JSON has the word."""
    answer = ANSWERS[name]
    (text,) = said_of(answer, "schedule")
    is_turns = name in ("plan", "audit", "economics", "placement", "repair", "conflict")
    said = "turns" if is_turns else "interleaved"
    said = "turns" if name == "comparison" else said
    assert text.startswith(f"{said}: TPOT ")
    assert {one.schedule for one in times_of(answer)} == {said}


def test_answers_carry_them():
    record = answer_json(engines.ENGINE_PLAN)
    (found,) = record["times"]
    assert (found["runtime"], found["schedule"]) == ("vllm", "interleaved")
    assert found["judged"][0]["n_rows"] == judged_on("vllm", "h100-sxm", "dense")[0].n_rows
    assert answer_json(placements.PLACEMENT)["times"]
    assert answer_json(examples.PLAN)["times"][0]["runtime"] == "roofline"


@pytest.mark.parametrize(
    ("pools", "says"),
    [
        (("h100-nvl8-x1", "b200-nvl8-x1"), ["h100-sxm 2026-05", "b200 2026-08"]),
        (("h100-nvl8-x1", "h200-nvl8-x1"), []),
        (("h100-nvl8-x1",), []),
    ],
)
def test_prices_of_several_dates_are_said_beside_what_is_chosen_by_them(pools, says):
    placed = placements.PLACEMENT
    groups = tuple(
        GroupSpec(name=name, cluster=load_cluster(name), n_nodes_per_leaf=1) for name in pools
    )
    site = PoolSpec(name="several", title="several", groups=groups)
    text = "".join(said_of(replace(placed, request=replace(placed.request, site=site)), "prices"))
    assert text.startswith("not of one date and kind") is bool(says)
    assert all(one in text for one in says)
    cheap = tuple(replace(one, cluster=repriced(one.cluster, 2.0)) for one in groups)
    request = replace(placed.request, site=replace(site, groups=cheap))
    assert not said_of(replace(placed, request=request), "prices")
