"""The seconds that a layer's collectives take on one mesh."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from planner.specs.records import FORMAT_BYTES, Fabric, NodesFabric
from planner.verifier.scalar.sends import Send
from planner.verifier.scalar.shapes import N_AXES, Layout, ScalarMesh
from planner.verifier.scalar.tiers import CONVENTIONS, stage_by_protocol_s, tiered_s


def network_s(layout: Layout, fabric: Fabric, sends: list[Send]) -> tuple[float, float]:
    """Seconds of all transfers of one layer and micro-batch, and of all their hops."""
    times = [
        _send_s(_joined(layout.mesh, send.group), fabric, send)
        for send in sends
        if send.n_shards > 1
    ]
    return sum(transfer for transfer, _ in times), sum(latency for _, latency in times)


def _joined(mesh: ScalarMesh, group: int) -> ScalarMesh:
    """The mesh as a group sees it: two of its axes behind one switch are one longer axis."""
    axes = list(mesh.axes)
    members = mesh.members(group)
    for later in members:
        for earlier in members:
            if earlier < later and mesh.tiers[earlier] == mesh.tiers[later]:
                axes[earlier] *= axes[later]
                axes[later] = 1
                break
    return replace(mesh, axes=(axes[0], axes[1], axes[2]))


def _send_s(mesh: ScalarMesh, fabric: Fabric, send: Send) -> tuple[float, float]:
    """Seconds that the bytes of one collective take, and its hops."""
    is_bulk = send.kind == "weights"
    convention = fabric.bulk_network if is_bulk else fabric.activation_network
    if convention in CONVENTIONS and isinstance(fabric, NodesFabric):
        return tiered_s(mesh, fabric, convention, send)
    return _transfer_s(mesh, convention, send), _latency_s(mesh, send)


def _transfer_s(mesh: ScalarMesh, convention: str, send: Send) -> float:
    """Seconds that the bytes of one collective take; (k − 1)/k of them cross the links."""
    if send.kind == "exchange":
        return max(_exchange_s(mesh, axis, send.n_bytes) for axis in mesh.members(send.group))
    crossing = send.n_bytes * (send.n_shards - 1) / send.n_shards
    return crossing / _group_bytes_per_s(mesh, convention, send.group)


def _group_bytes_per_s(mesh: ScalarMesh, convention: str, group: int) -> float:
    """`ring`: the fastest axis; `axis`: all axes of the group; `flat`: all of the mesh;
    `tree`: the slowest tier."""
    rates = [_ring_bytes_per_s(mesh, axis, group) for axis in mesh.members(group)]
    if convention == "ring":
        return max(rates)
    if convention == "axis":
        return sum(rates)
    if convention == "tree":
        return min(rates)
    if convention == "flat":
        return sum(_ring_bytes_per_s(mesh, axis, group) for axis in range(N_AXES))
    raise ValueError(f"no such network convention: {convention}")


def _ring_bytes_per_s(mesh: ScalarMesh, axis: int, group: int) -> float:
    """Both links of a closed axis; one of an open one; all ports inside a tier of switches."""
    rate = mesh.axis_bytes_per_s[axis]
    if mesh.is_switch:
        return rate * prod(mesh.axes[inner] for inner in mesh.members(group) if inner < axis)
    return rate * (2 if mesh.wraps[axis] else 1)


def _exchange_s(mesh: ScalarMesh, axis: int, n_bytes: float) -> float:
    """All-to-all along one axis: the load of its busiest link.

    Each device has `n_bytes`, one k-th of it for each of the k devices of the axis.
    """
    k = mesh.axes[axis]
    each, rate = n_bytes / k, mesh.axis_bytes_per_s[axis]
    if mesh.is_switch:
        return (k - 1) * each / rate
    if mesh.wraps[axis]:
        # all shards that travel one way, times their hops, over k links
        shorter = sum(range(1, (k + 1) // 2))
        opposite = k / 2 / 2 if k % 2 == 0 else 0  # half of them goes each way
        return (shorter + opposite) * each / rate
    # the link after device i carries from all on its left to all on its right
    return max((i + 1) * (k - i - 1) for i in range(k)) * each / rate


def _latency_s(mesh: ScalarMesh, send: Send) -> float:
    """Hops to the farthest device of the group."""
    return sum(_n_hops(mesh, axis) * mesh.axis_hop_s[axis] for axis in mesh.members(send.group))


def _n_hops(mesh: ScalarMesh, axis: int) -> int:
    if mesh.is_switch:
        return 1
    k = mesh.axes[axis]
    return k // 2 if mesh.wraps[axis] else k - 1


def handover_s(layout: Layout, fabric: Fabric, n_sequences: int, n_new_tokens: float) -> float:
    """The residual stream of a micro-batch to the next stage, each device its share."""
    model, mesh = layout.model, layout.mesh
    if mesh.n_stages == 1:
        return 0.0
    numbers = n_sequences * n_new_tokens * model.d_model / mesh.n_devices
    n_bytes = numbers * FORMAT_BYTES[model.activation_format]
    if fabric.activation_network == "nccl" and isinstance(fabric, NodesFabric):
        return stage_by_protocol_s(mesh, fabric, n_bytes)
    return n_bytes / mesh.stage_bytes_per_s + mesh.stage_hop_s
