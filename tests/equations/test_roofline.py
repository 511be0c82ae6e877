from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.equations import roofline
from tests.estimates.step_times import roofline_shares

seconds = st.floats(1e-9, 1e3)
exponents = st.one_of(st.floats(1, 12), st.just(3.0), st.just(np.inf))


def test_arithmetic_takes_its_flop_over_the_attained_peak():
    """220 TFLOP at 80 % of 275 TFLOP/s: one second."""
    assert roofline.compute_s(220e12, peak_flop_per_s=275e12, fraction=0.8) == pytest.approx(1.0)


def test_traffic_takes_its_bytes_over_the_attained_bandwidth():
    """Weights of 8.44 GB a chip, PaLM 540B in int8 over 64, take 7.4 ms at 95 % of 1.2 TB/s."""
    time = roofline.transfer_s(540e9 / 64, bytes_per_s=1.2e12, fraction=0.95)
    assert time == pytest.approx(7.40e-3, rel=1e-3)


def test_three_and_four_seconds_take_four_five_or_seven():
    """max(3, 4), (3² + 4²)^(1/2)."""
    assert roofline.sharp_roofline_s(3, 4) == 4
    assert roofline.smooth_roofline_s(3, 4, exponent=2) == pytest.approx(5)


@given(c=seconds, m=seconds)
def test_the_smooth_roofline_lies_between_its_limits_and_reaches_them(c, m):
    sharp, added = roofline.sharp_roofline_s(c, m), c + m
    assert roofline.smooth_roofline_s(c, m, exponent=1) == pytest.approx(added)
    assert roofline.smooth_roofline_s(c, m, exponent=np.inf) == sharp
    between = roofline.smooth_roofline_s(c, m, exponent=3)
    assert sharp * (1 - 1e-12) <= between <= added * (1 + 1e-12)
    almost = roofline.smooth_roofline_s(1.0, m / c, exponent=3.0 + 1e-9)
    assert almost * c == pytest.approx(between, rel=1e-7)


@given(c=seconds, m=seconds, exponent=exponents)
def test_the_shares_of_compute_and_memory_add_up_to_the_whole(c, m, exponent):
    by_compute, by_memory = roofline_shares(c, m, exponent=exponent)
    total = roofline.smooth_roofline_s(c, m, exponent=exponent)
    assert by_compute + by_memory == pytest.approx(float(total), rel=1e-12)
    assert by_compute >= 0
    assert by_memory >= -1e-12 * total


@given(c=seconds, m=seconds, exponent=st.floats(1, 6))
def test_a_share_is_the_derivative_times_its_time(c, m, exponent):
    """Euler: T is homogeneous of degree one, so T = c ∂T/∂c + m ∂T/∂m."""
    c, m = c / max(c, m), m / max(c, m)
    step = 1e-6 * c
    up = roofline.smooth_roofline_s(c + step, m, exponent=exponent)
    down = roofline.smooth_roofline_s(c - step, m, exponent=exponent)
    by_compute, _ = roofline_shares(c, m, exponent=exponent)
    assert by_compute == pytest.approx(float(c * (up - down) / (2 * step)), rel=1e-3, abs=1e-8)


def test_nothing_to_do_takes_no_time_and_has_no_shares():
    for exponent in (1.0, 3.0, np.inf):
        by_compute, by_memory = roofline_shares(0.0, 0.0, exponent=exponent)
        assert (by_compute, by_memory) == (0, 0)


def test_arrays_give_what_their_entries_give():
    c, m = np.array([[1.0], [2.0]]), np.array([0.5, 2.0, 8.0])
    for exponent in (1.0, 2.5, 3.0, np.inf):
        together = roofline.smooth_roofline_s(c, m, exponent=exponent)
        assert together.shape == (2, 3)
        for i, j in np.ndindex(2, 3):
            alone = roofline.smooth_roofline_s(c[i, 0], m[j], exponent=exponent)
            assert together[i, j] == pytest.approx(float(alone), rel=1e-14)


def test_an_exponent_below_one_is_refused():
    with pytest.raises(ValueError, match=r"at least 1, not 0\.5"):
        roofline.smooth_roofline_s(1.0, 1.0, exponent=0.5)
