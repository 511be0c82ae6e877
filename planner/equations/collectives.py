"""Time of collectives, and the bandwidth that a group of mesh axes gives them.

A group is a set of mesh axes; its k devices are the product of the axes. Volumes are
bytes per device. Each message costs its transfer and one latency a hop:

    all-gather, V bytes a device after it      V (k−1)/k / W + h
    reduce-scatter, V bytes a device before it V (k−1)/k / W + h
    all-reduce, V bytes a device               both
    all-to-all, D bytes a device               D × (seconds per byte of the group) + h

Four conventions say what W is when a group spans several axes, because measurements
cannot tell them apart everywhere ([Pope2022] counts `flat`; its own timings fit `ring`):

    flat   the device's whole bandwidth, whatever the group; of a torus only
    axis   the axes of the group added up: all links carry at once
    ring   the fastest single axis: one ring at a time
    tree   the slowest tier of switches, each with the ports of all devices inside it

Two more are not linear in bytes, and are of nodes: `two-regime`, measured, in
`two_regimes.py`; NCCL's protocols in `nccl.py`.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import BoolArray, FloatArray
from planner.equations.kernels.families import Family, Parameter


def transferred_fraction(n_devices: ArrayLike) -> FloatArray:
    """(k − 1)/k: the share of a collective's volume that crosses a device's links [1].

    Source: [Pope2022] appendix A.1.
    """
    k = np.asarray(n_devices, dtype=float)
    return np.asarray(1.0 - 1.0 / k)


def all_gather_s(
    gathered_bytes: ArrayLike, n_devices: ArrayLike, *, bytes_per_s: ArrayLike
) -> FloatArray:
    """Time of the transfers of an all-gather [s].

    Args, broadcast together:
        gathered_bytes: V, held by each device afterwards [bytes].
        n_devices: k, devices of the group [1].
        bytes_per_s: W, bandwidth of the group by one of the conventions [bytes/s].

    Source: [Pope2022] appendix A.1.
    """
    received = np.multiply(gathered_bytes, transferred_fraction(n_devices))
    return np.divide(received, bytes_per_s)


def point_to_point_s(n_bytes: ArrayLike, *, bytes_per_s: ArrayLike, hop_s: ArrayLike) -> FloatArray:
    """Time to hand bytes to one neighbour [s]. Source: the α–β model, [Hockney1994]."""
    return np.add(np.divide(n_bytes, bytes_per_s), hop_s)


def axis_ring_bytes_per_s(
    link_bytes_per_s: ArrayLike, wraps: ArrayLike, is_switch: ArrayLike
) -> FloatArray:
    """Bandwidth of a ring along one axis, per device and one way [bytes/s].

    A closed torus axis sends both ways around, over two links; an open one has a single
    link to carry the shards that travel towards its end. Behind a switch the figure is
    the device's own port.

    Source: [Austin2025] part 3; open slices: [Pope2022] Table 3 through our fit.
    """
    two_ways = np.logical_and(wraps, np.logical_not(is_switch))
    return np.multiply(link_bytes_per_s, np.where(two_ways, 2.0, 1.0))


def flat_bytes_per_s(axis_bytes_per_s: FloatArray, member: BoolArray) -> FloatArray:
    """All axes of the mesh, whether in the group or not, over the last dimension [bytes/s].

    Source: [Pope2022] §3: "network bandwidth" is 270 GB/s for any collective.
    """
    total = axis_bytes_per_s.sum(axis=-1)
    return np.where(member.any(axis=-1), total, np.inf)


def axis_bytes_per_s(axis_bytes_per_s: FloatArray, member: BoolArray) -> FloatArray:
    """The axes of the group added up, over the last dimension [bytes/s].

    Source: [Austin2025] part 3, multi-axis all-gather.
    """
    total = np.where(member, axis_bytes_per_s, 0.0).sum(axis=-1)
    return np.where(member.any(axis=-1), total, np.inf)


def ring_bytes_per_s(axis_bytes_per_s: FloatArray, member: BoolArray) -> FloatArray:
    """The fastest axis of the group, over the last dimension [bytes/s].

    Source: fitted to [Pope2022] Tables 2 and 3, `docs/decisions/0003-time-model.md`.
    """
    best = np.where(member, axis_bytes_per_s, -np.inf).max(axis=-1)
    return np.where(member.any(axis=-1), best, np.inf)


def tree_of_switches_bytes_per_s(axis_bytes_per_s: FloatArray, member: BoolArray) -> FloatArray:
    """Switched tiers, innermost first: each ring edge between nodes has all ports of a node.

    A ring through t devices of a node leaves the node once for each of its t parallel
    channels, so the outer tier carries t times the port of one device; the slowest tier
    of the group sets the pace [bytes/s]. The caller passes `axis_bytes_per_s` already
    multiplied by the devices inside the tier.

    Source: [Pope2022] §4.5 through [FasterTransformer]: 8 × 200 Gb/s a node.
    """
    slowest = np.where(member, axis_bytes_per_s, np.inf).min(axis=-1)
    return np.asarray(slowest, dtype=float)


GROUP_BANDWIDTH: Mapping[str, Callable[[FloatArray, BoolArray], FloatArray]] = {
    "flat": flat_bytes_per_s,
    "axis": axis_bytes_per_s,
    "ring": ring_bytes_per_s,
    "tree": tree_of_switches_bytes_per_s,
}
"""Linear conventions by the name that a topology file gives; one line each."""


def axis_hops(n_devices: ArrayLike, wraps: ArrayLike, is_switch: ArrayLike) -> FloatArray:
    """Hops of the farthest shard along one axis [1].

    k/2 rounded down around a ring, k − 1 along a line, one through a switch.

    Source: [Austin2025] part 3.
    """
    k = np.asarray(n_devices, dtype=float)
    torus = np.where(wraps, np.floor(k / 2), k - 1)
    return np.where(is_switch, np.minimum(k - 1, 1.0), torus)


def axis_all_to_all_s_per_byte(
    n_devices: ArrayLike, wraps: ArrayLike, is_switch: ArrayLike, *, link_bytes_per_s: ArrayLike
) -> FloatArray:
    """Seconds that one byte held per device costs in an all-to-all along one axis [s/bytes].

    Counting the load of the busiest link: k/8 around a ring, k/4 along a line (its
    middle link carries a quarter of everything), (k−1)/k through a switch.

    Source: link-load count, verified against enumeration in the tests.
    """
    k = np.asarray(n_devices, dtype=float)
    load = np.where(wraps, _ring_all_to_all_load(k), _line_all_to_all_load(k))
    load = np.where(is_switch, transferred_fraction(k), load)  # each is 0 of one device
    return np.divide(load, link_bytes_per_s)


def _ring_all_to_all_load(k: FloatArray) -> FloatArray:
    """Load of a link of a ring, in shares of what one device holds: Σ distances / k².

    Each ordered pair sends 1/k by its shortest way, halved between both ways when it is
    opposite; k even gives k/8, k odd (k² − 1)/8k.
    """
    return np.where(np.mod(k, 2) == 0, k / 8.0, (k * k - 1.0) / (8.0 * k))


def _line_all_to_all_load(k: FloatArray) -> FloatArray:
    """Load of the middle link of a line: ⌊k/2⌋⌈k/2⌉ pairs a direction, 1/k each."""
    return np.floor(k / 2) * np.ceil(k / 2) / k


def collective_s(
    n_bytes: ArrayLike,
    n_devices: ArrayLike = 1.0,
    *,
    short_latency_s: ArrayLike,
    short_bytes_per_s: ArrayLike,
    long_latency_s: ArrayLike,
    long_bytes_per_s: ArrayLike,
) -> FloatArray:
    """Time of one collective in groups of one size: min(α₁ + n/B₁, α₂ + n/B₂) [s].

    Args, broadcast together:
        n_bytes: the whole buffer of one device: reduced, gathered, before it is scattered, or
            exchanged [B].
        n_devices: of the group, to which the constants belong [1].
        short_latency_s, long_latency_s: of an empty message in each form [s].
        short_bytes_per_s, long_bytes_per_s: of the buffer, not of a link [B/s].

    Source: `docs/decisions/0007-collectives.md`, for whose groups constants are fitted.
    """
    volume = np.asarray(n_bytes, dtype=float)
    short = np.divide(volume, short_bytes_per_s) + np.asarray(short_latency_s)
    long = np.divide(volume, long_bytes_per_s) + np.asarray(long_latency_s)
    return np.asarray(np.minimum(short, long) + 0.0 * np.asarray(n_devices, dtype=float))


def collective_work(
    n_bytes: ArrayLike, n_devices: ArrayLike = 1.0
) -> tuple[FloatArray, FloatArray]:
    """No FLOP, and the buffer, which each device reads or writes once at least.

    Source: as of `collective_s`.
    """
    shape = np.broadcast_shapes(np.shape(n_bytes), np.shape(n_devices))
    return np.zeros(shape), np.broadcast_to(np.asarray(n_bytes, dtype=float), shape)


PARAMETERS = (
    Parameter(name="short_latency_s", start=1e-5, low=1e-7, high=1e-2),
    Parameter(name="short_bytes_per_s", start=5e10, low=1e7, high=1e13),
    Parameter(name="long_latency_s", start=3e-5, low=1e-7, high=1e-2),
    Parameter(name="long_bytes_per_s", start=2e11, low=1e7, high=1e13),
)

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

COLLECTIVES: Mapping[str, Family] = {
    kind: Family(
        name=kind,
        title=kind.replace("_", "-"),
        function=collective_s,
        work=collective_work,
        dimensions=("n_devices", "n_bytes"),
        parameters=PARAMETERS,
        forms={"two regimes": tuple(one.name for one in PARAMETERS)},
        shape=("n_bytes",),
        rates=(),
    )
    for kind in KINDS
}
"""By the name that tables give them."""
