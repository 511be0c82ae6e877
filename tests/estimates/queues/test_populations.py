"""How many decode, and for how many there is room, are those of stations played out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.estimates.queues.loads import Load
from planner.estimates.queues.population import population
from planner.estimates.queues.room import Room
from planner.estimates.queues.served import Served
from planner.estimates.queues.times import percentiles
from planner.specs.roles import DECODE
from tests.estimates.queues.simulated import running
from tests.estimates.queues.situations import Situation
from tests.estimates.queues.test_queue_times import one_length
from tests.verifier.simulation.stations import station


@pytest.mark.parametrize("mixes", [True, False])
def test_prompts_make_the_number_that_decodes_vary_more(mixes: bool) -> None:
    """Prompts of 0.1 s take half of the time: requests begin in groups."""
    one = station(read_s=1e-4, step_s=0.01, mixes_prefill=mixes)
    load = one_length(1000, 201, rate=5.0)
    seen = running(Situation(station=one, load=load, utilisation=0.5), n=12_000)
    law = population(Served(one, load))
    n = np.arange(len(law.probability))
    deviation = math.sqrt(law.probability @ (n - law.mean) ** 2)
    assert law.mean == pytest.approx(seen.mean(), rel=0.05)
    assert deviation == pytest.approx(seen.std(), rel=0.1)
    assert deviation > 1.2 * math.sqrt(law.mean)


def test_long_answers_see_the_usual_number_and_short_ones_what_they_find() -> None:
    one = station(step_s=0.01, each_s=2e-4, role=DECODE, reading=None)
    load = Load(
        rate_per_s=10.0,
        n_input=np.ones(2),
        n_output=np.array([201.0, 20_001.0]),
        weight=np.array([0.999, 0.001]),
    )
    states = percentiles(one, load).decodes
    short, long = np.array([law.values for law, _ in states]).T
    assert np.ptp(long) < 0.5 * np.ptp(short)
    assert np.mean(long) == pytest.approx(np.mean(short), rel=0.15)


def test_room_is_for_as_many_as_their_bytes_let_in() -> None:
    """Against sums of random requests: sizes seen by their length, answers half written."""
    draw = np.random.default_rng(4)
    load = Load(
        rate_per_s=1.0,
        n_input=draw.integers(100, 2000, 40).astype(float),
        n_output=np.full(40, 201.0),
        weight=np.ones(40),
    )
    one = station(room_bytes=12_000.0, most_running=20)
    found = Room(one, load).fits(0.0)
    head = load.n_input**0.5
    for n in (5, 9, 12):
        sums = load.n_input[draw.integers(0, 40, (20_000, n))].sum(axis=1)
        sums = sums + draw.uniform(0.0, 201.0, (20_000, n)).sum(axis=1)
        new = draw.choice(load.n_input, 20_000, p=head / head.sum())
        assert found[n] == pytest.approx(np.mean(sums + new <= 12_000.0), abs=0.02)
