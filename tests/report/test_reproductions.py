"""Drawings of tables of papers: a dot for each figure that can stand on its axes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.report.answers.reproductions import _dots
from planner.results.listings import ReproducedRow, ReproducedTable
from planner.specs.files.papers import Chart, PaperTable, PublishedRow

PUBLISHED = PublishedRow(
    series="ours",
    label="a row",
    command="",
    beside="",
    figure="",
    unit="s",
    published=0.4,
    fails=False,
    columns={},
    note="",
)
ROW = ReproducedRow(row=PUBLISHED, answered=0.5, x=0.2, published_x=0.3)


def dots(row: ReproducedRow, *, x: str = "") -> list[tuple[float, float, bool]]:
    """Where the dots of a table of one row are, and which of them are printed figures."""
    table = PaperTable(
        name="table",
        title="",
        paper="",
        where="",
        note="",
        chart=Chart(x=x),
        rows=(row.row,),
    )
    drawn = _dots(ReproducedTable(table=table, rows=(row,)))
    return [(one.x, one.y, one.is_ring) for one in drawn]


def printed(value: float | None) -> ReproducedRow:
    return replace(ROW, row=replace(PUBLISHED, published=value))


def test_without_an_axis_answers_are_drawn_over_what_is_printed():
    assert dots(ROW) == [(0.4, 0.5, False)]


def test_with_an_axis_both_are_drawn_where_they_are_on_it():
    assert dots(ROW, x="columns.x") == [(0.2, 0.5, False), (0.3, 0.4, True)]


@pytest.mark.parametrize("nothing", [None, 0.0, -1.0])
def test_what_is_nowhere_or_not_above_zero_is_not_drawn(nothing):
    """Axes may be of logarithms."""
    answer, ring = (0.2, 0.5, False), (0.3, 0.4, True)
    assert dots(replace(ROW, x=nothing), x="columns.x") == [ring]
    assert dots(replace(ROW, answered=nothing), x="columns.x") == [ring]
    assert dots(replace(ROW, published_x=nothing), x="columns.x") == [answer]
    assert dots(printed(nothing), x="columns.x") == [answer]
    assert dots(printed(nothing)) == dots(replace(ROW, answered=nothing)) == []
