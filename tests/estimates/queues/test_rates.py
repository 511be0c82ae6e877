"""Rates: no scheduler exceeds the fluid one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.estimates.fluid_rates import Load, fluid_rates
from tests.estimates.queues.simulated import served_rate
from tests.estimates.queues.situations import situation
from tests.fleets.stationed import fluid_rate
from tests.verifier.simulation.stations import station


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
    load = Load(
        rate_per_s=1.0, n_input=np.array([300]), n_output=np.array([101]), weight=np.ones(1)
    )
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


@pytest.mark.parametrize("seed", [1, 3, 8, 9, 33])
def test_no_station_serves_more_than_the_fluid_rate_while_all_wait(seed: int) -> None:
    one = situation(seed)
    most = fluid_rate(one.station, one.load)
    assert 0.3 * most < served_rate(one, n=3000) <= 1.03 * most  # lengths are drawn


def test_rates_of_many_stations_and_loads_are_those_of_each_by_itself() -> None:
    some = [situation(seed) for seed in range(18, 26)]
    assert len({it.station.role for it in some}) == 3
    found = fluid_rates([it.station for it in some], [it.load for it in some])
    alone = [[fluid_rate(one.station, other.load) for other in some] for one in some]
    assert found.tolist() == alone
