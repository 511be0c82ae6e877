"""Every place among the free devices of a torus where a slice can lie, as arrays.

An *opening* is an oriented shape at an offset, all of whose devices are free and whose links
join them. Offsets are every one that there is; `aligned` keeps those of
`planner.topology.graph.axis_offsets` only.

Which axes of an opening close into rings:

* where the slice fills the whole axis of a closed pool, by the pool's own links;
* where it is made of whole cubes, by the optical switches that join the faces of cubes, as
  `planner.topology.graph.axis_wraps` says for its shape. At any other offset its faces lie
  inside cubes, so it is open there: lines instead of rings.

A failed link opens the rings of its axis: all of them become lines that begin behind it, so
that devices side by side stay so. Links that failed at two places along an axis, or one in a
line, part the devices, and there is no opening. A ring through the switches leaves by the links
of both its ends, so it needs both. An axis runs as fast as its slowest link, a slice as its
slowest device.

All offsets of an orientation are tested at once: devices in use by sums over boxes (a summed
volume table of the pool laid beside itself), links and speeds by sliding windows.

Source: [Jouppi2023] §2 for cubes and switches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.specs.records.devices import TorusFabric
from planner.topology.meshes import BoolArray, FloatArray, IntArray, MeshTable
from planner.topology.slices import Shape, axis_offsets, orientations, slice_shapes, slice_wraps

SmallArray = NDArray[np.int16]
"""Coordinates: there are half a million openings in 4096 devices, and six numbers of each."""

MOST_ADDRESSES = 50_000_000
"""Devices of all openings together that are listed at most: 200 MB."""

AT_ONCE = 1_000_000
"""Of these, those that are worked out together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorusState:
    """What of a torus of X × Y × Z devices can be used.

    Args:
        is_free: whether a device is, bool[X, Y, Z].
        link_fraction: share of its bandwidth that the link from a device to the next along
            each axis has left, float[3, X, Y, Z]; 0 is a failed link.
        speed_fraction: share of its speed that a device has left, float[X, Y, Z].
    """

    is_free: BoolArray
    link_fraction: FloatArray
    speed_fraction: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Openings:
    """C places for slices, by devices, then orientation, then offset.

    Args:
        pool: devices along each axis of the pool.
        orientation: devices along each axis, int16[C, 3].
        offset: the corner where the slice starts, int16[C, 3].
        closes: whether the axis of the pool closes into rings, bool[C, 3].
        first: where the lines along the axis begin, counted from the offset, int16[C, 3]; 0 but
            where a failed link opened rings.
        link_fraction: share of a link's bandwidth that the axis attains, float[C, 3].
        speed_fraction: share of a device's speed that the slice attains, float[C].
    """

    pool: Shape
    orientation: SmallArray
    offset: SmallArray
    closes: BoolArray
    first: SmallArray
    link_fraction: FloatArray
    speed_fraction: FloatArray

    def __len__(self) -> int:
        return len(self.orientation)

    @property
    def n_devices(self) -> IntArray:
        """Devices of each slice, int[C]."""
        x, y, z = self.orientation.T
        sizes: IntArray = x.astype(np.int64) * y * z
        return sizes

    def take(self, rows: IntArray) -> Openings:
        """The given openings, in their order."""
        columns = {name: getattr(self, name)[rows] for name in self.column_names()}
        return replace(self, **columns)

    def column_names(self) -> list[str]:
        """Fields that have an entry for each opening."""
        return [field.name for field in fields(self) if field.name != "pool"]

    def axis_order(self) -> IntArray:
        """Axis of the pool that each axis of the mesh lies on, int[C, 3].

        Meshes write shapes in ascending order; of equal dimensions, the slower one first, so
        that places that differ by a turn only are one mesh.
        """
        keys = (self.link_fraction, self.closes, self.orientation)  # the last decides first
        order: IntArray = np.lexsort(keys, axis=-1)
        return order

    def devices(self) -> tuple[IntArray, NDArray[np.int32]]:
        """Devices of all openings, one list after the other: starts int[C + 1], index int32[N].

        A device's index is that of the flattened pool; within an opening the last axis of
        the pool is the fastest.

        Raises:
            MemoryError: they are more than `MOST_ADDRESSES`.
        """
        starts = np.concatenate([[0], np.cumsum(self.n_devices)])
        if starts[-1] > MOST_ADDRESSES:
            raise MemoryError(f"{starts[-1]} devices of {len(self)} openings")
        numbers = np.empty(starts[-1], np.int32)
        kinds, kind = np.unique(self.orientation, axis=0, return_inverse=True)
        for i, orientation in enumerate(kinds):
            inside = _grid([np.arange(d) for d in orientation])
            rows = np.flatnonzero(kind.reshape(-1) == i)
            # three coordinates of all addresses at once would be six times what is kept of them
            for some in np.array_split(rows, 1 + len(rows) * len(inside) // AT_ONCE):
                at = (self.offset[some, None, :] + inside) % np.array(self.pool)
                listed = (at[..., 0] * self.pool[1] + at[..., 1]) * self.pool[2] + at[..., 2]
                numbers[starts[some, None] + np.arange(len(inside))] = listed
        return starts, numbers


def all_free(fabric: TorusFabric) -> TorusState:
    """Nothing is in use, and nothing has failed."""
    return TorusState(
        is_free=np.ones(fabric.shape, np.bool_),
        link_fraction=np.ones((3, *fabric.shape)),
        speed_fraction=np.ones(fabric.shape),
    )


def openings(
    fabric: TorusFabric,
    state: TorusState,
    *,
    shapes: Iterable[Shape] | None = None,
    aligned: bool = False,
) -> Openings:
    """Every place where one of the shapes can lie among what is free.

    Args:
        shapes: in ascending order each; all that the fabric has.
        aligned: keep offsets to multiples of each dimension and the cube's common divisor.
    """
    wanted = slice_shapes(fabric) if shapes is None else tuple(shapes)
    volume = _summed_volume(~state.is_free)
    by_orientation = [
        _of_orientation(fabric, state, volume, way, aligned)
        for shape in wanted
        for way in orientations(fabric, shape)
    ]
    # without any there is still a table, of columns without entries
    parts = by_orientation or [
        _of_orientation(fabric, state, volume, fabric.shape, aligned).take(_NONE)
    ]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in parts[0].column_names()
    }
    table = Openings(pool=fabric.shape, **columns)
    order = (*table.offset.T[::-1], *table.orientation.T[::-1], table.n_devices)
    return table.take(np.lexsort(order))


