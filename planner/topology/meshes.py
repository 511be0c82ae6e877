"""Every way to use the pool, as one table: a mesh of three axes, and pipeline stages.

A row says which devices are used and how they are connected, never how a model is laid
on them. A torus gives its sub-slices; nodes give tensor groups inside a node or over
whole nodes, times pipeline stages; links listed one by one give the widest groups.

A switch joins all its devices alike, so the devices behind one may be counted off along two
axes, 8 as 2×4: a layout can then treat them differently. Both axes are of one tier: a group
that spans them has the bandwidth and the latency of one axis as long as both.

The table is made from the records, without the graph; it is what `planner.topology.widest`
reads off the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.specs.records.devices import ClusterSpec, LinkedFabric, NodesFabric, TorusFabric
from planner.topology.slices import n_positions, slice_shapes, slice_wraps
from planner.topology.widest import widest_groups

AXES = ("x", "y", "z")
"""Names of the mesh axes, as the notation writes them."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeshTable:
    """M meshes, ordered by devices, then label.

    Args:
        label: how the field writes the mesh, `4×4×4` or `TP 8 × PP 3`; unique.
        axis_size: devices along each axis, int[M, 3].
        axis_wraps: whether the axis closes into a ring, bool[M, 3].
        axis_is_switch: whether a switch joins the axis, all to all, bool[M, 3].
        axis_bytes_per_s: of a ring or line: one link, one direction; of a switch: each
            device, one way, as attained [bytes/s], float[M, 3]. Of an axis of one
            device: what a longer one would have.
        axis_hop_s: latency of one hop along the axis [s], float[M, 3].
        axis_tier: number of the switch or dimension that joins the axis, int[M, 3]; axes of
            one tier are one axis that is counted off in two.
        n_stages: pipeline stages, each a whole mesh, int[M].
        stage_bytes_per_s: from a device to its peer of the next stage, where that is
            slowest, as attained [bytes/s], float[M].
        stage_hop_s: latency of that transfer [s], float[M].
        n_devices: in all stages together, int[M].
        n_positions: places of the pool where it fits, int[M]. On a torus: orientations
            and offsets. On nodes: runs of neighbouring nodes, or shares of one node.
    """

    label: tuple[str, ...]
    axis_size: IntArray
    axis_wraps: BoolArray
    axis_is_switch: BoolArray
    axis_bytes_per_s: FloatArray
    axis_hop_s: FloatArray
    n_stages: IntArray
    stage_bytes_per_s: FloatArray
    stage_hop_s: FloatArray
    n_devices: IntArray
    n_positions: IntArray
    axis_tier: IntArray = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    def __post_init__(self) -> None:
        if len(self.axis_tier) != len(self.label):
            tiers = np.broadcast_to(np.arange(3), self.axis_size.shape)
            object.__setattr__(self, "axis_tier", tiers)

    def __len__(self) -> int:
        return len(self.label)

    def take(self, rows: IntArray) -> MeshTable:
        """The given meshes, in their order."""
        columns = [one.name for one in fields(self) if one.name != "label"]
        return MeshTable(
            label=tuple(self.label[row] for row in rows),
            **{name: getattr(self, name)[rows] for name in columns},
        )

    def words(self, row: int) -> str:
        """A mesh as it is said after its number of devices: `in one group`, `over 2 nodes`.

        `label` names the devices that a tensor may be cut over by how many they are, and looks
        like the tensor degree, which layouts choose; a torus is its shape in both.
        """
        if not self.axis_is_switch[row].any():
            return self.label[row]
        sizes, tiers, stages = self.axis_size[row], self.axis_tier[row], int(self.n_stages[row])
        n_nodes = int(sizes[tiers == 1].prod())
        parts = [str(size) for size in sizes if size > 1]
        cut = "×".join(parts) if (tiers == 0).sum() > 1 else ""
        nodes = f"over {n_nodes} nodes" if n_nodes > 1 else ""
        if stages > 1:
            return " ".join(filter(None, (f"in {stages} stages of {sizes.prod()}", nodes)))
        if sizes.prod() == 1:
            return "alone"
        whole = nodes or "in one group"
        return f"{whole}, {cut}" if cut else whole

    @property
    def n_inside(self) -> IntArray:
        """Devices of a stage that lie in one node, int[M]; on a torus all."""
        return np.asarray(np.where(self.axis_tier == 0, self.axis_size, 1).prod(axis=1))

    @property
    def n_across(self) -> IntArray:
        """Nodes that a stage lies on, int[M]; one on a torus."""
        return np.asarray(np.where(self.axis_tier == 0, 1, self.axis_size).prod(axis=1))

    @property
    def group_size(self) -> IntArray:
        """Devices of the group over each subset of axes, int[M, 8]; bit i is axis i."""
        sizes: IntArray = self._member_size.prod(axis=2)
        return sizes

    @property
    def tier_size(self) -> IntArray:
        """Devices of each group along each tier, int[M, 8, 3], where its first member stands.

        Where no two axes are of one tier these are the axes of the group, and 1 elsewhere.
        """
        sizes = self._member_size
        for first, later in ((0, 1), (0, 2), (1, 2)):
            one_tier = (self.axis_tier[:, first] == self.axis_tier[:, later])[:, None]
            joined = np.where(one_tier & (sizes[..., first] > 1), sizes[..., later], 1)
            sizes[..., first] *= joined
            sizes[..., later] //= joined
        return sizes

    @property
    def _member_size(self) -> IntArray:
        member = (np.arange(8)[:, None] >> np.arange(3)) & 1
        return np.where(member, self.axis_size[:, None, :], 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One mesh before it becomes a row of arrays; named as the columns are."""

    label: str
    axis_size: tuple[int, int, int]
    axis_wraps: tuple[bool, bool, bool] = (False, False, False)
    axis_is_switch: bool
    axis_bytes_per_s: tuple[float, float, float]
    axis_hop_s: tuple[float, float, float]
    n_stages: int = 1
    stage_bytes_per_s: float
    stage_hop_s: float
    n_positions: int
    axis_tier: tuple[int, int, int] = (0, 1, 2)

    @property
    def n_devices(self) -> int:
        a, b, c = self.axis_size
        return a * b * c * self.n_stages


def mesh_table(cluster: ClusterSpec, *, max_stages: int = 64) -> MeshTable:
    """All meshes that fit the pool, with at most `max_stages` pipeline stages."""
    fabric = cluster.fabric
    if isinstance(fabric, TorusFabric):
        rows = _torus_rows(fabric)
    elif isinstance(fabric, NodesFabric):
        rows = _nodes_rows(fabric, max_stages)
    else:
        rows = _linked_rows(fabric)
    return _table(sorted(rows, key=lambda row: (row.n_devices, row.label)))


def _torus_rows(fabric: TorusFabric) -> Iterator[_Row]:
    link, hop = fabric.link_bytes_per_s, fabric.hop_s
    for shape in slice_shapes(fabric):
        yield _Row(
            label="×".join(map(str, shape)),
            axis_size=shape,
            axis_wraps=slice_wraps(fabric, shape),
            axis_is_switch=False,
            axis_bytes_per_s=(link, link, link),
            axis_hop_s=(hop, hop, hop),
            stage_bytes_per_s=link,
            stage_hop_s=hop,
            n_positions=n_positions(fabric, shape),
        )


def _nodes_rows(fabric: NodesFabric, max_stages: int) -> Iterator[_Row]:
    """Tensor groups inside a node, then groups of whole nodes; each with all its stages."""
    per_node = fabric.n_devices_per_node
    shares = {*_powers_of_two(per_node), per_node}
    groups = [(t, 1) for t in sorted(shares)]
    groups += [(per_node, m) for m in _powers_of_two(fabric.n_nodes) if m > 1]
    for t, m in groups:
        n_places = fabric.n_nodes // m * (per_node // t)
        for p in range(1, min(n_places, max_stages) + 1):
            yield _nodes_row(fabric, t=t, m=m, p=p)
        for first in _splits(fabric, t):
            yield _split(_nodes_row(fabric, t=t, m=m, p=1), first)


def _splits(fabric: NodesFabric, t: int) -> list[int]:
    """First of two factors of the devices behind one switch, the smaller one.

    None where devices are joined in pairs: there a part of the group has less bandwidth.
    """
    if fabric.scale_up_pair_bytes_per_s is not None:
        return []
    return [first for first in range(2, t) if t % first == 0 and first * first <= t]


def _split(row: _Row, first: int) -> _Row:
    """The same devices, those of each node along two axes; used without a pipeline."""
    (t, m, _), (inside, between, _), (near_s, far_s, _) = (
        row.axis_size,
        row.axis_bytes_per_s,
        row.axis_hop_s,
    )
    shape = (first, t // first, m)
    return replace(
        row,
        label=f"{row.label} ({'×'.join(str(k) for k in shape if k > 1)})",
        axis_size=shape,
        axis_bytes_per_s=(inside, inside, between),
        axis_hop_s=(near_s, near_s, far_s),
        axis_tier=(0, 0, 1),
    )


def _nodes_row(fabric: NodesFabric, *, t: int, m: int, p: int) -> _Row:
    """`t` devices in each of `m` nodes, `p` stages; small stages fill a node before the next."""
    inside = fabric.group_scale_up_bytes_per_s(t) * fabric.scale_up_fraction
    pair = fabric.group_scale_up_bytes_per_s(2) * fabric.scale_up_fraction
    between = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
    per_node, n_nodes = fabric.n_devices_per_node, fabric.n_nodes
    fits_one_node = m == 1 and p * t <= per_node
    n_used = m * -(-p // (per_node // t))
    crosses = p > 1 and not fits_one_node
    near_s, far_s = fabric.scale_up_latency_s, fabric.scale_out_latency_s
    return _Row(
        label=f"TP {t * m}" + (f" × PP {p}" if p > 1 else ""),
        axis_size=(t, m, 1),
        axis_is_switch=True,
        axis_bytes_per_s=(inside, between, between),
        axis_hop_s=(near_s, far_s, far_s),
        n_stages=p,
        stage_bytes_per_s=between if crosses else pair,
        stage_hop_s=far_s if crosses else near_s,
        n_positions=n_nodes * (per_node // (p * t)) if fits_one_node else n_nodes - n_used + 1,
    )


def _linked_rows(fabric: LinkedFabric) -> Iterator[_Row]:
    for group in widest_groups(fabric):
        width, latency = group.bytes_per_s, group.latency_s
        yield _Row(
            label=f"TP {len(group.devices)}",
            axis_size=(len(group.devices), 1, 1),
            axis_is_switch=True,
            axis_bytes_per_s=(width, width, width),
            axis_hop_s=(latency, latency, latency),
            stage_bytes_per_s=width,
            stage_hop_s=latency,
            n_positions=1,
        )


def _powers_of_two(at_most: int) -> list[int]:
    return [1 << k for k in range(at_most.bit_length())]


def _table(rows: list[_Row]) -> MeshTable:
    def column(name: str, dtype: type[np.generic], *width: int) -> NDArray[Any]:
        return np.array([getattr(row, name) for row in rows], dtype).reshape(-1, *width)

    return MeshTable(
        label=tuple(row.label for row in rows),
        axis_size=column("axis_size", np.int64, 3),
        axis_wraps=column("axis_wraps", np.bool_, 3),
        axis_is_switch=np.repeat(column("axis_is_switch", np.bool_, 1), 3, axis=1),
        axis_bytes_per_s=column("axis_bytes_per_s", np.float64, 3),
        axis_hop_s=column("axis_hop_s", np.float64, 3),
        n_stages=column("n_stages", np.int64),
        stage_bytes_per_s=column("stage_bytes_per_s", np.float64),
        stage_hop_s=column("stage_hop_s", np.float64),
        n_devices=column("n_devices", np.int64),
        n_positions=column("n_positions", np.int64),
        axis_tier=column("axis_tier", np.int64, 3),
    )
