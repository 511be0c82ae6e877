"""Waits of random arrivals: published values, the limits, and queues that are played out."""

from __future__ import annotations

import heapq
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from planner.equations.queueing import (
    Wait,
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
