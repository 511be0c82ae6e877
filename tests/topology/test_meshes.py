from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from planner.topology.graph import build_graph, device_names
from planner.topology.meshes import mesh_table
from planner.topology.slices import slice_shapes
from planner.topology.widest import group_bytes_per_s, widest_groups
from tests.clocks import least_s
from tests.topology.pools import (
    HOP_S,
    LINK_BYTES_PER_S,
    linked,
    linked_clusters,
    nodes,
    torus,
    torus_fabric,
)
from tests.topology.readings import latency_s, path_bytes_per_s, read_axis

POOLS = [torus(4, 8, 8), nodes(3), linked(4, ("d0", "d1", 9), ("d1", "d2", 3), ("d2", "d3", 9))]


def row(table, label):
    return table.label.index(label)


@pytest.mark.parametrize("pool", POOLS)
def test_every_mesh_fits_the_pool_and_has_a_name_of_its_own(pool):
    table = mesh_table(pool)
    assert len(set(table.label)) == len(table) > 0
    assert np.array_equal(table.axis_size.prod(axis=1) * table.n_stages, table.n_devices)
    assert table.n_devices.max() == pool.n_devices
    assert table.n_positions.min() >= 1


@pytest.mark.parametrize("pool", POOLS)
def test_meshes_are_ordered_by_devices_then_label(pool):
    table = mesh_table(pool)
    keys = list(zip(table.n_devices.tolist(), table.label, strict=True))
    assert keys == sorted(keys)


@pytest.mark.parametrize("pool", POOLS)
def test_every_mesh_is_said_in_words_of_its_own_that_name_no_tensor_degree(pool):
    table = mesh_table(pool)
    said = [(int(table.n_devices[i]), table.words(i)) for i in range(len(table))]
    assert len(set(said)) == len(said)
    assert not any("TP" in words for _, words in said)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("TP 1", "alone"),
        ("TP 8", "in one group"),
        ("TP 8 (2×4)", "in one group, 2×4"),
        ("TP 16", "over 2 nodes"),
        ("TP 16 (2×4×2)", "over 2 nodes, 2×4×2"),
        ("TP 1 × PP 4", "in 4 stages of 1"),
        ("TP 8 × PP 3", "in 3 stages of 8"),
        ("TP 16 × PP 2", "in 2 stages of 16 over 2 nodes"),
    ],
)
def test_a_mesh_of_nodes_is_said_after_its_number_of_devices(label, words):
    table = mesh_table(nodes(4))
    assert table.words(row(table, label)) == words


def test_group_sizes_are_products_over_subsets_of_axes():
    """2×4×8; bit 0 is x: {} 1, x 2, y 4, xy 8, z 8, xz 16, yz 32, xyz 64."""
    table = mesh_table(torus(4, 8, 8))
    assert table.group_size.shape == (len(table), 8)
    assert table.group_size[row(table, "2×4×8")].tolist() == [1, 2, 4, 8, 8, 16, 32, 64]


@pytest.mark.parametrize("shape", slice_shapes(torus_fabric(4, 8, 8)))
def test_the_axes_of_a_slice_are_those_of_its_graph(shape):
    pool = mesh_table(torus(4, 8, 8))
    i = row(pool, "×".join(map(str, shape)))
    graph = build_graph(torus(*shape))
    for axis, n_along in enumerate(shape):
        reading = read_axis(graph, axis)
        assert reading.n_devices == n_along == pool.axis_size[i, axis]
        assert reading.closes == pool.axis_wraps[i, axis]
        if n_along > 1:
            assert reading.link_bytes_per_s == pool.axis_bytes_per_s[i, axis] == LINK_BYTES_PER_S
            assert reading.hop_s == pool.axis_hop_s[i, axis] == HOP_S
    assert not pool.axis_is_switch[i].any()
    assert pool.n_stages[i] == 1


def test_tensor_groups_fill_a_node_before_they_span_nodes():
    """Two nodes of four: 1, 2 or 4 devices of one node, or both nodes."""
    table = mesh_table(nodes(2, n_devices_per_node=4))
    table = table.take(np.flatnonzero(table.axis_tier[:, 1] == 1))
    sizes = {(t, m) for t, m, _ in table.axis_size.tolist()}
    assert sizes == {(1, 1), (2, 1), (4, 1), (4, 2)}
    assert table.axis_is_switch.all()
    assert not table.axis_wraps.any()
    assert table.axis_size[row(table, "TP 8")].tolist() == [4, 2, 1]


