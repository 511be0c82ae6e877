"""Intervals are as wide as the calibrating half says, and hold what they say of the other."""

from __future__ import annotations

import numpy as np
import pytest

from planner.estimates.serving.errors import sigmas
from planner.specs.model_errors import ANY, kernels_share, model_error, model_errors
from tests.papers.sets import intervals
from tests.papers.sets.halves import calibration_rows
from tests.papers.sets.intervals import SHARES, Missed, deviation
from tests.papers.sets.predicted import compared


@pytest.fixture(scope="module")
def found():
    return compared(calibration_rows())


def test_the_table_is_that_of_the_calibrating_half(found):
    """To accept a change: `python -m tests.papers.sets.intervals --write`."""
    assert intervals.as_csv(intervals.table(found)) == intervals.FILE.read_text(encoding="utf-8")
    assert all("calibrating half" in one.source for one in model_errors())


def test_what_is_beyond_kernels_is_found_again():
    drawn = np.random.default_rng(3).standard_t(2, size=4000) / 1.321
    kernels = np.full(4000, 0.06)
    off = np.abs(drawn) * np.hypot(kernels, 0.15)
    some = Missed(off=off, kernels=kernels)
    assert deviation(some) == pytest.approx(0.15, rel=0.06)
    for share in SHARES:
        assert some.held(0.15, share) == pytest.approx(share, abs=0.02)
        assert some.held(0.3, share) > share > some.held(0.05, share)


def test_a_runtime_that_was_measured_on_too_little_has_the_error_of_all():
    for kind in ("dense", "mixture"):
        for quantity in ("TPOT", "TTFT"):
            (whole,) = (
                one
                for one in model_errors()
                if (one.runtime, one.kind, one.quantity) == (ANY, kind, quantity)
            )
            assert model_error("an engine of mine", kind, quantity) == whole.deviation_fraction
    named = [one for one in model_errors() if one.runtime != ANY]
    assert all(one.n_groups >= intervals.LEAST_GROUPS for one in named)


def test_ties_are_told_by_kernels_alone():
    m = model_error("vllm", "mixture", "TPOT")
    assert kernels_share(float(np.hypot(0.07, m)), "vllm", "mixture", "TPOT") == pytest.approx(0.07)
    assert kernels_share(m / 2, "vllm", "mixture", "TPOT") == 0.0


def test_wider_intervals_hold_more(found):
    error = intervals.errors_of(model_errors())
    shares = intervals.held(found, "TPOT", error)
    assert shares == sorted(shares)
    assert sigmas(0.95) > sigmas(0.9)
    for said, holds in zip(SHARES, shares, strict=True):
        assert holds == pytest.approx(said, abs=0.1)
