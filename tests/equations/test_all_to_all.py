"""Link loads of an all-to-all and hops, against networks that are walked link by link.

A device holds k equal shards, one for each device of its axis. A shard takes the shortest
way; where both ways around a ring are equally long, one half of it takes each.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise, product

import numpy as np
import pytest

from planner.equations import collectives

LENGTHS = range(2, 10)


def ways(k: int, start: int, end: int, wraps: bool) -> list[list[int]]:
    """All shortest ways along one axis, as the devices that they visit."""
    step = 1 if end >= start else -1
    straight = list(range(start, end + step, step))
    if not wraps:
        return [straight]
    up = [(start + i) % k for i in range((end - start) % k + 1)]
    down = [(start - i) % k for i in range((start - end) % k + 1)]
    shortest = min(len(up), len(down))
    return [way for way in (up, down) if len(way) == shortest]


def busiest_link(k: int, wraps: bool) -> float:
    """Load of the busiest directed link, for one byte held by each device."""
    load: dict[tuple[int, int, int], float] = defaultdict(float)
    for start, end in product(range(k), range(k)):
        if start == end:
            continue
        shortest = ways(k, start, end, wraps)
        for direction, way in enumerate(shortest):
            for a, b in pairwise(way):
                # two devices that are closed into a ring have two links, one a direction
                link = (a, b, direction if k == 2 else 0)
                load[link] += 1 / k / len(shortest)
    return max(load.values())


def farthest(k: int, wraps: bool) -> int:
    return max(len(ways(k, 0, end, wraps)[0]) - 1 for end in range(k))


@pytest.mark.parametrize("wraps", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("k", LENGTHS)
def test_the_busiest_link_carries_what_the_formula_says(k, wraps):
    rate = collectives.axis_all_to_all_s_per_byte(k, wraps, False, link_bytes_per_s=1.0)
    assert rate == pytest.approx(busiest_link(k, wraps))


@pytest.mark.parametrize("wraps", [True, False], ids=["ring", "line"])
@pytest.mark.parametrize("k", LENGTHS)
def test_the_farthest_shard_takes_as_many_hops_as_the_formula_says(k, wraps):
    assert collectives.axis_hops(k, wraps, False) == farthest(k, wraps)


def test_a_switch_is_one_hop_and_one_device_none():
    np.testing.assert_array_equal(collectives.axis_hops([1, 2, 8], False, True), [0, 1, 1])
    np.testing.assert_array_equal(collectives.axis_hops(1, [True, False], False), [0, 0])


def test_a_port_of_a_switch_carries_all_shards_but_ones_own():
    """Eight devices: 7/8 byte of each held byte, at 25 GB/s."""
    rate = collectives.axis_all_to_all_s_per_byte(8, False, True, link_bytes_per_s=25e9)
    assert rate == pytest.approx(7 / 8 / 25e9)


def test_one_device_exchanges_nothing():
    for wraps, is_switch in product((True, False), repeat=2):
        rate = collectives.axis_all_to_all_s_per_byte(1, wraps, is_switch, link_bytes_per_s=1.0)
        assert rate == 0


def test_even_lengths_are_an_eighth_of_a_ring_and_a_quarter_of_a_line():
    k = np.array([2, 4, 8, 16])
    ring = collectives.axis_all_to_all_s_per_byte(k, True, False, link_bytes_per_s=2.0)
    line = collectives.axis_all_to_all_s_per_byte(k, False, False, link_bytes_per_s=2.0)
    np.testing.assert_allclose(ring, k / 8 / 2.0)
    np.testing.assert_allclose(line, k / 4 / 2.0)


@pytest.mark.parametrize("wraps", [True, False], ids=["torus", "mesh"])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 4), (3, 5), (2, 2, 4)], ids=str)
def test_on_several_axes_the_busiest_link_is_that_of_the_slowest_axis(sizes, wraps):
    """Shards travel along one axis after the other, and the axes carry them side by side.

    Along each axis a device passes on as much as if it held everything along that axis alone.
    """
    load: dict[tuple[object, ...], float] = defaultdict(float)
    devices = list(product(*map(range, sizes)))
    for start, end in product(devices, devices):
        here = list(start)
        for axis, k in enumerate(sizes):
            shortest = ways(k, start[axis], end[axis], wraps)
            for direction, way in enumerate(shortest if start[axis] != end[axis] else []):
                for a, b in pairwise(way):
                    line = (*here[:axis], *here[axis + 1 :])
                    link = (axis, line, a, b, direction if k == 2 else 0)
                    load[link] += 1 / len(devices) / len(shortest)
            here[axis] = end[axis]
    per_axis = collectives.axis_all_to_all_s_per_byte(
        np.array(sizes), wraps, False, link_bytes_per_s=1.0
    )
    assert max(load.values()) == pytest.approx(per_axis.max())
