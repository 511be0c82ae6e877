"""Claims of [Erdil2025] §2 about the toy model, and Table 1 row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from research.economics import facts, rows
from research.economics.model import optimum as toy, toy as more
from research.economics.model.optimum import ToySystem, table_1_system
from research.economics.rows import Row

TABLE_1 = rows.of_table("1")
CLAIMED = TABLE_1

MODELS = {
    "Llama 3 8B": "Llama_3_8B",
    "Llama 3 70B": "Llama_3_70B",
    "GPT-3": "GPT_3",
    "PaLM-540B": "PaLM_540B",
    "GPT-4": "GPT_4",
}

same_every_time = settings(deadline=None, derandomize=True, database=None)

systems = st.builds(
    ToySystem,
    n_params=st.floats(1e8, 1e13),
    n_layers=st.floats(8, 400),
    weight_bytes=st.sampled_from([0.5, 1.0, 2.0]),
    hbm_bytes_per_s=st.floats(1e11, 1e14),
    flop_per_s=st.floats(1e13, 1e16),
    n_reduces_per_layer=st.sampled_from([2, 4]),
    hop_s=st.floats(1e-8, 1e-5),
)


def of_table_1(name: str) -> ToySystem:
    return table_1_system(facts.model(MODELS[name]), facts.device("H100"))


@pytest.mark.parametrize("row", TABLE_1, ids=str)
def test_closed_forms_give_table_1(row: Row):
    system = of_table_1(row.name)
    found = {
        "max_tokens_per_s": 1 / toy.least_latency_s(system),
        "optimal_instance": toy.optimal_n_devices(system),
    }[row.quantity]
    assert found == pytest.approx(row.value, rel=1e-9)
    assert rows.prints_as(row, found)


@same_every_time
@given(systems, st.floats(1.0, 1e3))
def test_no_batch_is_faster_or_cheaper_than_where_reading_meets_computing(
    system: ToySystem, times: float
):
    """Fewer requests cost more at the same latency, more take longer at the same cost."""
    batch = toy.optimal_n_requests(system)
    latency, cost = system.read_s, system.compute_s
    assert more.single_device_latency_s(system, batch) == pytest.approx(latency)
    assert more.single_device_s_per_token(system, batch) == pytest.approx(cost)
    assert more.single_device_latency_s(system, batch / times) == pytest.approx(latency)
    assert more.single_device_s_per_token(system, batch / times) == pytest.approx(cost * times)
    assert more.single_device_latency_s(system, batch * times) == pytest.approx(latency * times)
    assert more.single_device_s_per_token(system, batch * times) == pytest.approx(cost)


def test_batch_where_an_h100_reads_as_long_as_it_computes():
    """1e15 FLOP/s × 2 bytes / (2 × 3.3e12 bytes/s) = 303 requests."""
    assert toy.optimal_n_requests(of_table_1("Llama 3 70B")) == pytest.approx(1e15 / 3.3e12)


@same_every_time
@given(systems, st.floats(0.01, 100.0))
def test_no_other_number_of_devices_has_less_latency(system: ToySystem, times: float):
    best = toy.optimal_n_devices(system)
    other = max(1.0, best * times)
    least = more.latency_at_optimal_batch_s(system, best)
    assert least <= more.latency_at_optimal_batch_s(system, other) * (1 + 1e-12)


@same_every_time
@given(systems)
def test_closed_forms_are_the_model_at_its_optimum(system: ToySystem):
    n, b = toy.optimal_n_devices(system), toy.optimal_n_requests(system)
    assert toy.least_latency_s(system) == pytest.approx(more.latency_s(system, n, b), rel=1e-6)
    assert toy.device_s_per_token_at_least_latency(system) == pytest.approx(
        more.device_s_per_token(system, n, b), rel=1e-6
    )


def test_one_device_is_best_where_an_all_reduce_costs_more_than_half_the_reading():
    """2 W/M = 1 s is less than c = 8 layers × 4 × 2 × 1 s: W/M is the latency."""
    slow = ToySystem(
        n_params=1.0,
        n_layers=8,
        weight_bytes=1.0,
        hbm_bytes_per_s=2.0,
        flop_per_s=1.0,
        hop_s=1.0,
    )
    assert toy.optimal_n_devices(slow) == 1.0
    assert toy.least_latency_s(slow) == 0.5
    assert toy.device_s_per_token_at_least_latency(slow) == slow.compute_s


@pytest.mark.parametrize("name", MODELS)
def test_least_latency_costs_about_three_times_the_arithmetic(name: str):
    """Below three by 2^(2/3) (c M / W)^(1/3): from 2.41 for 8B to 2.85 for GPT-4."""
    system = of_table_1(name)
    ratio = toy.device_s_per_token_at_least_latency(system) / system.compute_s
    assert 2.4 < ratio < 3.0


@same_every_time
@given(systems)
def test_least_latency_tends_to_cost_three_times_the_arithmetic(system: ToySystem):
    huge = replace(system, n_params=1e30)
    ratio = toy.device_s_per_token_at_least_latency(huge) / huge.compute_s
    assert ratio == pytest.approx(3.0, abs=1e-3)


@same_every_time
@given(systems, st.floats(1.0, 1e4))
def test_latency_grows_as_the_square_root_of_the_parameters(system: ToySystem, factor: float):
    large = toy.large_model_latency_s(more.scaled(system, factor))
    assert large == pytest.approx(np.sqrt(factor) * toy.large_model_latency_s(system))


@same_every_time
@given(systems, st.floats(1.0, 100.0))
def test_depth_matters_more_than_width(system: ToySystem, factor: float):
    """As layers × width^(2/3), at layers × width² parameters."""
    before = toy.large_model_latency_s(system)
    deeper = replace(system, n_layers=system.n_layers * factor, n_params=system.n_params * factor)
    wider = replace(system, n_params=system.n_params * factor**2)
    assert toy.large_model_latency_s(deeper) == pytest.approx(factor * before)
    assert toy.large_model_latency_s(wider) == pytest.approx(factor ** (2 / 3) * before)


@pytest.mark.parametrize("name", MODELS)
def test_twice_the_bandwidth_takes_off_a_quarter_but_half_the_hop_a_third(name: str):
    """1 − 2^(−1/3) = 21 % and 1 − 2^(−2/3) = 37 % in the limit of many devices."""
    system = of_table_1(name)
    least = toy.least_latency_s(system)
    twice_as_wide = replace(system, hbm_bytes_per_s=2 * system.hbm_bytes_per_s)
    half_the_hop = replace(system, hop_s=system.hop_s / 2)
    assert 0.20 < 1 - toy.least_latency_s(twice_as_wide) / least < 0.26
    assert 0.33 < 1 - toy.least_latency_s(half_the_hop) / least < 0.37


def test_a_parallel_block_halves_the_all_reduces_in_figure_1_only():
    palm, h100 = facts.model("PaLM_540B"), facts.device("H100")
    assert more.figure_1_system(palm, h100).n_reduces_per_layer == 2
    assert toy.table_1_system(palm, h100).n_reduces_per_layer == 4


def test_an_instance_that_cannot_hold_the_weights_has_no_latency():
    """Llama 3 70B has 141 GB of weights, two H100 have 160 GB."""
    system = more.figure_1_system(facts.model("Llama_3_70B"), facts.device("H100"))
    fits = np.isfinite(more.latency_s(system, np.array([1.0, 1.7, 1.8, 2.0]), 1.0))
    assert fits.tolist() == [False, False, True, True]
