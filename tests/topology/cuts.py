"""Slices at their places, listed by what `planner.topology.graph` says of one axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.specs.records.devices import TorusFabric
from planner.topology.slices import Shape, axis_offsets, orientations

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One sub-slice at one place: an oriented shape and the corner where it starts."""

    orientation: Shape
    offset: Shape


def offsets(fabric: TorusFabric, orientation: Shape) -> IntArray:
    """Every offset of one orientation, int[n_positions, 3], in ascending order."""
    starts = [np.array(axis_offsets(fabric, a, d), np.int64) for a, d in enumerate(orientation)]
    return _grid(starts)


def positions(fabric: TorusFabric, shape: Shape) -> Iterator[tuple[Shape, IntArray]]:
    """Each orientation of a shape with its offsets, made only when asked for."""
    for orientation in orientations(fabric, shape):
        yield orientation, offsets(fabric, orientation)


def slice_coordinates(fabric: TorusFabric, cut: Slice) -> IntArray:
    """Coordinates of the devices of a slice in the pool, int[n_devices, 3].

    Ordered by coordinate within the slice, the last axis fastest.

    Raises:
        ValueError: the slice lies outside the pool, or not on its alignment.
    """
    placed = enumerate(zip(cut.orientation, cut.offset, strict=True))
    if not all(start in axis_offsets(fabric, axis, dim) for axis, (dim, start) in placed):
        raise ValueError(f"slice {cut.orientation} at {cut.offset} does not lie in {fabric.shape}")
    inside = _grid([np.arange(d, dtype=np.int64) for d in cut.orientation])
    coordinates: IntArray = (inside + np.array(cut.offset)) % np.array(fabric.shape)
    return coordinates


def _grid(values: list[IntArray]) -> IntArray:
    axes = np.meshgrid(*values, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, len(values))
