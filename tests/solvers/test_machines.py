"""Layers on mixed machines: bounds that hold for every placement, rates that replay."""

from __future__ import annotations

import numpy as np
import pytest

from planner.programs.machines import violations
from planner.programs.replay import replayed_rate
from planner.solvers.machines import ARCS, COVERS, FIXED_POINT, place
from planner.solvers.machines.rows import Tries
from tests.programs.pools import best_of_all, drawn, pool


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("enters_within", [False, True])
def test_random_pools_have_a_valid_bound_and_a_rate_that_replays(limited, enters_within):
    """Every placement of 3 or 4 machines is tried: none beats the bound, and where machines are
    entered at their first layer and links do not limit, none beats the answer.
    """
    n_best = 0
    for seed in range(4):
        some = drawn(seed, limited=limited, enters_within=enters_within)
        found, best = place(some, Tries()), best_of_all(some)
        assert found.bound >= best * (1.0 - 1e-9), seed
        assert found.rate <= best * (1.0 + 1e-9), seed
        if found.placement is not None:
            assert violations(some, found.placement) == {}
            assert replayed_rate(some, found.placement) == found.rate
        n_best += found.rate >= best * (1.0 - 1e-3)
    assert n_best == 4 or limited or enters_within
    assert n_best >= 1


def test_the_bound_is_reached_at_once_where_machines_fit_exactly():
    """Four machines of 5 token/s with two layers each, 4 layers: two stages of two: 10."""
    found = place(pool(4, [[8.0, 5.0]], [0, 0, 0, 0]), Tries())
    assert (found.rate, found.bound, found.proof) == (10.0, pytest.approx(10.0), FIXED_POINT)
    assert found.n_rates == 1


def test_a_machine_beside_two_that_share_its_layers():
    """Three machines, 8 token/s with one layer, 3 with two; two layers. Rows of stages reach 9:
    all three hold both. Better: two hold one layer each, 8, and the third both, 3: 11.
    """
    found = place(pool(2, [[8.0, 3.0]], [0, 0, 0]), Tries())
    assert found.fixed_point == pytest.approx(12.0)
    assert found.proof == ARCS
    assert found.rate == 11.0
    assert found.bound == pytest.approx(11.0)


def test_covers_bound_closer_than_the_fixed_point():
    """Three machines of 5 with one layer each and two layers: above 5 a layer takes two of them,
    so that covers reach 1.5 layers; the fixed point lets each add 5: 7.5.
    """
    found = place(pool(2, [[5.0]], [0, 0, 0]), Tries(gap=1e-3))
    assert found.fixed_point == pytest.approx(7.5)
    assert found.proof == COVERS
    assert 5.0 == found.rate <= found.bound < 5.01


def test_more_machines_and_faster_links_never_hurt():
    rates = [[50.0, 24.0, 15.0], [30.0, 16.0]]
    slow = place(pool(5, rates, [0, 0, 1, 1], links=12.0), Tries()).rate
    fast = place(pool(5, rates, [0, 0, 1, 1]), Tries()).rate
    more = place(pool(5, rates, [0, 0, 1, 1, 1]), Tries()).rate
    assert 0 < slow <= fast <= more


def test_machines_that_no_link_joins_have_no_placement():
    """Each holds one of two layers, and nothing can be sent."""
    found = place(pool(2, [[5.0]], [0, 0], links=0.0), Tries())
    assert found.placement is None
    assert found.rate == 0.0


def test_twice_the_rates_twice_the_answer():
    rates = [[50.0, 24.0, 15.0], [30.0, 16.0]]
    once = place(pool(5, rates, [0, 0, 1, 1, 1]), Tries())
    doubled = [[2 * rate for rate in one] for one in rates]
    twice = place(pool(5, doubled, [0, 0, 1, 1, 1]), Tries())
    assert twice.rate == pytest.approx(2 * once.rate, rel=1e-6)


def test_machines_are_seated_where_their_links_are():
    """Two places, two machines of 10 token/s in each that hold one layer; four layers. Only
    machine 1 sends out of the first place, only to machine 2; only 0 and 3 see the coordinator.
    """
    links = np.zeros((4, 4))
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = 100.0
    links[1, 2] = 8.0
    some = pool(4, [[10.0]], [0, 0, 0, 0], links=links)
    some.from_coordinator[1:] = 0.0
    some.to_coordinator[:3] = 0.0
    found = place(some, Tries(gap=1e-2))
    assert found.rate == pytest.approx(8.0, rel=1e-2)
    assert [held.machine for held in found.placement] == [0, 1, 2, 3]


def test_what_carries_too_little_is_refused_for_another_row():
    """Three layers, two machines of one place, a faster one of another, links of 6 between: what
    one machine of the first place sends over its link is not enough for what both could do.
    """
    links = np.full((3, 3), 100.0)
    links[0, 2] = links[2, 0] = links[1, 2] = links[2, 1] = 6.0
    some = pool(3, [[9.0, 4.0], [30.0, 12.0]], [0, 0, 1], links=links)
    found = place(some, Tries(gap=1e-3))
    best = best_of_all(some)
    assert found.rate == pytest.approx(best, rel=5e-3)
    assert found.bound >= best
