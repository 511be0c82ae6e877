"""Frontiers and comparisons read again: points, order and picks, rows and what they lose."""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

import pytest

from planner import verify
from planner.errors import NoPlanError
from planner.planning.comparing import frontiers
from planner.results.surveys import Curves
from planner.specs.files.reading import load_cluster, load_model
from tests.verifier.alterations import at, leaves, of_each_field, tried
from tests.verifier.answers import FEW, answer, envelope

FRONTIERS = {
    "frontiers of layouts": 1,
    "frontier of several engines": 0,
    "frontier by the reference model": 0,
}
"""Answers, and which of their curves has points."""
COMPARISONS = ("comparison of layouts", "comparison of engines")


def told(record, *, prove=False):
    return {one.pointer: one.fact for one in verify(record, prove=prove).falsehoods}


def with_value(name, place, value):
    record = copy.deepcopy(envelope(name))
    *above, last = place.split("/")
    inner = at(record["answer"], tuple(above))
    inner[int(last) if isinstance(inner, list) else last] = value
    return record


@pytest.mark.parametrize("name", [*FRONTIERS, *COMPARISONS])
def test_each_figure_outside_of_deployments_is_counted(name):
    """Every field of them; deployments and plans, which are large, are sampled elsewhere."""
    record, draw = envelope(name), Random(7)
    places = [path for path in leaves(record) if not {"deployment", "plan", "provenance"} & {*path}]
    some = of_each_field(places)
    found = [tried(record["kind"], answer(name), record, path, draw) for path in some]
    assert len([one for one in found if one and one.is_refused]) >= 4
    assert [one.told for one in found if one and one.is_let_through] == []


def test_the_answers_hold_what_they_are_to_show():
    layouts, engines, erdil = (answer(name).curves for name in FRONTIERS)
    assert layouts[0].frontier is None
    points = engines[0].frontier.points
    assert {one.deployment.engine for one in points} == {"vllm", "trtllm"}
    assert {one.meets_targets for one in points} == {True, False}
    assert erdil[0].frontier.cost_model.name == "erdil2025"
    assert erdil[0].frontier.preferred > 0
    rows = answer("comparison of layouts").rows
    assert [row.plan is None for row in rows].count(True) == 1


@pytest.mark.parametrize(("name", "i"), FRONTIERS.items())
def test_points_that_change_places_are_told(name, i):
    record = copy.deepcopy(envelope(name))
    points = record["answer"]["curves"][i]["frontier"]["points"]
    points[0], points[1] = points[1], points[0]
    here = f"/answer/curves/{i}/frontier/points/1"
    assert {f"{here}/x", f"{here}/y"} <= told(record).keys()


@pytest.mark.parametrize(("name", "i"), FRONTIERS.items())
def test_a_point_that_stands_there_twice_is_dominated_by_itself(name, i):
    record = copy.deepcopy(envelope(name))
    points = record["answer"]["curves"][i]["frontier"]["points"]
    points.insert(1, points[1])
    facts = told(record)
    assert (
        "is no shorter than that of the point before it"
        in facts[f"/answer/curves/{i}/frontier/points/2/x"]
    )


@pytest.mark.parametrize(("name", "i"), FRONTIERS.items())
def test_a_point_that_is_missing_is_found_by_a_search(name, i):
    """The picks are set right, so that a recount cannot know."""
    mine = answer(name)
    one = mine.curves[i].frontier
    rest = one.points[:-1]
    curve = replace(mine.curves[i], frontier=replace(one, points=rest, preferred=0))
    less = Curves(curves=(*mine.curves[:i], curve))
    for place in told(less):  # only the pick may be another
        assert place.endswith("/preferred")
        best = int(verify(less).falsehoods[0].found)
        curve = replace(curve, frontier=replace(curve.frontier, preferred=best))
        less = Curves(curves=(*mine.curves[:i], curve))
    assert verify(less).is_true
    assert f"/answer/curves/{i}/frontier/points" in told(less, prove=True)


