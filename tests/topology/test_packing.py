"""How many copies of a mesh fit a pool at once."""

from __future__ import annotations

from itertools import combinations, count
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings

from planner.topology.meshes import mesh_table
from planner.topology.packing import n_node_places, n_places
from tests.topology import pools
from tests.topology.cuts import Slice, positions, slice_coordinates


def rooms(cluster):
    meshes = mesh_table(cluster)
    return dict(zip(meshes.label, n_places(cluster, meshes).tolist(), strict=True))


def most_apart(fabric, shape):
    """The most places of a slice of which no two share a device, by trying every set of them."""
    boxes = [
        frozenset(map(tuple, slice_coordinates(fabric, Slice(orientation=way, offset=tuple(at)))))
        for way, offsets in positions(fabric, shape)
        for at in offsets.tolist()
    ]
    for n in count(1):
        sets = combinations(set(boxes), n)
        if not any(len(frozenset().union(*some)) == n * prod(shape) for some in sets):
            return n - 1


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 2, 2), (1, 2, 4), (1, 1, 4)])
def test_a_torus_has_room_for_as_many_slices_as_can_lie_apart(shape):
    cluster = pools.torus(*shape)
    for label, n in rooms(cluster).items():
        dims = tuple(map(int, label.split("×")))
        assert n == most_apart(cluster.fabric, dims), label


def test_a_slice_that_leaves_a_rest_is_not_counted_in_the_rest():
    """12 and 16: one 12×12×12 in 16×16×16, though its devices would fill it twice."""
    found = rooms(pools.torus(16, 16, 16))
    assert found["12×12×12"] == 1
    assert found["4×4×4"] == 64
    assert found["4×4×12"] == 16
    assert found["1×1×1"] == 4096


def test_servers_hold_shares_of_nodes_and_runs_of_nodes():
    """Three nodes of eight: TP 2 × PP 3 takes six devices of a node, one a node; TP 2 × PP 5
    crosses nodes and takes five of the twelve pairs, twice; TP 16 takes two whole nodes."""
    found = rooms(pools.nodes(3))
    assert found["TP 1"] == 24
    assert found["TP 8"] == 3
    assert found["TP 2 × PP 3"] == 3
    assert found["TP 2 × PP 5"] == 2
    assert found["TP 16"] == 1
    assert found["TP 8 × PP 3"] == 1


def test_devices_beyond_whole_nodes_hold_groups_too():
    """Fourteen devices of nodes of eight: groups of 4 in a node and in six more, 2 + 1; of 6 one in
    each; of 8 and of 12 one, of 16 none."""
    sizes = np.array([4, 6, 8, 12, 16])
    assert n_node_places(14, 8, sizes).tolist() == [3, 2, 1, 1, 0]


@settings(max_examples=40, deadline=None)
@given(pools.clusters())
def test_every_mesh_has_room_and_all_its_copies_fit_the_pool(cluster):
    meshes = mesh_table(cluster)
    found = n_places(cluster, meshes)
    assert (found >= 1).all()
    assert (found * meshes.n_devices <= cluster.n_devices).all()
