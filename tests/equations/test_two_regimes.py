"""The faster of two measured forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.equations import nccl

SHORT, LONG = (4e-6, 1 / 50e9), (10e-6, 1 / 200e9)
SIZES = (2, 4, 8)

n_bytes = st.floats(0, 1e12)
seconds = st.floats(0, 1e-3)
rates = st.floats(1e8, 1e13)
groups = st.floats(1, 512)


@pytest.mark.parametrize(
    ("volume", "expected_us"), [(0, 0.0), (200e3, 4.0), (400e3, 8.0), (2e6, 16.0), (20e6, 106.0)]
)
def test_a_message_takes_the_faster_form_less_what_an_empty_one_takes(volume, expected_us):
    """Equal at n/50 GB/s − n/200 GB/s = 6 µs: 400 kB. Before: n/50; after: 6 µs + n/200.

    200 kB: 4; 400 kB: 8, either way; 2 MB: 6 + 10; 20 MB: 6 + 100.
    """
    time = nccl.two_regimes_s(volume, SHORT, LONG)
    assert time == pytest.approx(expected_us * 1e-6, abs=1e-15)


@given(n=n_bytes, a1=seconds, a2=seconds, b1=rates, b2=rates)
def test_a_message_is_the_minimum_of_both_forms_whichever_is_called_short(n, a1, a2, b1, b2):
    time = nccl.two_regimes_s(n, (a1, 1 / b1), (a2, 1 / b2)) + min(a1, a2)
    assert time == pytest.approx(min(a1 + n / b1, a2 + n / b2), rel=1e-9, abs=1e-18)


@given(n=n_bytes, more=n_bytes, a1=seconds, a2=seconds, b1=rates, b2=rates)
def test_more_bytes_are_never_faster_and_more_bandwidth_is_never_slower(n, more, a1, a2, b1, b2):
    time = nccl.two_regimes_s(n, (a1, 1 / b1), (a2, 1 / b2))
    assert nccl.two_regimes_s(n + more, (a1, 1 / b1), (a2, 1 / b2)) >= time
    assert nccl.two_regimes_s(n, (a1, 1 / (2 * b1)), (a2, 1 / (2 * b2))) <= time


def test_sizes_between_fits_lie_on_a_line_over_doublings():
    """√8 is half way from 2 to 4 in doublings: 3 and 5 µs give 4, 1/100 and 1/50 give 3/200."""
    middle = 2**1.5
    latency = nccl.group_latency_s(middle, SIZES, (3e-6, 5e-6, 9e-6))
    assert latency == pytest.approx(4e-6)
    inverse = nccl.group_s_per_byte(middle, SIZES, (100e9, 50e9, 25e9))
    assert inverse == pytest.approx(3 / 200e9)


def test_fitted_sizes_are_as_fitted():
    latencies, bandwidths = (3e-6, 5e-6, 9e-6), (100e9, 50e9, 25e9)
    np.testing.assert_allclose(nccl.group_latency_s(SIZES, SIZES, latencies), latencies, rtol=1e-12)
    np.testing.assert_allclose(
        nccl.group_s_per_byte(SIZES, SIZES, bandwidths), np.divide(1, bandwidths), rtol=1e-12
    )


def test_beyond_the_largest_fit_latency_doubles_with_the_doublings():
    """64 is twice as many doublings as 8; 63/64 of 7/8 is 9/8 of the bytes that cross."""
    assert nccl.group_latency_s(64, SIZES, (3e-6, 5e-6, 9e-6)) == pytest.approx(18e-6)
    inverse = nccl.group_s_per_byte(64, SIZES, (100e9, 50e9, 25e9))
    assert inverse == pytest.approx(9 / 8 / 25e9)


def test_one_device_waits_for_nothing():
    assert nccl.group_latency_s(1, SIZES, (3e-6, 5e-6, 9e-6)) == 0
    assert nccl.group_s_per_byte(1, SIZES, (1e9, 1e9, 1e9)) == 0


@given(k=groups, more=st.floats(1, 8))
def test_where_larger_groups_were_slower_every_larger_group_is(k, more):
    latencies, bandwidths = (3e-6, 5e-6, 9e-6), (100e9, 50e9, 25e9)
    slack = 1 + 1e-12
    latency = nccl.group_latency_s(k, SIZES, latencies)
    assert nccl.group_latency_s(k * more, SIZES, latencies) * slack >= latency
    inverse = nccl.group_s_per_byte(k, SIZES, bandwidths)
    assert nccl.group_s_per_byte(k * more, SIZES, bandwidths) * slack >= inverse
