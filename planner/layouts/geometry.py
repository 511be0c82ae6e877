"""A table of layouts, the sizes of the axis groups that each uses, and how a batch spreads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray, each_array
from planner.specs.validation.hints import from_fields
from planner.topology.meshes import MeshTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Tokens of one pass through the model, for each sequence.

    Args:
        n_new_tokens: tokens that enter: the whole input in prefill, one in decode.
        n_context_tokens: tokens that each new one attends to.
        n_cached_tokens: tokens whose keys and values are held meanwhile.
        n_found_tokens: of them, those whose keys and values were there before the phase.
        n_logits: positions whose next token is wanted.
        n_times: passes that each of its tokens takes.
    """

    n_new_tokens: float
    n_context_tokens: float
    n_cached_tokens: float
    n_found_tokens: float = 0.0
    n_logits: float = 1.0
    n_times: float = 1.0

    @property
    def is_decode(self) -> bool:
        """Whether the context is older than the pass, so that queries meet cached latents
        themselves, which are wider than a head, and states are updated token by token.

        In prefill all of it is new: there keys and values are made of the latents, once for each
        token, and states over whole prompts.
        """
        return self.n_new_tokens < self.n_context_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """Group sizes of each layout of a table, shape (N, 1).

    The batch is cut over `cut`: the axes over which weights are gathered, or along which
    they have copies. That leaves the mesh `rest`, on which each part of the batch runs
    weight-stationary: E over `rest_x`, F and the heads over `rest_y`.
    """

    n_tensor: FloatArray
    n_gathered: FloatArray
    n_data: FloatArray
    n_cut: FloatArray
    n_rest: FloatArray
    n_x: FloatArray
    n_y: FloatArray
    gathered: IntArray
    data: IntArray
    cut: IntArray
    rest: IntArray
    rest_x: IntArray
    rest_y: IntArray
    sliced: IntArray
    attention: IntArray
    n_microbatches: IntArray
    n_stages: FloatArray
    axis_group_size: IntArray
    mesh: IntArray


def geometry(layouts: LayoutTable, meshes: MeshTable) -> Geometry:
    """Group sizes of layouts; every result has shape (N, 1)."""
    table = layouts.columns()
    size = meshes.group_size
    cut = table.gathered | table.data
    rest = ALL_AXES & ~cut
    rest_x, rest_y = table.stored & rest, rest & ~table.stored
    return from_fields(
        Geometry,
        table,
        n_tensor=size[table.mesh, ALL_AXES].astype(float),
        n_gathered=size[table.mesh, table.gathered].astype(float),
        n_data=size[table.mesh, table.data].astype(float),
        n_cut=size[table.mesh, cut].astype(float),
        n_rest=size[table.mesh, rest].astype(float),
        n_x=size[table.mesh, rest_x].astype(float),
        n_y=size[table.mesh, rest_y].astype(float),
        cut=cut,
        rest=rest,
        rest_x=rest_x,
        rest_y=rest_y,
        n_stages=meshes.n_stages[table.mesh].astype(float),
        axis_group_size=size[layouts.mesh],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How a micro-batch spreads over devices, broadcast to (N, B).

    Args:
        n_group_sequences: sequences of the busiest group that shares gathered weights.
        batch_axes: axes over which attention cuts the batch.
        n_batch_ways: devices along those axes.
        n_device_sequences: sequences whose attention the busiest device computes.
    """

    n_group_sequences: FloatArray
    batch_axes: IntArray
    n_batch_ways: FloatArray
    n_device_sequences: FloatArray


def spread(shape: Geometry, n_sequences: FloatArray) -> Spread:
    """Spread `n_sequences` of a micro-batch (1, B) over the devices of each layout.

    Over heads, only the axes of `cut` cut the batch. Over batch, attention uses those
    axes and as many others as their product stays within the batch: an axis that is
    longer than what is left of the batch gains nothing.

    Source: [Pope2022] §3.3.
    """
    ways, axes = _batch_ways(shape, n_sequences)
    return Spread(
        n_group_sequences=np.ceil(n_sequences / shape.n_cut),
        batch_axes=axes,
        n_batch_ways=ways,
        n_device_sequences=np.ceil(n_sequences / ways),
    )


def _batch_ways(shape: Geometry, n_sequences: FloatArray) -> tuple[FloatArray, IntArray]:
    """Ways in which attention cuts the batch, and the axes of the cut, (N, B).

    Layouts that differ elsewhere cut alike: where all share the batches, each way of cutting
    is worked out once.
    """
    sizes = shape.axis_group_size.astype(float)
    cut, over_batch = shape.cut, shape.attention == OVER_BATCH
    if len(n_sequences) > 1:
        return _largest_within(sizes, cut, over_batch, n_sequences)
    keys = (shape.mesh * (ALL_AXES + 1) + cut) * 2 + over_batch
    _, first, same = np.unique(keys, return_index=True, return_inverse=True)
    ways, axes = _largest_within(sizes[first], cut[first], over_batch[first], n_sequences)
    return ways[same.reshape(-1)], axes[same.reshape(-1)]


def _largest_within(
    sizes: FloatArray, cut: IntArray, over_batch: BoolArray, n_sequences: FloatArray
) -> tuple[FloatArray, IntArray]:
    """The largest group of axes around `cut` that the batch fills.

    Args:
        sizes: devices of each group, (N, 8).
        cut: axes that cut the batch anyhow, (N, 1).
        over_batch: whether more axes may, (N, 1).
        n_sequences: the batch, (1, B) or (N, B).
    """
    base = np.take_along_axis(sizes, cut, axis=1)
    shape = np.broadcast_shapes(base.shape, n_sequences.shape)
    ways, axes = np.broadcast_to(base, shape), np.broadcast_to(cut, shape)
    for group in range(ALL_AXES + 1):
        size = sizes[:, group, None]
        useful = over_batch & ((cut & ~group) == 0) & (size > base)
        if not useful.any():
            continue
        better = useful & (size <= n_sequences) & (size > ways)
        ways, axes = np.where(better, size, ways), np.where(better, group, axes)
    return ways, axes


ALL_AXES = 7
OVER_HEADS = 0
OVER_BATCH = 1
BY_PREFILL, BY_DECODE_ALONE = 1, 2
ATTENTION_NAMES = ("heads", "batch")


def _nothing() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutTable:
    """Layouts as parallel arrays of shape (N,); `data`, `sliced`, `apart`: 0 where left out.

    Three torus or switch axes x, y, z make a mesh; a set of axes is a bit mask (x = 1, y = 2, z =
    4). Every layout of the table is eight small integers:

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
        return each_array(self, lambda column: column[rows])

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
        return each_array(self, lambda column: column[:, None])
