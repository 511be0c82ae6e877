"""Cuts and placements as text and as a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from planner.results.staging import StagingConflict
from planner.specs.records.certificates import Proof
from planner_workshop.drawings import _stacked
from planner_workshop.staging.report import SHADES, holds, rows_of
from tests.report.rendering import report_line, report_page, report_text
from tests.report.staging import PLACEMENT, STAGES

_RECT = "{http://www.w3.org/1999/xhtml}rect"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_paragraphs_keep_to_the_width(width):
    for text in (report_text(STAGES, width), report_text(PLACEMENT, width)):
        paragraphs = [line for line in text.splitlines() if "  " not in line.strip()]
        assert max(map(len, paragraphs)) <= width


@pytest.mark.parametrize("width", range(60, 76))
def test_a_row_of_many_words_breaks_before_the_width(width):
    """Words of one letter fill a line to the last column that it may have."""
    said = (" ".join(["x"] * 200),)
    for text, of in ((report_text, STAGES), (report_text, PLACEMENT)):
        proof = replace(of.certificate, verified=said)
        lines = text(replace(of, certificate=proof), width).splitlines()
        filled = [len(line) for line in lines if line.split()[-5:] == ["x"] * 5]
        assert len(filled) > 3
        assert width - 4 <= max(filled) <= width


def test_each_layer_is_one_mark_of_the_shade_of_its_class():
    text = report_text(STAGES, 100)
    strips = text.split("\ncut\n")[1].split("\n\n")[0].splitlines()
    drawn = "".join(c for line in strips[: len(STAGES.stages)] for c in line if c in SHADES)
    assert drawn == "".join(SHADES[k] for k in STAGES.request.model.order)
    assert "E" in strips[0]
    assert strips[len(STAGES.stages) - 1].endswith("H")


def test_what_is_assumed_of_a_device_is_said():
    assert "assumed of any device on l4 TP 1" in report_text(STAGES, 200)


def test_groups_without_a_stage_are_named():
    groups = (replace(STAGES.groups[0], n_groups=3, n_used=1), *STAGES.groups[1:])
    text = report_text(replace(STAGES, groups=groups), 200)
    assert "2 of 3 groups of h100-sxm TP 2" in text


def test_an_even_cut_that_does_not_fit_is_said():
    assert "do not fit" in report_text(replace(STAGES, even_s=None), 200)


def test_a_stage_says_what_it_holds_counted_from_one():
    first, last = STAGES.stages[0], STAGES.stages[-1]
    assert holds(first).startswith("embedding, layers 1 to ")
    assert holds(last).endswith("head")
    assert holds(replace(last, n_layers=0)) == "head"


def test_lines_state_the_figures_of_the_record():
    assert "quality-10: 60 layers on 10 of 10 machines, 286.59 token/s" in report_line(PLACEMENT)
    assert f"in {len(STAGES.stages)} stages" in report_line(STAGES)
    assert "the same" in report_text(PLACEMENT, 100)


def test_machines_of_a_stage_stand_in_one_line():
    rows = rows_of(PLACEMENT)
    assert len(rows) == PLACEMENT.n_stages
    assert sum(map(len, rows)) == len(PLACEMENT.machines)


def test_the_page_of_a_cut_has_a_box_for_every_stage_and_layer():
    """A box for running and one for handing over, and one for each layer and both ends."""
    tree = ET.fromstring(report_page(STAGES).removeprefix("<!DOCTYPE html>\n"))
    n_boxes = len(tree.findall(f".//{_RECT}"))
    assert n_boxes == 2 * len(STAGES.stages) + len(STAGES.request.model.order) + 2


def test_layers_have_the_colour_that_their_class_has_in_the_legend():
    tree = ET.fromstring(report_page(STAGES).removeprefix("<!DOCTYPE html>\n"))
    space = "{http://www.w3.org/1999/xhtml}"
    legend = {
        (mark.tail or "").strip(" ;"): mark.get("class")
        for mark in tree.iter(f"{space}span")
        if (mark.text or "").strip() == "■"
    }
    classes = {layer.name for layer in STAGES.request.model.layers}
    groups = {one.kind for one in STAGES.groups}
    assert set(legend) == {*classes, *groups, "embedding or head"}
    drawn = [(box.find(f"{space}title"), box.get("class")) for box in tree.iter(_RECT)]
    named = {title.text: colour for title, colour in drawn if title is not None}
    for name in ("embedding", "head", *classes):
        key = name if name in classes else "embedding or head"
        assert named[name] == f"box {legend[key]}"


def test_the_page_of_a_placement_has_a_box_for_every_machine():
    tree = ET.fromstring(report_page(PLACEMENT).removeprefix("<!DOCTYPE html>\n"))
    assert len(tree.findall(f".//{_RECT}")) == len(PLACEMENT.machines)


def test_pages_fetch_nothing():
    for page in (report_page(STAGES), report_page(PLACEMENT)):
        assert "http" not in page.replace("http://www.w3.org/1999/xhtml", "")


def test_a_conflict_says_what_is_missing_and_what_to_do():
    text = report_text(
        StagingConflict(what="a model on a group", facts=("1 GB is missing",), remedy="more"), 80
    )
    assert text == "error: nothing fits: a model on a group\n\n  1 GB is missing\n\nhint: more"


def test_a_machine_beside_two_stands_on_the_higher_one():
    """Layers 1 and 2 on machines of 8 and 6 token/s, both on one of 3: it stands at 8."""
    held = [(0, 1, 8.0), (0, 2, 3.0), (1, 1, 6.0)]
    machines = tuple(
        replace(PLACEMENT.machines[0], first_layer=first, n_layers=n, tokens_per_s=rate)
        for first, n, rate in held
    )
    request = replace(PLACEMENT.request, layers=replace(PLACEMENT.request.layers, n_layers=2))
    drawn = _stacked(replace(PLACEMENT, request=request, machines=machines))
    assert drawn == ([0.0, 8.0, 11.0], 17.0)


def test_a_bound_that_one_solver_says_alone_is_said_to_be_that():
    word = Proof(
        prover="highs 1.13.1", outcome="optimal", value=286.0, bound=287.0, wall_s=1.0
    )  # fmt: skip
    proof = replace(
        PLACEMENT.certificate,
        status="unconfirmed",
        proofs=(word,),
        vouched_by=(),
        vouched_bound=300.0,
    )
    text = report_text(replace(PLACEMENT, certificate=proof), 200)
    assert "says HiGHS 1.13.1 alone" in text
    assert "bound by HiGHS 1.13.1 alone, so it is not called optimal" in text
    assert "the bound knows" not in text


def test_what_the_bound_knows_of_links_is_said():
    assert "links         the bound takes each machine by itself" in report_text(PLACEMENT, 200)
