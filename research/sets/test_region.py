"""The measured region is that of the rows, and holds none of their times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.specs.region import (
    CLIENT,
    LOADS,
    PAIRS,
    PROPERTIES,
    RegionError,
    Setting,
    region_errors,
    settings,
)
from research.records import as_csv
from research.sets import folds, region
from research.sets.constants import out_of_fold

ROWS = folds.rows()


@pytest.fixture(scope="module")
def found():
    return out_of_fold()


def test_the_region_is_that_of_all_rows_that_are_compared():
    """To accept a change: `python -m research.sets.region --write`."""
    assert as_csv(Setting, region.table(ROWS)) == region.REGION.read_text(encoding="utf-8")
    assert sum(one.n_rows for one in settings()) == len(ROWS)
    named = {number for one in settings() for number in one.run_numbers}
    assert named == set(range(len({row.series.run for row in ROWS})))


def test_errors_are_those_of_what_is_left_out(found):
    text = as_csv(RegionError, region.errors(found))
    assert text == region.ERRORS.read_text(encoding="utf-8")


def test_every_property_has_an_error():
    pairs = {" × ".join(pair) for pair in PAIRS}
    assert region_errors().keys() == {*PROPERTIES, *pairs, *LOADS, CLIENT, "device", "engine"}


def test_what_is_left_out_errs_as_much_more_as_it_does(found):
    """Rows of one property are 30 % off where the others are not: that is found again."""
    found = found[:400]
    is_odd = {one.row.name for i, one in enumerate(found) if i % 4 == 0}
    exact = [replace(one, tpot_ms=one.row.tpot_ms, tpot_deviation=0.02) for one in found]
    shifted = [
        replace(one, tpot_ms=one.tpot_ms * 1.3) if one.row.name in is_odd else one for one in exact
    ]
    same = region.left_out(exact, lambda row: str(row.name in is_odd))
    off = region.left_out(shifted, lambda row: str(row.name in is_odd))
    assert same == pytest.approx(0.0, abs=0.02)
    assert off > 0.1
