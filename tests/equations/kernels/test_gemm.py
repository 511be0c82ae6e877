"""Products by hand: a floor, arithmetic, traffic, whole waves of tiles, quantisation."""

import numpy as np
import pytest

from planner.equations.kernels.gemm import gemm_s, grouped_gemm_s, tile_area

RATES = {"peak_flop_per_s": 1e15, "hbm_bytes_per_s": 1e12}
HALF = {"floor_s": 5e-6, "compute_fraction": 0.5, "memory_fraction": 0.5, "exponent": np.inf}
BF16 = {"weight_bytes": 2.0, "input_bytes": 2.0}


def test_few_tokens_wait_for_the_weights():
    """1000 × 1000 weights of 2 B, one token in and out: 2.004 MB at 0.5 TB/s, and the floor."""
    assert gemm_s(1, 1000, 1000, **BF16, **RATES, **HALF) == pytest.approx(5e-6 + 4.008e-6)


def test_many_tokens_wait_for_the_arithmetic():
    """2 × 1e4 × 1e4 × 1e4 FLOP at 0.5 PFLOP/s are 4 ms."""
    assert gemm_s(1e4, 1e4, 1e4, **BF16, **RATES, **HALF) == pytest.approx(4e-3 + 5e-6)


def test_inputs_that_are_quantised_on_the_way_cost_three_bytes_each():
    """100 × 1000 numbers, 3 B each, at a quarter of 1 TB/s: 1.2 us."""
    plain = gemm_s(100, 1000, 1000, **BF16, **RATES, **HALF)
    quantising = gemm_s(100, 1000, 1000, **BF16, **RATES, **HALF, quant_fraction=0.25)
    assert quantising - plain == pytest.approx(1.2e-6)


def test_groups_read_only_the_weights_that_are_hit():
    """Two groups of 1000 × 1000 weights: 4 MB and the ends of 8 rows, 32 kB."""
    time = grouped_gemm_s(8, 2, 1000, 1000, **BF16, **RATES, **HALF)
    assert time == pytest.approx(5e-6 + 4.032e6 / 0.5e12)


def test_a_product_is_a_group_alone():
    alone = grouped_gemm_s(64, 1, 2048, 4096, **BF16, **RATES, **HALF, n_sms=100)
    assert gemm_s(64, 2048, 4096, **BF16, **RATES, **HALF, n_sms=100) == alone


def test_a_product_with_few_tiles_takes_as_long_as_one_wave():
    """16 rows or 64 are one row of tiles of 64: of 12 800 columns, 128 for each of 100."""
    areas = tile_area([16, 64], 1, 12800, n_sms=100)
    assert areas == pytest.approx([64 * 128, 64 * 128])


def test_one_tile_more_than_there_are_multiprocessors_is_another_wave():
    """101 rows of 64 × 16 on 100 multiprocessors: two waves; on 101 one."""
    rows = 101 * 64
    assert tile_area(rows, 1, 16, n_sms=101) == pytest.approx(64 * 16)
    assert tile_area(rows, 1, 16, n_sms=100) > 64 * 16


def test_each_group_has_tiles_of_its_own():
    """Ten groups of one row each fill ten tiles of 64, one group of ten rows fills one."""
    assert tile_area(10, 10, 16, n_sms=1) == pytest.approx(10 * 64 * 16)
    assert tile_area(10, 1, 16, n_sms=1) == pytest.approx(64 * 16)


def test_narrow_tiles_cost_further_columns():
    assert tile_area(64, 1, 16, n_sms=1, narrow_n=4) == pytest.approx(64 * 20)


def test_arrays_give_what_single_calls_give():
    m, n = np.array([1.0, 64.0, 4096.0])[:, None], np.array([512.0, 6144.0])
    form = {**BF16, **RATES, **HALF, "n_sms": 78.0, "prologue_k": 90.0, "narrow_n": 5.0}
    together = gemm_s(m, n, 2048, **form)
    one_by_one = [[float(gemm_s(a, b, 2048, **form)) for b in n] for a in m[:, 0]]
    assert together == pytest.approx(np.array(one_by_one))


def test_an_exponent_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        gemm_s(1, 1, 1, **BF16, **RATES, **{**HALF, "exponent": 0.5})


def test_tokens_added_up_in_another_order_fill_no_further_tile():
    rows = np.nextafter(69.0 * 64, np.inf)
    assert tile_area(rows, 1, 128, n_sms=69) == tile_area(69.0 * 64, 1, 128, n_sms=69)
    assert tile_area(69.01 * 64, 1, 128, n_sms=69) > tile_area(69.0 * 64, 1, 128, n_sms=69)
