"""A placement as people read it."""

from __future__ import annotations

from dataclasses import replace

from planner.report.answers.placement import MOST_LISTED
from tests.report.placements import PLACEMENT, PLACEMENT_CONFLICT
from tests.report.rendering import report_line, report_text

WIDTH = 100


def test_the_line_says_replicas_devices_output_and_rent() -> None:
    assert report_line(PLACEMENT) == "1 replica on 2 of 3 free devices: 1000 token/s, $6/h"


def test_the_report_names_nodes_links_and_shares() -> None:
    text = report_text(PLACEMENT, WIDTH)
    assert "node0…node2, node4" in text
    assert "across   1 × 2    25 GB/s  node0/gpu1 – leaf0" in text
    assert "200 %" in text
    assert "at 80 % of speed" in text
    assert all(len(line) <= WIDTH for line in text.splitlines())


def test_ranks_are_listed_when_asked_for() -> None:
    assert "node1/gpu0" not in report_text(PLACEMENT, WIDTH)
    rows = [line.split() for line in report_text(PLACEMENT, WIDTH, is_whole=True).splitlines()]
    assert ["mini/0", "1", "node1/gpu0", "node1", "0", "0,1"] in rows


def test_of_many_replicas_the_first_are_listed() -> None:
    (one,) = PLACEMENT.replicas
    n_replicas = MOST_LISTED + 3
    many = replace(
        PLACEMENT, replicas=tuple(replace(one, name=f"mini/{i}") for i in range(n_replicas))
    )
    text = report_text(many, WIDTH)
    assert "and 3 more" in text
    assert f"mini/{MOST_LISTED} " not in text


def test_a_conflict_says_what_could_be_had() -> None:
    text = report_text(PLACEMENT_CONFLICT, WIDTH)
    assert "no placement on `pair` keeps `demand mini`: 3 of its 16 devices are free" in text
    assert "5000 token/s" in text
    assert "1000 token/s" in text
