from __future__ import annotations

import networkx as nx
import pytest

from planner.topology.faults import validate_graph
from planner.topology.graph import build_graph, device_names
from tests.topology.pools import linked, nodes, torus


def test_a_slice_of_2x2x4_is_an_open_mesh():
    """Links along x 1·2·4, along y 2·1·4, along z 2·2·3: 28. A corner has three."""
    graph = build_graph(torus(2, 2, 4))
    assert len(device_names(graph)) == 16
    assert graph.number_of_edges() == 28
    assert graph.degree("0,0,0") == 3
    assert not graph.has_edge("0,0,0", "0,0,3")


def test_a_slice_of_4x4x4_wraps_around():
    """Three links a device, each counted once: 192; every device has six."""
    graph = build_graph(torus(4, 4, 4))
    assert graph.number_of_edges() == 3 * 64
    assert {degree for _, degree in graph.degree} == {6}
    assert graph.edges["0,0,0", "0,0,3"]["axis"] == 2


def test_a_torus_of_two_has_no_second_link_around_the_back():
    """wrap_multiple 2 closes 2×4×4, but two devices have one link: 16 + 32 + 32."""
    graph = build_graph(torus(2, 4, 4, wrap_multiple=2))
    assert graph.number_of_edges() == 80


def test_torus_devices_and_links_say_what_they_are():
    graph = build_graph(torus(4, 4, 4))
    assert graph.nodes["0,3,1"] == {"kind": "device", "coordinate": (0, 3, 1)}
    assert graph.edges["0,0,0", "1,0,0"] == {
        "bytes_per_s": 45e9,
        "latency_s": 1e-6,
        "tier": "ici",
        "axis": 0,
    }


def test_nodes_are_a_star_around_each_switch():
    """16 devices, two switches of nodes and one between them; two links a device."""
    graph = build_graph(nodes(2))
    assert len(device_names(graph)) == 16
    assert graph.number_of_nodes() == 19
    assert graph.number_of_edges() == 32
    assert graph.degree("node1/switch") == 8
    assert graph.degree("scale-out") == 16
    assert graph.nodes["node1/gpu5"] == {"kind": "device", "node": 1}
    assert graph.edges["node1/gpu5", "node1/switch"]["tier"] == "scale-up"


def test_ends_of_links_that_are_no_devices_are_switches():
    graph = build_graph(linked(2, ("d0", "leaf", 3), ("leaf", "d1", 4)))
    assert device_names(graph) == ("d0", "d1")
    assert graph.nodes["leaf"] == {"kind": "switch"}
    assert graph.edges["leaf", "d1"]["bytes_per_s"] == 4e9


def test_of_several_links_between_one_pair_the_widest_counts():
    graph = build_graph(linked(2, ("d0", "d1", 7), ("d1", "d0", 2)))
    assert graph.edges["d0", "d1"]["bytes_per_s"] == 7e9


@pytest.mark.parametrize(
    "pool",
    [
        torus(1, 1, 1),
        torus(2, 2, 4),
        torus(4, 4, 4),
        nodes(1),
        nodes(3),
        linked(2, ("d0", "d1", 1)),
    ],
)
def test_every_graph_that_is_built_is_connected_and_without_fault(pool):
    graph = build_graph(pool)
    assert len(device_names(graph)) == pool.n_devices
    assert nx.is_connected(graph)
    assert validate_graph(graph) == ()