def test_a_bound_that_a_point_beats_is_none_and_a_weaker_one_is_not_optimal():
    name, here = "frontiers of layouts", "curves/1/frontier"
    y = answer(name).curves[1].frontier.points[0].y
    beaten = told(with_value(name, f"{here}/points/0/bound", y * 1.01))
    assert "is beyond what the point has" in beaten[f"/answer/{here}/points/0/bound"]
    weak = with_value(name, f"{here}/points/0/bound", y * 0.99)
    weak["answer"]["curves"][1]["frontier"]["points"][0]["gap"] = 0.01
    assert told(weak).keys() == {f"/answer/{here}/proof/status"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("model", "other"), ("topology", "other"), ("engine", "vllm"), ("weights", "fp8")],
)
def test_a_curve_is_of_the_case_that_it_says(field, value):
    record = with_value("frontiers of layouts", f"curves/1/case/{field}", value)
    assert told(record).keys() == {f"/answer/curves/1/case/{field}"}


def test_more_worth_of_speed_prefers_another_point():
    record = with_value("frontiers of layouts", "curves/1/frontier/alpha", 100.0)
    assert told(record).keys() == {"/answer/curves/1/frontier/preferred"}


def test_points_of_the_reference_model_are_not_called_those_of_layouts():
    name, here = "frontier by the reference model", "curves/0/frontier/cost_model"
    record = with_value(name, here, {"name": "roofline", "memory": "", "left_out": []})
    assert f"/answer/{here}/name" in told(record)


def test_what_the_reference_model_was_asked_is_what_the_request_says():
    name = "frontier by the reference model"
    place = "curves/0/frontier/other_requests/0/targets/n_devices"
    assert told(with_value(name, place, 16)).keys() == {f"/answer/{place}"}


@pytest.mark.parametrize("name", COMPARISONS)
def test_another_row_is_not_the_best(name):
    best = answer(name).best
    other = next(i for i, row in enumerate(answer(name).rows) if row.plan and i != best)
    assert told(with_value(name, "best", other)).keys() == {"/answer/best"}


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_row_of_another_question_cannot_be_set_beside_the_others(name):
    rows = answer(name).rows
    i = max(i for i, row in enumerate(rows) if row.plan)
    place = f"rows/{i}/plan/request/targets/tpot_s"
    wider = told(with_value(name, place, rows[i].plan.request.targets.tpot_s * 1.5))
    assert f"/answer/{place}" in wider


def test_a_row_with_a_plan_has_no_reason_to_have_none():
    assert told(with_value(COMPARISONS[1], "rows/0/reason", "no plan")).keys() == {
        "/answer/rows/0/reason"
    }


def test_a_comparison_is_searched_again_row_by_row():
    name, here = COMPARISONS[0], "rows/0/plan/certificate"
    record = copy.deepcopy(envelope(name))
    record["answer"]["rows"][0]["plan"]["certificate"]["n_contexts"] += 1
    assert verify(record).is_true
    assert told(record, prove=True).keys() == {f"/answer/{here}/n_contexts"}


def test_a_frontier_is_judged_before_it_goes_out(monkeypatch):
    """What the verifier refutes is a defect of the planner, and no answer."""
    from planner.errors import SolverError
    from planner.planning import pareto

    usual = pareto.Tracing.points

    def backwards(self, on_points):
        return tuple(reversed(usual(self, on_points)))

    monkeypatch.setattr(pareto.Tracing, "points", backwards)
    model, cluster = load_model("llama-3-8b"), load_cluster("h100-nvl8-x1")
    with pytest.raises(SolverError, match="is no shorter than that of the point before it"):
        frontiers([model], [cluster], ("roofline",), **FEW)


def test_no_frontier_is_no_plan_when_alone():
    with pytest.raises(NoPlanError):
        frontiers(
            [load_model("palm-540b")],
            [load_cluster("l4-x1")],
            ("roofline",),
            weights_formats=("bf16",),
            **FEW,
        )
