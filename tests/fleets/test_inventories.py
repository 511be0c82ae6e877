"""Kinds of devices merged into one pool: names, states, counts, and what cannot be one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import RequestError
from planner.placing.fabrics.site import graph_in
from planner.placing.fleets.inventories import merged
from planner.specs.files.pools import PoolSpec, load_pool, load_site
from planner.specs.files.state import LinkState, SlowDevices, State
from planner.specs.traffic.records import DeviceInventory, SuppliedKind
from planner.topology.graph import spec_of
from planner.topology.pools import pool_graph


def kind(name, on="h100-nvl8-x2", n=None, **more):
    hardware = load_site(on) if isinstance(on, str) else on
    n_devices = n or hardware.n_devices
    return SuppliedKind(name=name, hardware=hardware, n_devices=n_devices, **more)


def problems(*kinds):
    with pytest.raises(RequestError) as caught:
        merged(DeviceInventory(kinds=kinds), shown="traffic.toml")
    return [str(one) for one in caught.value.problems]


def free(found):
    graph = graph_in(found.site, found.state)
    return sorted(
        name
        for name, at in graph.nodes(data=True)
        if at["kind"] == "device" and at.get("state", "free") == "free"
    )


def test_kinds_are_groups_with_counts_and_places():
    found = merged(DeviceInventory(kinds=(kind("east", n=12), kind("west", site="far"))), shown="x")
    assert isinstance(found.site, PoolSpec)
    assert [group.name for group in found.site.groups] == ["east", "west"]
    assert found.site.title == "12 h100-sxm (east) + 16 h100-sxm (west)"
    assert found.counts == {"east": 12}
    assert found.places == {"east": "one", "west": "far"}
    assert len(free(found)) == 32


def test_a_kind_alone_keeps_the_names_of_its_devices():
    taken = State(busy=("node0/gpu{0..3}",), shown="state.toml")
    found = merged(DeviceInventory(kinds=(kind("h100-sxm", n=12, state=taken),)), shown="x")
    assert found.state is taken
    assert found.counts == {"h100-sxm": 8}  # of 12 that may be used 4 are busy
    assert found.site.title == "12 h100-sxm"
    assert free(found)[0] == "node0/gpu4"


def test_states_are_renamed_as_the_pool_names_its_devices():
    state = State(
        busy=("node0",),
        failed=("node1/gpu{0..1}",),
        slow=(SlowDevices(devices=("node1/gpu7",), speed_fraction=0.5),),
        links=(
            LinkState(part="nic", names=("node1/gpu6",), bandwidth_fraction=0.5),
            LinkState(part="between", names=("leaf0", "spine"), bandwidth_fraction=0.5),
        ),
        owners=(("node0", "training"),),
    )
    other = State(busy=("*gpu0",))
    found = merged(
        DeviceInventory(kinds=(kind("a", state=state), kind("b", state=other))), shown="x"
    )
    graph = graph_in(found.site, found.state)
    taken = [name for name, at in graph.nodes(data=True) if at.get("state", "free") != "free"]
    assert taken == [
        *(f"a/node0/gpu{i}" for i in range(8)),
        *("a/node1/gpu0", "a/node1/gpu1", "b/node0/gpu0", "b/node1/gpu0"),
    ]
    assert graph.nodes["a/node1/gpu7"]["speed_fraction"] == 0.5
    whole = graph_in(found.site, None)
    for link in (("a/node1/gpu6", "a/leaf0"), ("a/leaf0", "spine")):
        assert graph.edges[link]["bytes_per_s"] == whole.edges[link]["bytes_per_s"] / 2


def test_a_pool_of_several_groups_keeps_them():
    mixed = load_pool("h100-a100")
    state = State(busy=("h100/node0",))
    found = merged(DeviceInventory(kinds=(kind("one", mixed, state=state), kind("two"))), shown="x")
    assert [group.name for group in found.site.groups] == ["one-h100", "one-a100", "two"]
    assert len(free(found)) == mixed.n_devices - 8 + 16
    assert not any(name.startswith("one-h100/node0/") for name in free(found))
    alone = merged(DeviceInventory(kinds=(kind("one", mixed, state=state),)), shown="x")
    assert [group.name for group in alone.site.groups] == ["h100", "a100"]
    assert alone.places == {"h100": "one", "a100": "one"}


def graph():
    pool = load_pool("h100-nvl8-x1")
    return spec_of(pool_graph(pool), {"h100-sxm": pool.groups[0].cluster.device})


def test_a_graph_stands_alone():
    mine = SuppliedKind(name="mine", hardware=graph(), n_devices=8)
    assert merged(DeviceInventory(kinds=(mine,)), shown="x").site is mine.hardware
    (problem,) = problems(mine, kind("other"))
    assert problem.startswith("traffic.toml: kind[0] `mine`  is a graph beside other kinds")


def test_part_of_a_graph_counts_what_it_says_is_taken():
    vertices = tuple(
        replace(one, state="failed") if one.name == "node0/gpu0" else one
        for one in graph().vertices
    )
    mine = SuppliedKind(name="mine", hardware=replace(graph(), vertices=vertices), n_devices=4)
    assert merged(DeviceInventory(kinds=(mine,)), shown="x").counts == {"h100-sxm": 3}


def test_all_that_is_wrong_with_kinds_is_said_at_once():
    mixed = load_pool("h100-a100")
    several = load_site("tpu-v5e-2x2+h100-nvl8-x1")
    found = problems(
        kind("a"),
        replace(kind("a"), n_devices=17),
        kind("b/c"),
        kind("one", mixed, n=8),
        kind("one-x"),
        kind("several", several),
    )
    assert [one.split("  ")[0] for one in found] == [
        "traffic.toml: kind.name `a`",
        "traffic.toml: kind[1].count `17`",
        "traffic.toml: kind[2].name `b/c`",
        "traffic.toml: kind[3].count `8`",
        "traffic.toml: kind[5] `tpu-v5e-2x2+h100-nvl8-x1`",
        "traffic.toml: kind.name `one-x`",
    ]


def test_a_state_is_held_against_its_own_kind():
    """In the words of its own file, not in those of the pool of all."""
    wrong = State(busy=("node7",), shown="state.toml")
    (problem,) = problems(kind("a", state=wrong), kind("b"))
    assert problem.startswith("state.toml")
    assert "`node7`" in problem
