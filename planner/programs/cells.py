"""The cells of a torus as the resources of a placement program, one copy of which is free.

A cell's row says that no two slices hold it. Where every slice that holds a cell holds its
neighbour too, the neighbour's row says that already: such rows are left out. Slices are boxes,
and of boxes that meet in pairs all meet in one cell, so what stays is the strongest that rows
of slices in conflict can say.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.equations.arrays import BoolArray, IntArray
from planner.programs.placement import Uses
from planner.topology.openings import Openings

SmallInts = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellRows:
    """Rows that say that slices do not meet.

    Args:
        cell: index of the device of each row in the flattened pool, (R,).
        uses: which columns hold it.
    """

    cell: IntArray
    uses: Uses


def cell_rows(openings: Openings, opening: IntArray) -> CellRows:
    """The rows of columns that lie in openings, (J,); no two columns may share a cell."""
    placed = openings.take(opening)
    _, cells = placed.devices()
    column = np.repeat(np.arange(len(placed), dtype=np.int32), placed.n_devices)
    is_implied = _implied(placed, cells, column)
    used = np.bincount(cells, minlength=int(np.prod(openings.pool))) > 0
    kept = np.flatnonzero(used & ~is_implied)
    number = np.full(len(used), -1, np.int32)
    number[kept] = np.arange(len(kept))
    resource = number[cells]
    stands = resource >= 0
    if not stands.all():
        resource, column = resource[stands], column[stands]
    return CellRows(
        cell=kept, uses=Uses(resource=resource, column=column, amount=np.ones(len(column), np.int8))
    )


def _implied(placed: Openings, cells: SmallInts, column: SmallInts) -> BoolArray:
    """Cells whose row a neighbour's row implies; of equal rows the first one stays."""
    pool = np.array(placed.pool)
    n_cells = int(pool.prod())
    n_slices = np.bincount(cells, minlength=n_cells)
    every = np.stack(np.unravel_index(np.arange(n_cells), placed.pool), axis=1)
    is_implied = np.zeros(n_cells, np.bool_)
    for axis in range(3):
        size = placed.orientation[column, axis]
        at = every[:, axis].astype(np.int16)[cells]
        inside = (at - placed.offset[column, axis]) % np.int16(pool[axis])
        for step in (1, -1):
            has_both = (size == pool[axis]) | (inside + step >= 0) & (inside + step < size)
            n_both = np.bincount(cells[has_both], minlength=n_cells)
            beside = every.copy()
            beside[:, axis] = (beside[:, axis] + step) % pool[axis]
            neighbour = np.ravel_multi_index(tuple(beside.T), placed.pool)
            n_beside = n_slices[neighbour]
            comes_first = (n_beside > n_slices) | (neighbour < np.arange(n_cells))
            is_implied |= (n_both == n_slices) & (neighbour != np.arange(n_cells)) & comes_first
    return is_implied
