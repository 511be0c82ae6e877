"""All layouts that are worth telling apart, for every mesh.

Axes of equal size, closure and bandwidth are interchangeable, so of layouts that differ
only by swapping them one is kept: the one whose axis choices come first. Weights at rest
are shared by the phases, so the representative of `stored` is fixed before `gathered` is
chosen, and each phase may choose its own `gathered` for the same `stored`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.layouts.table import ALL_AXES, OVER_BATCH, OVER_HEADS, LayoutTable, concatenate
from planner.topology.meshes import MeshTable


def all_layouts(meshes: MeshTable, *, microbatches: Sequence[int] = (1,)) -> LayoutTable:
    """Every distinct layout of every mesh; without a pipeline there is one micro-batch."""
    tables = [_layouts_of_mesh(meshes, mesh, microbatches) for mesh in range(len(meshes))]
    return concatenate(tables)


def _layouts_of_mesh(meshes: MeshTable, mesh: int, microbatches: Sequence[int]) -> LayoutTable:
    axes = _axis_classes(meshes, mesh)
    n_parts = microbatches if meshes.n_stages[mesh] > 1 else (1,)
    rows = [
        (mesh, stored, gathered, attention, parts)
        for stored in range(ALL_AXES + 1)
        if _is_representative(axes, stored, 0)
        for gathered in range(ALL_AXES + 1)
        if _is_representative(axes, gathered, stored)
        for attention in _attentions(axes, gathered)
        for parts in n_parts
    ]
    columns = np.array(rows, dtype=np.int64).T
    names = ("mesh", "stored", "gathered", "attention", "n_microbatches")
    return LayoutTable(**dict(zip(names, columns, strict=True)))


def _axis_classes(meshes: MeshTable, mesh: int) -> tuple[tuple[float, ...] | None, ...]:
    """What makes axes interchangeable; `None` for an axis of one device."""
    return tuple(
        (
            float(meshes.axis_size[mesh, axis]),
            float(meshes.axis_wraps[mesh, axis]),
            float(meshes.axis_is_switch[mesh, axis]),
            float(meshes.axis_bytes_per_s[mesh, axis]),
            float(meshes.axis_hop_s[mesh, axis]),
        )
        if meshes.axis_size[mesh, axis] > 1
        else None
        for axis in range(3)
    )


def _is_representative(axes: tuple[tuple[float, ...] | None, ...], chosen: int, given: int) -> bool:
    """Among interchangeable axes (equal class, equally in `given`) the first are chosen."""
    for axis, kind in enumerate(axes):
        if not chosen >> axis & 1:
            continue
        if kind is None:
            return False
        for earlier in range(axis):
            same = axes[earlier] == kind and (given >> earlier & 1) == (given >> axis & 1)
            if same and not chosen >> earlier & 1:
                return False
    return True


def _attentions(axes: tuple[tuple[float, ...] | None, ...], gathered: int) -> tuple[int, ...]:
    """One device has nothing to cut; weights gathered over all axes cut the batch already."""
    if not any(axes):
        return (OVER_HEADS,)
    if all(kind is None or gathered >> axis & 1 for axis, kind in enumerate(axes)):
        return (OVER_BATCH,)
    return (OVER_HEADS, OVER_BATCH)
