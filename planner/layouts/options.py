"""All layouts that are worth telling apart, for every mesh.

Axes of equal size, closure and bandwidth are interchangeable, so of layouts that differ
only by swapping them one is kept: the one whose axis choices come first. Weights at rest
are shared by the phases, so the representative of what they rest by (`stored`, `data`,
`sliced`) is fixed before `gathered` is chosen, and each phase may choose its own `gathered`
for the same weights.

Where one switch is counted off along two axes, weights that rest alike along both rest as on
the mesh where these are one. A deployment of them that treats the two alike in both phases is
already there, under its simpler name. What is new is a phase that tells them apart: by gathering
weights along one of them, or by a batch of attention that fills one and not both. So the layouts of
such weights are offered twice: once for deployments whose prefill tells the axes apart, with any
decode, and once for those whose decode alone does. `offered` says which candidates these are.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.layouts.geometry import (
    ALL_AXES,
    BY_DECODE_ALONE,
    BY_PREFILL,
    OVER_BATCH,
    OVER_HEADS,
    LayoutTable,
    geometry,
    spread,
)
from planner.specs.records.shapes import MoeShape
from planner.topology.meshes import MeshTable

PARTS_PER_STAGE = 4
MICROBATCHES = (1, 2, 4, 8, 16, 32, 64)
"""Parts that a pass through a pipeline may be cut into."""

_Axes = tuple[tuple[float, ...] | None, ...]

AT_ONCE = 65_536
"""Layouts times batches that are looked at together."""


def all_layouts(
    meshes: MeshTable, *, microbatches: Sequence[int] = (1,), moe: MoeShape | None = None
) -> LayoutTable:
    """Every distinct layout of every mesh; without a pipeline there is one micro-batch.

    Args:
        meshes: the meshes.
        microbatches: parts that a pass through a pipeline may be cut into; none beyond four
            a stage, where filling and draining take little.
        moe: the experts of a model that has some. Then attention may be data-parallel beside
            them, with copies of its weights or gathering them; these are cut in one dimension.
            Weights that are cut in two stay where they are.
    """
    rows = [
        (mesh, *row, parts)
        for mesh in range(len(meshes))
        for row in _mesh_rows(meshes, mesh, moe)
        for parts in microbatches
        if parts <= _most_parts(int(meshes.n_stages[mesh]))
    ]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 8).T
    names = ("mesh", "stored", "data", "sliced", "gathered", "attention", "apart", "n_microbatches")
    return LayoutTable(**dict(zip(names, columns, strict=True)))


def offered(meshes: MeshTable, layouts: LayoutTable, phase: str, batches: IntArray) -> BoolArray:
    """Which layouts are offered to a phase at which batches, (N, B).

    All, but where axes of one switch have to be told apart: there prefill does it or must not, and
    decode may do as it likes beside a prefill that does.

    Args:
        phase: `prefill` or `decode`.
        batches: sequences of a pass, (B,).
    """
    is_offered = np.ones((len(layouts), len(batches)), dtype=np.bool_)
    if not layouts.apart.any():
        return is_offered
    rows = np.flatnonzero(layouts.apart)
    part = layouts.take(rows)
    batch_axes = spread(geometry(part, meshes), batches[None, :].astype(float)).batch_axes
    first, second = _switch_axes(meshes, part.mesh)
    tells = np.logical_or(
        *(
            (mask >> first & 1) != (mask >> second & 1)
            for mask in (batch_axes, part.gathered[:, None])
        )
    )
    by_prefill = (part.apart == BY_PREFILL)[:, None]
    is_offered[rows] = tells == by_prefill if phase == "prefill" else tells | by_prefill
    return is_offered


def n_offered(meshes: MeshTable, layouts: LayoutTable, phase: str, batches: IntArray) -> int:
    """How many layouts at how many batches `offered` offers to a phase."""
    rows = np.flatnonzero(layouts.apart)
    n_rows = (len(layouts) - len(rows)) * len(batches)
    at_once = max(1, AT_ONCE // max(1, len(batches)))
    for first in range(0, len(rows), at_once):
        some = layouts.take(rows[first : first + at_once])
        n_rows += int(np.count_nonzero(offered(meshes, some, phase, batches)))
    return n_rows


def _switch_axes(meshes: MeshTable, mesh: IntArray) -> tuple[IntArray, IntArray]:
    """The two axes of one switch of meshes that have such, (N, 1) each."""
    rows, at = np.unique(mesh, return_inverse=True)
    pairs = [
        _split_axes(meshes.axis_tier[row].tolist(), _axis_classes(meshes, row)) or (0, 0)
        for row in rows.tolist()
    ]
    first, second = np.array(pairs).reshape(-1, 2)[at.reshape(-1)].T
    return first[:, None], second[:, None]


def _mesh_rows(meshes: MeshTable, mesh: int, moe: MoeShape | None) -> Iterator[tuple[int, ...]]:
    """(stored, data, sliced, gathered, attention, apart) of one mesh."""
    axes, group_size = _axis_classes(meshes, mesh), meshes.group_size[mesh].tolist()
    split = _split_axes(meshes.axis_tier[mesh].tolist(), axes)
    for resting in _resting(axes, moe, group_size):
        stored, data, sliced = resting
        is_alike = split is not None and not (
            any(_tells_apart(mask, split) for mask in resting)
            or _deals_apart(moe, group_size, ALL_AXES & ~(stored | sliced), split)
        )
        for gathered in _gatherings(moe, stored=stored, data=data):
            if _is_representative(axes, gathered, *resting):
                for attention in _attentions(axes, gathered | data):
                    for apart in (BY_PREFILL, BY_DECODE_ALONE) if is_alike else (0,):
                        yield *resting, gathered, attention, apart


def _resting(
    axes: _Axes, moe: MoeShape | None, group_size: list[int]
) -> Iterator[tuple[int, int, int]]:
    """(stored, data, sliced): the ways in which weights may rest."""
    for data in range(ALL_AXES + 1) if moe else (0,):
        if not _is_representative(axes, data):
            continue
        for stored in range(ALL_AXES + 1):
            if stored & data or not _is_representative(axes, stored, data):
                continue
            for sliced in _slicings(moe, group_size, ALL_AXES & ~stored):
                if _is_representative(axes, sliced, data, stored):
                    yield stored, data, sliced


def _gatherings(moe: MoeShape | None, *, stored: int, data: int) -> list[int]:
    """Axes over which a phase may gather weights that rest so."""
    if moe is None:
        return list(range(ALL_AXES + 1))
    return [g for g in range(ALL_AXES + 1) if not g & data and not (stored and g)]


def _slicings(moe: MoeShape | None, group_size: list[int], within: int) -> list[int]:
    """Axes of `within` that may cut the FFN of each expert: only where that evens experts out.

    Whole experts send a token to fewer devices, and do the same work, unless some device has
    more of them than others. So of two ways the one with the larger share of the experts on
    the busiest device, and with no fewer copies of a token, has nothing to offer.
    """
    if moe is None:
        return [0]
    n_devices, kept, seen = group_size[within], [0], list[tuple[float, int]]()
    for sliced in range(ALL_AXES + 1):
        if sliced & ~within:
            continue
        ways = max(group_size[group] for group in _dealings(moe, group_size, within & ~sliced))
        share = math.ceil(moe.n_experts / ways) * ways
        copies = min(ways, moe.n_active_experts) * (n_devices // ways)
        if all(share < other or copies < fewest for other, fewest in seen):
            seen.append((share, copies))
            kept.append(sliced)
    return sorted(set(kept))


def _dealings(moe: MoeShape, group_size: list[int], within: int) -> list[int]:
    """Groups of axes of `within` that whole experts may be dealt out over, no device without."""
    groups = [group for group in range(ALL_AXES + 1) if not group & ~within]
    return [group for group in groups if group_size[group] <= moe.n_experts]


def _deals_apart(
    moe: MoeShape | None, group_size: list[int], within: int, split: tuple[int, int]
) -> bool:
    """Whether more devices have whole experts where a switch is counted off along two axes."""
    if moe is None:
        return False
    groups = _dealings(moe, group_size, within)
    alike = [group for group in groups if not _tells_apart(group, split)]
    return max(group_size[one] for one in alike) < max(group_size[one] for one in groups)


def _split_axes(tiers: list[int], axes: _Axes) -> tuple[int, int] | None:
    """Two axes of more than one device that one switch joins."""
    for first in range(3):
        for second in range(first + 1, 3):
            if axes[first] and axes[second] and tiers[first] == tiers[second]:
                return first, second
    return None


def _tells_apart(mask: int, split: tuple[int, int]) -> bool:
    return (mask >> split[0] & 1) != (mask >> split[1] & 1)


def _most_parts(n_stages: int) -> int:
    return 1 if n_stages == 1 else PARTS_PER_STAGE * n_stages


def _axis_classes(meshes: MeshTable, mesh: int) -> _Axes:
    """What makes axes interchangeable; `None` for an axis of one device."""
    return tuple(
        (
            float(meshes.axis_size[mesh, axis]),
            float(meshes.axis_wraps[mesh, axis]),
            float(meshes.axis_is_switch[mesh, axis]),
            # inside a node or between nodes
            float(meshes.axis_is_switch[mesh, axis] and meshes.axis_tier[mesh, axis]),
            float(meshes.axis_bytes_per_s[mesh, axis]),
            float(meshes.axis_hop_s[mesh, axis]),
        )
        if meshes.axis_size[mesh, axis] > 1
        else None
        for axis in range(3)
    )


def _is_representative(axes: _Axes, chosen: int, *given: int) -> bool:
    """Among interchangeable axes (equal class, equally in all `given`) the first are chosen."""
    for axis, kind in enumerate(axes):
        if not chosen >> axis & 1:
            continue
        if kind is None:
            return False
        for earlier in range(axis):
            same = axes[earlier] == kind and all(
                (mask >> earlier & 1) == (mask >> axis & 1) for mask in given
            )
            if same and not chosen >> earlier & 1:
                return False
    return True


def _attentions(axes: _Axes, cut: int) -> tuple[int, ...]:
    """One device has nothing to cut; where all axes cut the batch, attention is over it."""
    if not any(axes):
        return (OVER_HEADS,)
    if all(kind is None or cut >> axis & 1 for axis, kind in enumerate(axes)):
        return (OVER_BATCH,)
    return (OVER_HEADS, OVER_BATCH)
