"""Percentiles of stations are those of the books where books have them, and of the simulator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.equations.queueing import one_server, several_servers
from planner.estimates.queues.laws import Law, on_grid, sliced
from planner.estimates.queues.loads import Load
from planner.estimates.queues.rates import stable_rate
from planner.estimates.queues.times import percentiles
from planner.estimates.serving.deployments import deployments
from planner.estimates.serving.serving import Serving
from planner.estimates.serving.stations import stations
from planner.specs.roles import DECODE, PREFILL
from planner.specs.stations import Station
from tests.estimates.queues.against_simulation import errors
from tests.estimates.queues.simulated import simulated
from tests.estimates.queues.situations import Situation, situation
from tests.estimates.serving.situations import BF16, clock, model
from tests.verifier.simulation.stations import station

GEOMETRIC = np.arange(1, 3000, dtype=float)


def one_length(n_input: float, n_output: float, rate: float = 1.0, cv2: float = 1.0) -> Load:
    return Load(
        rate_per_s=rate,
        n_input=np.array([n_input]),
        n_output=np.array([n_output]),
        weight=np.ones(1),
        arrival_cv2=cv2,
    )


def random_answers(rate: float, mean: float) -> Load:
    """Geometric answers behind prompts of one token."""
    share = (1.0 - 1.0 / mean) ** (GEOMETRIC - 1.0) / mean
    return Load(
        rate_per_s=rate, n_input=np.ones(len(share)), n_output=GEOMETRIC + 1.0, weight=share
    )


def test_a_prompt_alone_takes_its_pass_and_a_chunked_one_several() -> None:
    one = station(pass_s=0.1, read_s=1e-4, request_s=0.02, request_token_s=1e-5)
    times = percentiles(one, one_length(1000, 11, rate=1e-6))
    assert times.ttft_s(0.5) == pytest.approx(0.2 + 0.02 + 0.01, rel=1e-3)
    assert times.tpot_s(0.5) == pytest.approx(0.01, rel=1e-3)
    assert times.request_s(0.5) == pytest.approx(0.23 + 10 * 0.01, rel=1e-3)
    long = percentiles(one, one_length(20_000, 2, rate=1e-6))
    assert long.ttft_s(0.5) == pytest.approx(3 * 0.1 + 2.0 + 0.02 + 0.2, rel=0.01)


@pytest.mark.parametrize("busy", [0.3, 0.8])
def test_prompts_that_fill_a_pass_each_wait_for_one_server(busy: float) -> None:
    """M/D/1: chunks of the length of the prompts, 10 ms each."""
    one = station(pass_s=0.01, chunk_tokens=100, role=PREFILL)
    times = percentiles(one, one_length(100, 1, rate=busy / 0.01))
    wait = one_server(busy / 0.01, 0.01).mean_s
    assert times.ttft.mean - 0.01 == pytest.approx(wait, rel=0.05)
    assert times.utilisation == pytest.approx(busy)
    assert math.isnan(times.tpot_s(0.5))


def test_places_of_random_answers_are_a_queue_with_so_many_servers() -> None:
    """M/M/c of 8 places, answers of 200 passes of 1 ms; half a pass is added by the next look."""
    one = station(most_running=8, step_s=0.001, role=DECODE, reading=None)
    times = percentiles(one, random_answers(32.0, 200.0))
    wait = several_servers(8, 32.0, 0.2)
    assert times.wait_probability == pytest.approx(wait.probability, rel=0.03)
    assert times.ttft.mean == pytest.approx(2.0 * wait.mean_s + 0.0005, rel=0.07)
    assert times.n_running == pytest.approx(32.0 * 0.2, rel=0.02)


def test_engines_that_compose_ahead_wait_for_one_pass_more() -> None:
    one = station(pass_s=0.001)
    load = one_length(10, 2000, rate=1.0)
    late = percentiles(replace(one, composes_ahead=True), load)
    assert late.ttft.mean - percentiles(one, load).ttft.mean == pytest.approx(0.01, rel=0.1)


def test_more_than_is_served_never_ends() -> None:
    times = percentiles(station(most_running=1), one_length(10, 101, rate=1.5))
    assert times.utilisation > 1.0
    assert times.ttft_s(0.5) == times.tpot_s(0.5) == times.request_s(0.1) == math.inf


@pytest.mark.parametrize("seed", [1, 5, 8, 9, 102, 107])
def test_times_grow_with_the_rate(seed: int) -> None:
    one = situation(seed)
    most = one.load.rate_per_s / one.utilisation
    found = [
        [getattr(times, name)(share) for name in ("ttft_s", "tpot_s") for share in (0.5, 0.95)]
        for times in (
            percentiles(one.station, one.load.at(part * most)) for part in (0.1, 0.4, 0.7, 0.95)
        )
    ]
    assert np.all(np.diff(np.array(found), axis=0) > -0.01 * np.array(found)[:-1])


@pytest.mark.parametrize("seed", [1, 3, 9, 64, 100, 102])
def test_percentiles_are_those_of_the_simulator(seed: int) -> None:
    """Within 10 %: mixed, prompts alone, a replica that only decodes; others by the command."""
    one = situation(seed)
    seen = simulated(one, seed=seed, n=12_000, most=12_000)
    off = errors(one, seen, percentiles(one.station, one.load))
    judged = [abs(off[f"{name} p{p}"]) for name in ("ttft", "tpot") for p in (50, 90, 99)]
    assert np.nanmax(judged) < 0.12
    assert np.nanmedian(judged) < 0.05


@pytest.mark.parametrize("cv2", [2.0, 4.0, 16.0])
def test_bursts_make_prompts_wait_as_in_the_simulator_and_not_less(cv2: float) -> None:
    """Requests that come together wait for each other longer than those that come soon after."""
    one = station(pass_s=0.01, read_s=5e-5, step_s=0.015, most_running=64, chunk_tokens=2048)
    load = one_length(1000, 200, rate=6.0, cv2=cv2)
    seen = simulated(
        Situation(station=one, load=load, utilisation=0.5), seed=1, n=20_000, most=20_000
    )
    times = percentiles(one, load)
    assert 0.8 * seen.ttft_s[1] < times.ttft_s(0.9) < 1.5 * seen.ttft_s[1]
    steady = percentiles(one, one_length(1000, 200, rate=6.0))
    assert times.ttft_s(0.9) > 1.3 * steady.ttft_s(0.9)


def test_loads_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="as many inputs"):
        Load(rate_per_s=1.0, n_input=np.ones(2), n_output=np.ones(1), weight=np.ones(2))
    with pytest.raises(ValueError, match="fewer than 1 of n_input"):
        one_length(0, 5)
    with pytest.raises(ValueError, match="negative rate"):
        one_length(5, 5, rate=-1.0)


def test_laws_keep_means() -> None:
    values, weights = np.array([3.0, 7.25, 900.0]), np.array([0.5, 0.3, 0.2])
    law = Law(values, weights)
    assert on_grid(values, weights, 2.0, 512) @ (2.0 * np.arange(512)) == pytest.approx(law.mean)
    assert law.grouped((0.0, 0.6, 1.0)).mean == pytest.approx(law.mean)
    assert law.percentiles((0.5, 0.51, 0.81)) == (3.0, 7.25, 900.0)
    shares = np.array([0.2, 0.5, 0.3])
    p = np.array([0.1, 0.2, 0.3, 0.4])
    assert sliced(p, shares) @ shares == pytest.approx(p @ np.arange(4))


def test_in_the_slice_of_none_there_is_none_however_sums_are_rounded() -> None:
    """With the least trace of a sequence, who comes to an idle station would wait for its pass."""
    for idle in np.linspace(0.02, 0.999, 400):
        counts = np.array([idle, *(1.0 - idle) * np.array([0.5, 0.3, 0.2])])
        shares = np.array([idle, *(1.0 - idle) * np.array([0.15, 0.35, 0.35, 0.15])])
        assert sliced(counts, shares)[0] == 0.0


def a_pipeline(n_lanes: int) -> Station:
    return station(pass_s=0.01, read_s=1e-4, n_lanes=n_lanes, role=PREFILL)


def test_lanes_read_several_prompts_at_once_and_none_faster() -> None:
    load = one_length(8192, 1, rate=1e-6)
    assert percentiles(a_pipeline(4), load).ttft_s(0.5) == pytest.approx(0.01 + 0.8192, rel=1e-3)
    busy = [percentiles(a_pipeline(k), load.at(1.0)).utilisation for k in (1, 4)]
    assert busy[0] == pytest.approx(4.0 * busy[1])


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_percentiles_of_an_engine_are_those_of_the_simulator(engine: str) -> None:
    """Llama 70B on four H100, lognormal lengths, at six tenths of what it keeps up with."""
    timer = clock("h100-nvl8-x1", engine)
    one = stations(
        Serving(model=model("llama-3.1-70b"), formats=BF16, engine=timer.engine, clock=timer),
        deployments(formats=BF16, n_tensor=[4], batch=[200], chunk_tokens=8192),
        names=["four"],
        hbm_bytes=timer.device.hbm_bytes,
        n_input_tokens=1000.0,
        n_longest_tokens=8192.0,
    )[0]
    one = replace(one, request_s=0.0, request_token_s=0.0)  # which come before the queue
    draw = np.random.default_rng(1)
    load = Load(
        rate_per_s=1.0,
        n_input=np.clip(np.round(np.exp(draw.normal(6.9, 0.8, 64))), 10, 6000),
        n_output=np.clip(np.round(np.exp(draw.normal(5.2, 0.7, 64))), 2, 2000),
        weight=np.ones(64),
    )
    load = load.at(0.6 * stable_rate(one, load))
    asked = Situation(station=one, load=load, utilisation=0.6)
    seen = simulated(asked, seed=1, n=8000, most=8000)
    off = errors(asked, seen, percentiles(one, load))
    judged = [abs(off[f"{name} p{p}"]) for name in ("ttft", "tpot") for p in (50, 90, 99)]
    assert np.nanmax(judged) < 0.12


def test_gaps_of_a_pipeline_are_as_long_as_all_its_lanes_take() -> None:
    one = situation(102)
    piped = replace(one.station, n_lanes=4)
    asked = Situation(station=piped, load=one.load, utilisation=one.utilisation)
    seen = simulated(asked, seed=2, n=5000, most=5000)
    assert percentiles(piped, one.load).itl_s(0.99) == pytest.approx(seen.itl_s[2], rel=0.1)