_NONE: IntArray = np.zeros(0, np.int64)


def _of_orientation(
    fabric: TorusFabric, state: TorusState, volume: IntArray, way: Shape, aligned: bool
) -> Openings:
    """Openings of one orientation, all offsets at once."""
    offset = _grid([_starts(fabric, axis, way[axis], aligned) for axis in range(3)])
    offset = offset[_box_sums(volume, offset, way) == 0]
    closes = _closes(fabric, way, offset)
    fraction, first = np.ones((len(offset), 3)), np.zeros_like(offset)
    is_joined = np.ones(len(offset), np.bool_)
    for axis in range(3):
        # links that are all well, as most are, need no windows
        if way[axis] > 1 and (state.link_fraction[axis] < 1.0).any():
            links = _links(state.link_fraction[axis], axis, way, (offset, closes[:, axis]))
            are_joined, are_whole, first[:, axis], fraction[:, axis] = links
            is_joined &= are_joined
            closes[:, axis] &= are_whole
    return Openings(
        pool=fabric.shape,
        orientation=np.broadcast_to(np.array(way, np.int16), offset.shape),
        offset=offset.astype(np.int16),
        closes=closes,
        first=first.astype(np.int16),
        link_fraction=fraction,
        speed_fraction=_least_speed(state.speed_fraction, way, offset),
    ).take(np.flatnonzero(is_joined))


