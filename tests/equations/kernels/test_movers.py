"""Small kernels, sampling, dispatch and combine, by hand."""

import pytest

from planner.equations.kernels.others import (
    elementwise_s,
    exchange_s,
    expected_nodes_hit,
    sampling_s,
)

LINKS = {"floor_s": 1e-5, "scale_up_bytes_per_s": 200e9, "scale_out_bytes_per_s": 50e9}
TOKENS = {"d_model": 1000, "n_active": 8, "bytes_per_number": 1}


def test_small_kernels_pay_a_launch_each_and_their_traffic():
    """Three of 2 us, and 8 MB at 0.8 TB/s."""
    time = elementwise_s(8e6, 3, hbm_bytes_per_s=1e12, kernel_s=2e-6, memory_fraction=0.8)
    assert time == pytest.approx(16e-6)


def test_sampling_goes_over_wide_scores_several_times():
    """10 × 100 000 scores of 4 B, five times, at 1 TB/s: 20 us."""
    time = sampling_s(10, 1e5, hbm_bytes_per_s=1e12, floor_s=3e-5, n_passes=5, memory_fraction=1)
    assert time == pytest.approx(50e-6)


def test_inside_a_node_an_exchange_uses_its_links():
    """100 tokens × 8 × 1000 B at 200 GB/s: 4 us."""
    assert exchange_s(100, **TOKENS, n_nodes=1, **LINKS) == pytest.approx(14e-6)


def test_over_nodes_low_latency_sends_each_copy_by_itself():
    """0.8 MB: half at 200 GB/s, half at 50 GB/s: 2 + 8 us."""
    assert exchange_s(100, **TOKENS, n_nodes=2, **LINKS) == pytest.approx(20e-6)


def test_over_nodes_normal_sends_a_token_once_to_each_node():
    """One of two nodes hit is another: 0.1 MB at 50 GB/s, 2 us, beside 4 us inside."""
    time = exchange_s(100, **TOKENS, n_nodes=2, n_nodes_hit=2, mode="normal", **LINKS)
    assert time == pytest.approx(10e-6 + (4e-6**2 + 2e-6**2) ** 0.5)


def test_two_experts_over_two_nodes_hit_one_and_a_half_nodes():
    assert expected_nodes_hit(2, 2) == pytest.approx(1.5)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="low-latency or normal"):
        exchange_s(1, **TOKENS, n_nodes=1, mode="fast", **LINKS)
