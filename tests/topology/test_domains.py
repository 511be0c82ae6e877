from __future__ import annotations

from planner.topology.graph import build_graph, device_names
from planner.topology.packing import domains_by_tier
from tests.topology.pools import linked, nodes, torus
from tests.topology.readings import scale_up_domains


def test_each_node_is_a_domain_of_its_scale_up_fabric():
    domains = scale_up_domains(build_graph(nodes(2, n_devices_per_node=2)))
    assert domains == (("node0/gpu0", "node0/gpu1"), ("node1/gpu0", "node1/gpu1"))


def test_tiers_join_domains_from_the_inside_out():
    domains = domains_by_tier(build_graph(nodes(3)))
    assert list(domains) == ["scale-up", "scale-out"]
    assert [len(domain) for domain in domains["scale-up"]] == [8, 8, 8]
    assert [len(domain) for domain in domains["scale-out"]] == [24]


def test_a_whole_torus_is_one_domain():
    graph = build_graph(torus(2, 2, 4))
    assert scale_up_domains(graph) == (device_names(graph),)


def test_listed_links_make_a_domain_of_what_they_connect():
    """d0 and d1 share a leaf; nothing leads to d2."""
    graph = build_graph(linked(3, ("d0", "leaf", 5), ("leaf", "d1", 5)))
    assert scale_up_domains(graph) == (("d0", "d1"), ("d2",))


def test_a_device_without_any_link_is_a_domain():
    assert scale_up_domains(build_graph(linked(2))) == (("d0",), ("d1",))


def test_a_link_without_a_tier_counts_as_a_listed_one():
    graph = build_graph(linked(2, ("d0", "d1", 5)))
    del graph.edges["d0", "d1"]["tier"]
    assert list(domains_by_tier(graph)) == ["link"]
    assert scale_up_domains(graph) == (("d0", "d1"),)
