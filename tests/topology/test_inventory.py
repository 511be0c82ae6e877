"""What is free of a graph, against the records that the graph was made from."""

from __future__ import annotations

from dataclasses import replace

from planner.specs.files.pools import load_pool
from planner.specs.files.state import LinkState, SlowDevices, State
from planner.topology.inventory import inventory
from planner.topology.pools import pool_graph, with_state
from planner.topology.widest import bottleneck, group_bytes_per_s

POOL = load_pool("h100-fat-tree-x64")
GRAPH = pool_graph(POOL)


def test_a_pool_that_is_well_has_devices_of_one_ability() -> None:
    """450 GB/s inside, 50 of each adapter, and of a 2:1 spine 25."""
    found = inventory(GRAPH)
    (kind,) = found.kinds
    (ability,) = {ability for node in found.nodes for _, ability in node.free}
    fabric = POOL.groups[0].fabric
    assert ability.scale_up_bytes_per_s == fabric.scale_up_bytes_per_s == 450e9
    assert ability.nic_bytes_per_s == fabric.scale_out_bytes_per_s == 50e9
    assert ability.spine_bytes_per_s == 25e9
    assert (len(found.nodes), found.n_free, found.leaf_names) == (64, 512, ("leaf0", "leaf1"))
    assert found.scale_out_s[kind] == fabric.scale_out_latency_s
    assert found.spine_s[kind] == fabric.scale_out_latency_s + POOL.groups[0].spine_latency_s


def test_a_state_changes_what_it_names_and_nothing_else() -> None:
    state = State(
        busy=("node0",),
        slow=(SlowDevices(devices=("node1/gpu0",), speed_fraction=0.5),),
        links=(
            LinkState(part="nic", names=("node1/gpu1",), bandwidth_fraction=0.0),
            LinkState(part="uplink", names=("leaf1/rail3",), bandwidth_fraction=0.5),
        ),
    )
    before, after = inventory(GRAPH), inventory(with_state(GRAPH, state))
    able, was = ({n: a for node in one.nodes for n, a in node.free} for one in (after, before))
    assert set(was) - set(able) == {f"node0/gpu{i}" for i in range(8)}
    assert able["node1/gpu0"] == replace(was["node1/gpu0"], speed_fraction=0.5)
    dead = replace(was["node1/gpu1"], nic_bytes_per_s=0, spine_bytes_per_s=0)
    assert able["node1/gpu1"] == dead
    narrow = [name for name, one in able.items() if one.spine_bytes_per_s == 12.5e9]
    assert narrow == [f"node{n}/gpu3" for n in range(32, 64)]
    untouched = set(able) - {"node1/gpu0", "node1/gpu1", *narrow}
    assert all(able[name] == was[name] for name in untouched)


def test_the_bottleneck_names_the_link_that_it_is_of() -> None:
    names = ("node0/gpu0", "node1/gpu0")
    width, link = bottleneck(GRAPH, names)
    assert width == group_bytes_per_s(GRAPH, names) == 50e9
    assert link is not None
    assert GRAPH.edges[link]["bytes_per_s"] == 50e9
    assert bottleneck(GRAPH, names[:1]) == (float("inf"), None)


def test_a_node_with_half_of_its_rails_failed_counts_on_the_spine() -> None:
    """Another such node may work on the other four rails: no working device is on one of each."""
    state = State(failed=("node0/gpu{4..7}", "node1/gpu{5..7}"))
    after = inventory(with_state(GRAPH, state))
    able = {name: ability for node in after.nodes for name, ability in node.free}
    assert {able[f"node0/gpu{i}"].nic_bytes_per_s for i in range(4)} == {25e9}
    assert {able[f"node1/gpu{i}"].nic_bytes_per_s for i in range(5)} == {50e9}
    assert able["node2/gpu0"].nic_bytes_per_s == 50e9
