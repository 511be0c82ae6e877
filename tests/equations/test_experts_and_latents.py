"""Closed forms of experts, of whole blocks of latent attention, and of linear attention.

Each is checked against the arithmetic of its own docstring, written out for one small case.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.experts import (
    expected_experts_hit,
    filled_rows,
    fused_experts_s,
    fused_experts_work,
)
from planner.equations.kernels.latent import latent_decode_s, latent_prefill_s
from planner.equations.kernels.latent_block import (
    latent_block_decode_s,
    latent_block_prefill_s,
    projection_weights,
)
from planner.equations.kernels.recurrence import recurrence_decode_s, recurrence_prefill_s
from planner.equations.kernels.sparse_block import (
    causal_pairs,
    indexer_weights,
    sparse_block_decode_s,
    sparse_block_prefill_s,
)

RATES = {"peak_flop_per_s": 1e12, "hbm_bytes_per_s": 1e9}
EXPERTS = {
    "floor_s": 1e-3,
    "routing_s": 4e-3,
    "compute_fraction": 0.5,
    "memory_fraction": 0.8,
    "row_traffic": 2.0,
    "walk_traffic": 0.25,
    "column_s": 1e-6,
    "narrow_columns": 8.0,
    "tile_rows": 16.0,
    "exponent": 1.0,
}
LAYER = {
    "n_experts": 8,
    "n_experts_local": 4,
    "n_active": 2,
    "d_model": 64,
    "d_expert": 32,
    "weight_bytes": 1.0,
    "input_bytes": 1.0,
}


def test_experts_add_up_to_their_terms() -> None:
    # 128 tokens, two experts each, half of which are here: 128 rows of the 256 walked through.
    hit = 4 * (1 - 0.75**128)
    weights = 3 * 64 * (32 + 8)
    compute = 2 * (128 + hit * 8) * weights / 0.5e12
    memory = hit * weights / 0.8e9
    row_bytes = 64 * 3 + 32 * (4 + 3)
    moved = (2 * 128 + 0.25 * 256) * row_bytes / 1e9
    expected = 1e-3 + 4e-3 * 256 / 512 + compute + memory + moved + 1e-6 * 96
    assert fused_experts_s(128, **LAYER, **RATES, **EXPERTS) == pytest.approx(expected)


def test_experts_take_what_the_caller_knows_of_the_routing() -> None:
    known = {"rows": 128.0, "walked_rows": 256.0, "n_hit": 4 * (1 - 0.75**128)}
    even = fused_experts_s(128, **LAYER, **RATES, **EXPERTS)
    assert fused_experts_s(128, **LAYER, **known, **RATES, **EXPERTS) == pytest.approx(even)
    dispatched = {**known, "walked_rows": 128.0}
    saved = even - fused_experts_s(128, **LAYER, **dispatched, **RATES, **EXPERTS)
    # 128 rows fewer are walked through, and sorted.
    expected = 0.25 * 128 * 416 / 1e9 + 4e-3 * (256 / 512 - 128 / 384)
    assert saved == pytest.approx(expected)


def test_experts_that_no_token_hits_are_looked_at() -> None:
    few = {"rows": 2.0, "walked_rows": 4.0}
    looks = {**EXPERTS, "idle_expert_s": 5e-4}
    for n_hit, idle in ((1.0, 3.0), (4.0, 0.0)):
        plain = fused_experts_s(2, **LAYER, **few, n_hit=n_hit, **RATES, **EXPERTS)
        looking = fused_experts_s(2, **LAYER, **few, n_hit=n_hit, **RATES, **looks)
        assert looking - plain == pytest.approx(idle * 5e-4)


def test_without_a_gate_there_is_one_product_less() -> None:
    gated, _ = fused_experts_work(1, **LAYER)
    plain, _ = fused_experts_work(1, **LAYER, n_up=1.0)
    assert plain / gated == pytest.approx(2 / 3)


def test_distinct_experts_hit() -> None:
    """One token hits its own; two tokens 2k − k²/E in expectation; many hit all."""
    case = {"n_experts": 8, "n_experts_local": 8, "n_active": 2}
    hit = expected_experts_hit(np.array([1, 2, 10_000]), **case)
    np.testing.assert_allclose(hit, [2.0, 4 - 4 / 8, 8.0])


def test_distinct_experts_hit_agree_with_draws() -> None:
    draw = np.random.default_rng(3)
    seen = [
        len(np.unique([draw.choice(32, 4, replace=False) for _ in range(12)])) for _ in range(400)
    ]
    case = {"n_experts": 32, "n_experts_local": 32, "n_active": 4}
    assert expected_experts_hit(12, **case) == pytest.approx(np.mean(seen), rel=0.02)


def test_an_expert_with_few_rows_fills_one_tile() -> None:
    np.testing.assert_allclose(filled_rows([4, 40], [4, 4], tile_rows=16), [64, 72])


def test_experts_broadcast_over_deployments() -> None:
    layer = {**LAYER, "n_experts_local": np.array([[8], [4], [2]])}
    times = fused_experts_s(np.array([1, 64, 4096]), **layer, **RATES, **EXPERTS)
    assert times.shape == (3, 3)
    assert (np.diff(times, axis=0) < 0).all()  # fewer experts a device
    assert (np.diff(times, axis=1) > 0).all()  # more tokens


CORE = {"floor_s": 1e-3, "compute_fraction": 0.5, "memory_fraction": 0.8}


def test_latent_decode_counts_idle_sequences_and_heads() -> None:
    more = {"sequence_s": 1e-4, "sequence_head_s": 1e-5, "idle_sequences": 0.5, "min_heads": 8}
    compute = 2 * 2.5 * 100 * 8 * (576 + 512) / 0.5e12
    memory = 2.5 * 100 * 576 * 2 / 0.8e9
    expected = 1e-3 + compute + memory + 2 * (1e-4 + 4 * 1e-5)
    times = latent_decode_s(
        2, 100, n_heads=4, cache_bytes=2.0, exponent=1.0, **RATES, **CORE, **more
    )
    assert times == pytest.approx(expected)


def test_latent_prefill_moves_and_starts_heads() -> None:
    more = {"ramp_tokens": 50.0, "sequence_head_s": 1e-5}
    flop = 2 * 100 * (100 + 50) * 4 * 320
    moved = 2 * 2 * 100 * 2 * 4 * 320
    expected = 1e-3 + flop / 0.5e12 + moved / 0.8e9 + 2 * 4 * 1e-5
    times = latent_prefill_s(2, 100, n_heads=4, **RATES, **CORE, **more)
    assert times == pytest.approx(expected)


WIDE = {"n_heads": 2, "d_model": 16, "d_q_latent": 8, "d_latent": 6, "d_rope": 2}
HEADS = {"d_nope": 4, "d_value": 3}
PRODUCTS = {"product_compute_fraction": 0.25, "product_memory_fraction": 0.4}
BLOCK = {**WIDE, **HEADS, "weight_bytes": 1.0, "product_flop_per_s": 2e12}
DENSE = 16 * 8 + 8 * 12 + 16 * 8 + 2 * 3 * 16
"""To the queries' latent, from it to two heads of 6, to latent and rotated key, and back."""
MADE = 2 * 6 * (4 + 3)


