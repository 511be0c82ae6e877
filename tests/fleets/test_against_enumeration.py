"""The least rent of small fleets is that of all of them, counted out."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from planner.placing.fleets.capacity import Capacities, PoolLoad
from planner.placing.fleets.choosing.alternatives import at_factor, largest_factor
from planner.placing.fleets.request_classes import streams_of
from tests.fleets.against_enumeration import Enumeration, compared, small_fleet
from tests.fleets.scale import given_rates
from tests.fleets.stationed import fluid_rate

FEW = range(16)
STEPS = (0, 2, 6, 9)
QUICK = 4
"""A fleet with two rates."""


def _some_rate(one: PoolLoad) -> float:
    """In the place of simulations: any share of the fluid rate."""
    station, load = one.station, one.stream.load
    assert station.decode is not None
    key = (station.decode.seconds, station.chunk_tokens, load.mean_input, load.mean_rounds)
    return fluid_rate(station, load) * random.Random(repr(key)).choice((0.0, 0.3, 0.6, 0.8, 1.0))


@pytest.fixture
def any_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in given_rates(_some_rate).items():
        monkeypatch.setattr(Capacities, name, answer)


@pytest.mark.usefixtures("any_rates")
def test_no_fleet_is_cheaper_whatever_replicas_serve() -> None:
    """By the program that looks for rates where it needs them, and by that which knows them all."""
    found = {seed: compared(small_fleet(seed)) for seed in FEW}
    assert {seed: one for seed, one in found.items() if not one.agrees} == {}
    some = [one for one in found.values() if math.isfinite(one.counted)]
    assert len(some) > len(found) / 2
    assert all(len(one.by) > 1 for one in some)
    assert sum(one.n_found for one in some) < 0.5 * sum(one.n_rates for one in some)


def test_no_fleet_is_cheaper_at_the_rates_of_simulations() -> None:
    found = compared(small_fleet(QUICK))
    assert found.agrees, found


@pytest.mark.usefixtures("any_rates")
@pytest.mark.parametrize("seed", STEPS)
def test_a_step_ends_where_its_rent_serves_no_more(seed: int) -> None:
    fleet = small_fleet(seed)
    counted, market = Enumeration(fleet), fleet.market()
    rent = counted.least_rent()
    upto = largest_factor(market, rent)
    assert upto is not None
    assert counted.least_rent(upto * (1.0 - 1e-6)) <= rent * (1.0 + 1e-9)
    beyond = counted.least_rent(upto * (1.0 + 1e-6))
    assert beyond > rent * (1.0 + 1e-9)
    chosen = at_factor(market, upto * (1.0 + 1e-6))
    assert chosen.is_found == math.isfinite(beyond)
    if chosen.is_found:
        assert chosen.solution.objective == pytest.approx(beyond)


@pytest.mark.parametrize("sharing", [False, True])
def test_streams_are_all_intervals_of_units_and_all_sets_of_classes(sharing: bool) -> None:
    classes = [one for seed in FEW for one in small_fleet(seed).request.classes][:4]
    classes = [replace(one, name=str(i), models=classes[0].models) for i, one in enumerate(classes)]
    found = streams_of(classes, sharing=sharing)
    n_intervals = 0
    for one in classes:
        mine = [each for each in found if {other.name for other in each.classes} == {one.name}]
        units = {unit for each in mine for unit in each.units}
        n_intervals += len(units) * (len(units) + 1) // 2
        alone = [each for each in mine if len(each.units) == 1]
        assert sum(each.rate_per_s for each in alone) == pytest.approx(one.rate_per_s)
        assert {each.units for each in mine} == {
            tuple(range(low, high + 1)) for low in units for high in units if low <= high
        }
    assert len(found) == n_intervals + (2**4 - 1 - 4) * sharing
