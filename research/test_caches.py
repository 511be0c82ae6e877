from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from research import caches

counts = st.integers(1, 10_000)


def test_three_sequences_of_ten_tokens_by_hand():
    """3 sequences × 10 tokens × 4 layers × 2 (K and V) × 2 heads × 8 wide × 2 bytes = 7680."""
    held = caches.kv_cache_bytes(3, 10, n_layers=4, n_kv_heads=2, d_head=8, bytes_per_number=2.0)
    assert held == 7680


def test_a_multi_head_cache_of_500b_parameters_is_three_terabytes():
    """Batch 512, context 2048, 118 layers, 48 heads of 128: 3 TB in [Pope2022] §2.1."""
    held = caches.kv_cache_bytes(
        512, 2048, n_layers=118, n_kv_heads=48, d_head=128, bytes_per_number=2.0
    )
    assert held == pytest.approx(3e12, rel=0.02)


def test_heads_may_be_held_in_fractions():
    whole = caches.kv_cache_bytes(1, 1, n_layers=1, n_kv_heads=1, d_head=8, bytes_per_number=1.0)
    half = caches.kv_cache_bytes(1, 1, n_layers=1, n_kv_heads=0.5, d_head=8, bytes_per_number=1.0)
    assert half * 2 == whole


@given(n_sequences=counts, n_tokens=counts, n_kv_heads=st.integers(1, 64))
def test_the_longest_context_fills_its_budget_exactly(n_sequences, n_tokens, n_kv_heads):
    shape = {"n_layers": 7, "n_kv_heads": n_kv_heads, "d_head": 16, "bytes_per_number": 2.0}
    budget = caches.kv_cache_bytes(n_sequences, n_tokens, **shape)
    per_token = caches.kv_cache_bytes(1, 1, **shape)
    longest = caches.longest_context_tokens(budget, n_sequences, per_token)
    assert longest == pytest.approx(n_tokens)


def test_arrays_give_what_their_entries_give():
    """Three batches by two contexts, and a context that a budget holds for each batch."""
    batches, contexts = np.array([[1], [8], [512]]), np.array([128, 2048])
    shape = {"n_layers": 2, "n_kv_heads": 4, "d_head": 16, "bytes_per_number": 1.0}
    held = caches.kv_cache_bytes(batches, contexts, **shape)
    np.testing.assert_array_equal(held, 256 * batches * contexts)
    longest = caches.longest_context_tokens(1024.0, batches[:2], 128.0)
    np.testing.assert_array_equal(longest, [[8], [1]])
