"""What one replica of a pool sees is what replicas of simulated pools saw, or worse, not better."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from planner.estimates.queues.largest import largest_rate
from planner.estimates.queues.pooling import replica_load
from planner.estimates.queues.times import percentiles
from planner.specs.routers import AT_RANDOM, LEAST_PRESENT, ROUND_ROBIN, ROUTERS
from planner.specs.traffic.percentiles import PercentileTarget
from tests.estimates.queues.pools_against_simulation import pooled
from tests.estimates.queues.simulated import simulated
from tests.estimates.queues.situations import Situation
from tests.estimates.queues.test_queue_times import one_length
from tests.verifier.simulation.stations import station

N_REPLICAS = 4


def a_replica() -> Situation:
    """Of 4: about 24 decode in passes that are twice as long with 40 of them."""
    one = station(step_s=0.01, each_s=2.5e-4, pass_s=0.004, read_s=2e-5, most_running=64)
    return Situation(station=one, load=one_length(500, 120, rate=8.0), utilisation=0.6)


@cache
def seen(router: str) -> dict[str, list[float]]:
    return pooled(a_replica(), N_REPLICAS, router, 8000)


def said(router: str) -> dict[str, float]:
    one = a_replica()
    whole = one.load.at(one.load.rate_per_s * N_REPLICAS)
    times = percentiles(one.station, replica_load(whole, N_REPLICAS, router))
    return {
        "ttft p90": times.ttft_s(0.9),
        "tpot p90": times.tpot_s(0.9),
        "tpot p50": times.tpot_s(0.5),
    }


def test_streams_are_thinned_as_their_router_thins_them() -> None:
    load = one_length(500, 120, rate=8.0, cv2=3.0)
    parts = {router: replica_load(load, 4, router) for router in ROUTERS}
    assert {one.rate_per_s for one in parts.values()} == {2.0}
    assert parts[AT_RANDOM].arrival_cv2 == pytest.approx(3.0 / 4 + 3.0 / 4)
    assert parts[ROUND_ROBIN].arrival_cv2 == pytest.approx(3.0 / 4)
    assert parts[LEAST_PRESENT].n_alike == 4
    assert parts[LEAST_PRESENT].pool_cv2 == pytest.approx(3.0)
    alone = [percentiles(a_replica().station, replica_load(load, 1, router)) for router in ROUTERS]
    assert len({times.ttft_s(0.9) for times in alone}) == 1
    with pytest.raises(ValueError, match="no replicas"):
        replica_load(load, 0, AT_RANDOM)


@pytest.mark.parametrize("router", ROUTERS)
def test_times_of_a_pool_are_those_of_the_simulator(router: str) -> None:
    """TPOT within 7 %; TTFT within a quarter, and hardly ever better than it is."""
    found, real = said(router), seen(router)
    assert found["tpot p50"] == pytest.approx(real["tpot p50"][0], rel=0.07)
    assert found["tpot p90"] == pytest.approx(real["tpot p90"][0], rel=0.07)
    assert 0.95 < found["ttft p90"] / real["ttft p90"][0] < 1.25


def test_replicas_with_as_many_requests_each_spread_less() -> None:
    """As simulated, where the last tenth decodes faster than behind a router that is blind."""
    for of in (lambda router: said(router)["tpot p90"], lambda router: seen(router)["tpot p90"][0]):
        assert of(LEAST_PRESENT) < 0.97 * of(AT_RANDOM)


def test_a_replica_of_many_carries_more_than_one_by_itself() -> None:
    one = a_replica()
    goal = [PercentileTarget(quantity="tpot", share=0.95, at_most_s=0.02)]
    rates = [
        largest_rate(one.station, replica_load(one.load, n, LEAST_PRESENT), goal) for n in (1, 8)
    ]
    assert rates[1] > 1.03 * rates[0]


@pytest.mark.parametrize("cv2", [0.1, 0.5])
def test_steady_arrivals_wait_less(cv2: float) -> None:
    one = station(step_s=0.01, each_s=2.5e-4, pass_s=0.02, read_s=2e-5, most_running=64)
    load = one_length(500, 120, rate=8.0, cv2=cv2)
    asked = Situation(station=one, load=load, utilisation=0.6)
    real = simulated(asked, seed=1, n=8000, most=8000)
    times, poisson = percentiles(one, load), percentiles(one, one_length(500, 120, rate=8.0))
    assert times.ttft_s(0.9) == pytest.approx(real.ttft_s[1], rel=0.12)
    assert times.tpot_s(0.9) == pytest.approx(real.tpot_s[1], rel=0.05)
    assert times.tpot_s(0.9) < poisson.tpot_s(0.9)
    assert np.ptp(times.population.probability) > np.ptp(poisson.population.probability)