def test_devices_behind_a_switch_are_counted_off_along_two_axes():
    """Eight as 2×4, alone and in each of two nodes; 4 as 2×2; and in a pipeline not at all."""
    table = mesh_table(nodes(2))
    split = table.take(np.flatnonzero(table.axis_tier[:, 0] == table.axis_tier[:, 1]))
    sizes = dict(zip(split.label, split.axis_size.tolist(), strict=True))
    assert sizes == {"TP 4 (2×2)": [2, 2, 1], "TP 8 (2×4)": [2, 4, 1], "TP 16 (2×4×2)": [2, 4, 2]}
    assert split.axis_tier.tolist() == [[0, 0, 1]] * 3
    for label in ("TP 4", "TP 8", "TP 16"):
        (other,) = (i for i, name in enumerate(split.label) if name.startswith(f"{label} ("))
        assert split.n_positions[other] == table.n_positions[row(table, label)]
        assert split.axis_bytes_per_s[other, 0] == table.axis_bytes_per_s[row(table, label), 0]


def test_a_rack_is_counted_off_in_every_way_and_pairs_of_links_in_none():
    """72 = 2×36 = 3×24 = 4×18 = 6×12 = 8×9."""
    rack = mesh_table(nodes(1, n_devices_per_node=72))
    ways = {label for label in rack.label if label.startswith("TP 72 (")}
    assert ways == {f"TP 72 ({k}×{72 // k})" for k in (2, 3, 4, 6, 8)}
    pool = nodes(2)
    pairs = replace(pool, fabric=replace(pool.fabric, scale_up_pair_bytes_per_s=50e9))
    assert not any("(" in label for label in mesh_table(pairs).label)


def test_a_group_of_two_axes_of_one_tier_is_as_long_as_both():
    """2×4 devices in two nodes: xy is one axis of 8, xz and yz have two tiers."""
    table = mesh_table(nodes(2))
    sizes = table.tier_size[row(table, "TP 16 (2×4×2)")].tolist()
    assert sizes[0b011] == [8, 1, 1]
    assert sizes[0b111] == [8, 1, 2]
    assert sizes[0b010] == [1, 4, 1]
    assert sizes[0b110] == [1, 4, 2]
    assert table.tier_size[row(table, "TP 16")][0b011].tolist() == [8, 2, 1]


def test_a_node_of_six_is_used_whole_or_in_powers_of_two():
    table = mesh_table(nodes(1, n_devices_per_node=6))
    table = table.take(np.flatnonzero(table.axis_tier[:, 1] == 1))
    assert {t for t, _, _ in table.axis_size.tolist()} == {1, 2, 4, 6}


def test_pipeline_stages_use_every_count_that_fits_up_to_the_limit():
    """Three nodes hold 3 stages of 8, 6 of 4, 12 of 2 and 24 of 1."""
    table = mesh_table(nodes(3))
    table = table.take(np.flatnonzero(table.axis_tier[:, 1] == 1))
    most = {t: table.n_stages[table.axis_size[:, 0] == t].max() for t in (1, 2, 4)}
    assert most == {1: 24, 2: 12, 4: 6}
    assert [label for label in table.label if label.startswith("TP 8")] == [
        "TP 8",
        "TP 8 × PP 2",
        "TP 8 × PP 3",
    ]
    assert mesh_table(nodes(3), max_stages=5).n_stages.max() == 5


def test_the_axes_of_a_tensor_group_are_those_of_the_graph_as_attained():
    """Half of 300 GB/s inside a node; 80 % of 25 GB/s from node to node."""
    graph = build_graph(nodes(2))
    table = mesh_table(nodes(2))
    i = row(table, "TP 16")
    inside = [f"node0/gpu{k}" for k in range(8)]
    across = ["node0/gpu0", "node1/gpu0"]
    assert table.axis_bytes_per_s[i, 0] == 0.5 * group_bytes_per_s(graph, inside) == 150e9
    assert table.axis_bytes_per_s[i, 1] == 0.8 * group_bytes_per_s(graph, across) == 20e9
    assert table.axis_hop_s[i, 0] == latency_s(graph, *inside[:2]) == 2e-6
    assert table.axis_hop_s[i, 1] == latency_s(graph, *across) == 5e-6


