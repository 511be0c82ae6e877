"""A table of layouts: how weights rest, what is gathered, how attention is split.

Three torus or switch axes x, y, z make a mesh; a set of axes is a bit mask (x = 1,
y = 2, z = 4). Every layout of the table is five small integers:

    mesh        which mesh of the `MeshTable`
    stored      axes over which the model dimension E of each weight is cut; the other
                axes cut the FFN dimension F and the heads: the paper's E_x F_yz
    gathered    axes over which weights are gathered before use, and the batch is cut:
                none is weight-stationary, some or all is weight-gathered (WG)
    attention   attention split over heads, or over the batch
    n_microbatches   parts that a pass is cut into for the pipeline
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import IntArray

ALL_AXES = 7
OVER_HEADS = 0
OVER_BATCH = 1
ATTENTION_NAMES = ("heads", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Layouts as parallel arrays of shape (N,)."""

    mesh: IntArray
    stored: IntArray
    gathered: IntArray
    attention: IntArray
    n_microbatches: IntArray

    def __len__(self) -> int:
        return len(self.mesh)

    def take(self, rows: IntArray) -> LayoutTable:
        """The given rows, in their order."""
        return LayoutTable(
            mesh=self.mesh[rows],
            stored=self.stored[rows],
            gathered=self.gathered[rows],
            attention=self.attention[rows],
            n_microbatches=self.n_microbatches[rows],
        )

    def columns(self) -> LayoutTable:
        """The same layouts with a trailing axis, to broadcast against batches."""
        return LayoutTable(
            mesh=self.mesh[:, None],
            stored=self.stored[:, None],
            gathered=self.gathered[:, None],
            attention=self.attention[:, None],
            n_microbatches=self.n_microbatches[:, None],
        )


def concatenate(tables: list[LayoutTable]) -> LayoutTable:
    """All rows of several tables, in order."""
    return LayoutTable(
        mesh=np.concatenate([table.mesh for table in tables]),
        stored=np.concatenate([table.stored for table in tables]),
        gathered=np.concatenate([table.gathered for table in tables]),
        attention=np.concatenate([table.attention for table in tables]),
        n_microbatches=np.concatenate([table.n_microbatches for table in tables]),
    )
