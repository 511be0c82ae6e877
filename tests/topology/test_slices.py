from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from math import gcd

import pytest
from hypothesis import given, settings, strategies as st

from planner.specs.records.devices import TorusFabric
from planner.topology.slices import (
    axis_wraps,
    n_positions,
    orientations,
    slice_shapes,
    torus_device,
)
from tests.topology.cuts import Slice, offsets, positions, slice_coordinates
from tests.topology.pools import torus_fabric


def slice_devices(fabric: TorusFabric, cut: Slice) -> tuple[str, ...]:
    """Names of the devices of a slice, in the order of `slice_coordinates`."""
    return tuple(torus_device(x, y, z) for x, y, z in slice_coordinates(fabric, cut).tolist())


@st.composite
def small_pools(draw: st.DrawFn) -> TorusFabric:
    x, y, z = (draw(st.integers(1, 6)) for _ in range(3))
    wrap_multiple = draw(st.sampled_from([1, 2, 3, 4]))
    dims = tuple(sorted(draw(st.sets(st.integers(1, 6), min_size=1, max_size=3))))
    return torus_fabric(x, y, z, wrap_multiple=wrap_multiple, slice_dims=dims)


def boxes(fabric: TorusFabric, shape: tuple[int, int, int]) -> set[frozenset[tuple[int, ...]]]:
    """Every place of a shape as a set of devices, by trying each corner of the pool."""
    closed = all(p % fabric.wrap_multiple == 0 for p in fabric.shape)
    found = set()
    for turned in permutations(shape):
        for corner in product(*map(range, fabric.shape)):
            axes = zip(turned, corner, fabric.shape, strict=True)
            aligned = all(
                o == 0 if d == p else o % gcd(d, fabric.wrap_multiple) == 0 for d, o, p in axes
            )
            ranges = [range(o, o + d) for d, o in zip(turned, corner, strict=True)]
            runs_over = any(r[-1] >= p for r, p in zip(ranges, fabric.shape, strict=True))
            too_long = any(len(r) > p for r, p in zip(ranges, fabric.shape, strict=True))
            ring = closed and all(
                p > 2 for r, p in zip(ranges, fabric.shape, strict=True) if r[-1] >= p
            )
            if aligned and not too_long and (ring or not runs_over):
                cells = product(*ranges)
                found.add(
                    frozenset(
                        tuple(c % p for c, p in zip(cell, fabric.shape, strict=True))
                        for cell in cells
                    )
                )
    return found


def test_a_pool_of_4x8x8_has_nineteen_shapes():
    """Of 1, 2, 4 and 8 in ascending order, all with a first dimension of at most 4: 20 triples
    of four values, less 8×8×8."""
    shapes = slice_shapes(torus_fabric(4, 8, 8))
    assert shapes == (
        (1, 1, 1),
        (1, 1, 2),
        (1, 1, 4),
        (1, 2, 2),
        (1, 1, 8),
        (1, 2, 4),
        (2, 2, 2),
        (1, 2, 8),
        (1, 4, 4),
        (2, 2, 4),
        (1, 4, 8),
        (2, 2, 8),
        (2, 4, 4),
        (1, 8, 8),
        (2, 4, 8),
        (4, 4, 4),
        (2, 8, 8),
        (4, 4, 8),
        (4, 8, 8),
    )


@pytest.mark.parametrize(
    ("shape", "wrap_multiple", "expected"),
    [
        ((4, 4, 4), 4, (True, True, True)),
        ((4, 8, 12), 4, (True, True, True)),
        ((2, 2, 4), 4, (False, False, False)),
        ((1, 4, 4), 4, (False, False, False)),
        ((4, 4, 6), 4, (False, False, False)),
        ((1, 2, 3), 1, (False, False, True)),
        ((2, 4, 4), 2, (False, True, True)),
    ],
)
def test_a_slice_closes_only_if_every_dimension_is_a_multiple_and_rings_need_three(
    shape, wrap_multiple, expected
):
    assert axis_wraps(shape, wrap_multiple) == expected


def test_axes_that_close_by_themselves_do_so_whatever_the_others_are():
    """A slice 4×16 of a torus whose axes close at 16 has one ring axis."""
    assert axis_wraps((4, 16, 1), 16, each_axis=True) == (False, True, False)
    assert axis_wraps((4, 16, 1), 16) == (False, False, False)


def test_a_shape_is_laid_only_the_ways_that_fit():
    """2×4×8 in 4×8×8: the 8 cannot lie along x, and 4 or 2 can; 2 × 2 ways."""
    assert orientations(torus_fabric(4, 8, 8), (2, 4, 8)) == (
        (2, 4, 8),
        (2, 8, 4),
        (4, 2, 8),
        (4, 8, 2),
    )


@pytest.mark.parametrize(
    ("pool", "shape", "expected"),
    [
        ((4, 8, 8), (4, 4, 4), 4),  # 1·2·2 corners, one orientation
        ((4, 8, 8), (4, 8, 8), 1),  # the pool itself
        ((4, 8, 8), (4, 4, 8), 4),  # two orientations, two corners of the 4 each
        ((4, 8, 8), (2, 2, 4), 48),  # 4 along x: 1·4·4; along y or z: 2·2·4 each
        ((16, 16, 16), (4, 4, 4), 64),
        ((2, 2, 4), (2, 2, 2), 2),
        ((2, 2, 4), (4, 4, 4), 0),
    ],
)
def test_positions_counted_by_hand(pool, shape, expected):
    assert n_positions(torus_fabric(*pool), shape) == expected


@settings(deadline=None, max_examples=60)
@given(fabric=small_pools())
def test_positions_are_those_that_trying_every_corner_finds(fabric):
    for shape in slice_shapes(fabric):
        expected = boxes(fabric, shape)
        found = [
            frozenset(map(tuple, slice_coordinates(fabric, cut).tolist()))
            for orientation, corners in positions(fabric, shape)
            for cut in (Slice(orientation=orientation, offset=tuple(c)) for c in corners.tolist())
        ]
        assert len(found) == n_positions(fabric, shape)
        assert Counter(found) == Counter(expected)  # so none twice


def test_cubes_tile_the_pool():
    """8×8×8 holds eight cubes, and every device is in one of them."""
    fabric = torus_fabric(8, 8, 8)
    cubes = [
        slice_devices(fabric, Slice(orientation=(4, 4, 4), offset=tuple(corner)))
        for corner in offsets(fabric, (4, 4, 4)).tolist()
    ]
    assert len(cubes) == 8
    assert len({name for cube in cubes for name in cube}) == 512


def test_a_slice_runs_over_the_edge_of_a_closed_pool():
    """8 of 12, from 8: 8 to 11, then 0 to 3."""
    cut = Slice(orientation=(8, 1, 1), offset=(8, 2, 3))
    names = slice_devices(torus_fabric(12, 4, 4), cut)
    assert names == tuple(f"{x},2,3" for x in (8, 9, 10, 11, 0, 1, 2, 3))


@pytest.mark.parametrize(
    ("orientation", "offset"),
    [
        ((8, 1, 1), (8, 0, 0)),  # over the edge: 12×2×4 is open
        ((4, 1, 1), (2, 0, 0)),  # half of a cube
        ((1, 4, 1), (0, 0, 0)),  # longer than the pool
    ],
)
def test_a_slice_that_is_nowhere_is_refused(orientation, offset):
    with pytest.raises(ValueError, match="does not lie in"):
        slice_coordinates(torus_fabric(12, 2, 4), Slice(orientation=orientation, offset=offset))