@pytest.mark.parametrize(
    ("label", "a", "b", "fraction"),
    [
        ("TP 4 × PP 2", "node0/gpu0", "node0/gpu4", 0.5),
        ("TP 4 × PP 3", "node0/gpu4", "node1/gpu0", 0.8),
        ("TP 8 × PP 2", "node0/gpu0", "node1/gpu0", 0.8),
    ],
)
def test_the_slowest_step_between_stages_is_that_of_the_graph(label, a, b, fraction):
    """Two stages of 4 share a node; a third lies in the next one."""
    graph = build_graph(nodes(2))
    table = mesh_table(nodes(2))
    i = row(table, label)
    assert table.stage_bytes_per_s[i] == fraction * path_bytes_per_s(graph, a, b)
    assert table.stage_hop_s[i] == latency_s(graph, a, b)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("TP 2", 12),  # four pairs in each of three nodes
        ("TP 2 × PP 3", 3),  # six devices: once in a node
        ("TP 8 × PP 2", 2),  # nodes 0 and 1, or 1 and 2
        ("TP 16", 2),
        ("TP 8 × PP 3", 1),
    ],
)
def test_places_of_a_mesh_on_three_nodes_counted_by_hand(label, expected):
    table = mesh_table(nodes(3))
    assert table.n_positions[row(table, label)] == expected


def test_listed_links_give_the_widest_groups():
    """d2 and d3 are the widest pair, at 9; all four are joined by 3, the narrowest needed;
    the link of 1 is not used. Along the tree d0 to d3 is three links of 1 µs."""
    pool = linked(4, ("d0", "d1", 5), ("d1", "d2", 3), ("d2", "d3", 9), ("d3", "d0", 1))
    pair, four = widest_groups(pool.fabric)[1:]
    assert pair.devices == ("d2", "d3")
    assert set(four.devices) == {"d0", "d1", "d2", "d3"}
    table = mesh_table(pool)
    assert table.label == ("TP 1", "TP 2", "TP 4")
    assert table.axis_bytes_per_s[:, 0].tolist() == [9e9, 9e9, 3e9]
    assert table.axis_hop_s[:, 0].tolist() == pytest.approx([0.0, 1e-6, 3e-6])


def test_the_latency_of_a_group_is_between_its_farthest_devices():
    """d2 - d0 - d1 - d3: d0 joins first, but three links lie between d2 and d3."""
    pool = linked(4, ("d0", "d1", 9), ("d0", "d2", 5), ("d1", "d3", 3))
    assert widest_groups(pool.fabric)[-1].devices[0] == "d0"
    assert widest_groups(pool.fabric)[-1].latency_s == pytest.approx(3e-6)


def test_a_single_device_without_links_is_a_mesh():
    table = mesh_table(linked(1))
    assert table.label == ("TP 1",)
    assert table.n_devices.tolist() == [1]


@settings(deadline=None, max_examples=200)
@given(pool=linked_clusters())
def test_no_group_of_its_size_is_wider_than_the_widest(pool):
    """Against all sets of devices of the graph; sizes that no links connect are left out."""
    graph = build_graph(pool)
    table = mesh_table(pool)
    found = dict(zip(table.n_devices.tolist(), table.axis_bytes_per_s[:, 0], strict=True))
    for size in (2, 4):
        sets = combinations(device_names(graph), size)
        widest = max((group_bytes_per_s(graph, group) for group in sets), default=0.0)
        assert found.get(size, 0.0) == widest
    for group in widest_groups(pool.fabric)[1:]:
        assert group_bytes_per_s(graph, group.devices) == group.bytes_per_s


def test_the_table_of_4096_chips_costs_less_than_a_quarter_of_their_graph():
    pool = torus(16, 16, 16)

    table_s, graph_s = least_s(
        lambda: mesh_table(pool), lambda: build_graph(pool), until=lambda a, b: a < b / 4
    )
    assert table_s < graph_s / 4


def test_the_table_does_without_networkx():
    code = "import sys, planner.topology.meshes; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
