"""The reference model's equations against each other, and at the edges of what they take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from planner.equations.economics.collectives import (
    ALL_REDUCE,
    ALL_TO_ALL,
    collective_s,
    tree_transfer_s,
)
from planner.equations.economics.transformer import (
    touched_fraction,
)
from planner.equations.economics.work import attention_network_s, tensor_group
from planner.specs.records.economics import TreeCollectives
from research.economics import facts
from research.economics.model.casework import (
    FINAL,
    FULL,
    best_layout,
    breakdown,
    degrees_of,
    latency_s,
)
from research.economics.model.cost import mfu_fraction, preference, usd_per_token
from research.economics.model.presented import (
    latency_as_presented_s,
    n_params_read,
    reduced_bytes,
    weights_read,
)
from research.economics.model.reads import reads_s, scale_out_read_bytes, scale_up_read_bytes
from research.economics.model.search import Points, frontier, optimum, paper_grid
from research.economics.model.sizes import exchanged_bytes
from research.economics.model.speculation import (
    expected_tokens,
    speculative_token_s,
    speculative_token_with_bonus_s,
)

MODELS = ("Llama_3_70B_8_bit", "GPT_3", "Mixtral_8x22B", "DeepSeek_V3")
N = np.array([[16.0], [64.0], [100.3]])
B = np.array([[1.0, 7.0, 256.0]])
ONLY_TENSORS_IN_2D = replace(FINAL, has_1d=False, has_stages=False)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("n_context", "n_scored"), [(0.0, 1.0), (3000.0, 4.0)])
def test_the_printed_equations_are_the_casework_without_cases(
    name: str, n_context: float, n_scored: float
):
    decode = facts.decode(name, n_context_tokens=n_context, n_scored_tokens=n_scored)
    printed = latency_as_presented_s(decode, N, B)
    assert latency_s(decode, N, B, casework=ONLY_TENSORS_IN_2D) == pytest.approx(printed)
    assert (latency_s(decode, N, B) <= printed * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", MODELS)
def test_bytes_of_the_printed_all_reduces_add_up_to_equation_25(name: str):
    """√N groups reduce what each product puts out, in every layer."""
    decode = facts.decode(name, n_scored_tokens=2.0)
    in_a_layer = reduced_bytes(decode, N, B).sum(axis=0) * np.sqrt(N)
    assert in_a_layer * decode.model.n_layers == pytest.approx(
        np.broadcast_to(exchanged_bytes(decode, B), (3, 3))
    )


@pytest.mark.parametrize("name", ["Llama_3_70B_8_bit", "GPT_3", "Mixtral_8x22B"])
def test_weights_of_plain_attention_are_the_parameters_of_equation_22(name: str):
    model = facts.model(name)
    assert weights_read(model, B) == pytest.approx(n_params_read(model, B))


def test_latent_attention_reads_more_than_its_parameters():
    """Down to the latent and up to the heads: 115.3M weights are read, 60.3M counted."""
    model = facts.model("DeepSeek_V3")
    extra = (weights_read(model, B) - n_params_read(model, B)) / model.n_layers
    counted = 2 * 512 * 7168 + 1536 * 7168 + 256 * 128 * 512 + 128 * 128 * 1536
    read = 2048 * 7168 + 49152 * 2048
    assert extra == pytest.approx(np.full_like(extra, read - counted))


def test_transfers_of_a_group_are_the_reads_of_equation_28_over_all_links():
    """√N groups at once, tiers one after the other."""
    device = replace(facts.device("H100"), collectives=TreeCollectives(tiers_overlap=False))
    ranks, nodes = tensor_group(N, device.n_devices_per_node, is_2d=True)
    exchanged = 1e9
    of_a_group = tree_transfer_s(ALL_REDUCE, exchanged / np.sqrt(N), (ranks, nodes), device)
    between = scale_out_read_bytes(exchanged, nodes)
    within = scale_up_read_bytes(exchanged, ranks, nodes)
    assert of_a_group == pytest.approx(reads_s(between, within, N, device))


def test_a_collective_of_one_rank_is_free_and_of_little_more_almost_so():
    """An artefact of real-valued ranks: Simple has no base, and its hop is not taken."""
    ranks = np.array([0.5, 1.0, 1.0001, 1.12, 1.13, 2.0])
    times = collective_s(ALL_REDUCE, 0.0, (ranks, np.ones(6)), facts.device("H100"))
    assert times[:2].tolist() == [0.0, 0.0]
    assert times[2] == pytest.approx(2 * 0.0001 * 28e-6, rel=1e-6)
    assert times[3] == pytest.approx(2 * 0.12 * 28e-6)
    assert times[4] == pytest.approx(2 * 0.13 * 0.6e-6 + 6.8e-6)
    assert times[5] == pytest.approx(2 * 0.6e-6 + 6.8e-6)


def test_tpus_ring_takes_a_hop_a_rank_and_a_phase():
    """2 × 3 hops of 1 µs and 3/4 of 1 MB at 250 GB/s; an all-to-all takes half of both."""
    tpu = facts.device("TPU_v4")
    group = (4.0, 4.0)
    assert collective_s(ALL_REDUCE, 1e6, group, tpu) == pytest.approx(6e-6 + 3e-6)
    assert collective_s(ALL_TO_ALL, 1e6, group, tpu) == pytest.approx(3e-6 + 1.5e-6)


def test_dense_models_touch_everything_with_any_token():
    assert touched_fraction(np.array([0.3, 1.0, 9.0]), 1).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", MODELS)
def test_an_array_of_points_equals_its_points_one_by_one(name: str):
    decode = facts.decode(name, n_context_tokens=500.0)
    one_by_one = [[float(latency_s(decode, n, b)) for b in B[0]] for n in N[:, 0]]
    assert np.array_equal(latency_s(decode, N, B), one_by_one)


@pytest.mark.parametrize("name", MODELS)
def test_the_terms_of_the_best_layout_are_its_latency(name: str):
    decode = facts.decode(name, n_context_tokens=500.0)
    latency, layout = best_layout(decode, N, B)
    found = breakdown(decode, N, B, layout)
    fits = np.isfinite(latency)
    assert fits.any()
    assert found.latency_s[fits] == pytest.approx(latency[fits])


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(st.integers(2, 80), st.integers(2, 16), st.integers(-8, 8))
def test_an_ulp_more_or_less_changes_no_latency(n_requests: int, n_nodes: int, ulps: int):
    """As many stages as requests, and just full nodes, whatever the rounding."""
    decode = facts.decode("Llama_3_70B_8_bit")
    off = 1.0 + ulps * 2.0**-52
    exact = latency_s(decode, 8.0 * n_nodes, float(n_requests))
    assert latency_s(decode, 8.0 * n_nodes * off, n_requests * off) == pytest.approx(exact)


def test_what_does_not_fit_has_no_latency():
    """70.6 GB of 8-bit weights: not on 0.88 of 80 GB, nor on less than one device at all.

    1000 contexts of 3000 tokens take another 983 GB: 13.2 devices, or with 80 stages a
    little over 1.03, as only one micro-batch counts. But no stage without a device.
    """
    decode = facts.decode("Llama_3_70B_8_bit")
    assert np.isfinite(latency_s(decode, np.array([0.89, 1.0]), 1.0)).tolist() == [False, True]
    long = replace(decode, n_context_tokens=3000.0)
    whole = replace(FULL, holds_one_microbatch=False)
    n = np.array([13.1, 13.3])
    assert np.isfinite(latency_s(long, n, 1000.0, casework=whole)).tolist() == [False, True]
    assert np.isfinite(latency_s(long, n, 1000.0)).tolist() == [True, True]


def test_a_device_without_a_rate_for_the_weights_is_an_error():
    with pytest.raises(KeyError):
        latency_s(facts.decode("Llama_3_70B_4_bit", "A100"), 8.0, 8.0)


def test_experts_are_spread_only_from_two_requests_for_each_of_them_on():
    """DeepSeek-V3 rounds 256/9 down to 28: from 56 requests of a micro-batch."""
    decode = facts.decode("DeepSeek_V3")
    requests = np.array([55.9, 56.0, 112.0, 112.0])
    found = degrees_of(decode, 64.0, requests, np.array([1.0, 1.0, 2.0, 4.0]))
    assert found.n_expert.tolist() == [1.0, 64.0, 32.0, 1.0]
    assert found.n_ffn.tolist() == [64.0, 1.0, 1.0, 16.0]


def test_in_two_dimensions_the_queries_keys_and_values_are_exchanged_too():
    """Sixteen devices in 4 × 4: d and A words over four groups, against d over one."""
    decode = facts.decode("Llama_3_70B")
    degrees = degrees_of(decode, np.array([16.0]), np.array([32.0]), np.array([1.0]))
    device, n_tokens, n_layers = decode.device, 32.0, 80
    root = np.sqrt(2.0)
    flat = collective_s(ALL_REDUCE, 8192 * 2 * n_tokens, (16.0, 2.0), device)
    words = np.array([8192.0, 10240.0])
    square = collective_s(ALL_REDUCE, words * 2 * n_tokens / 4, (4.0, root), device).sum()
    sixteen = np.array([16.0])
    found = [
        float(attention_network_s(decode, degrees, sixteen, is_2d=is_2d)[0])
        for is_2d in (False, True)
    ]
    assert found == pytest.approx([n_layers * flat, n_layers * square])


def test_expected_tokens_of_four_tries():
    """1 + 0.8 + 0.64 + 0.512 = 2.952; all four where nothing is rejected."""
    assert expected_tokens(4, 0.8) == pytest.approx((1 - 0.8**4) / (1 - 0.8))
    assert expected_tokens(4, np.array([0.0, 1.0])).tolist() == [1.0, 4.0]


def test_the_two_conventions_of_speculation_differ_by_one_token():
    """Four drafts of 1 s and a pass of 10 s: 14 s for 2.952 tokens, or for 3.3616."""
    coded = speculative_token_s(10.0, 1.0, 4, acceptance=0.8)
    usual = speculative_token_with_bonus_s(10.0, 1.0, 4, acceptance=0.8)
    assert coded == pytest.approx(14 / 2.952)
    assert usual == pytest.approx(14 / 3.3616)


def points(*rows: tuple[float, float, float, float]) -> Points:
    n, b, latency, price = np.array(rows).T
    return Points(n_devices=n, n_requests=b, latency_s=latency, usd_per_token=price)


def test_the_frontier_keeps_what_is_cheaper_and_within_a_hundred_times_the_fastest():
    """The second is dearer, the fourth as cheap but slower, the last beyond 100 s."""
    found = frontier(
        points(
            (8, 1, 1.0, 9.0),
            (8, 2, 2.0, 9.5),
            (4, 2, 3.0, 4.0),
            (4, 1, 3.5, 4.0),
            (2, 1, 50.0, 1.0),
            (1, 1, 101.0, 0.1),
            (1, 2, np.inf, np.inf),
        )
    )
    assert found.latency_s.tolist() == [1.0, 3.0, 50.0]


def test_a_coarse_list_of_caps_passes_over_points():
    """Caps at 1, 10 and 100 s see the cheapest below each, not what lies between."""
    crowd = points((1, 1, 1.0, 9.0), (1, 1, 3.0, 5.0), (1, 1, 9.0, 4.0), (1, 1, 20.0, 3.0))
    assert frontier(crowd, n_caps=3).latency_s.tolist() == [1.0, 9.0, 20.0]


def test_a_limited_demand_excludes_instances_that_produce_more():
    """Four requests in 1 s are 4 tokens/s, two in 2 s are one."""
    pair = points((1, 4, 1.0, 1.0), (1, 2, 2.0, 2.0))
    assert frontier(pair, most_tokens_per_s=2.0).latency_s.tolist() == [2.0]
    with pytest.raises(ValueError, match="no point"):
        frontier(pair, most_tokens_per_s=0.5)


def test_the_preferred_point_weighs_speed_by_its_exponent():
    """Twice as fast for six times the price: worth it by the cube, not by the square."""
    decode = facts.decode("Llama_3_8B")
    pair = points((1, 1, 1.0, 6.0), (1, 1, 2.0, 1.0))
    assert optimum(decode, pair, exponent=3.0).preferred.latency_s == 1.0
    assert optimum(decode, pair, exponent=2.0).preferred.latency_s == 2.0
    assert preference(2.0, 4.0, exponent=3.0) == 2.0


def test_price_and_mfu_of_a_point():
    """2 devices × 0.01 s / 4 requests at 2.1 USD/h; 4 × 2 × 8.03e9 FLOP of 2 × 1e15 × 0.01."""
    decode = facts.decode("Llama_3_8B")
    assert usd_per_token(0.01, 2, 4, decode.device) == pytest.approx(0.005 * 2.1 / 3600)
    scored = replace(decode, n_scored_tokens=3.0)
    expected = 4 * 2 * 8_029_995_008 / (2 * 1e15 * 0.01)
    assert mfu_fraction(scored, 0.01, 2, 4) == pytest.approx(expected)


def test_the_grid_runs_from_what_the_weights_fill():
    """DeepSeek-V3: 666 GB / 80 GB = 8.33 devices to 2¹⁸, one request to 28 × 2¹⁸."""
    n, b = paper_grid(facts.decode("DeepSeek_V3"))
    assert n.shape == (400, 1)
    assert b.shape == (1, 400)
    assert (n[0, 0], n[-1, 0]) == pytest.approx((666_070_679_552 / 80e9, 2**18))
    assert (b[0, 0], b[0, -1]) == pytest.approx((1, 28 * 2**18))
    ratios = n[1:, 0] / n[:-1, 0]
    assert ratios == pytest.approx(np.full(399, ratios[0]))
