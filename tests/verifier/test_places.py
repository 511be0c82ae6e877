"""Where deployments lie, by what answers say: axes of meshes, starts of slices, recipes."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner import place, verify
from planner.report.as_json import Json, answer_json
from planner.runtimes.describe import mesh_of
from planner.specs.ask.placement import Serve
from planner.specs.files.pools import load_pool
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.files.state import LinkState, State
from planner.topology.meshes import mesh_table
from planner.verifier.layouts.meshes import in_nodes, is_counted_off_twice
from planner.verifier.placing.grounds import SiteIndex
from planner.verifier.placing.sites import site_of
from planner.verifier.placing.tori import Laid, TorusStand
from tests.verifier.answers import PLACED, envelope


@pytest.mark.parametrize(("n_nodes", "n_per_node"), [(1, 8), (2, 8), (4, 8), (2, 4), (3, 16)])
def test_of_every_mesh_on_servers_devices_of_a_node_and_nodes_are_told_apart(n_nodes, n_per_node):
    """From what an answer keeps; the topology knows tiers, (0, 0, 1) where a node is split."""
    cluster = load_cluster("dgx-a100-x2")
    fabric = replace(cluster.fabric, n_nodes=n_nodes, n_devices_per_node=n_per_node)
    cluster = replace(cluster, fabric=fabric)
    meshes = mesh_table(cluster)
    machine = SimpleNamespace(meshes=meshes)
    seen = set()
    for row in range(len(meshes)):
        is_split = meshes.axis_tier[row].tolist() == [0, 0, 1]
        mesh = mesh_of(machine, row)
        assert is_counted_off_twice(mesh) is is_split, mesh
        a, b, c = meshes.axis_size[row].tolist()
        assert in_nodes(mesh) == ((a * b, c) if is_split else (a, b))
        seen.add((is_split, in_nodes(mesh)[1] > 1))
    assert (True, False) in seen
    assert ((True, True) in seen) is (n_nodes > 1)


@pytest.mark.parametrize("side", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("start", range(8))
def test_slices_start_at_multiples_of_what_their_side_and_the_cubes_share(side, start):
    """Cubes of four on a torus of 16: sides of 8 start at 0, 4, 8 or 12; of 2 at even places."""
    fabric = SimpleNamespace(shape=(16, 16, 16), wrap_multiple=4)
    cells = tuple((0, (start + i) % 16, 0) for i in range(side))
    laid = Laid(shape=(side, 1, 1), names=("",) * side, cells=cells, along=(1, None, None))
    allowed = {
        1: range(16),
        2: range(0, 16, 2),
        3: range(16),
        4: range(0, 16, 4),
        8: range(0, 16, 4),
    }
    found = TorusStand._is_aligned(SimpleNamespace(_fabric=fabric), laid)
    assert found is (start in allowed[side])


@pytest.mark.parametrize("fraction", [1.0, 0.25, 0.0])
def test_a_devices_own_link_is_its_adapter_and_none_where_that_is_down(fraction):
    """One adapter a device on these servers, as wide as the file says of scale-out."""
    pool = load_pool("h100-nvl8-x2")
    links = (LinkState(part="nic", names=("node1/gpu0",), bandwidth_fraction=fraction),)
    ground = SiteIndex(site_of(pool, State(links=links)))
    (group,) = pool.groups
    whole = group.fabric.scale_out_bytes_per_s
    width, (device, _) = ground.own_link("node0/gpu0")
    assert (width, device) == (pytest.approx(whole), "node0/gpu0")
    spoilt = ground.own_link("node1/gpu0")
    if not fraction:
        assert spoilt is None
    else:
        assert spoilt[0] == pytest.approx(fraction * whole)


@pytest.mark.parametrize("name", ["placement on servers", "placement on a torus"])
@pytest.mark.parametrize("beyond", [0, 1, -1])
def test_a_recipe_that_is_none_is_found_and_stops_nothing(name, beyond):
    record = copy.deepcopy(envelope(name))
    n_recipes = len(record["answer"]["recipes"])
    record["answer"]["replicas"][0]["recipe"] = -1 if beyond < 0 else n_recipes + beyond
    found = {one.pointer: one.fact for one in verify(record).falsehoods}
    assert found["/answer/replicas/0/recipe"] == f"is none of the {n_recipes} recipes"


def _on_a_ring() -> Json:
    """Cubes of four on 4 × 4 × 8: along the longest side only switches close one of them."""
    cluster, model = load_cluster("tpu-v4-4x4x8"), load_model("palm-540b")
    wanted = Serve(model=model, weights_formats=["int8"], replicas=1)
    asked = {"objective": "latency", "most_devices": 64, **PLACED}
    return answer_json(place(cluster, wanted, **asked))


@pytest.mark.parametrize("by", [0, 4, 1, 2, 3])
def test_a_ring_of_whole_cubes_is_closed_by_their_switches_and_no_other(by):
    record = _on_a_ring()
    assert record["answer"]["recipes"][0]["deployment"]["mesh"]["axes_wrap"] == [True] * 3

    def moved(name: str) -> str:
        x, y, z = map(int, name.split(","))
        return f"{x},{y},{(z + by) % 8}"

    (replica,) = record["answer"]["replicas"]
    for rank in replica["ranks"]:
        rank["device"] = moved(rank["device"])
        rank["coordinate"] = [int(it) for it in rank["device"].split(",")]
    for channel in replica["channels"]:
        channel["devices"] = [moved(name) for name in channel["devices"]]
        channel["link"] = [moved(name) for name in channel["link"]]
    found = verify(record)
    facts = [one.fact for one in found.falsehoods]
    assert (
        found.is_true if by % 4 == 0 else any("has no link to its neighbour" in it for it in facts)
    )
