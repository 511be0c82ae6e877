from __future__ import annotations

import math

import networkx as nx
import pytest

from planner.topology.faults import validate_graph
from planner.topology.graph import build_graph
from tests.topology.pools import linked, nodes


@pytest.fixture
def graph():
    """Three devices in a line."""
    return build_graph(linked(3, ("d0", "d1", 5), ("d1", "d2", 5)))


def test_a_graph_without_fault_has_no_problems(graph):
    assert validate_graph(graph) == ()


@pytest.mark.parametrize(
    ("attribute", "value", "fact"),
    [
        ("bytes_per_s", -1e9, "is negative"),
        ("bytes_per_s", 0, "is zero"),
        ("bytes_per_s", math.nan, "is not a finite number"),
        ("bytes_per_s", math.inf, "is not a finite number"),
        ("bytes_per_s", "300 GB/s", "is no number"),
        ("bytes_per_s", True, "is no number"),
        ("bytes_per_s", None, "is no number"),
        ("latency_s", -1e-6, "is negative"),
        ("latency_s", math.nan, "is not a finite number"),
        ("tier", "nvlink", "unknown tier"),
    ],
)
def test_a_bad_value_is_named_with_its_link(graph, attribute, value, fact):
    graph.edges["d1", "d2"][attribute] = value
    (problem,) = validate_graph(graph, where="mine.gml")
    assert (problem.where, problem.fact) == ("mine.gml", fact)
    assert problem.key == f"link d1 to d2: {attribute}"
    assert problem.value.strip("'") == str(value)
    assert problem.remedy


def test_no_latency_at_all_may_be_zero_but_not_missing(graph):
    graph.edges["d0", "d1"]["latency_s"] = 0.0
    assert validate_graph(graph) == ()
    del graph.edges["d0", "d1"]["latency_s"]
    (problem,) = validate_graph(graph)
    assert problem.fact == "has no `latency_s`"


def test_a_missing_bandwidth_is_a_fault(graph):
    del graph.edges["d0", "d1"]["bytes_per_s"]
    (problem,) = validate_graph(graph)
    assert problem.fact == "has no `bytes_per_s`"
    assert "one direction" in problem.remedy


def test_vertices_must_say_whether_they_are_devices(graph):
    del graph.nodes["d0"]["kind"]
    graph.nodes["d1"]["kind"] = "gpu"
    missing, unknown = validate_graph(graph)
    assert (missing.key, missing.fact) == ("vertex d0", "has no `kind`")
    assert (unknown.key, unknown.value, unknown.fact) == ("vertex d1: kind", "gpu", "unknown kind")


def test_a_link_from_a_vertex_to_itself_is_a_fault(graph):
    graph.add_edge("d1", "d1", bytes_per_s=1e9, latency_s=0.0)
    (problem,) = validate_graph(graph)
    assert problem.fact == "leads from a vertex to itself"


def test_a_graph_that_falls_apart_names_two_devices_without_a_path():
    problems = validate_graph(build_graph(linked(4, ("d0", "d1", 5), ("d2", "leaf", 5))))
    (problem,) = problems
    assert problem.fact == "falls apart into 3 parts: no path leads from `d0` to `d2`"


def test_a_switch_that_nothing_is_linked_to_is_no_fault(graph):
    graph.add_node("spare", kind="switch")
    assert validate_graph(graph) == ()


def test_a_graph_needs_devices():
    (problem,) = validate_graph(nx.Graph())
    assert problem.fact == "has no devices"


@pytest.mark.parametrize(
    ("kind", "fact"),
    [(nx.DiGraph, "is directed"), (nx.MultiGraph, "may have several links between one pair")],
)
def test_only_simple_undirected_graphs_are_read(graph, kind, fact):
    (problem,) = validate_graph(kind(graph))
    assert problem.fact == fact


def test_all_faults_are_told_at_once(graph):
    graph.edges["d0", "d1"]["bytes_per_s"] = -1.0
    graph.edges["d1", "d2"]["latency_s"] = math.nan
    graph.add_node("lonely", kind="device")
    facts = [problem.fact for problem in validate_graph(graph)]
    assert facts[:2] == ["is negative", "is not a finite number"]
    assert facts[2].startswith("falls apart into 2 parts")


def test_many_faults_of_one_sort_are_counted():
    """16 devices, two links each, none with a bandwidth: three told, 29 more."""
    graph = build_graph(nodes(2))
    for _, _, edge in graph.edges(data=True):
        del edge["bytes_per_s"]
    problems = validate_graph(graph)
    assert [problem.fact for problem in problems] == [
        "has no `bytes_per_s`",
        "has no `bytes_per_s`",
        "has no `bytes_per_s` (and 29 more)",
    ]