def test_projections_are_those_of_the_architecture() -> None:
    """As `specs.records.mixers.LatentAttention` counts a layer, less the absorbed matrices."""
    from planner.specs.records.mixers import LatentAttention

    mixer = LatentAttention(
        n_heads=128, d_kv_latent=512, d_q_latent=1536, d_rope=64, d_nope=128, d_value_head=128
    )
    absorbed = 512 * 128 * (128 + 128)
    counted = projection_weights({"n_heads": 128, "d_model": 7168, "d_q_latent": 1536})
    assert counted == mixer.n_params(7168) - absorbed
    assert projection_weights({**WIDE, **HEADS}) == DENSE


def _products(tokens: float, more: float = 0.0) -> float:
    compute = 2 * tokens * ((DENSE + more) / 2e12 + MADE / 1e12) / 0.25
    memory = (DENSE + more + 2 * MADE) / 0.4e9
    return (compute**3 + memory**3) ** (1 / 3)


def test_a_block_is_its_products_and_its_attention() -> None:
    core = latent_decode_s(3, 50, n_heads=2, d_latent=6, d_rope=2, cache_bytes=2.0, **RATES, **CORE)
    block = latent_block_decode_s(3, 50, **BLOCK, cache_bytes=2.0, **PRODUCTS, **RATES, **CORE)
    assert block == pytest.approx(float(core) + _products(3))


@pytest.mark.parametrize("ramp_tokens", [0, 6])
def test_a_prefill_block_meets_the_causal_half_with_the_token_itself(ramp_tokens: int) -> None:
    flop = 2 * 3 * 10 * (11 + ramp_tokens) / 2 * 2 * (4 + 2 + 3)
    moved = 2 * 30 * (2 * 16 + 2 * (2 * 6 + 2 * 3))
    expected = 1e-3 + _products(30) + flop / 0.5e12 + moved / 0.8e9
    more = {"ramp_tokens": ramp_tokens}
    block = latent_block_prefill_s(3, 10, **BLOCK, **PRODUCTS, **RATES, **CORE, **more)
    assert block == pytest.approx(expected, rel=1e-12)


INDEX = {"n_index_heads": 4, "d_index": 8, "n_selected": 20, "index_flop_per_s": 2e12}
INDEXER = 8 * 4 * 8 + 16 * (8 + 4)


