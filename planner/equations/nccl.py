"""Collectives by NCCL's own account: the cheapest of its protocols carries each message.

A message takes m phases, two for an all-reduce and one otherwise. Over n devices on k nodes,

    tree    latency  m ((n/k − 1) hop within a node + log₂k hop between nodes) + base
    ring    latency  m ((n − k) hop within a node + (k − 1) hop between nodes) + base
    time             latency + transfer / (share of the bandwidth that the protocol attains)

LL sends a flag with every four bytes and never waits for a fence, at half the bandwidth;
LL128 a flag with every 120 bytes; Simple sends chunks with fences.

Source: [Erdil2025] Eqs. 23, 26-28 and 39-44 for trees; rings by NCCL's `src/graph/tuning.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray

Hops = tuple[FloatArray, FloatArray]
"""Within nodes, and between them [1]."""


def tree_hops(n_inside: ArrayLike, n_nodes: ArrayLike, *, n_phases: int = 1) -> Hops:
    """A chain inside each node, a double tree over nodes [1].

    Args, broadcast together:
        n_inside: devices of the group in one node, n/k.
        n_nodes: k.
        n_phases: m.

    Source: [Erdil2025] Eq. 23.
    """
    return n_phases * np.subtract(n_inside, 1.0), n_phases * np.log2(n_nodes)


def ring_hops(n_inside: ArrayLike, n_nodes: ArrayLike, *, n_phases: int = 1) -> Hops:
    """One ring over all: n − 1 steps, of which k − 1 lead to another node [1].

    Args as `tree_hops`.

    Source: NCCL, `src/graph/tuning.cc`.
    """
    within = np.multiply(n_nodes, np.subtract(n_inside, 1.0))
    return n_phases * within, n_phases * np.subtract(n_nodes, 1.0)


HOPS = {"tree": tree_hops, "ring": ring_hops}
"""Hops by the algorithm that a protocol names."""


def protocol_latency_s(
    hops: Hops, *, scale_up_hop_s: float, scale_out_hop_s: float, base_s: float
) -> FloatArray:
    """What an empty message takes by one protocol [s]. Source: [Erdil2025] Eq. 23."""
    within, between = hops
    return np.asarray(within * scale_up_hop_s + between * scale_out_hop_s + base_s)


def fastest_s(transfer_s: ArrayLike, protocols: Iterable[tuple[FloatArray, float]]) -> FloatArray:
    """The least of all protocols; at least one [s].

    Args:
        transfer_s: at the whole bandwidth of the links.
        protocols: latency [s], and the fraction of the bandwidth attained [1], of each.

    Source: [Erdil2025], published program.
    """
    times = (np.add(latency, np.divide(transfer_s, share)) for latency, share in protocols)
    return np.asarray(reduce(np.minimum, times))


def tiered_gather_s(
    gathered_bytes: ArrayLike,
    group: tuple[ArrayLike, ArrayLike],
    bytes_per_s: tuple[ArrayLike, ArrayLike],
) -> FloatArray:
    """All-gather between nodes of what one device has of a node, then inside [s].

    With t devices in each of k nodes: (V/t) (k − 1)/k over the port of a device, then
    V (t − 1)/t inside; of n = t k devices those are V (k − 1)/n and V (n − k)/n.

    Args, broadcast together:
        gathered_bytes: V, held by each device afterwards, or scattered by it [bytes].
        group: devices in a node, and nodes [1].
        bytes_per_s: W inside a node, and between nodes, of one device one way.

    Source: [Erdil2025] Eqs. 26-28, the two tiers added as in the text.
    """
    (inside, nodes), (up, out) = group, bytes_per_s
    within = np.divide(1.0 - np.divide(1.0, inside), up)
    between = np.divide(1.0 - np.divide(1.0, nodes), np.multiply(inside, out))
    return np.asarray(np.multiply(gathered_bytes, within + between))
