"""Round numbers within the axis, at the right places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from planner.report.drawings.axes import SPARE, axis, tick_text


def test_a_linear_axis_begins_at_zero_and_divides_evenly():
    found = axis([20.0, 100.0], 0.0, 520.0, is_log=False)
    assert found.at(0.0) == 0.0
    assert found.at(104.0) == pytest.approx(520.0)
    assert found.ticks() == [0, 20, 40, 60, 80, 100]


def test_a_logarithmic_axis_gives_every_factor_the_same_length():
    found = axis([1.0, 100.0], 400.0, 0.0, is_log=True)
    assert found.at(1.0) - found.at(10.0) == pytest.approx(found.at(10.0) - found.at(100.0))
    assert found.ticks() == [1, 2, 5, 10, 20, 50, 100]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.floats(1e-6, 1e9), st.floats(1.0, 1e8), st.booleans())
def test_there_are_two_to_nine_ticks_within_the_axis_in_order(low, ratio, is_log):
    found = axis([low, low * ratio], 0.0, 100.0, is_log=is_log)
    ticks = found.ticks()
    assert 2 <= len(ticks) <= 9
    assert all(a < b for a, b in pairwise(ticks))
    slack = 1e-5 * found.high
    assert found.low - slack <= ticks[0]
    assert ticks[-1] <= found.high + slack


def test_a_single_value_has_an_axis_too():
    found = axis([5.0], 0.0, 100.0, is_log=True)
    assert 0 < found.at(5.0) < 100


@pytest.mark.parametrize("ratio", [1.0, 1.001, 3.0, 1e4])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_a_logarithmic_axis_spares_as_much_at_both_ends_whatever_the_unit(ratio, unit):
    """A share of its length, and a fiftieth at least, so that no mark stands on a border."""
    found = axis([unit, unit * ratio], 0.0, 100.0, is_log=True)
    spare = max(ratio**SPARE, 1.02)
    assert found.low == pytest.approx(unit / spare)
    assert found.high == pytest.approx(unit * ratio * spare)
    assert found.at(unit) == pytest.approx(100.0 - found.at(unit * ratio))


@pytest.mark.parametrize(
    ("number", "text"), [(0.05, "0.05"), (1.5, "1.5"), (2000.0, "2000"), (1e7, "1e+07")]
)
def test_numbers_are_short(number, text):
    assert tick_text(number) == text
    assert tick_text(number, "$") == "$" + text
