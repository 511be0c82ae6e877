"""A table of layouts: how weights rest, what is gathered, how attention is split.

Three torus or switch axes x, y, z make a mesh; a set of axes is a bit mask (x = 1,
y = 2, z = 4). Every layout of the table is eight small integers:

    mesh        which mesh of the `MeshTable`
    stored      axes over which the model dimension E of each weight is cut; the other
                axes cut the FFN dimension F and the heads: the paper's E_x F_yz
    gathered    axes over which weights are gathered before use, and the batch is cut:
                none is weight-stationary, some or all is weight-gathered (WG)
    attention   attention split over heads, or over the batch
    data        axes over which attention is data-parallel: its weights, and those of dense and
                shared FFNs, have copies along them, and the batch is cut; experts are not
    sliced      axes that cut the FFN dimension of each routed expert; the others deal out whole
                experts, as far as there are experts for them
    n_microbatches   parts that a pass is cut into for the pipeline
    apart       which phase has to tell apart two axes that one switch joins, where weights rest
                alike along both: none, prefill, or decode alone; see `options`
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.equations.arrays import IntArray

ALL_AXES = 7
OVER_HEADS = 0
OVER_BATCH = 1
BY_PREFILL, BY_DECODE_ALONE = 1, 2
ATTENTION_NAMES = ("heads", "batch")


def _nothing() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Layouts as parallel arrays of shape (N,); `data`, `sliced`, `apart`: 0 where left out."""

    mesh: IntArray
    stored: IntArray
    gathered: IntArray
    attention: IntArray
    n_microbatches: IntArray
    data: IntArray = field(default_factory=_nothing)
    sliced: IntArray = field(default_factory=_nothing)
    apart: IntArray = field(default_factory=_nothing)

    def __post_init__(self) -> None:
        for name in ("data", "sliced", "apart"):
            if len(getattr(self, name)) != len(self.mesh):
                object.__setattr__(self, name, np.zeros_like(self.mesh))

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
            data=self.data[rows],
            sliced=self.sliced[rows],
            apart=self.apart[rows],
        )

    def distinct(self) -> tuple[LayoutTable, IntArray]:
        """Each way to run once, whoever has to tell axes apart; and which of them every row is."""
        names = ("mesh", "stored", "gathered", "attention", "n_microbatches", "data", "sliced")
        columns = [getattr(self, name) for name in names]
        sizes = [int(column.max(initial=0)) + 1 for column in columns]
        keys = np.ravel_multi_index(columns, sizes)
        _, first, same = np.unique(keys, return_index=True, return_inverse=True)
        return self.take(first), same.reshape(-1)

    def columns(self) -> LayoutTable:
        """The same layouts with a trailing axis, to broadcast against batches."""
        return LayoutTable(
            mesh=self.mesh[:, None],
            stored=self.stored[:, None],
            gathered=self.gathered[:, None],
            attention=self.attention[:, None],
            n_microbatches=self.n_microbatches[:, None],
            data=self.data[:, None],
            sliced=self.sliced[:, None],
            apart=self.apart[:, None],
        )
