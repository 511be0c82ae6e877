"""Collectives by NCCL's own account: the cheapest of its protocols carries each message.

A message takes m phases, two for an all-reduce and one otherwise. Over n devices on k nodes,

    tree    latency  m ((n/k − 1) hop within a node + log₂k hop between nodes) + base
    ring    latency  m ((n − k) hop within a node + (k − 1) hop between nodes) + base
    time             latency + transfer / (share of the bandwidth that the protocol attains)

LL sends a flag with every four bytes and never waits for a fence, at half the bandwidth;
LL128 a flag with every 120 bytes; Simple sends chunks with fences.

Source: [Erdil2025] Eqs. 23, 26-28 and 39-44 for trees; rings by NCCL's `src/graph/tuning.cc`.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.collectives import transferred_fraction

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


def two_regimes_s(
    n_bytes: ArrayLike, short: tuple[ArrayLike, ArrayLike], long: tuple[ArrayLike, ArrayLike]
) -> FloatArray:
    """The faster of two forms, less what an empty message takes [s].

        time of n bytes in a group of k    min(α₁ + n/B₁, α₂ + n/B₂)

    Latencies and seconds a byte are fitted at a few sizes of groups. Between them both are taken as
    linear in log₂ k, from nothing at k = 1. Beyond the largest size K, a latency grows as log₂ k,
    as steps of a tree do, and seconds a byte as (k − 1)/k, the share that is transferred: an
    assumption, no measurement.

    Args, broadcast together:
        n_bytes: buffer of a device [bytes].
        short, long: latency [s] and seconds a byte [s/bytes] of each form.

    Source: fits to the tables of aiconfigurator-core 0.12.0; single α–β misses them by 3 to 28 %,
    two regimes by 2 to 14 %.
    """
    idle = np.minimum(short[0], long[0])
    quick = np.multiply(n_bytes, short[1]) + np.subtract(short[0], idle)
    wide = np.multiply(n_bytes, long[1]) + np.subtract(long[0], idle)
    return np.asarray(np.minimum(quick, wide))


def group_latency_s(
    n_devices: ArrayLike, sizes: Sequence[int], latency_s: Sequence[float]
) -> FloatArray:
    """Latency in a group of any size, from those at some; none for one device [s].

    Args:
        n_devices: k ≥ 1, may be no whole number [1].
        sizes: fitted, ascending, at least two [1].
        latency_s: one for each of them.

    Source: the module's.
    """
    doublings = np.log2(np.asarray(n_devices, dtype=float))
    beyond = np.maximum(doublings / np.log2(sizes[-1]), 1.0)
    return np.asarray(_interpolated(doublings, sizes, latency_s) * beyond)


def group_s_per_byte(
    n_devices: ArrayLike, sizes: Sequence[int], bytes_per_s: Sequence[float]
) -> FloatArray:
    """Seconds a byte in a group of any size, from the bandwidths at some [s/bytes].

    Args as `group_latency_s`; `bytes_per_s` are of the buffer, not of a link.

    Source: the module's.
    """
    doublings = np.log2(np.asarray(n_devices, dtype=float))
    at_sizes = np.divide(1.0, bytes_per_s)
    share = transferred_fraction(n_devices) / transferred_fraction(sizes[-1])
    return _interpolated(doublings, sizes, at_sizes) * np.maximum(share, 1.0)


def _interpolated(doublings: FloatArray, sizes: Sequence[int], values: ArrayLike) -> FloatArray:
    """Linear in log₂ k, from zero at one device; the last value beyond the last size."""
    at = np.concatenate([[0.0], np.log2(sizes)])
    known = np.concatenate([[0.0], np.asarray(values, dtype=float)])
    return np.asarray(np.interp(doublings, at, known))
