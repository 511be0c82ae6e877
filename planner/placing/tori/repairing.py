"""Repair on a torus: slices that stay, slices that are moved a little, and new ones.

A standing replica may go to any opening of its mesh. Its axes keep their directions, and its
ranks may be counted from either end of a line and from anywhere on a ring; so a rank stays on
its device where all three of its coordinates do, and the ranks that stay are a product over
the axes. All other ranks load their shards. Slices turned on another axis count as new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.fabrics.repairing import GIB
from planner.placing.program import Aim
from planner.placing.standing import Sharding, Standing
from planner.placing.tori.slices import (
    LocatedSlice,
    OfferedOnTorus,
    PosedOnTorus,
    SliceConfiguration,
    SlicePattern,
    locate_slices,
    pose_on_torus,
)
from planner.programs.placement import Counts, PlacementProgram, Uses
from planner.topology.openings import Openings
from planner.topology.slices import Shape, torus_device

Order = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Coordinates in the pool along each axis of a mesh, by rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Old:
    """Where a standing replica lies: the pool's axis of each axis of its mesh, and the order."""

    axes: Shape
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairOnTorus:
    """A program, its base, and of each column who stays there (-1 nobody), and in which order."""

    program: PlacementProgram
    moved: FloatArray
    base: PosedOnTorus
    column: IntArray
    standing: IntArray
    order: tuple[_Old | None, ...]

    def located(self, counts: Counts) -> tuple[LocatedSlice, ...]:
        """Devices of every replica, in the order in which most ranks of a standing one stay."""
        chosen = [k for k, n in counts.chosen for _ in range(n)]
        copies = np.zeros(self.base.program.n_columns, np.int64)
        found = []
        for k in chosen:
            copies[:] = 0
            copies[self.column[k]] = 1
            (one,) = locate_slices(self.base, Counts(copies=tuple(copies.tolist())))
            order = self.order[k]
            found.append(one if order is None else _ordered(one, order))
        return tuple(found)


def pose_repair(
    openings: Openings,
    offered: Sequence[OfferedOnTorus],
    shardings: Mapping[SliceConfiguration, tuple[Sharding, float]],
    standing: Sequence[Standing],
    aim: Aim,
) -> RepairOnTorus:
    """State the repair over the openings.

    Args:
        offered: of each model its configurations, and where they run.
        shardings: of each configuration: its sharding, and bytes of a rank's shard.
    """
    base = pose_on_torus(openings, offered, aim)
    listed = base.configurations
    whole = np.array([shardings[one][1] * one.n_devices for one in listed]) * GIB
    columns, who = [np.arange(len(base.which))], [np.full(len(base.which), -1)]
    moved: list[FloatArray] = [whole[base.which]]
    orders: list[_Old | None] = [None] * len(base.which)
    for r, one in enumerate(standing):
        old = _order_of(one)
        for w, configuration in enumerate(listed):
            sharding, shard_bytes = shardings[configuration]
            if old is None or sharding != one.sharding:
                continue
            mine = np.flatnonzero(base.which == w)
            places = base.opening[mine]
            fits, n_kept, found = _staying(base.openings, places, configuration.pattern, old)
            here = np.flatnonzero(fits & (n_kept > 0))
            columns.append(mine[here])
            who.append(np.full(len(here), r))
            left = configuration.n_devices - n_kept[here]
            moved.append(np.asarray(left * (shard_bytes * GIB), dtype=np.float64))
            orders += [_Old(axes=old.axes, order=found[k]) for k in here.tolist()]
    column, standing_of = np.concatenate(columns), np.concatenate(who)
    return RepairOnTorus(
        program=_program(base.program, column, standing_of, standing),
        moved=np.concatenate(moved),
        base=base,
        column=column,
        standing=standing_of,
        order=tuple(orders),
    )


