"""The referee puts every replica in a place, and agrees with the count of places."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from planner.topology.meshes import mesh_table
from planner.topology.packing import n_places
from planner.verifier.layouts.places import fleet_usd_per_token, places
from planner.verifier.scalar.shapes import ScalarMesh
from tests.topology import pools


def mesh_of(meshes, row):
    nothing = (1.0, 1.0, 1.0)
    return ScalarMesh(
        axes=tuple(map(int, meshes.axis_size[row])),
        tiers=tuple(map(int, meshes.axis_tier[row])),
        wraps=(False, False, False),
        is_switch=True,
        axis_bytes_per_s=nothing,
        axis_hop_s=nothing,
        n_stages=int(meshes.n_stages[row]),
        stage_bytes_per_s=1.0,
        stage_hop_s=0.0,
    )


@settings(max_examples=40, deadline=None)
@given(pools.clusters())
def test_no_two_places_share_a_device_and_there_are_as_many_as_are_counted(cluster):
    meshes = mesh_table(cluster)
    counted = n_places(cluster, meshes)
    for row in range(len(meshes)):
        found = places(cluster.fabric, mesh_of(meshes, row))
        assert len(found) == counted[row]
        assert {len(place) for place in found} == {int(meshes.n_devices[row])}
        assert len(frozenset().union(*found)) == counted[row] * meshes.n_devices[row]
        assert len(frozenset().union(*found)) <= cluster.n_devices


def test_a_pipeline_that_fits_a_node_stays_in_it():
    cluster = pools.nodes(2)
    meshes = mesh_table(cluster)
    row = meshes.label.index("TP 2 × PP 3")
    for place in places(cluster.fabric, mesh_of(meshes, row)):
        assert len({node for node, _ in place}) == 1


@pytest.mark.parametrize(
    ("demand", "served"),
    [(None, 20.0), (5.0, 5.0), (20.0, 20.0), (50.0, 20.0)],
)
def test_rent_is_paid_by_the_tokens_that_are_served_and_asked_for(demand, served):
    """Two replicas of three devices at $3600/h: $6 a second; each writes 10 tokens a second."""
    cost = fleet_usd_per_token(
        n_replicas=2,
        n_devices_each=3,
        usd_per_device_hour=3600.0,
        request_s=0.8,
        n_output_tokens=8,
        demand_tokens_per_s=demand,
    )
    assert cost == pytest.approx(6.0 / served)