def _starts(fabric: TorusFabric, axis: int, dim: int, aligned: bool) -> IntArray:
    """Where a slice may start along an axis; over the pool's edge only where it is closed."""
    pool_dim = fabric.shape[axis]
    if aligned or dim >= pool_dim:
        return np.array(axis_offsets(fabric, axis, dim), np.int64)
    is_closed = slice_wraps(fabric, fabric.shape)[axis]
    return np.arange(pool_dim if is_closed else pool_dim - dim + 1, dtype=np.int64)


def _closes(fabric: TorusFabric, way: Shape, offset: IntArray) -> BoolArray:
    """Whether each axis closes, had no link failed, bool[n, 3]."""
    # switches join faces of cubes: without one for each axis all three have to end at faces
    whole = offset % fabric.wrap_multiple == 0
    if not fabric.wraps_each_axis:
        whole = np.broadcast_to(whole.all(axis=1, keepdims=True), whole.shape)
    by_switch = np.array(slice_wraps(fabric, way)) & whole
    pool_closes = np.array(slice_wraps(fabric, fabric.shape))
    # around the whole pool its own links lead, wherever the slice begins
    by_pool = (np.array(way) == np.array(fabric.shape)) & pool_closes
    return np.asarray(by_switch | by_pool)


def _links(
    fraction: FloatArray, axis: int, way: Shape, placed: tuple[IntArray, BoolArray]
) -> tuple[BoolArray, BoolArray, IntArray, FloatArray]:
    """What links leave of one axis of n openings, of rings and lines, all side by side together.

    Whether they join it, whether all are whole, where its lines begin, and how fast it is.
    """
    dim, (offset, closes) = way[axis], placed
    failed, speed = (fraction == 0.0).astype(float), np.where(fraction == 0.0, 1.0, fraction)
    # devices side by side keep step: a link that one line lacks, all of them lack
    for other in range(3):
        if other != axis:
            failed = _windowed(failed, other, way[other], np.maximum)
            speed = _windowed(speed, other, way[other], np.minimum)

    def at(values: FloatArray, shift: int) -> FloatArray:
        return np.asarray(np.roll(values, -shift, axis)[tuple(offset.T)])

    # the links beyond both ends, which around the whole pool are the same one
    n_inside, n_around = np.zeros(len(offset)), np.maximum(at(failed, dim - 1), at(failed, -1))
    inside, around = np.ones(len(offset)), np.minimum(at(speed, dim - 1), at(speed, -1))
    first = np.zeros(len(offset), np.int64)
    for place in range(dim - 1):
        is_cut = at(failed, place) > 0
        first[is_cut] = place + 1
        n_inside += is_cut
        inside = np.minimum(inside, at(speed, place))
    are_joined = np.where(closes, n_inside + n_around <= 1, n_inside == 0)
    # where a ring is cut its lines may still leave by the link around it
    speeds = np.where(closes, np.minimum(inside, around), inside)
    return are_joined, n_inside + n_around == 0, np.where(closes, first, 0), speeds


def _least_speed(speed: FloatArray, way: Shape, offset: IntArray) -> FloatArray:
    if (speed == 1.0).all():
        return np.ones(len(offset))
    for axis in range(3):
        speed = _windowed(speed, axis, way[axis], np.minimum)
    return np.asarray(speed[tuple(offset.T)])


def _windowed(values: FloatArray, axis: int, n: int, worst: np.ufunc) -> FloatArray:
    """Sum, least or most of `n` values onwards along an axis of the torus, at every start."""
    reduced = values
    for shift in range(1, n):
        reduced = np.asarray(worst(reduced, np.roll(values, -shift, axis)))
    return reduced


def _summed_volume(blocked: BoolArray) -> IntArray:
    """Devices in use in the box from the origin up to each corner, the pool laid out twice."""
    # so that a box over the edge of the pool is a box
    doubled = np.tile(blocked, (2, 2, 2)).astype(np.int64)
    volume = np.zeros([d + 1 for d in doubled.shape], np.int64)
    volume[1:, 1:, 1:] = doubled.cumsum(0).cumsum(1).cumsum(2)
    return volume