def test_sparse_decode_attends_to_what_it_selects_and_scores_all() -> None:
    assert indexer_weights(16, 8, n_heads=4, width=8) == INDEXER
    core = latent_decode_s(3, 20, n_heads=2, d_latent=6, d_rope=2, cache_bytes=2.0, **RATES, **CORE)
    scores = 3 * 50 * max(2 * 4 * 8 / 2e12, (8 + 4) / 1e9) / 0.5
    expected = float(core) + _products(3, INDEXER) + scores + 50 * 1e-6
    choice = {"index_fraction": 0.5, "select_s": 1e-6}
    block = sparse_block_decode_s(
        3, 50, **BLOCK, **INDEX, **choice, cache_bytes=2.0, **PRODUCTS, **RATES, **CORE
    )
    assert block == pytest.approx(expected)


@pytest.mark.parametrize(("new", "past"), [(5, 0), (30, 0), (30, 7), (4, 40)])
def test_selected_pairs_agree_with_counting(new: int, past: int) -> None:
    seen = [past + place for place in range(1, new + 1)]
    pairs, chosen = causal_pairs(new, past, n_selected=20)
    assert pairs == sum(seen)
    assert chosen == sum(min(one, 20) for one in seen)


def test_sparse_prefill_takes_the_longer_of_host_and_device() -> None:
    choice = {"index_fraction": 0.5, "select_s": 1e-12, "min_heads": 4}
    given = {**BLOCK, **INDEX, **choice, **PRODUCTS, **RATES, **CORE}
    chosen = 20 * 21 / 2 + 10 * 20
    flop = 2 * 4 * (2 * 6 + 2) * 3 * chosen
    moved = 2 * 90 * (2 * 16 + 2 * (2 * 6 + 2 * 3))
    scores = 3 * (30 * 31 / 2) * (2 * 4 * 8 / 2e12 / 0.5 + 1e-12)
    device = 1e-3 + _products(90, INDEXER) + flop / 0.5e12 + moved / 0.8e9 + scores
    assert sparse_block_prefill_s(3, 30, **given, host_s=0.0) == pytest.approx(device)
    assert sparse_block_prefill_s(3, 30, **given, host_s=1.0) == pytest.approx(1.0, rel=1e-3)


STATE = {"n_heads": 4, "d_key": 8, "d_value": 16, "d_conv": 32}


def test_linear_attention_reads_and_writes_its_state() -> None:
    state = 2 * 4 * 8 * 16 * 4
    others = 2 * (32 * 3 + 32 + 4 * 16) * 2
    expected = 1e-3 + 10 * (state + others) / 0.8e9
    times = recurrence_decode_s(10, **STATE, hbm_bytes_per_s=1e9, floor_s=1e-3, memory_fraction=0.8)
    assert times == pytest.approx(expected)


def test_one_sequence_walks_and_many_compute() -> None:
    constants = {
        "floor_s": 0.0,
        "token_s": 1e-6,
        "compute_fraction": 0.5,
        "conv_fraction": 1.0,
        "sequence_head_s": 1e-5,
    }
    rates = {"peak_flop_per_s": 1e12, "hbm_bytes_per_s": 1e18}
    one = recurrence_prefill_s(1, 1000, **STATE, **rates, **constants)
    assert one == pytest.approx(1000 * 1e-6 + 4 * 1e-5, rel=1e-3)
    flop = 8 * 1e6 * 1000 * 4 * 8 * 16
    many = recurrence_prefill_s(1e6, 1000, **STATE, **rates, **constants)
    assert many == pytest.approx(flop / 0.5e12 + 1e6 * 4 * 1e-5, rel=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        "experts",
        "dispatched_experts",
        "latent_block_decode",
        "latent_block_prefill",
        "sparse_block_decode",
        "sparse_block_prefill",
        "recurrence_decode",
        "recurrence_prefill",
    ],
)
def test_a_family_is_never_faster_than_its_own_roofline(name: str) -> None:
    """With every share at its bound, the form stays above the work that it declares."""
    family = FAMILIES[name]
    sizes = {
        "batch": 16.0,
        "tokens": 64.0,
        "context": 512.0,
        **{key: float(value) for key, value in {**BLOCK, **INDEX, **LAYER}.items()},
        "product_flop_per_s": 1e12,
        "cache_bytes": 2.0,
        **STATE,
    }
    columns = {one: sizes[one] for one in family.dimensions}
    constants = {one.name: one.high for one in family.parameters if one.name.endswith("fraction")}
    others = {one.name: one.low for one in family.parameters if one.name not in constants}
    constants["compute_fraction"] = 1.0
    needed = {one.name for one in family.parameters}
    constants = {key: value for key, value in (others | constants).items() if key in needed}
    seconds = family.seconds(columns, RATES, constants)
    assert seconds >= family.roofline_s(columns, RATES) * (1 - 1e-9)
