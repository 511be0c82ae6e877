"""Times of messages over nodes by hand, by each convention that is not linear in bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.estimates.networks import NetworkTable, network_table
from planner.layouts.work import ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER, WEIGHT_GATHER, Message
from planner.specs.files.reading import load_cluster
from planner.specs.records.devices import (
    MeasuredCollectives,
    NcclProtocol,
    NodesFabric,
    TwoRegimes,
)
from planner.topology.meshes import mesh_table
from tests.topology.pools import cluster

INNER, OUTER, BOTH = 1, 2, 3


def fits(short_us: float, short_gb_s: float, long_us: float, long_gb_s: float) -> TwoRegimes:
    """One group size, four."""
    return TwoRegimes(
        n_devices=(4,),
        short_latency_s=(short_us * 1e-6,),
        short_bytes_per_s=(short_gb_s * 1e9,),
        long_latency_s=(long_us * 1e-6,),
        long_bytes_per_s=(long_gb_s * 1e9,),
    )


LL = NcclProtocol(
    name="LL",
    algorithm="tree",
    scale_up_hop_s=1e-6,
    scale_out_hop_s=5e-6,
    base_s=7e-6,
    bandwidth_fraction=0.5,
)
SIMPLE = NcclProtocol(
    name="Simple",
    algorithm="ring",
    scale_up_hop_s=3e-6,
    scale_out_hop_s=14e-6,
    base_s=8e-6,
    bandwidth_fraction=1.0,
)
FABRIC = NodesFabric(
    n_nodes=2,
    n_devices_per_node=4,
    scale_up_bytes_per_s=200e9,
    scale_up_latency_s=2e-6,
    scale_up_fraction=0.5,
    scale_out_bytes_per_s=20e9,
    scale_out_latency_s=5e-6,
    scale_out_fraction=0.5,
    activation_network="two-regime",
    bulk_network="two-regime",
    scale_up_measured=MeasuredCollectives(
        all_reduce=fits(4, 50, 10, 200),
        all_gather=fits(8, 100, 20, 400),
        reduce_scatter=fits(6, 100, 20, 400),
        all_to_all=fits(7, 50, 12, 300),
    ),
    protocols=(LL, SIMPLE),
)
"""Four devices at 100 GB/s in each of two nodes, 10 GB/s between them, as attained."""


def message(kind: str, group: int, n_bytes: float, n_devices: float, *, half=False) -> Message:
    return Message(
        purpose="test",
        kind=kind,
        group=np.array([[group]]),
        n_devices=np.array([[float(n_devices)]]),
        n_bytes=np.array([[n_bytes]]),
        is_half_of_all_reduce=half,
    )


def table(fabric: NodesFabric, label: str) -> tuple[NetworkTable, np.ndarray]:
    meshes = mesh_table(cluster(fabric))
    return network_table(meshes, fabric), np.array([[meshes.label.index(label)]])


def spent_us(fabric: NodesFabric, label: str, sent: Message) -> tuple[float, float]:
    network, mesh = table(fabric, label)
    transfer, latency = network.message_s(sent, mesh)
    return float(np.squeeze(transfer)) * 1e6, float(np.squeeze(latency)) * 1e6


def test_two_halves_are_the_all_reduce_that_was_measured():
    """1 MB in four: 10 µs + 5 µs by the long form; an empty message would take 4 by the short."""
    transfer, latency = spent_us(FABRIC, "TP 4", message(REDUCE_SCATTER, INNER, 1e6, 4, half=True))
    assert latency == pytest.approx(4 / 2)
    assert transfer + latency == pytest.approx(15 / 2)


@pytest.mark.parametrize(
    ("kind", "expected_us"), [(ALL_GATHER, 18), (REDUCE_SCATTER, 16), (WEIGHT_GATHER, 18)]
)
def test_a_gather_by_itself_is_not_half_an_all_reduce(kind, expected_us):
    """1 MB at 100 GB/s is 10 µs, and 8 or 6; the long forms take 22.5."""
    assert sum(spent_us(FABRIC, "TP 4", message(kind, INNER, 1e6, 4))) == pytest.approx(expected_us)


def test_over_nodes_a_gather_brings_the_parts_of_other_nodes_first():
    """A quarter of 8 MB, half of it from the other node at 10 GB/s: 100 µs and a hop of 5.

    Then all 8 MB inside: 20 µs + 8 MB at 400 GB/s.
    """
    transfer, latency = spent_us(FABRIC, "TP 8", message(ALL_GATHER, BOTH, 8e6, 8))
    assert latency == pytest.approx(8 + 5)
    assert transfer + latency == pytest.approx(100 + 5 + 20 + 20)


def test_over_nodes_an_all_reduce_is_scattered_inside_reduced_between_and_gathered_inside():
    """Half of 40 µs + 40 µs inside (8 MB: 20 + 20 each), and as above between: 40 + 105."""
    transfer, latency = spent_us(FABRIC, "TP 8", message(ALL_GATHER, BOTH, 8e6, 8, half=True))
    assert latency == pytest.approx((8 + 6) / 2 + 5)
    assert transfer + latency == pytest.approx(40 + 105)


def test_one_device_in_each_node_meets_over_its_own_port():
    """8 MB over two nodes: 4 MB at 10 GB/s, and a hop."""
    assert sum(spent_us(FABRIC, "TP 8", message(ALL_GATHER, OUTER, 8e6, 2))) == pytest.approx(405)


def test_devices_that_meet_are_neighbours_in_a_node():
    """Two of eight: the fit at four, half of its doublings. 4 µs + 1 MB at 200 GB/s."""
    time = sum(spent_us(FABRIC, "TP 8", message(ALL_GATHER, BOTH, 1e6, 2)))
    assert time == pytest.approx(4 + 5)


def test_an_all_to_all_waits_for_the_slower_tier():
    """8 MB: inside 12 µs + 26.7 µs, of which 7 is latency; between half of it at 10 GB/s, 400."""
    transfer, latency = spent_us(FABRIC, "TP 8", message(ALL_TO_ALL, BOTH, 8e6, 8))
    assert (transfer, latency) == (pytest.approx(400), pytest.approx(7 + 5))
    transfer, _ = spent_us(FABRIC, "TP 4", message(ALL_TO_ALL, INNER, 8e6, 4))
    assert transfer == pytest.approx(12 - 7 + 8e6 / 300e9 * 1e6)


NCCL = replace(FABRIC, activation_network="nccl", bulk_network="nccl")


def test_by_nccl_the_faster_protocol_carries_the_message():
    """Four in a node, 7.5 µs of 1 MB at 100 GB/s.

    LL: 3 hops of 1 + 7 + 15; Simple on a ring: 3 of 3 + 8 + 7.5. Empty: 10 and 17.
    """
    transfer, latency = spent_us(NCCL, "TP 4", message(ALL_GATHER, INNER, 1e6, 4))
    assert latency == pytest.approx(10)
    assert transfer + latency == pytest.approx(min(25, 24.5))
    small = sum(spent_us(NCCL, "TP 4", message(ALL_GATHER, INNER, 0.1e6, 4)))
    assert small == pytest.approx(min(11.5, 17.75))


def test_by_nccl_an_all_reduce_starts_once_and_goes_twice():
    """Eight on two nodes, empty. LL: 2 (3 × 1 + log₂2 × 5) + 7 = 23, a half of it 11.5."""
    _, latency = spent_us(NCCL, "TP 8", message(ALL_GATHER, BOTH, 0.0, 8, half=True))
    assert latency == pytest.approx(11.5)


def test_by_nccl_a_hand_over_is_one_hop_in_a_node_or_out_of_it():
    """1 MB at 100 GB/s: LL 1 + 7 + 20, Simple 3 + 8 + 10; at 10 GB/s: 5 + 7 + 200, 14 + 8 + 100."""
    for label, expected in (("TP 2 × PP 2", 21), ("TP 4 × PP 2", 122)):
        network, mesh = table(NCCL, label)
        assert np.squeeze(network.handover_s(np.array([[1e6]]), mesh)) == pytest.approx(
            expected * 1e-6
        )


CONVENTIONS = st.sampled_from(["two-regime", "nccl", "tree"])
KINDS = st.sampled_from([ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, WEIGHT_GATHER])


@given(
    name=CONVENTIONS,
    kind=KINDS,
    group=st.sampled_from([INNER, OUTER, BOTH]),
    n_bytes=st.floats(0, 1e10),
    more=st.floats(0, 1e10),
    half=st.booleans(),
)
def test_more_bytes_are_never_faster_and_more_bandwidth_never_slower(
    name, kind, group, n_bytes, more, half
):
    half = half and kind in (ALL_GATHER, REDUCE_SCATTER)
    n_devices = {INNER: 4, OUTER: 2, BOTH: 8}[group]
    fabric = replace(FABRIC, activation_network=name, bulk_network=name)
    sent = message(kind, group, n_bytes, n_devices, half=half)
    time = sum(spent_us(fabric, "TP 8", sent))
    longer = message(kind, group, n_bytes + more, n_devices, half=half)
    assert sum(spent_us(fabric, "TP 8", longer)) >= time * (1 - 1e-12)
    wider = replace(fabric, scale_up_fraction=1.0, scale_out_fraction=1.0)
    assert sum(spent_us(wider, "TP 8", sent)) <= time * (1 + 1e-12)


@given(name=CONVENTIONS, kind=KINDS, half=st.booleans())
def test_one_device_sends_nothing(name, kind, half):
    fabric = replace(FABRIC, activation_network=name, bulk_network=name)
    assert spent_us(fabric, "TP 8", message(kind, BOTH, 0.0, 1, half=half)) == (0, 0)


@pytest.mark.parametrize(("label", "n_devices"), [("TP 2", 2), ("TP 4", 4), ("TP 8", 8)])
def test_every_pair_of_an_mi300x_exchanges_over_its_own_link(label, n_devices):
    """Each device holds 1 GB, a k-th of it for each other: over a link of 64 GB/s, 70 % attained.

    2, 4 and 8 devices: 1/k GB at 44.8 GB/s, however many links are idle.
    """
    fabric = load_cluster("mi300x-x1").fabric
    assert isinstance(fabric, NodesFabric)
    transfer, _ = spent_us(fabric, label, message(ALL_TO_ALL, INNER, 1e9, n_devices))
    assert transfer == pytest.approx(1e9 / n_devices / 44.8e9 * 1e6)


SHIPPED = ["a100-nvl8", "a100-40-nvl8", "h100-nvl8", "h200-nvl8", "b200-nvl8", "b300-nvl8"]


@pytest.mark.parametrize("name", [f"{name}-x2" for name in SHIPPED] + ["gb200-nvl72-x1"])
def test_no_shipped_measurement_beats_its_links(name):
    """A device takes in V (k − 1)/k of a gather, at no more than its port has one way.

    An all-reduce moves twice that, or V (k − 1)/k where the switch adds up for it.
    """
    fabric = load_cluster(name).fabric
    assert isinstance(fabric, NodesFabric)
    assert fabric.activation_network == fabric.bulk_network == "two-regime"
    measured = fabric.scale_up_measured
    assert measured is not None
    port = fabric.scale_up_bytes_per_s
    for one in (
        measured.all_reduce,
        measured.all_gather,
        measured.reduce_scatter,
        measured.all_to_all,
    ):
        for column in (one.short_latency_s, one.long_latency_s):
            assert all(1e-6 < latency < 150e-6 for latency in column)
        for column in (one.short_bytes_per_s, one.long_bytes_per_s):
            for k, rate in zip(one.n_devices, column, strict=True):
                assert rate * (k - 1) / k <= port


@pytest.mark.parametrize("name", [f"{name}-x1" for name in SHIPPED])
def test_a_long_all_reduce_of_eight_is_near_the_attained_rate_of_one_ring(name):
    """1 GB in eight: within 15 % of 2 × 7/8 over the attained bandwidth of the file.

    That was fitted to the same measurements, as one latency and one bandwidth.
    """
    fabric = load_cluster(name).fabric
    by_tree = replace(fabric, activation_network="tree", bulk_network="tree")
    sent = message(ALL_GATHER, INNER, 1e9, 8, half=True)
    ratio = sum(spent_us(fabric, "TP 8", sent)) / sum(spent_us(by_tree, "TP 8", sent))
    assert 0.85 < ratio < 1.15