def _program(
    base: PlacementProgram, column: IntArray, who: IntArray, standing: Sequence[Standing]
) -> PlacementProgram:
    """The base with copies of its columns, and a row for each replica that may stay once."""
    order = np.argsort(base.uses.column, kind="stable")
    starts = np.searchsorted(base.uses.column[order], np.arange(base.n_columns + 1))
    sizes = np.diff(starts)[column]
    entry = np.repeat(starts[column] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    stays = np.flatnonzero(who >= 0)
    uses = Uses(
        resource=np.concatenate([base.uses.resource[order][entry], base.n_resources + who[stays]]),
        column=np.concatenate([np.repeat(np.arange(len(column)), sizes), stays]),
        amount=np.concatenate([base.uses.amount[order][entry], np.ones(len(stays), np.int64)]),
    )
    return replace(
        base,
        resources=(*base.resources, *(f"once {one.name}" for one in standing)),
        free=np.concatenate([base.free, np.ones(len(standing), np.int64)]),
        uses=uses,
        column_model=base.column_model[column],
        objective=base.objective[column],
        rate=base.rate[column],
        limits=tuple(replace(one, column=one.column[column]) for one in base.limits),
        ties=tuple(tie[column] for tie in base.ties),
    )


def _order_of(one: Standing) -> _Old | None:
    """The axes of a standing replica; None where it is no box."""
    shape = one.sharding.axes
    at = np.array([list(map(int, name.split(","))) for name in one.devices])
    if len(at) != int(np.prod(shape)):
        return None
    at = at.reshape(*shape, 3)
    lines = [at[:, 0, 0], at[0, :, 0], at[0, 0, :]]
    varying = [np.flatnonzero((line != line[0]).any(axis=0)) for line in lines]
    if any(len(v) > 1 for v in varying):
        return None
    known = [int(v[0]) for v in varying if len(v)]
    spare = [k for k in range(3) if k not in known]
    axes = [int(v[0]) if len(v) else spare.pop(0) for v in varying]
    if len(set(axes)) != 3:
        return None
    x, y, z = (tuple(int(c) for c in line[:, k]) for line, k in zip(lines, axes, strict=True))
    return _Old(axes=(axes[0], axes[1], axes[2]), order=(x, y, z))


def _staying(
    openings: Openings, rows: IntArray, pattern: SlicePattern, old: _Old
) -> tuple[IntArray, IntArray, list[Order]]:
    """Of openings: whether the mesh lies there along the same axes, ranks that stay, the order."""
    placed = openings.take(rows)
    axes = list(old.axes)
    fits = (placed.orientation[:, axes] == np.array(pattern.dimensions)).all(axis=1)
    is_ring = np.array(pattern.dimensions) > 2
    fits &= (~is_ring | (placed.closes[:, axes] == np.array(pattern.closes))).all(axis=1)
    n_kept = np.ones(len(rows), np.int64)
    chosen: list[IntArray] = []
    for axis, along in enumerate(axes):
        dim, pool = pattern.dimensions[axis], placed.pool[along]
        inside = (np.arange(dim) + placed.first[:, [along]]) % dim
        at = (inside + placed.offset[:, [along]]) % pool
        before = np.array(old.order[axis])
        best, order = np.full(len(rows), -1), at
        for turned in _turns(dim, is_ring=pattern.closes[axis]):
            there = at[:, turned]
            n_same = (there == before).sum(axis=1)
            order = np.where((n_same > best)[:, None], there, order)
            best = np.maximum(best, n_same)
        n_kept *= best
        chosen.append(order)
    orders = [
        (tuple(x), tuple(y), tuple(z))
        for x, y, z in zip(*(o.tolist() for o in chosen), strict=True)
    ]
    return fits, n_kept, orders


def _turns(dim: int, *, is_ring: bool) -> list[IntArray]:
    """The ways to count along an axis: from either end, on a ring from anywhere."""
    forward = np.arange(dim)
    starts = range(dim) if is_ring else range(1)
    return [np.roll(way, -start) for start in starts for way in (forward, forward[::-1])]


def _ordered(one: LocatedSlice, old: _Old) -> LocatedSlice:
    """A slice with its ranks in the order in which most of them stay."""
    devices = []
    for place in product(*old.order):
        at = [0, 0, 0]
        for axis, coordinate in zip(old.axes, place, strict=True):
            at[axis] = coordinate
        devices.append(torus_device(*at))
    return replace(one, axes=old.axes, devices=tuple(devices))
