"""Columns and rows as they come, as arrays."""

from __future__ import annotations

from planner.programs.mixed import MixedBuilder


def test_a_program_has_its_columns_and_rows_in_the_order_in_which_they_came():
    """Minimise 2 x − y, x + 3 y within 1 and 4, y whole and at most 5."""
    posed = MixedBuilder()
    x = posed.column("x", 7.5, cost=2.0)
    y = posed.column("y", 5.0, cost=-1.0, is_whole=True)
    posed.row("least", {y: 1.0}, 0.5, 5.0)
    posed.row("both", {x: 1.0, y: 3.0}, 1.0, 4.0)
    found = posed.program("small")
    assert (found.name, found.columns, found.rows) == ("small", ("x", "y"), ("least", "both"))
    assert found.cost.tolist() == [2.0, -1.0]
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.0, 0.0], [7.5, 5.0])
    assert found.is_whole.tolist() == [False, True]
    assert (found.low.tolist(), found.high.tolist()) == ([0.5, 1.0], [5.0, 4.0])
    entries = zip(found.row.tolist(), found.column.tolist(), found.value.tolist(), strict=True)
    assert [*entries] == [(0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0)]
