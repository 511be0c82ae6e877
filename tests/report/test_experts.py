"""A placement of experts as text and as a page: what it says, and that it fits."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from planner_workshop.experts.placing import place_experts
from planner_workshop.experts.report import status_text
from tests.report.expert_plans import EXPERT_PLAN, LOADS, MOVED_PLAN
from tests.report.rendering import report_line, report_page, report_text


@pytest.mark.parametrize("width", [60, 100, 120])
@pytest.mark.parametrize("plan", [EXPERT_PLAN, MOVED_PLAN])
def test_lines_fit_the_width(plan, width):
    text = report_text(plan, width, is_whole=True)
    assert max(map(len, text.splitlines())) <= width


def test_the_report_says_what_the_plan_says():
    text = report_text(MOVED_PLAN, 100)
    assert f"{MOVED_PLAN.imbalance:.4f}" in text
    assert f"{MOVED_PLAN.greedy.max_load / MOVED_PLAN.mean_load:.4f}" in text
    assert "1 % of the mean load a copy" in text
    assert "44 MB" in text
    assert f"copies of {sum(MOVED_PLAN.n_copies)}" in text
    assert "no bound is claimed" in text


def test_pairs_apart_are_shares_of_all_pairs():
    """In whatever pairs are counted."""
    for scale in (1.0, 1000.0):
        whole = 30.0 * scale
        placed = {"this plan": 0.5, "greedy": 0.4, "present": 0.25}
        plan = replace(
            MOVED_PLAN,
            traffic_all=whole,
            traffic=0.5 * whole,
            greedy=replace(MOVED_PLAN.greedy, traffic=0.4 * whole),
            present=replace(MOVED_PLAN.present, traffic=0.25 * whole),
        )
        lines = [line.split() for line in report_text(plan, 100).splitlines()]
        for name, share in placed.items():
            rows = [one for one in lines if one[: len(name.split())] == name.split()]
            assert [f"{100 * share:g}", "%"] in [one[-2:] for one in rows]


def test_without_any_pair_none_is_apart():
    nothing = {"traffic": 0.0}
    plan = replace(
        MOVED_PLAN,
        traffic_all=0.0,
        **nothing,
        greedy=replace(MOVED_PLAN.greedy, **nothing),
        present=replace(MOVED_PLAN.present, **nothing),
    )
    assert report_text(plan, 100).count(" 0 %") >= 3


def test_the_line_names_the_moves_only_where_something_is_in_place():
    assert "move" in report_line(MOVED_PLAN)
    assert "move" not in report_line(EXPERT_PLAN)


def test_the_status_is_what_was_proved():
    def within(gap, status="optimal", **changes):
        certificate = replace(EXPERT_PLAN.certificate, gap=gap, status=status)
        return replace(EXPERT_PLAN, certificate=certificate, **changes)

    proven, near = within(0.0), within(5e-4)
    far = within(0.02, "feasible", is_cut_short=True)
    alone = within(0.0, "unconfirmed")
    assert status_text(proven) == "optimal: no placement is better"
    assert status_text(near) == "optimal within 0.05 %, as the gap allows"
    assert status_text(alone).startswith("bound by one solver alone, so it is not called optimal")
    assert status_text(far) == "within 2 % of the best: the time limit ended the search"


def test_many_ranks_are_cut_to_the_fullest_and_the_emptiest():
    plan = place_experts(range(1, 61), n_ranks=20, n_slots=4, gap=0.05)
    assert "fullest and emptiest of 20 ranks" in report_text(plan, 100)
    assert len(report_text(plan, 100, is_whole=True)) > len(report_text(plan, 100))


@pytest.mark.parametrize("plan", [EXPERT_PLAN, MOVED_PLAN])
def test_the_page_shows_every_copy_once(plan):
    page = report_page(plan)
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    drawn = sorted(map(int, re.findall(r'data-e="(\d+)"', page)))
    assert drawn == sorted(e for rank in plan.ranks for e in rank.experts)
    assert "http" not in page.replace("http://www.w3.org/1999/xhtml", "")


@pytest.mark.parametrize("n_slots", [2, 6, 9])
def test_no_two_slots_of_the_map_lie_on_each_other(n_slots):
    plan = place_experts(np.arange(1.0, 9.0), n_ranks=4, n_slots=n_slots)
    tree = ElementTree.fromstring(report_page(plan).removeprefix("<!DOCTYPE html>\n"))
    slots = [box for box in tree.iter() if box.get("class") in ("slot", "empty")]
    assert len(slots) == plan.request.n_ranks * plan.request.n_slots
    places = [
        tuple(float(box.get(name)) for name in ("x", "y", "width", "height")) for box in slots
    ]
    for i, (x, y, width, height) in enumerate(places):
        for other_x, other_y, *_ in places[i + 1 :]:
            assert abs(other_x - x) >= width or abs(other_y - y) >= height


def test_weighted_shares_are_shown():
    plan = place_experts(LOADS, n_ranks=4, n_slots=2, split="weighted")
    assert re.search(r" 0:0\.\d\d", report_text(plan, 100))