def _box_sums(volume: IntArray, offset: IntArray, way: Shape) -> IntArray:
    """Devices in use in the box of a size from each offset, int[n]."""
    total = np.zeros(len(offset), np.int64)
    for corner in np.ndindex(2, 2, 2):
        sign = 1 if sum(corner) % 2 else -1  # all three far sides add
        at = offset + np.array(corner) * np.array(way)
        total += sign * volume[tuple(at.T)]
    return total


def _grid(values: list[IntArray]) -> IntArray:
    axes = np.meshgrid(*values, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, len(values)).astype(np.int64)


MOST_RANKS = 1 << 31
"""Ranks whose product with those of the next key is surely a number of 64 bits."""


def opening_meshes(fabric: TorusFabric, openings: Openings) -> tuple[MeshTable, IntArray]:
    """The distinct meshes of openings, by devices, then dimensions; and which each is, int[C]."""
    order = openings.axis_order()
    size = np.take_along_axis(openings.orientation, order, axis=1)
    closes = np.take_along_axis(openings.closes, order, axis=1)
    fraction = np.take_along_axis(openings.link_fraction, order, axis=1)
    keys = [openings.n_devices, *size.T, *(~closes).T, *-fraction.T]
    first, mesh = distinct(keys)
    sizes = size[first].astype(np.int64)
    wraps, shares = closes[first], fraction[first]
    links = fabric.link_bytes_per_s * shares
    table = MeshTable(
        label=tuple(map(_label, sizes.tolist(), wraps.tolist(), shares.tolist())),
        axis_size=sizes,
        axis_wraps=wraps,
        axis_is_switch=np.zeros(sizes.shape, np.bool_),
        axis_bytes_per_s=links,
        axis_hop_s=np.full(sizes.shape, fabric.hop_s),
        n_stages=np.ones(len(first), np.int64),
        stage_bytes_per_s=links.min(axis=1, initial=np.inf),
        stage_hop_s=np.full(len(first), fabric.hop_s),
        n_devices=sizes.prod(axis=1),
        n_positions=np.bincount(mesh, minlength=len(first)),
    )
    return table, mesh


def distinct(keys: Sequence[NDArray[Any]]) -> tuple[IntArray, IntArray]:
    """The first of each different row of keys, in ascending order, and which of them each row is.

    One key after the other, by rank: to sort whole rows takes ten times as long.

    Args:
        keys: the columns of the rows, (C,) each; the first decides first.
    """
    rank, n_ranks = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        known, code = np.unique(key, return_inverse=True)
        rank, n_ranks = rank * len(known) + code, n_ranks * len(known)
        # counted anew without gaps, so that the next product stays a number of 64 bits
        if n_ranks >= MOST_RANKS:
            rank = np.unique(rank, return_inverse=True)[1]
            n_ranks = int(rank.max(initial=0)) + 1
    _, first, same = np.unique(rank, return_index=True, return_inverse=True)
    return first, same


def _label(size: list[int], wraps: list[bool], shares: list[float]) -> str:
    """`4×4×8`; `4×4×8 open`, with lines for rings; `4×8×16 closed along 16`; slow links too.

    >>> _label([4, 4, 8], [True] * 3, [1.0] * 3), _label([2, 4, 4], [False] * 3, [1.0] * 3)
    ('4×4×8', '2×4×4 open')
    >>> _label([4, 8, 16], [False, False, True], [1.0, 0.5, 1.0])
    '4×8×16 closed along 16, links along 8 at 50 %'
    """
    label = "×".join(map(str, size))
    rings = [(d, closed) for d, closed in zip(size, wraps, strict=True) if d > 2]
    closed_dims = [str(d) for d, closed in rings if closed]
    if rings and not closed_dims:
        label += " open"
    elif len(closed_dims) < len(rings):
        label += f" closed along {', '.join(closed_dims)}"
    slow = [
        f"{d} at {100 * share:.3g} %" for d, share in zip(size, shares, strict=True) if share < 1.0
    ]
    return label + (f", links along {', '.join(slow)}" if slow else "")
