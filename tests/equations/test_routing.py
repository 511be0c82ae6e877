"""Experts that tokens reach, where some are more popular."""

from __future__ import annotations

import numpy as np
import pytest

from planner.equations.routing import chances, experts_reached, fullest
from planner.specs.records.architecture import EXPONENT, N_ORDERS, usual_loads


def test_equal_loads_give_equal_chances():
    assert chances(np.ones(128), 8) == pytest.approx(np.full(128, 8 / 128))


@pytest.mark.parametrize("n_active", [1, 2, 3, 8])
def test_chances_are_of_as_many_experts_as_a_token_visits_and_none_is_above_one(n_active):
    loads = np.array([40.0, 1.0, 2.0, 9.0, 4.0, 4.0, 0.5, 3.0])
    found = chances(loads, n_active)
    assert found.sum() == pytest.approx(n_active)
    assert found.max() <= 1.0
    below = found < 1.0
    assert np.ptp(found[below] / loads[below]) < 1e-12 if below.any() else n_active == 8
    assert list(np.argsort(-found[below])) == list(np.argsort(-loads[below]))


def test_an_expert_without_a_load_is_visited_only_if_there_is_no_other():
    assert chances([3.0, 0.0, 1.0], 2).tolist() == [1.0, 0.0, 1.0]


def test_experts_are_reached_as_often_as_drawn_tokens_reach_them():
    """Each token takes each expert with its chance; 4,000 draws of 12 tokens."""
    loads = np.arange(1, 17, dtype=float) ** -0.9
    held = chances(loads, 2)
    random = np.random.default_rng(1)
    drawn = (random.random((4000, 12, 16)) < held).any(axis=1).sum(axis=1)
    assert experts_reached(np.array([12.0, 0.0]), held) == pytest.approx(
        [drawn.mean(), 0.0], rel=0.02
    )


def test_of_ranks_the_one_with_most_rows_counts():
    held = np.array([0.1, 0.2, 0.9, 0.3, 0.6, 0.5, 0.2])
    assert fullest(held, 1).tolist() == held.tolist()
    assert fullest(held, 3).tolist() == [0.3, 0.6, 0.5]
    assert fullest(held, 7).tolist() == [0.9]


def test_the_usual_loads_are_one_law_in_several_orders():
    orders = usual_loads(64)
    assert len(set(orders)) == N_ORDERS
    law = sorted(rank**-EXPONENT for rank in range(1, 65))
    assert all(sorted(one) == law for one in orders)
