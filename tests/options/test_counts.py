"""Whole numbers and lists of them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from planner.quantities.units import UnitError
from planner.specs.options.counts import MOST_BATCHES, batches, count, count_or_none, span_text
from planner.specs.validation.values import MOST_SEQUENCES


@pytest.mark.parametrize(
    ("text", "value"), [("64", 64), (" 64 ", 64), ("2_048", 2048), ("+3", 3), ("007", 7)]
)
def test_a_whole_number_is_read(text, value):
    assert count(text) == value


@pytest.mark.parametrize(
    ("text", "fact", "remedy"),
    [
        ("", "is empty", ""),
        ("0", "is zero", "write at least `1`"),
        ("-4", "is negative", ""),
        ("3.5", "is not a whole number", ""),
        ("1e3", "is not a whole number", "write `1000`"),
        ("nan", "is not a whole number", ""),
        ("inf", "is not a whole number", ""),
        ("many", "is not a whole number", ""),
        ("64 devices", "is not a whole number", "write `64`"),
        ("٣", "is not a whole number", "write `3`"),
        ("9" * 5000, "is beyond anything real", "write at most `1000000000`"),
    ],
)
def test_anything_else_is_refused_for_a_reason(text, fact, remedy):
    with pytest.raises(UnitError) as caught:
        count(text)
    assert (caught.value.fact, caught.value.remedy) == (fact, remedy)


def test_zero_passes_where_it_may():
    assert count_or_none("0") == 0


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("64", (64,)),
        ("2:4", (2, 3, 4)),
        ("4,1,2,4", (1, 2, 4)),
        ("1:3,3:5", (1, 2, 3, 4, 5)),
        ("8:32:8", (8, 16, 24, 32)),
        ("5:5", (5,)),
        (" 1 , 2 ", (1, 2)),
    ],
)
def test_batches_are_read_ascending_and_each_once(text, chosen):
    assert batches(text) == chosen


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "is empty"),
        ("128:16", "runs backwards"),
        ("1,,2", "has an empty part"),
        ("1:", "has an empty part"),
        ("0", "is zero"),
        ("0:4", "has `0`, which is zero"),
        ("1:x", "has `x`, which is not a whole number"),
        ("1:9:0", "has `0`, which is zero"),
        ("1:2:3:4", "has too many colons"),
        (f"1:{MOST_SEQUENCES}", f"is more than {MOST_BATCHES} batches"),
        (str(MOST_SEQUENCES + 1), "is beyond anything real"),
    ],
)
def test_batches_that_are_none_are_refused_for_a_reason(text, fact):
    with pytest.raises(UnitError) as caught:
        batches(text)
    assert caught.value.fact == fact


@given(st.sets(st.integers(1, 300), min_size=1, max_size=60))
def test_what_a_report_prints_can_be_typed_again(chosen):
    ascending = tuple(sorted(chosen))
    assert batches(span_text(ascending)) == ascending
