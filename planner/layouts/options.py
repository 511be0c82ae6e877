"""All layouts that are worth telling apart, for every mesh.

Axes of equal size, closure and bandwidth are interchangeable, so of layouts that differ
only by swapping them one is kept: the one whose axis choices come first. Weights at rest
are shared by the phases, so the representative of `stored` is fixed before `gathered` is
chosen, and each phase may choose its own `gathered` for the same `stored`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.layouts.table import ALL_AXES, OVER_BATCH, OVER_HEADS, LayoutTable
from planner.topology.meshes import MeshTable

PARTS_PER_STAGE = 4
_Axes = tuple[tuple[float, ...] | None, ...]


def all_layouts(
    meshes: MeshTable, *, microbatches: Sequence[int] = (1,), has_experts: bool = False
) -> LayoutTable:
    """Every distinct layout of every mesh; without a pipeline there is one micro-batch.

    Args:
        meshes: the meshes.
        microbatches: parts that a pass through a pipeline may be cut into; none beyond four
            a stage, where filling and draining take little.
        has_experts: whether the model has experts. Then weights stay where they are and are
            cut in one dimension, and attention may be data-parallel beside the experts.
    """
    of_mesh = _expert_rows if has_experts else _dense_rows
    rows = [
        (mesh, *row, parts)
        for mesh in range(len(meshes))
        for row in of_mesh(_axis_classes(meshes, mesh))
        for parts in microbatches
        if parts <= _most_parts(int(meshes.n_stages[mesh]))
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    names = ("mesh", "stored", "gathered", "data", "attention", "n_microbatches")
    return LayoutTable(**dict(zip(names, columns, strict=True)))


def _most_parts(n_stages: int) -> int:
    return 1 if n_stages == 1 else PARTS_PER_STAGE * n_stages


def _dense_rows(axes: _Axes) -> Iterator[tuple[int, int, int, int]]:
    """(stored, gathered, data, attention) of a model without experts."""
    for stored in range(ALL_AXES + 1):
        if not _is_representative(axes, stored, 0):
            continue
        for gathered in range(ALL_AXES + 1):
            if _is_representative(axes, gathered, stored):
                for attention in _attentions(axes, gathered):
                    yield stored, gathered, 0, attention


def _expert_rows(axes: _Axes) -> Iterator[tuple[int, int, int, int]]:
    """(stored, gathered, data, attention) of a model with experts."""
    for data in range(ALL_AXES + 1):
        if _is_representative(axes, data, 0):
            for attention in _attentions(axes, data):
                yield 0, 0, data, attention


def _axis_classes(meshes: MeshTable, mesh: int) -> _Axes:
    """What makes axes interchangeable; `None` for an axis of one device."""
    return tuple(
        (
            float(meshes.axis_size[mesh, axis]),
            float(meshes.axis_wraps[mesh, axis]),
            float(meshes.axis_is_switch[mesh, axis]),
            float(meshes.axis_is_switch[mesh, axis] and axis == 0),  # the tier inside a node
            float(meshes.axis_bytes_per_s[mesh, axis]),
            float(meshes.axis_hop_s[mesh, axis]),
        )
        if meshes.axis_size[mesh, axis] > 1
        else None
        for axis in range(3)
    )


def _is_representative(axes: _Axes, chosen: int, given: int) -> bool:
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


def _attentions(axes: _Axes, gathered: int) -> tuple[int, ...]:
    """One device has nothing to cut; weights gathered over all axes cut the batch already."""
    if not any(axes):
        return (OVER_HEADS,)
    if all(kind is None or gathered >> axis & 1 for axis, kind in enumerate(axes)):
        return (OVER_BATCH,)
    return (OVER_HEADS, OVER_BATCH)
