"""Rates: no scheduler exceeds the fluid one, stations keep up until theirs, targets bind theirs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.estimates.queues.largest import largest_rate, rate_bound
from planner.estimates.queues.rates import fluid_rate, stable_rate
from planner.estimates.queues.times import percentiles
from planner.specs.traffic.percentiles import PercentileTarget
from tests.estimates.queues.simulated import served_rate
from tests.estimates.queues.situations import situation
from tests.estimates.queues.test_queue_times import one_length
from tests.verifier.simulation.stations import station


def target(quantity: str, share: float, at_most_s: float) -> PercentileTarget:
    return PercentileTarget(quantity=quantity, share=share, at_most_s=at_most_s)


def test_fluid_rates_are_what_the_linear_program_of_passes_gives() -> None:
    """Passes of n decodes and p tokens in 10 ms + 0.1 n ms + 5 ms + 0.05 p ms, mixed in any way."""
    one = station(
        each_s=1e-4,
        pass_s=0.005,
        read_s=5e-5,
        most_running=64,
        chunk_tokens=512,
        mixes_prefill=True,
    )
    load = one_length(300, 101)
    kinds = [
        (n, p, (0.01 + n * 1e-4) * (n > 0) + (0.005 + p * 5e-5) * (p > 0))
        for n in range(65)
        for p in (0, *range(1, 513, 7), 512)
        if n or p
    ]
    n, p, took = np.array(kinds, dtype=float).T
    found = linprog(
        np.append(np.zeros(len(n)), -1.0),
        A_ub=[np.append(took, 0.0), np.append(-n, 100.0), np.append(-p, 300.0)],
        b_ub=[1.0, 0.0, 0.0],
    )
    assert fluid_rate(one, load) == pytest.approx(-found.fun, rel=1e-3)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_station_keeps_up_with_more_than_the_fluid_rate(first: int) -> None:
    for seed in range(first, first + 50):
        one = situation(seed)
        assert stable_rate(one.station, one.load) <= 1.001 * fluid_rate(one.station, one.load)


@pytest.mark.parametrize("seed", [1, 3, 8, 9, 33])
def test_stations_serve_what_they_keep_up_with_while_all_wait(seed: int) -> None:
    one = situation(seed)
    assert served_rate(one, n=3000) == pytest.approx(stable_rate(one.station, one.load), rel=0.05)


@pytest.mark.parametrize("seed", [1, 9, 102])
def test_the_largest_rate_is_within_targets_and_more_is_not(seed: int) -> None:
    one = situation(seed)
    usual = percentiles(one.station, one.load)
    asked = [target("ttft", 0.95, usual.ttft_s(0.95)), target("tpot", 0.95, usual.tpot_s(0.95))]
    found = largest_rate(one.station, one.load, asked)
    assert found == pytest.approx(one.load.rate_per_s, rel=0.02)
    assert found <= rate_bound(one.station, one.load, asked)
    over = percentiles(one.station, one.load.at(1.03 * found))
    assert any(
        value > goal.at_most_s
        for value, goal in zip((over.ttft_s(0.95), over.tpot_s(0.95)), asked, strict=True)
    )


@pytest.mark.parametrize("quantity", ["ttft", "tpot", "itl", "e2e"])
def test_looser_targets_never_serve_less(quantity: str) -> None:
    one = situation(9)
    usual = percentiles(one.station, one.load).request_s(0.9)
    scale = {"e2e": usual, "ttft": 0.5, "tpot": 0.03, "itl": 0.1}[quantity]
    rates = [
        largest_rate(one.station, one.load, [target(quantity, 0.9, part * scale)])
        for part in (0.5, 1.0, 2.0, 100.0)
    ]
    assert rates == sorted(rates)
    assert rates[-1] > 0.9 * stable_rate(one.station, one.load)


def test_targets_below_the_fastest_pass_leave_no_rate() -> None:
    one = station(pass_s=0.1, step_s=0.01)
    load = one_length(100, 50)
    assert largest_rate(one, load, [target("ttft", 0.5, 0.09)]) == 0.0
    assert largest_rate(one, load, [target("tpot", 0.5, 0.009)]) == 0.0


def test_without_targets_a_station_serves_what_it_keeps_up_with() -> None:
    one = station(most_running=4)
    load = one_length(1, 101)
    assert largest_rate(one, load, []) == pytest.approx(stable_rate(one, load))
    assert math.isfinite(fluid_rate(one, load))
