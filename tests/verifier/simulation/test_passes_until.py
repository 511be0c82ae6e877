"""Passes until an arrival that is far off, found at once."""

import math
import random

import pytest

from planner.verifier.simulation.passes import DecodeRun


def one_by_one(left_s, step_s, slope_s):
    n, took = 0, 0.0
    while took < left_s:
        took += step_s + slope_s * n
        n += 1
    return max(1, n)


@pytest.mark.parametrize("seed", range(50))
def test_they_are_those_counted_one_by_one(seed):
    draw = random.Random(seed)
    step, slope = 10 ** draw.uniform(-3, -1), 10 ** draw.uniform(-9, -3)
    left = step * draw.uniform(0.1, 3000.0)
    assert DecodeRun(0.0, step, slope, math.inf).until(left) == one_by_one(left, step, slope)


def test_an_arrival_after_days_takes_no_days():
    n = DecodeRun(0.0, 0.01, 1e-8, math.inf).until(1e6)
    assert n * 0.01 + 1e-8 * n * (n - 1) / 2 >= 1e6
    assert (n - 1) * 0.01 + 1e-8 * (n - 1) * (n - 2) / 2 < 1e6
    assert math.isclose(n, 1.3178e7, rel_tol=0.01)
