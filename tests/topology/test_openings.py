"""Openings of small tori, each recounted device by device and link by link."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.specs.records.devices import TorusFabric
from planner.topology.openings import (
    Openings,
    TorusState,
    _label,
    all_free,
    opening_meshes,
    openings,
)
from planner.topology.slices import axis_wraps, orientations, slice_shapes

N_RANDOM = 24


def _fabric(shape: tuple[int, int, int], *, wrap: int = 4, each: bool = False) -> TorusFabric:
    return TorusFabric(
        shape=shape,
        link_bytes_per_s=45e9,
        hop_s=1e-6,
        wrap_multiple=wrap,
        wraps_each_axis=each,
        slice_dims=(1, 2, 3, 4, 6, 8),
        activation_network="ring",
        bulk_network="ring",
    )


def _random(seed: int) -> tuple[TorusFabric, TorusState]:
    rng = np.random.default_rng(seed)
    shape = tuple(
        int(d) for d in rng.choice([1, 2, 3, 4, 6, 8], 3, p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
    )
    fabric = _fabric(
        (shape[0], shape[1], shape[2]), wrap=int(rng.choice([2, 3, 4])), each=bool(seed % 2)
    )
    is_free = rng.random(shape) > rng.choice([0.0, 0.1, 0.3])
    link = rng.choice([1.0, 0.5, 0.0], (3, *shape), p=[0.94, 0.03, 0.03])
    return fabric, TorusState(
        is_free=is_free, link_fraction=link, speed_fraction=rng.choice([1.0, 0.8], shape)
    )


Found = dict[tuple[int, ...], tuple[object, ...]]
"""Orientation and offset to rings, link fractions and speed."""


def _one_by_one(fabric: TorusFabric, state: TorusState) -> Found:
    """All openings, by walking every line of every place."""
    pool = fabric.shape
    pool_closed = axis_wraps(pool, fabric.wrap_multiple, each_axis=fabric.wraps_each_axis)
    found = {}
    for way in [w for s in slice_shapes(fabric) for w in orientations(fabric, s)]:
        for at in product(*map(range, pool)):
            if any(w == p and o for w, p, o in zip(way, pool, at, strict=True)):
                continue  # the same devices as at 0
            over = [o + w > p for o, w, p in zip(at, way, pool, strict=True)]
            if any(o and not c for o, c in zip(over, pool_closed, strict=True)):
                continue
            facts = _walk(fabric, state, way, at)
            if facts is not None:
                found[(*way, *at)] = facts
    return found


def _walk(
    fabric: TorusFabric, state: TorusState, way: tuple[int, ...], at: tuple[int, ...]
) -> tuple[object, ...] | None:
    pool = fabric.shape
    cells = [
        tuple((o + i) % p for o, i, p in zip(at, inside, pool, strict=True))
        for inside in product(*map(range, way))
    ]
    if not all(state.is_free[cell] for cell in cells):
        return None
    rings, shares = [], []
    by_shape = axis_wraps(way, fabric.wrap_multiple, each_axis=fabric.wraps_each_axis)  # type: ignore[arg-type]
    pool_closed = axis_wraps(pool, fabric.wrap_multiple, each_axis=fabric.wraps_each_axis)
    on_cube = [o % fabric.wrap_multiple == 0 for o in at]
    for axis in range(3):
        is_whole = on_cube[axis] if fabric.wraps_each_axis else all(on_cube)
        ring = (by_shape[axis] and is_whole) or (way[axis] == pool[axis] and pool_closed[axis])
        cuts, share = set[int](), 1.0
        for line in {tuple(c for k, c in enumerate(cell) if k != axis) for cell in cells}:

            def link(index: int, line: tuple[int, ...] = line, axis: int = axis) -> float:
                where = list(line)
                where.insert(axis, index % pool[axis])
                return float(state.link_fraction[(axis, *where)])

            links = [link(at[axis] + i) for i in range(way[axis] - 1)]
            cuts |= {i for i, one in enumerate(links) if one == 0}
            if ring:
                ends = [link(at[axis] + way[axis] - 1), link(at[axis] - 1)]
                cuts |= {way[axis] - 1} if 0 in ends else set()
                links += ends
            share = min([share, *(one for one in links if one)])
        if len(cuts) > (1 if ring else 0):
            return None
        rings.append(ring and not cuts)
        shares.append(share)
    return (tuple(rings), tuple(shares), min(float(state.speed_fraction[cell]) for cell in cells))


def _listed(table: Openings) -> Found:
    rows = zip(table.orientation, table.offset, table.closes, table.link_fraction, strict=True)
    speeds = table.speed_fraction.tolist()
    return {
        (*way.tolist(), *at.tolist()): (tuple(ring.tolist()), tuple(share.tolist()), speed)
        for (way, at, ring, share), speed in zip(rows, speeds, strict=True)
    }


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_openings_are_those_found_device_by_device(seed: int) -> None:
    fabric, state = _random(seed)
    assert _listed(openings(fabric, state)) == _one_by_one(fabric, state)


def test_random_pools_have_rings_that_failed_links_open() -> None:
    """Otherwise the walk above says little of links."""
    cut = 0
    for seed in range(N_RANDOM):
        fabric, state = _random(seed)
        whole = TorusState(
            is_free=state.is_free,
            link_fraction=np.ones_like(state.link_fraction),
            speed_fraction=state.speed_fraction,
        )
        before, after = _listed(openings(fabric, whole)), _listed(openings(fabric, state))
        cut += sum(facts[0] != before[key][0] for key, facts in after.items())
    assert cut > 20


def test_slices_away_from_the_cubes_are_open() -> None:
    table = openings(_fabric((8, 8, 8)), all_free(_fabric((8, 8, 8))), shapes=[(4, 4, 4)])
    assert len(table) == 512
    on_cubes = (table.offset % 4 == 0).all(axis=1)
    assert on_cubes.sum() == 8
    assert (table.closes.all(axis=1) == on_cubes).all()
    assert not table.closes[~on_cubes].any()


def test_a_slice_that_fills_an_axis_is_closed_there_wherever_it_lies() -> None:
    table = openings(_fabric((8, 8, 8)), all_free(_fabric((8, 8, 8))), shapes=[(1, 4, 8)])
    assert (table.closes == (table.orientation == 8)).all()


def test_aligned_openings_lie_at_multiples_of_their_cube() -> None:
    fabric = _fabric((8, 8, 8))
    table = openings(fabric, all_free(fabric), shapes=[(2, 4, 8)], aligned=True)
    assert (table.offset[table.orientation == 4] % 4 == 0).all()
    assert (table.offset[table.orientation == 2] % 2 == 0).all()
    assert len(table) == 6 * 4 * 2


def test_devices_of_openings_are_listed_in_one_pass() -> None:
    fabric, state = _random(3)
    table = openings(fabric, state)
    starts, found = table.devices()
    for i in range(0, len(table), 7):
        inside = np.stack(np.meshgrid(*map(np.arange, table.orientation[i]), indexing="ij"), -1)
        at = (inside.reshape(-1, 3) + table.offset[i]) % np.array(fabric.shape)
        expected = np.ravel_multi_index(tuple(at.T), fabric.shape)
        assert found[starts[i] : starts[i + 1]].tolist() == expected.tolist()


def test_nothing_free_has_no_openings() -> None:
    fabric = _fabric((4, 4, 4))
    state = all_free(fabric)
    state.is_free[:] = False
    table = openings(fabric, state)
    assert (len(table), len(table.devices()[1])) == (0, 0)


def test_openings_that_differ_by_a_turn_are_one_mesh() -> None:
    fabric = _fabric((8, 8, 8))
    table = openings(fabric, all_free(fabric), shapes=[(4, 4, 4), (4, 4, 8)])
    meshes, mesh = opening_meshes(fabric, table)
    assert meshes.label == ("4×4×4", "4×4×4 open", "4×4×8", "4×4×8 closed along 8")
    assert meshes.n_positions.tolist() == [8, 504, 12, 180]
    assert np.bincount(mesh).tolist() == [8, 504, 12, 180]
    assert meshes.axis_size[3].tolist() == [4, 4, 8]
    assert meshes.axis_wraps[3].tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("size", "wraps", "label"),
    [
        ([3, 4, 4], [False, True, True], "3×4×4 closed along 4, 4"),
        ([3, 3, 1], [False, False, False], "3×3×1 open"),
        ([2, 4, 4], [False, True, True], "2×4×4"),
        ([2, 2, 2], [False, False, False], "2×2×2"),
    ],
)
def test_a_label_says_which_dimensions_of_three_or_more_are_lines(size, wraps, label):
    assert _label(size, wraps, [1.0, 1.0, 1.0]) == label
