"""Waits of random arrivals: published values, the limits, and queues that are played out."""

from __future__ import annotations

import heapq
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from planner.equations.queueing import (
    Wait,
    family_dispersion,
    group_of_dispersion,
    interrupted,
    median_s,
    one_server,
    several_servers,
)


def played(n_servers: int, rate: float, n: int = 60_000) -> np.ndarray:
    """Waits of requests for servers that take a second each."""
    draw, free, now, found = Random(3), [0.0] * n_servers, 0.0, []
    for _ in range(n):
        now += draw.expovariate(rate)
        begins = max(now, heapq.heappop(free))
        heapq.heappush(free, begins + 1.0)
        found.append(begins - now)
    return np.array(found[n // 10 :])


@pytest.mark.parametrize(("n_servers", "rate"), [(1, 0.3), (1, 0.8), (4, 3.4), (32, 30.0)])
def test_a_queue_played_out_waits_as_long(n_servers, rate):
    waits = played(n_servers, rate)
    found = several_servers(n_servers, rate, 1.0)
    assert found.mean_s == pytest.approx(waits.mean(), rel=0.12)
    assert found.probability == pytest.approx(np.mean(waits > 0), abs=0.06)


def test_one_of_several_is_one():
    for load in (0.1, 0.5, 0.9):
        one, several = one_server(2 * load, 0.5), several_servers(1, 2 * load, 0.5)
        assert several.mean_s == pytest.approx(one.mean_s)
        assert several.probability == pytest.approx(one.probability) == pytest.approx(load)


def test_erlangs_waiting_probability_is_that_of_his_tables():
    """Ten servers, eight Erlang: 40.9 % wait; Erlang's C."""
    found = several_servers(10, 8.0, 1.0)
    assert found.probability == pytest.approx(0.409, abs=5e-4)
    assert found.mean_s == pytest.approx(0.409 / 2 / 2, abs=5e-4)


def test_waits_grow_with_what_arrives_and_never_end_where_more_does_than_is_served():
    rates = np.linspace(0.5, 15.9, 40)
    means = [several_servers(16, rate, 1.0).mean_s for rate in rates]
    assert all(few < many for few, many in pairwise(means))
    for wait in (lambda: several_servers(16, 16.0, 1.0), lambda: one_server(2.0, 0.5)):
        with pytest.raises(ValueError, match="more arrives"):
            wait()


@pytest.mark.parametrize(
    ("one", "other"),
    [((0.7, 1.0), (0.6, 0.5)), ((0.9, 2.0), (0.9, 2.0)), ((0.8, 1.0), (0.0, 0.0))],
)
def test_the_middle_of_two_waits_is_the_one_that_is_drawn(one, other):
    waits = [Wait(probability=p, mean_s=p * m) for p, m in (one, other)]
    draw = np.random.default_rng(5)
    total = sum(
        np.where(draw.random(200_000) < p, draw.exponential(max(m, 1e-9), 200_000), 0.0)
        for p, m in (one, other)
    )
    assert median_s(waits) == pytest.approx(np.median(total), rel=0.02)


def test_half_that_do_not_wait_are_the_middle():
    assert median_s((one_server(0.2, 1.0), one_server(0.3, 1.0))) == 0.0


def test_work_that_is_interrupted_takes_what_is_left_of_the_server():
    """u / (1 − ρ) on average, with variance λ u E[r²] / (1 − ρ)³, and u where nobody comes."""
    took, likely = interrupted(np.array([2.0]), 3.0, np.array([0.2]), 0.5)
    mean = float((took * likely).sum())
    assert mean == pytest.approx(2.0 / 0.4, rel=0.02)
    variance = float((took**2 * likely).sum()) - mean**2
    assert variance == pytest.approx(3.0 * 2.0 * 0.2**2 * 1.5 / 0.4**3, rel=0.1)
    took, likely = interrupted(np.array([0.5]), 3.0, np.array([0.2]), 0.5)
    assert likely[took == 0.5].sum() == pytest.approx(np.exp(-1.5), rel=0.02)


def test_interruptions_played_out_take_as_long():
    """Work of 1 s, interruptions of 0.1 s that come four times a second, also in each other."""
    draw, found = Random(5), []
    for _ in range(20_000):
        left, now = 1.0, 0.0
        arrival = draw.expovariate(4.0)
        while arrival < now + left:
            left += 0.1
            now, left = arrival, left - (arrival - now)
            arrival += draw.expovariate(4.0)
        found.append(now + left)
    took, likely = (x.ravel() for x in interrupted(np.ones(1), 4.0, np.array([0.1]), 1e-9))
    order = np.argsort(took)
    below = np.cumsum(likely[order])
    for share in (0.5, 0.9, 0.99):
        law = took[order][np.searchsorted(below, share)]
        assert law == pytest.approx(float(np.quantile(found, share)), abs=0.11)


def test_families_are_as_variable_as_those_played_out():
    """Each arrival takes 0.5 s in which others come, one a second."""
    draw, sizes = np.random.default_rng(2), []
    for _ in range(20_000):
        alive, size = 1, 1
        while alive:
            alive = int(draw.poisson(0.5 * alive))
            size += alive
        sizes.append(size)
    seen = np.mean(np.square(sizes)) / np.mean(sizes)
    assert float(family_dispersion(np.array(0.5), 0.0)) == pytest.approx(seen, rel=0.1)


def test_groups_are_as_variable_as_asked():
    group = float(group_of_dispersion(7.0))
    sizes = np.random.default_rng(1).geometric(1.0 / group, 200_000)
    assert np.mean(sizes**2) / np.mean(sizes) == pytest.approx(7.0, rel=0.03)
