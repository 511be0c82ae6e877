"""Collectives over two tiers, devices of a node and nodes, whose times are not linear in bytes.

Inside a node by what was measured, or by NCCL's protocols; between nodes hierarchically, as
NCCL and the engines do: reduce-scatter inside, all-reduce between nodes of the t-th part that
each of t devices then has, all-gather inside. Devices of a group that do not all meet meet
their neighbours: a node is filled before the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.equations import collectives, nccl
from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.layouts.work import Message
from planner.specs.records.devices import MeasuredCollectives, NcclProtocol, NodesFabric, TwoRegimes
from planner.topology.meshes import MeshTable

Spent = tuple[FloatArray, FloatArray]
"""Transfer and latency [s]."""

Group = tuple[FloatArray, FloatArray]
"""Devices that meet inside a node, and nodes over which they meet, (N, 1) each [1]."""

Forms = tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Latency [s] and seconds a byte of the short form and of the long one, (N, 1) each."""


MOST_KNOWN = 128
"""Sizes of groups up to which forms are kept, and not interpolated for every message."""

INSIDE = 0
"""Tier of the axes inside a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierTable:
    """The two tiers of M meshes, (M,); rates of one device, one way, as attained.

    Args:
        n_inside: devices of each group of axes that share a node, (M, 8).
    """

    n_inside: IntArray
    up_bytes_per_s: FloatArray
    out_bytes_per_s: FloatArray
    out_hop_s: FloatArray
    stage_bytes_per_s: FloatArray
    stage_hop_s: FloatArray
    stage_leaves_node: BoolArray

    def group(self, message: Message, mesh: IntArray) -> Group:
        """Devices that meet in a node, then nodes."""
        inside = np.minimum(message.n_devices, self.n_inside[mesh, message.group])
        return inside, message.n_devices / inside

    def between_s(self, n_bytes: FloatArray, group: Group, mesh: IntArray) -> FloatArray:
        """Transfer between nodes of an all-gather of what one device has of its node [s]."""
        inside, nodes = group
        rates = self.out_bytes_per_s[mesh] * inside
        return collectives.all_gather_s(n_bytes, nodes, bytes_per_s=rates)

    def hops_between_s(self, group: Group, mesh: IntArray) -> FloatArray:
        """Latency of one hop through the switches between nodes, none within one [s]."""
        return collectives.axis_hops(group[1], False, True) * self.out_hop_s[mesh]

    def exchange_between_s(self, n_bytes: FloatArray, group: Group, mesh: IntArray) -> FloatArray:
        """Transfer between nodes of an all-to-all [s]."""
        rates = self.out_bytes_per_s[mesh]
        return collectives.all_gather_s(n_bytes, group[1], bytes_per_s=rates)


def tier_table(meshes: MeshTable, fabric: NodesFabric) -> TierTable:
    """The tiers of the meshes: axes of tier 0 lie in a node, the next one joins nodes."""
    is_inside = meshes.axis_tier == INSIDE
    rows, outer = np.arange(len(meshes)), np.argmin(is_inside, axis=1)
    return TierTable(
        n_inside=np.where(is_inside[:, None, :], meshes.tier_size, 1).prod(axis=2),
        up_bytes_per_s=meshes.axis_bytes_per_s[:, 0],
        out_bytes_per_s=meshes.axis_bytes_per_s[rows, outer],
        out_hop_s=meshes.axis_hop_s[rows, outer],
        stage_bytes_per_s=meshes.stage_bytes_per_s,
        stage_hop_s=meshes.stage_hop_s,
        stage_leaves_node=meshes.n_devices > fabric.n_devices_per_node,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTimes:
    """The convention `two-regime`: measured inside a node, α–β between nodes."""

    tiers: TierTable
    measured: MeasuredCollectives

    def gather_s(self, message: Message, mesh: IntArray) -> Spent:
        return self._tiered_s(self.measured.all_gather, message, mesh)

    def scatter_s(self, message: Message, mesh: IntArray) -> Spent:
        return self._tiered_s(self.measured.reduce_scatter, message, mesh)

    def half_all_reduce_s(self, message: Message, mesh: IntArray) -> Spent:
        """Half of the measured all-reduce; over nodes, half of the three steps that replace it."""
        group = self.tiers.group(message, mesh)
        inside, is_one_node = group[0], group[1] <= 1
        whole, latency = _forms_s(_forms(self.measured.all_reduce, inside), message.n_bytes)
        if is_one_node.all():
            return whole / 2, latency / 2
        for fits in (self.measured.reduce_scatter, self.measured.all_gather):
            step, idle = _forms_s(_forms(fits, inside), message.n_bytes)
            first = fits is self.measured.reduce_scatter
            whole = np.where(is_one_node, whole, step if first else whole + step)
            latency = np.where(is_one_node, latency, idle if first else latency + idle)
        transfers = whole / 2 + self.tiers.between_s(message.n_bytes, group, mesh)
        return transfers, latency / 2 + self.tiers.hops_between_s(group, mesh)

    def exchange_s(self, message: Message, mesh: IntArray) -> Spent:
        """Both tiers carry their shares at the same time: the slower sets the pace."""
        group = self.tiers.group(message, mesh)
        within, latency = _forms_s(_forms(self.measured.all_to_all, group[0]), message.n_bytes)
        between = self.tiers.exchange_between_s(message.n_bytes, group, mesh)
        transfers = np.maximum(within, between)
        return transfers, latency + self.tiers.hops_between_s(group, mesh)

    def handover_s(self, n_bytes: FloatArray, mesh: IntArray) -> FloatArray:
        return collectives.point_to_point_s(
            n_bytes,
            bytes_per_s=self.tiers.stage_bytes_per_s[mesh],
            hop_s=self.tiers.stage_hop_s[mesh],
        )

    def _tiered_s(self, fits: TwoRegimes, message: Message, mesh: IntArray) -> Spent:
        group = self.tiers.group(message, mesh)
        within, latency = _forms_s(_forms(fits, group[0]), message.n_bytes)
        transfers = within + self.tiers.between_s(message.n_bytes, group, mesh)
        return transfers, latency + self.tiers.hops_between_s(group, mesh)


def _forms(fits: TwoRegimes, n_devices: FloatArray) -> Forms:
    """Both forms of a collective in groups of any size; of whole numbers, read off a table."""
    whole = n_devices.astype(np.int64)
    if (whole != n_devices).any() or whole.max(initial=0) > MOST_KNOWN:
        return _interpolated(fits, n_devices)
    short_s, short_s_per_byte, long_s, long_s_per_byte = _known_forms(fits)[:, whole]
    return (short_s, short_s_per_byte), (long_s, long_s_per_byte)


@lru_cache(maxsize=64)
def _known_forms(fits: TwoRegimes) -> FloatArray:
    """Latency and seconds a byte of the short form, then of the long one, (4, sizes)."""
    sizes = np.maximum(np.arange(MOST_KNOWN + 1.0), 1.0)
    return np.stack([row for form in _interpolated(fits, sizes) for row in form])


def _interpolated(fits: TwoRegimes, n_devices: FloatArray) -> Forms:
    def form(latency_s: tuple[float, ...], bytes_per_s: tuple[float, ...]) -> Group:
        return (
            nccl.group_latency_s(n_devices, fits.n_devices, latency_s),
            nccl.group_s_per_byte(n_devices, fits.n_devices, bytes_per_s),
        )

    short = form(fits.short_latency_s, fits.short_bytes_per_s)
    return short, form(fits.long_latency_s, fits.long_bytes_per_s)


def _forms_s(forms: Forms, n_bytes: FloatArray) -> Spent:
    short, long = forms
    return nccl.two_regimes_s(n_bytes, short, long), np.minimum(short[0], long[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolTimes:
    """The convention `nccl`: latencies of its protocols, transfers over the links of the mesh."""

    tiers: TierTable
    protocols: tuple[NcclProtocol, ...]

    def gather_s(self, message: Message, mesh: IntArray) -> Spent:
        group = self.tiers.group(message, mesh)
        return self._fastest_s(self._moved_s(message, group, mesh), group)

    scatter_s = gather_s

    def half_all_reduce_s(self, message: Message, mesh: IntArray) -> Spent:
        """Half of two phases, which start once and move everything twice."""
        group = self.tiers.group(message, mesh)
        twice = 2.0 * self._moved_s(message, group, mesh)
        transfers, latency = self._fastest_s(twice, group, n_phases=2)
        return transfers / 2, latency / 2

    def exchange_s(self, message: Message, mesh: IntArray) -> Spent:
        """Both tiers carry their shares at the same time: the slower sets the pace."""
        group = self.tiers.group(message, mesh)
        rates = self.tiers.up_bytes_per_s[mesh]
        within = collectives.all_gather_s(message.n_bytes, group[0], bytes_per_s=rates)
        between = self.tiers.exchange_between_s(message.n_bytes, group, mesh)
        return self._fastest_s(np.maximum(within, between), group)

    def handover_s(self, n_bytes: FloatArray, mesh: IntArray) -> FloatArray:
        """One hop, and each byte once over a port."""
        leaves = self.tiers.stage_leaves_node[mesh]
        hops = np.where(leaves, 0.0, 1.0), np.where(leaves, 1.0, 0.0)
        return nccl.fastest_s(
            n_bytes / self.tiers.stage_bytes_per_s[mesh],
            ((_latency_s(each, hops), each.bandwidth_fraction) for each in self.protocols),
        )

    def _moved_s(self, message: Message, group: Group, mesh: IntArray) -> FloatArray:
        rates = self.tiers.up_bytes_per_s[mesh], self.tiers.out_bytes_per_s[mesh]
        return nccl.tiered_gather_s(message.n_bytes, group, rates)

    def _fastest_s(self, transfer_s: FloatArray, group: Group, *, n_phases: int = 1) -> Spent:
        """The protocol that is cheapest for each message, less what an empty one takes."""
        ways = tuple(self._paths(group, n_phases))
        idle = nccl.fastest_s(np.zeros((1, 1)), ways)
        time = nccl.fastest_s(transfer_s, ((latency - idle, share) for latency, share in ways))
        meets = group[0] * group[1] > 1
        return np.where(meets, time, 0.0), np.where(meets, idle, 0.0)

    def _paths(self, group: Group, n_phases: int) -> Iterator[tuple[FloatArray, float]]:
        for each in self.protocols:
            hops = nccl.HOPS[each.algorithm](*group, n_phases=n_phases)
            yield _latency_s(each, hops), each.bandwidth_fraction


def _latency_s(protocol: NcclProtocol, hops: nccl.Hops) -> FloatArray:
    return nccl.protocol_latency_s(
        hops,
        scale_up_hop_s=protocol.scale_up_hop_s,
        scale_out_hop_s=protocol.scale_out_hop_s,
        base_s=protocol.base_s,
    )
