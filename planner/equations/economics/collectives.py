"""Time of collectives over real-valued ranks and nodes: Eqs. 23, 26-28 and 39-44.

A message takes m phases, two for an all-reduce and one otherwise. With n ranks on k nodes,

    latency of a protocol    m ((n/k − 1) hop within a node + log₂k hop between nodes) + base
    seconds a byte           (n − k)/n within nodes and (k − 1)/n between them, each over
                             its all-reduce bandwidth; half of it where m = 1

and the cheapest protocol is taken. Below two ranks the time falls to zero, continuously,
because Simple has no base: an artefact of real-valued ranks that is kept.

Source: [Erdil2025] §3.3-3.4.
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.specs.records.economics import (
    EconomicsDevice,
    Protocol,
    RingCollectives,
    TreeCollectives,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """Phases of a collective, and its transfers in shares of an all-reduce's."""

    name: str
    n_phases: int
    transfer_share: float


ALL_REDUCE = Collective(name="all-reduce", n_phases=2, transfer_share=1.0)
ALL_TO_ALL = Collective(name="all-to-all", n_phases=1, transfer_share=0.5)
POINT_TO_POINT = Collective(name="point-to-point", n_phases=1, transfer_share=0.5)


def collective_s(
    collective: Collective,
    n_bytes: ArrayLike,
    group: tuple[ArrayLike, ArrayLike],
    device: EconomicsDevice,
) -> FloatArray:
    """Time of a collective; zero up to one rank [s].

    Args, broadcast together:
        n_bytes: what one group exchanges [bytes].
        group: its ranks n > 0 and the nodes k ≥ 1 they are on, real-valued [1].

    Source: [Erdil2025] Eqs. 23 and 39; the minimum over protocols is the published
    program's, and so is the ring.
    """
    n, k = (np.asarray(count, dtype=float) for count in group)
    if isinstance(device.collectives, RingCollectives):
        transfer = ring_transfer_s(collective, n_bytes, n, device)
        time = collective.n_phases * (n - 1.0) * device.collectives.hop_s + transfer
    else:
        transfer = tree_transfer_s(collective, n_bytes, (n, k), device)
        hops = tree_hops(collective, n, k)
        times = (
            protocol_latency_s(protocol, hops) + transfer / protocol.bandwidth_fraction
            for protocol in device.collectives.protocols
        )
        time = reduce(np.minimum, times)
    return np.where(n <= 1.0, 0.0, time)


def tree_hops(
    collective: Collective, n_ranks: FloatArray, n_nodes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """m (n/k − 1) hops within nodes and m log₂k between them [1].

    Source: [Erdil2025] Eq. 23.
    """
    return collective.n_phases * (n_ranks / n_nodes - 1.0), collective.n_phases * np.log2(n_nodes)


def protocol_latency_s(protocol: Protocol, hops: tuple[FloatArray, FloatArray]) -> FloatArray:
    """An empty message by one protocol, given its hops within and between nodes [s].

    Source: [Erdil2025] Eq. 23, which prints LL's all-reduce.
    """
    within, between = hops
    between_s = between * protocol.scale_out_hop_s + protocol.base_s
    return within * protocol.scale_up_hop_s + between_s


def tree_transfer_s(
    collective: Collective,
    n_bytes: ArrayLike,
    group: tuple[ArrayLike, ArrayLike],
    device: EconomicsDevice,
) -> FloatArray:
    """Transfers of one group at the full bandwidth of the links [s].

    Source: [Erdil2025] Eqs. 26-28, divided by the number of groups; Eq. 28 adds the two
    tiers, the published program lets them overlap.
    """
    n, k = group
    within = np.maximum(np.subtract(n, k), 0.0) / device.scale_up_all_reduce_bytes_per_s
    between = np.subtract(k, 1.0) / device.scale_out_all_reduce_bytes_per_s
    tree = device.collectives
    overlap = isinstance(tree, TreeCollectives) and tree.tiers_overlap
    s_per_byte = np.maximum(within, between) if overlap else within + between
    share = np.divide(collective.transfer_share, n)
    return np.asarray(np.multiply(n_bytes, s_per_byte * share))


def ring_transfer_s(
    collective: Collective, n_bytes: ArrayLike, n_ranks: ArrayLike, device: EconomicsDevice
) -> FloatArray:
    """(n − 1)/n of the bytes around one ring over all ranks [s].

    Source: [Erdil2025], published program, for TPUs.
    """
    share = collective.transfer_share * (1.0 - np.divide(1.0, n_ranks))
    return np.asarray(np.multiply(n_bytes, share / device.scale_out_all_reduce_bytes_per_s))
