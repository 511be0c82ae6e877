"""Hand-overs between the stages of a pipeline that takes node after node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.estimates.serving.networks import ServingNetwork

NETWORK = ServingNetwork(
    n_per_node=8, up_bytes_per_s=100.0, up_latency_s=1.0, out_bytes_per_s=10.0, out_latency_s=7.0
)
INSIDE_S, OUTSIDE_S = 1.0 + 20.0 / 100.0, 7.0 + 20.0 / 10.0


def _parted(n_stages: int, n_group: int) -> int:
    """Hand-overs of which some pair of devices is in two nodes, pair by pair."""
    return sum(
        any((at - n_group) // 8 != at // 8 for at in range(k * n_group, (k + 1) * n_group))
        for k in range(1, n_stages)
    )


@pytest.mark.parametrize("n_group", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24])
@pytest.mark.parametrize("n_stages", [1, 2, 3, 5, 9])
def test_a_hand_over_leaves_its_node_where_the_node_ends(n_stages: int, n_group: int) -> None:
    """Two stages of 4 share a node, of three the last hand-over leaves it; of stages of 6 the
    second straddles two nodes, and the hand-overs before and after it leave."""
    n_out = _parted(n_stages, n_group)
    n_in = n_stages - 1 - n_out
    found = NETWORK.hand_s(20.0, np.array([n_stages - 1.0]), np.array([float(n_group)]))
    assert found == pytest.approx([n_in * INSIDE_S + n_out * OUTSIDE_S])


@pytest.mark.parametrize(("n_group", "bytes_per_s"), [(2, 20.0), (4, 60.0), (8, 100.0)])
def test_devices_that_are_joined_in_pairs_send_over_the_links_of_their_group(n_group, bytes_per_s):
    """Links of 20 each: to one other no more, to seven others what a device sends at most."""
    pairs = replace(NETWORK, pair_bytes_per_s=20.0)
    steps, others = np.log2(n_group), 1.0 - 1.0 / n_group
    gathered = pairs.collective_s("all_gather", 600.0, n_group)
    assert gathered == pytest.approx(steps + 600.0 * others / bytes_per_s)
    assert pairs.collective_s("all_reduce", 600.0, n_group) == pytest.approx(2.0 * gathered)
    assert pairs.hand_s(600.0, [1.0], [float(n_group // 2)]) == pytest.approx([1.0 + 600.0 / 20.0])
    assert pairs.between_s(600.0, n_group) == pytest.approx(1.0 + 600.0 / 20.0)
