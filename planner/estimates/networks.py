"""What a group of mesh axes gives a collective: bandwidth, latency, all-to-all rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations import collectives
from planner.equations.arrays import FloatArray
from planner.specs.records import Fabric
from planner.topology.meshes import MeshTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """Rates of each group of axes of each mesh, shape (M, 8); bit i of a group is axis i.

    A group of one device has infinite bandwidth and no latency.
    """

    activation_bytes_per_s: FloatArray
    bulk_bytes_per_s: FloatArray
    hop_s: FloatArray
    all_to_all_s_per_byte: FloatArray


def network_table(meshes: MeshTable, fabric: Fabric) -> NetworkTable:
    """Rates of all groups, by the conventions that the fabric names."""
    sizes = meshes.tier_size
    member = sizes > 1
    rates = _axis_rates(meshes)
    wraps, is_switch = meshes.axis_wraps[:, None, :], meshes.axis_is_switch[:, None, :]
    latency = collectives.axis_hops(sizes, wraps, is_switch) * meshes.axis_hop_s[:, None, :]
    all_to_all = collectives.axis_all_to_all_s_per_byte(
        sizes, wraps, is_switch, link_bytes_per_s=meshes.axis_bytes_per_s[:, None, :]
    )
    return NetworkTable(
        activation_bytes_per_s=collectives.GROUP_BANDWIDTH[fabric.activation_network](
            rates, member
        ),
        bulk_bytes_per_s=collectives.GROUP_BANDWIDTH[fabric.bulk_network](rates, member),
        hop_s=np.where(member, latency, 0.0).sum(axis=-1),
        # dimensions carry their shares at the same time: the slowest sets the pace
        all_to_all_s_per_byte=np.where(member, all_to_all, 0.0).max(axis=-1),
    )


def _axis_rates(meshes: MeshTable) -> FloatArray:
    """(M, 8, 3): ring bandwidth of each axis inside each group [bytes/s].

    Behind switches, the ring through t devices of a node leaves it over t ports.
    """
    ring = collectives.axis_ring_bytes_per_s(
        meshes.axis_bytes_per_s, meshes.axis_wraps, meshes.axis_is_switch
    )
    sizes = meshes.tier_size
    inside = np.cumprod(sizes, axis=-1) / sizes
    return ring[:, None, :] * np.where(meshes.axis_is_switch[:, None, :], inside, 1.0)
