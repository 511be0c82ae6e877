"""What collectives take over a group of mesh axes, by the convention that a fabric names.

A group is a bit mask; bit i is axis i. What an empty message takes is its latency, what the
bytes add to that its transfer, so that both add up to the time whatever the convention.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from planner.equations import collectives
from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.tiers import MeasuredTimes, ProtocolTimes, Spent, tier_table
from planner.layouts.work import ALL_TO_ALL, REDUCE_SCATTER, WEIGHT_GATHER, Message
from planner.specs.files.ledger import LAYOUTS, timed_by
from planner.specs.records.devices import Fabric, NodesFabric
from planner.topology.meshes import MeshTable


class Collectives(Protocol):
    """One convention, on the meshes of one table.

    Messages have a row for each layout; `mesh`, (N, 1), says on which mesh it lies.
    """

    def gather_s(self, message: Message, mesh: IntArray) -> Spent:
        """All-gather; of activations or of weights."""

    def scatter_s(self, message: Message, mesh: IntArray) -> Spent:
        """Reduce-scatter."""

    def half_all_reduce_s(self, message: Message, mesh: IntArray) -> Spent:
        """Either half of an all-reduce."""

    def exchange_s(self, message: Message, mesh: IntArray) -> Spent:
        """All-to-all."""

    def handover_s(self, n_bytes: FloatArray, mesh: IntArray) -> FloatArray:
        """Point-to-point to the next stage, latency and all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTable:
    """Times of messages on M meshes: those of activations by one convention, of weights by one."""

    activation: Collectives
    bulk: Collectives

    def message_s(self, message: Message, mesh: IntArray) -> Spent:
        """Transfer and latency of a collective, to (N, B) each; none where one device meets."""
        if message.kind == WEIGHT_GATHER:
            return self.bulk.gather_s(message, mesh)
        if message.kind == ALL_TO_ALL:
            return self.activation.exchange_s(message, mesh)
        if message.is_half_of_all_reduce:
            return self.activation.half_all_reduce_s(message, mesh)
        if message.kind == REDUCE_SCATTER:
            return self.activation.scatter_s(message, mesh)
        return self.activation.gather_s(message, mesh)

    def handover_s(self, n_bytes: FloatArray, mesh: IntArray) -> FloatArray:
        """Hand-over of a micro-batch to the next stage, each device its share, to (N, B) [s]."""
        return self.activation.handover_s(n_bytes, mesh)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRates:
    """Linear conventions: rates of each group of axes of each mesh, shape (M, 8).

    A group of one device has infinite bandwidth and no latency.
    """

    bytes_per_s: FloatArray
    hop_s: FloatArray
    all_to_all_s_per_byte: FloatArray
    stage_bytes_per_s: FloatArray
    stage_hop_s: FloatArray

    def gather_s(self, message: Message, mesh: IntArray) -> Spent:
        rates = self.bytes_per_s[mesh, message.group]
        transfers = collectives.all_gather_s(message.n_bytes, message.n_devices, bytes_per_s=rates)
        return transfers, self._latency_s(message, mesh)

    # a reduce-scatter moves what an all-gather does, the other way, and an all-reduce both
    scatter_s = gather_s
    half_all_reduce_s = gather_s

    def exchange_s(self, message: Message, mesh: IntArray) -> Spent:
        transfers = message.n_bytes * self.all_to_all_s_per_byte[mesh, message.group]
        return transfers, self._latency_s(message, mesh)

    def handover_s(self, n_bytes: FloatArray, mesh: IntArray) -> FloatArray:
        return collectives.point_to_point_s(
            n_bytes, bytes_per_s=self.stage_bytes_per_s[mesh], hop_s=self.stage_hop_s[mesh]
        )

    def _latency_s(self, message: Message, mesh: IntArray) -> FloatArray:
        return np.where(message.n_devices > 1, self.hop_s[mesh, message.group], 0.0)


def network_table(meshes: MeshTable, fabric: Fabric) -> NetworkTable:
    """Times of all messages, by the conventions that the fabric names."""
    timed_by(LAYOUTS)
    activation = _collectives(meshes, fabric, fabric.activation_network)
    if fabric.bulk_network == fabric.activation_network:
        return NetworkTable(activation=activation, bulk=activation)
    bulk = _collectives(meshes, fabric, fabric.bulk_network)
    return NetworkTable(activation=activation, bulk=bulk)


def _collectives(meshes: MeshTable, fabric: Fabric, convention: str) -> Collectives:
    """Raises `KeyError` for a convention that does not exist, or not for such a fabric."""
    if isinstance(fabric, NodesFabric):
        if convention == "two-regime" and fabric.scale_up_measured is not None:
            return MeasuredTimes(
                tiers=tier_table(meshes, fabric), measured=fabric.scale_up_measured
            )
        if convention == "nccl" and fabric.protocols:
            return ProtocolTimes(tiers=tier_table(meshes, fabric), protocols=fabric.protocols)
    return _group_rates(meshes, convention)


def _group_rates(meshes: MeshTable, convention: str) -> GroupRates:
    sizes = meshes.tier_size
    member = sizes > 1
    wraps, is_switch = meshes.axis_wraps[:, None, :], meshes.axis_is_switch[:, None, :]
    latency = collectives.axis_hops(sizes, wraps, is_switch) * meshes.axis_hop_s[:, None, :]
    all_to_all = collectives.axis_all_to_all_s_per_byte(
        sizes, wraps, is_switch, link_bytes_per_s=meshes.axis_bytes_per_s[:, None, :]
    )
    return GroupRates(
        bytes_per_s=collectives.GROUP_BANDWIDTH[convention](_axis_rates(meshes), member),
        hop_s=np.where(member, latency, 0.0).sum(axis=-1),
        # dimensions carry their shares at the same time: the slowest sets the pace
        all_to_all_s_per_byte=np.where(member, all_to_all, 0.0).max(axis=-1),
        stage_bytes_per_s=meshes.stage_bytes_per_s,
        stage_hop_s=meshes.stage_hop_s,
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
