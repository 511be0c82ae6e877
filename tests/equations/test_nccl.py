"""NCCL's protocols, beside the paper's own equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.equations import nccl
from planner.equations.economics import collectives as paper
from planner.specs.records.economics import EconomicsDevice, TreeCollectives

UP, OUT = 450e9, 50e9
DEVICE = EconomicsDevice(
    name="h100",
    title="",
    peak_flop_per_s={8: 1.0},
    compute_fraction=1.0,
    hbm_bytes=1.0,
    peak_hbm_bytes_per_s=1.0,
    hbm_fraction=1.0,
    scale_up_all_reduce_bytes_per_s=UP / 2,
    scale_out_all_reduce_bytes_per_s=OUT / 2,
    n_devices_per_node=8,
    usd_per_hour=1.0,
    kernel_launch_s=0.0,
    collectives=TreeCollectives(tiers_overlap=False),
)


def ways(inside, nodes, n_phases, algorithm="tree"):
    assert isinstance(DEVICE.collectives, TreeCollectives)
    hops = nccl.HOPS[algorithm](inside, nodes, n_phases=n_phases)
    for protocol in DEVICE.collectives.protocols:
        latency = nccl.protocol_latency_s(
            hops,
            scale_up_hop_s=protocol.scale_up_hop_s,
            scale_out_hop_s=protocol.scale_out_hop_s,
            base_s=protocol.base_s,
        )
        yield latency, protocol.bandwidth_fraction


def all_reduce_s(n_bytes, inside, nodes):
    twice = 2 * nccl.tiered_gather_s(n_bytes, (inside, nodes), (UP, OUT))
    return nccl.fastest_s(twice, ways(inside, nodes, 2))


def test_an_empty_all_reduce_of_sixteen_on_two_nodes_is_that_of_ll():
    """LL: 2 (7 × 0.6 + 1 × 5) + 6.8 = 25.2 µs; LL128: 2 (8.75 + 8.5) + 14 = 48.5."""
    assert all_reduce_s(0.0, 8, 2) == pytest.approx(25.2e-6)


def test_a_ring_passes_every_device_and_leaves_each_node_once():
    """16 on two nodes: 15 steps, one of them between nodes."""
    assert nccl.ring_hops(8, 2) == (14, 1)
    assert nccl.ring_hops(8, 2, n_phases=2) == (28, 2)
    assert nccl.tree_hops(8, 4) == (7, 2)


def test_tiers_are_added():
    """8 GB over 8 in each of two: 7 GB at 450 GB/s inside, 1 GB × 1/2 at 50 GB/s between."""
    time = nccl.tiered_gather_s(8e9, (8, 2), (UP, OUT))
    assert time == pytest.approx(7 / 450 + 0.5 / 50)


@pytest.mark.parametrize(("n_bytes", "protocol"), [(4e6, 0), (5e6, 1), (1.7e9, 1), (1.8e9, 2)])
def test_small_messages_go_by_ll_middling_by_ll128_and_large_by_simple(n_bytes, protocol):
    """8 in a node, twice 7/8 of the bytes at 450 GB/s.

    LL 15.2 µs + 2t, LL128 31.5 µs + t/0.95, Simple 392 µs + t: equal at t = 17.2 µs, where
    the message has 4.4 MB, and at 6.85 ms, where it has 1.76 GB.
    """
    transfer = 2 * nccl.tiered_gather_s(n_bytes, (8, 1), (UP, OUT))
    times = [float(latency + transfer / share) for latency, share in ways(8, 1, 2)]
    assert all_reduce_s(n_bytes, 8, 1) == pytest.approx(min(times))
    assert int(np.argmin(times)) == protocol


@given(
    n_bytes=st.floats(0, 1e11),
    inside=st.sampled_from([1, 2, 4, 8]),
    nodes=st.sampled_from([1, 2, 4, 16]),
)
def test_an_all_reduce_is_the_papers_with_both_tiers_added(n_bytes, inside, nodes):
    if inside * nodes == 1:
        return
    expected = paper.collective_s(paper.ALL_REDUCE, n_bytes, (inside * nodes, nodes), DEVICE)
    assert all_reduce_s(n_bytes, inside, nodes) == pytest.approx(float(expected), rel=1e-12)


@given(n_bytes=st.floats(0, 1e11), more=st.floats(0, 1e11))
def test_more_bytes_are_never_faster_and_another_protocol_never_slower(n_bytes, more):
    time = all_reduce_s(n_bytes, 8, 2)
    assert all_reduce_s(n_bytes + more, 8, 2) >= time
    transfer = 2 * nccl.tiered_gather_s(n_bytes, (8, 2), (UP, OUT))
    by_two = nccl.fastest_s(transfer, list(ways(8, 2, 2))[:2])
    assert time <= by_two
    faster = replace(DEVICE, scale_up_all_reduce_bytes_per_s=UP)
    wider = paper.collective_s(paper.ALL_REDUCE, n_bytes, (16, 2), faster)
    assert wider <= time * (1 + 1e-12)
