"""Attention by hand: the cache read once in decode, half a square in prefill."""

import numpy as np
import pytest

from planner.equations.kernels.latent import latent_decode_s
from planner.equations.kernels.mixing import decode_attention_s, prefill_attention_s

RATES = {"peak_flop_per_s": 1e15, "hbm_bytes_per_s": 1e12}
HEADS = {"n_heads": 32, "n_kv_heads": 8, "d_head": 128}


def test_decode_reads_keys_and_values_once():
    """10 × 1000 tokens × 2 × 8 × 128 × 2 B are 40.96 MB; at half of 1 TB/s 81.92 us."""
    time = decode_attention_s(
        10, 1000, **HEADS, cache_bytes=2, **RATES, floor_s=1e-5, memory_fraction=0.5
    )
    assert time == pytest.approx(1e-5 + 81.92e-6)


def test_a_cache_of_half_the_bytes_takes_half_the_time():
    bytes_ = np.array([2.0, 1.0])
    times = decode_attention_s(
        10, 1000, **HEADS, cache_bytes=bytes_, **RATES, floor_s=0.0, memory_fraction=0.5
    )
    assert times[0] == pytest.approx(2 * times[1])


def test_decode_pays_for_each_sequence_and_head():
    """10 sequences of 8 KV heads at 20 ns: 1.6 us."""
    form = {"cache_bytes": 2, "floor_s": 0.0, "memory_fraction": 1.0, **RATES}
    plain = decode_attention_s(10, 1000, **HEADS, **form)
    assert decode_attention_s(
        10, 1000, **HEADS, **form, sequence_head_s=20e-9
    ) - plain == pytest.approx(1.6e-6)


def test_many_heads_over_one_are_bound_by_arithmetic():
    """4 × 1e6 tokens × 256 heads × 128 FLOP at 1 PFLOP/s: 131 us; one KV head is 0.5 GB, 512 us."""
    one = {"n_heads": 256, "n_kv_heads": 1, "d_head": 128, "cache_bytes": 2}
    form = {**RATES, "floor_s": 0.0, "memory_fraction": 1.0, "exponent": np.inf}
    time = decode_attention_s(1000, 1000, **one, **form, compute_fraction=0.1)
    assert time == pytest.approx(4e6 * 256 * 128 / 1e14)


def test_prefill_does_half_of_the_square_and_all_of_the_past():
    """1000 new tokens see 500 of themselves in the mean, and 2000 past ones: five times as much."""
    form = {**HEADS, **RATES, "floor_s": 0.0, "compute_fraction": 0.5}
    alone = prefill_attention_s(1, 1000, **form)
    assert alone == pytest.approx(4 * 1000 * 500 * 32 * 128 / 0.5e15)
    assert prefill_attention_s(1, 1000, 2000, **form) == pytest.approx(5 * alone)


def test_a_ramp_halves_the_speed_at_its_span():
    form = {**HEADS, **RATES, "floor_s": 0.0, "compute_fraction": 0.5}
    flat = prefill_attention_s(1, 512, **form)
    assert prefill_attention_s(1, 512, **form, ramp_tokens=512) == pytest.approx(2 * flat)


def test_latent_decode_shares_one_cache_among_all_heads():
    """100 × 4096 tokens × 576 × 2 B are 472 MB, 472 us; 128 heads × 1088 × 2 FLOP each 114 us."""
    form = {**RATES, "floor_s": 0.0, "compute_fraction": 1.0, "memory_fraction": 1.0}
    time = latent_decode_s(100, 4096, n_heads=128, cache_bytes=2, **form, exponent=np.inf)
    assert time == pytest.approx(100 * 4096 * 576 * 2 / 1e12)
    slow = latent_decode_s(
        100, 4096, n_heads=128, cache_bytes=2, **{**form, "compute_fraction": 0.1}, exponent=np.inf
    )
    assert slow == pytest.approx(100 * 4096 * 128 * 1088 * 2 / 1e14)
