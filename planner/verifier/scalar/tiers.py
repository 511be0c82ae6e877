"""One collective over devices of nodes, timed at its bytes and at none.

Two conventions are not linear in bytes: `two-regime`, measured inside a node, and `nccl`, the
cheapest of its protocols.
"""

from collections.abc import Callable
from math import log2, prod

from planner.specs.records.devices import NcclProtocol, NodesFabric, TwoRegimes
from planner.verifier.scalar.sends import HALF, Send
from planner.verifier.scalar.shapes import ScalarMesh

CONVENTIONS = ("two-regime", "nccl")


def tiered_s(
    mesh: ScalarMesh, fabric: NodesFabric, convention: str, send: Send
) -> tuple[float, float]:
    """Seconds that the bytes add, and seconds of an empty message."""
    time_s = _measured_s if convention == "two-regime" else _by_protocol_s
    empty = time_s(mesh, fabric, send, 0.0)
    return time_s(mesh, fabric, send, send.n_bytes) - empty, empty


def _meeting(mesh: ScalarMesh, send: Send) -> tuple[float, float]:
    """Shards that meet in one node, as many as it has room for, and nodes that they meet over."""
    room = prod(mesh.axes[axis] for axis in mesh.members(send.group) if mesh.tiers[axis] == 0)
    if send.n_shards <= room:
        return send.n_shards, 1.0
    return room, send.n_shards / room


def _measured_s(mesh: ScalarMesh, fabric: NodesFabric, send: Send, n_bytes: float) -> float:
    measured = fabric.scale_up_measured
    assert measured is not None
    inside, nodes = _meeting(mesh, send)
    if send.kind == HALF and nodes == 1:
        return fitted_s(measured.all_reduce, inside, n_bytes) / 2
    between = mesh.tiers.index(1)
    hop = min(nodes - 1, 1) * mesh.axis_hop_s[between]
    port = mesh.axis_bytes_per_s[between]
    away = n_bytes * (nodes - 1) / nodes / port
    if send.kind == "exchange":
        idle = fitted_s(measured.all_to_all, inside, 0.0)
        return hop + idle + max(fitted_s(measured.all_to_all, inside, n_bytes) - idle, away)
    # only what one device has of its node's part goes to other nodes
    first = measured.reduce_scatter if send.kind in ("scatter", HALF) else measured.all_gather
    step = fitted_s(first, inside, n_bytes)
    if send.kind == HALF:
        step = (step + fitted_s(measured.all_gather, inside, n_bytes)) / 2
    return step + away / inside + hop


def group_bytes_per_s(fabric: NodesFabric, n_devices: float) -> float:
    """What one device sends to a group in its node: by links to each other one, or a switch."""
    whole, pair = fabric.scale_up_bytes_per_s, fabric.scale_up_pair_bytes_per_s
    return whole if pair is None else min(whole, max(1, n_devices - 1) * pair)


def fitted_s(fits: TwoRegimes, n_devices: float, n_bytes: float) -> float:
    """The faster regime, its latency and seconds a byte read off at the size of the group."""
    short = _at(fits.n_devices, fits.short_latency_s, n_devices, log2)
    short += n_bytes * _at(fits.n_devices, _inverse(fits.short_bytes_per_s), n_devices, _share)
    long = _at(fits.n_devices, fits.long_latency_s, n_devices, log2)
    long += n_bytes * _at(fits.n_devices, _inverse(fits.long_bytes_per_s), n_devices, _share)
    return min(short, long)


def _inverse(rates: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(1 / rate for rate in rates)


def _share(k: float) -> float:
    return (k - 1) / k


def _at(
    sizes: tuple[int, ...], values: tuple[float, ...], k: float, growth: Callable[[float], float]
) -> float:
    """Straight in log₂ of the size from (1, 0) through all fits; then growing as told."""
    if k > sizes[-1]:
        return values[-1] * growth(k) / growth(sizes[-1])
    below, low = 1, 0.0
    for size, value in zip(sizes, values, strict=True):
        if k <= size:
            return low + (value - low) * log2(k / below) / log2(size / below)
        below, low = size, value
    raise AssertionError("a size beyond the largest came this far")


def _by_protocol_s(mesh: ScalarMesh, fabric: NodesFabric, send: Send, n_bytes: float) -> float:
    inside, nodes = _meeting(mesh, send)
    up, out = mesh.axis_bytes_per_s[0], mesh.axis_bytes_per_s[mesh.tiers.index(1)]
    within = n_bytes * (inside - 1) / inside / up
    between = n_bytes * (nodes - 1) / nodes / out
    transfer = max(within, between) if send.kind == "exchange" else within + between / inside
    n_phases = 2 if send.kind == HALF else 1
    return (
        min(
            n_phases * _hops_s(protocol, inside, nodes)
            + protocol.base_s
            + n_phases * transfer / protocol.bandwidth_fraction
            for protocol in fabric.protocols
        )
        / n_phases
    )


def _hops_s(protocol: NcclProtocol, inside: float, nodes: float) -> float:
    if protocol.algorithm == "tree":
        return (inside - 1) * protocol.scale_up_hop_s + log2(nodes) * protocol.scale_out_hop_s
    n_all = inside * nodes
    return (n_all - nodes) * protocol.scale_up_hop_s + (nodes - 1) * protocol.scale_out_hop_s


def stage_by_protocol_s(mesh: ScalarMesh, fabric: NodesFabric, n_bytes: float) -> float:
    """To the next stage: one hop, which leaves the node if all stages do not fit in one."""
    leaves = mesh.n_devices * mesh.n_stages > fabric.n_devices_per_node
    return min(
        (protocol.scale_out_hop_s if leaves else protocol.scale_up_hop_s)
        + protocol.base_s
        + n_bytes / mesh.stage_bytes_per_s / protocol.bandwidth_fraction
        for protocol in fabric.protocols
    )
