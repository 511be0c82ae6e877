from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from planner.equations import collectives

LINK = 45e9

positive = st.floats(1e-3, 1e15)
sizes = st.integers(1, 512)


def test_seven_eighths_of_a_gathered_tensor_cross_the_links_of_eight_devices():
    """8 GB over 8 devices: 7 GB arrive, in 0.1 s at 70 GB/s."""
    assert collectives.transferred_fraction(8) == pytest.approx(7 / 8)
    assert collectives.all_gather_s(8e9, 8, bytes_per_s=70e9) == pytest.approx(0.1)


def test_one_device_transfers_nothing():
    assert collectives.all_gather_s(1e9, 1, bytes_per_s=1.0) == 0


@given(n_bytes=positive, k=sizes, rate=positive)
def test_a_gather_takes_less_than_its_whole_volume_and_tends_to_it(n_bytes, k, rate):
    time = collectives.all_gather_s(n_bytes, k, bytes_per_s=rate)
    assert time <= n_bytes / rate
    assert time >= n_bytes / rate * (1 - 1 / k) * (1 - 1e-12)


def test_volumes_and_groups_broadcast():
    """Two volumes by three groups: every entry as if it were alone."""
    volumes, groups = np.array([[1e9], [3e9]]), np.array([1, 2, 16])
    together = collectives.all_gather_s(volumes, groups, bytes_per_s=LINK)
    apart = [
        [collectives.all_gather_s(v, k, bytes_per_s=LINK) for k in groups] for v in volumes[:, 0]
    ]
    assert together.shape == (2, 3)
    np.testing.assert_array_equal(together, np.array(apart, float))


def test_handing_bytes_to_a_neighbour_costs_one_latency():
    """90 GB at 45 GB/s and a microsecond."""
    time = collectives.point_to_point_s(90e9, bytes_per_s=LINK, hop_s=1e-6)
    assert time == pytest.approx(2.000001)


@pytest.mark.parametrize(
    ("wraps", "is_switch", "links"),
    [(True, False, 2), (False, False, 1), (False, True, 1), (True, True, 1)],
)
def test_only_a_closed_axis_of_links_sends_both_ways_around(wraps, is_switch, links):
    assert collectives.axis_ring_bytes_per_s(LINK, wraps, is_switch) == links * LINK


# bandwidth of groups: axes of 90, 45 and 30 GB/s

RATES = np.array([90e9, 45e9, 30e9])


def group(*axes):
    return np.isin(np.arange(3), axes)


@pytest.mark.parametrize(
    ("convention", "axes", "expected"),
    [
        ("flat", (1,), 165e9),
        ("flat", (0, 1, 2), 165e9),
        ("axis", (1,), 45e9),
        ("axis", (0, 2), 120e9),
        ("axis", (0, 1, 2), 165e9),
        ("ring", (1,), 45e9),
        ("ring", (1, 2), 45e9),
        ("ring", (0, 1, 2), 90e9),
        ("tree", (0,), 90e9),
        ("tree", (0, 2), 30e9),
    ],
)
def test_a_convention_gives_a_group_its_bandwidth(convention, axes, expected):
    assert collectives.GROUP_BANDWIDTH[convention](RATES, group(*axes)) == expected


@pytest.mark.parametrize("convention", collectives.GROUP_BANDWIDTH)
def test_a_group_without_axes_waits_for_nothing(convention):
    assert collectives.GROUP_BANDWIDTH[convention](RATES, group()) == np.inf


@pytest.mark.parametrize("convention", collectives.GROUP_BANDWIDTH)
def test_groups_are_taken_along_the_last_dimension(convention):
    bandwidth = collectives.GROUP_BANDWIDTH[convention]
    members = np.array([group(0), group(1, 2), group()])
    rates = np.array([RATES, 2 * RATES, RATES])
    apart = [bandwidth(r, m) for r, m in zip(rates, members, strict=True)]
    np.testing.assert_array_equal(bandwidth(rates, members), np.array(apart, float))


@given(st.lists(positive, min_size=3, max_size=3), st.sets(st.integers(0, 2), min_size=1))
def test_conventions_are_ordered_from_the_slowest_tier_to_the_whole_device(rates, axes):
    by_name = {
        name: float(bandwidth(np.array(rates), group(*axes)))
        for name, bandwidth in collectives.GROUP_BANDWIDTH.items()
    }
    assert by_name["tree"] <= by_name["ring"]
    assert by_name["ring"] <= by_name["axis"] * (1 + 1e-12)
    assert by_name["axis"] <= by_name["flat"] * (1 + 1e-12)


def test_one_axis_is_the_same_to_ring_axis_and_tree():
    for name in ("ring", "axis", "tree"):
        assert collectives.GROUP_BANDWIDTH[name](RATES, group(2)) == RATES[2]
