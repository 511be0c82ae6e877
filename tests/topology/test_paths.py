from __future__ import annotations

import math

import networkx as nx
import pytest
from hypothesis import given, settings, strategies as st

from planner.topology.graph import build_graph, device_names
from planner.topology.widest import group_bytes_per_s
from tests.topology.pools import linked, linked_clusters, nodes, torus
from tests.topology.readings import (
    group_diameter,
    hops,
    latency_s,
    path_bytes_per_s,
    read_axis,
)


def test_two_devices_of_a_node_reach_each_other_at_300_gb_s_and_of_two_nodes_at_25():
    graph = build_graph(nodes(2))
    assert path_bytes_per_s(graph, "node0/gpu0", "node0/gpu7") == 300e9
    assert path_bytes_per_s(graph, "node0/gpu0", "node1/gpu0") == 25e9


def test_a_group_is_as_wide_as_the_narrowest_link_that_it_needs():
    graph = build_graph(nodes(2))
    assert group_bytes_per_s(graph, [f"node1/gpu{k}" for k in range(8)]) == 300e9
    assert group_bytes_per_s(graph, device_names(graph)) == 25e9


def test_the_widest_path_may_be_the_longer_one():
    """d0 to d2: 2 GB/s straight, 5 GB/s by way of d1."""
    graph = build_graph(linked(3, ("d0", "d2", 2), ("d0", "d1", 8), ("d1", "d2", 5)))
    assert path_bytes_per_s(graph, "d0", "d2") == 5e9
    assert hops(graph, "d0", "d2") == 1


def test_a_narrow_link_on_the_way_elsewhere_does_not_count():
    """From d0 the wide pair is reached without the 1 GB/s that leads to d2."""
    graph = build_graph(linked(3, ("d0", "d1", 8), ("d1", "d2", 1)))
    assert group_bytes_per_s(graph, ["d0", "d1"]) == 8e9


def test_devices_without_a_path_have_no_bandwidth_and_one_device_has_any():
    graph = build_graph(linked(3, ("d0", "d1", 8)))
    assert path_bytes_per_s(graph, "d0", "d2") == 0.0
    assert group_bytes_per_s(graph, ["d2"]) == math.inf


def test_an_unknown_device_is_named():
    graph = build_graph(nodes(1))
    with pytest.raises(KeyError, match="node7/gpu0"):
        group_bytes_per_s(graph, ["node0/gpu0", "node7/gpu0"])


@settings(deadline=None, max_examples=200)
@given(pool=linked_clusters(), data=st.data())
def test_a_group_is_connected_by_links_as_wide_as_its_bandwidth_and_by_none_wider(pool, data):
    """Against every width b: keep the links of b or more, and look whether they connect."""
    graph = build_graph(pool)
    names = device_names(graph)
    group = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))

    def connected_at(width):
        wide = nx.Graph()
        wide.add_nodes_from(graph)
        wide.add_edges_from(
            (a, b) for a, b, edge in graph.edges(data=True) if edge["bytes_per_s"] >= width
        )
        return set(group) <= nx.node_connected_component(wide, group[0])

    if len(group) > 1:
        widths = [width for width in (1e9, 2e9, 3e9, 4e9) if connected_at(width)]
        assert group_bytes_per_s(graph, group) == max(widths, default=0.0)


def test_hops_go_around_the_back_of_a_closed_axis_only():
    """0 to 3 along four: one hop on a ring, three on a line."""
    assert hops(build_graph(torus(4, 4, 4)), "0,0,0", "0,0,3") == 1
    assert hops(build_graph(torus(2, 2, 4)), "0,0,0", "0,0,3") == 3


def test_the_diameter_of_a_ring_is_half_of_it_and_of_a_line_all_but_one():
    """4×4×4 closed: 2 + 2 + 2. 2×2×4 open: 1 + 1 + 3."""
    closed, line = build_graph(torus(4, 4, 4)), build_graph(torus(2, 2, 4))
    assert group_diameter(closed, device_names(closed)) == 6
    assert group_diameter(line, device_names(line)) == 5
    assert group_diameter(line, ["0,0,0"]) == 0


def test_through_one_switch_is_two_links_and_the_latency_of_the_fabric():
    graph = build_graph(nodes(2))
    assert hops(graph, "node0/gpu0", "node0/gpu1") == 2
    assert latency_s(graph, "node0/gpu0", "node0/gpu1") == 2e-6
    assert latency_s(graph, "node0/gpu0", "node1/gpu1") == 5e-6


@pytest.mark.parametrize(
    ("shape", "axis", "n_devices", "closes", "ring_bytes_per_s"),
    [
        ((4, 4, 8), 2, 8, True, 90e9),
        ((2, 2, 4), 2, 4, False, 45e9),
        ((2, 2, 4), 0, 2, False, 45e9),
    ],
)
def test_an_axis_counts_both_ways_around_a_ring_and_one_way_on_a_line(
    shape, axis, n_devices, closes, ring_bytes_per_s
):
    reading = read_axis(build_graph(torus(*shape)), axis)
    assert (reading.n_devices, reading.closes) == (n_devices, closes)
    assert reading.ring_bytes_per_s == ring_bytes_per_s


def test_the_narrowest_link_rules_an_axis_and_a_missing_one_opens_it():
    graph = build_graph(torus(4, 4, 4))
    graph.edges["0,0,0", "1,0,0"]["bytes_per_s"] = 30e9
    graph.remove_edge("2,2,2", "2,2,3")
    assert read_axis(graph, 0).ring_bytes_per_s == 60e9
    assert not read_axis(graph, 2).closes


def test_an_axis_of_one_device_has_no_links():
    assert read_axis(build_graph(torus(1, 4, 4)), 0).n_devices == 1
