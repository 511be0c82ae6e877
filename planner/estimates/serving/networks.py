"""Messages between devices of one stage: measured inside a node, α–β between nodes.

Inside a node a collective takes the faster of two measured forms, α₁ + n/B₁ and α₂ + n/B₂.
Across nodes it is done in steps, as NCCL's trees over rails are: inside every node, between
nodes by devices of equal place, each with its share, and inside again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray, IntArray
from planner.equations.collectives import transferred_fraction
from planner.equations.nccl import group_latency_s, group_s_per_byte
from planner.specs.files.ledger import ENGINES, timed_by
from planner.specs.records.devices import Fabric, NodesFabric, TorusFabric, TwoRegimes

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")


def measured_s(fits: TwoRegimes, n_bytes: ArrayLike, n_devices: ArrayLike) -> FloatArray:
    """Time of a buffer of `n_bytes` in groups of `n_devices`; none in groups of one [s]."""
    short, long = (
        group_latency_s(n_devices, fits.n_devices, latency)
        + np.asarray(n_bytes) * group_s_per_byte(n_devices, fits.n_devices, rate)
        for latency, rate in (
            (fits.short_latency_s, fits.short_bytes_per_s),
            (fits.long_latency_s, fits.long_bytes_per_s),
        )
    )
    return np.asarray(np.minimum(short, long))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingNetwork:
    """What connects the devices of a deployment.

    Args:
        n_per_node: devices of one node; they are filled one after the other.
        up_bytes_per_s: attainable between devices of a node, one way.
        up_latency_s: of one step there.
        out_bytes_per_s: attainable between nodes, of one device, one way.
        out_latency_s: of one step there.
        pair_bytes_per_s: and to one other device of it: less where each pair has links of its own.
        measured: collectives inside a node, by kind; α–β of the links without.
        error: relative error of what is not measured, `assumed` [1].
        measured_error: and of what is: fits miss their tables by 3 to 14 % [1].
    """

    n_per_node: int
    up_bytes_per_s: float
    up_latency_s: float
    out_bytes_per_s: float
    out_latency_s: float
    pair_bytes_per_s: float = math.inf
    measured: Mapping[str, TwoRegimes] = field(default_factory=dict)
    error: float = 0.3
    measured_error: float = 0.07

    def n_nodes(self, n_devices: ArrayLike) -> FloatArray:
        return np.ceil(np.asarray(n_devices, dtype=float) / self.n_per_node)

    def group_bytes_per_s(self, n_devices: ArrayLike) -> FloatArray:
        """What a device sends to the others of a group in its node [B/s]."""
        n_others = np.maximum(np.asarray(n_devices, dtype=float) - 1.0, 1.0)
        return np.asarray(np.minimum(self.up_bytes_per_s, n_others * self.pair_bytes_per_s))

    def collective_s(self, kind: str, n_bytes: ArrayLike, n_devices: ArrayLike) -> FloatArray:
        """Time of one collective over consecutive devices [s].

        Args, broadcast together:
            kind: one of `COLLECTIVES`.
            n_bytes: the whole buffer of one device: reduced, gathered, or before it is scattered.
            n_devices: of the group.
        """
        size = np.asarray(n_devices, dtype=float)
        volume = np.asarray(n_bytes, dtype=float)
        inside = np.minimum(size, self.n_per_node)
        nodes = self.n_nodes(size)
        if not np.any(nodes > 1):
            return self._inside_s(kind, volume, inside)
        between = self._between_s(kind, volume / inside, nodes)
        if kind == "all_reduce":
            scattered = self._inside_s("reduce_scatter", volume, inside)
            across = scattered + between + self._inside_s("all_gather", volume, inside)
        else:
            across = between + self._inside_s(kind, volume, inside)
        return np.where(nodes > 1, across, self._inside_s(kind, volume, inside))

    def hand_s(self, n_bytes: ArrayLike, n_sends: ArrayLike, n_group: ArrayLike) -> FloatArray:
        """Time to hand bytes from stage to stage: from each device to one of the next stage [s].

        Args, broadcast together:
            n_bytes: of one hand-over.
            n_sends: hand-overs, one less than there are stages.
            n_group: devices of a stage.
        """
        inside = np.divide(n_bytes, self.group_bytes_per_s(2)) + self.up_latency_s
        outside = np.divide(n_bytes, self.out_bytes_per_s) + self.out_latency_s
        sends = np.asarray(n_sends, dtype=float)
        n_leaving = self._n_leaving(sends, np.asarray(n_group, dtype=float))
        return np.asarray(n_leaving * outside + (sends - n_leaving) * inside)

    def between_s(self, n_bytes: ArrayLike, n_devices: ArrayLike) -> FloatArray:
        """Time of bytes from one pool of devices to another [s].

        Args, broadcast together:
            n_bytes: of the device of either pool that sends or receives most.
            n_devices: of both pools; what no node holds lies on nodes of its own.
        """
        inside = np.divide(n_bytes, self.group_bytes_per_s(2)) + self.up_latency_s
        outside = np.divide(n_bytes, self.out_bytes_per_s) + self.out_latency_s
        return np.where(np.asarray(n_devices) > self.n_per_node, outside, inside)

    def _n_leaving(self, n_sends: FloatArray, n_group: FloatArray) -> FloatArray:
        """Hand-overs with a pair of devices in two nodes, which are filled one after the other.

        A node that ends between two stages parts one hand-over; one that ends within a stage parts
        the one before and the one after. Stages of whole nodes always part.
        """
        sends, group = np.broadcast_arrays(n_sends, n_group)
        ends = np.ceil((sends + 1) * group / self.n_per_node) - 1
        parted = np.where(group >= self.n_per_node, sends, ends)
        odd = (group < self.n_per_node) & (self.n_per_node % group != 0) & (sends > 0)
        if odd.any():
            n, g = sends[odd].astype(np.int64), group[odd].astype(np.int64)
            parted[odd] = self._n_parted(int(n.max()))[g, n]
        return np.asarray(parted)

    def _n_parted(self, most_sends: int) -> IntArray:
        """Hand-overs around whose first or last pair of devices a node ends, by (n_group, n_sends).

        Of groups smaller than a node, and up to so many hand-overs.
        """
        group = np.arange(self.n_per_node)[:, None]
        k = np.arange(1, most_sends + 1)
        parts = (k - 1) * group // self.n_per_node < ((k + 1) * group - 1) // self.n_per_node
        return np.pad(np.cumsum(parts, axis=1), ((0, 0), (1, 0)))

    def _inside_s(self, kind: str, volume: FloatArray, size: FloatArray) -> FloatArray:
        if kind in self.measured:
            return measured_s(self.measured[kind], volume, size)
        twice = 2.0 if kind == "all_reduce" else 1.0
        steps = np.log2(np.maximum(size, 1.0)) * self.up_latency_s
        moved = volume * transferred_fraction(size) / self.group_bytes_per_s(size)
        return np.asarray(twice * (steps + moved))

    def _between_s(self, kind: str, volume: FloatArray, nodes: FloatArray) -> FloatArray:
        twice = 2.0 if kind == "all_reduce" else 1.0
        steps = np.log2(np.maximum(nodes, 1.0)) * self.out_latency_s
        moved = volume * transferred_fraction(nodes) / self.out_bytes_per_s
        return np.asarray(twice * (steps + moved))


def serving_network(fabric: Fabric) -> ServingNetwork:
    """The network of a cluster.

    Args:
        fabric: nodes, or a torus, which counts as one node.

    Raises:
        ValueError: the fabric is a list of links, which says nothing of nodes.
    """
    timed_by(ENGINES)
    if isinstance(fabric, NodesFabric):
        known, pair = fabric.scale_up_measured, fabric.scale_up_pair_bytes_per_s
        return ServingNetwork(
            n_per_node=fabric.n_devices_per_node,
            up_bytes_per_s=fabric.scale_up_bytes_per_s * fabric.scale_up_fraction,
            up_latency_s=fabric.scale_up_latency_s,
            out_bytes_per_s=fabric.scale_out_bytes_per_s * fabric.scale_out_fraction,
            out_latency_s=fabric.scale_out_latency_s,
            pair_bytes_per_s=math.inf if pair is None else pair * fabric.scale_up_fraction,
            measured={kind: getattr(known, kind) for kind in COLLECTIVES} if known else {},
        )
    if isinstance(fabric, TorusFabric):
        return ServingNetwork(
            n_per_node=fabric.n_devices,
            up_bytes_per_s=2.0 * fabric.link_bytes_per_s,
            up_latency_s=fabric.hop_s,
            out_bytes_per_s=2.0 * fabric.link_bytes_per_s,
            out_latency_s=fabric.hop_s,
        )
    raise ValueError("a fabric of listed links has no nodes")
