"""No fleet is cheaper than the fluid bound, however its classes share replicas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.placing.fleets.candidate_sets import CandidateSet, with_joint
from planner.placing.fleets.capacity import Capacities
from planner.placing.fleets.choosing.fluid import fluid_bound
from planner.specs.traffic.records import TrafficClass
from tests.fleets.against_enumeration import Enumeration, SmallFleet, small_fleet
from tests.fleets.scale import given_rates

FEW = range(12)
DEAR = 1e6
ROUNDING = 1.0 + 1e-6


def bound(market: CandidateSet) -> float:
    return fluid_bound(market, DEAR)


@pytest.mark.parametrize("seed", FEW)
def test_no_fleet_of_any_rates_is_cheaper(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where replicas serve all that no scheduler exceeds."""
    from tests.fleets.stationed import fluid_rate

    for name, answer in given_rates(lambda it: fluid_rate(it.station, it.stream.load)).items():
        monkeypatch.setattr(Capacities, name, answer)
    fleet = small_fleet(seed)
    counted = Enumeration(fleet).least_rent()
    if math.isfinite(counted):
        assert 0.0 < bound(fleet.market()) <= counted * ROUNDING


@pytest.mark.parametrize("seed", [0, 4, 7])
def test_classes_told_as_two_are_bounded_alike(seed: int) -> None:
    fleet = small_fleet(seed)
    parts = tuple(part for one in fleet.request.classes for part in _halves(one))
    parted = SmallFleet(
        request=replace(fleet.request, classes=parts), kinds=fleet.kinds, offers=fleet.offers
    )
    assert bound(parted.market()) == pytest.approx(bound(fleet.market()), rel=1e-3)


def _halves(one: TrafficClass) -> tuple[TrafficClass, ...]:
    if one.arrivals.trace is not None:
        return (one,)
    return (
        replace(one, rate_per_s=one.rate_per_s * 0.3),
        replace(one, name=f"{one.name} too", rate_per_s=one.rate_per_s * 0.7),
    )


def test_what_differs_in_its_rate_only_is_planned_as_one() -> None:
    one, *_ = small_fleet(0).request.classes
    whole = replace(one, name="a", rate_per_s=3.0)
    parts = (replace(whole, rate_per_s=1.0), replace(whole, name="b", rate_per_s=2.0))
    (together,) = with_joint(parts, sharing=True)
    assert replace(together, name="a") == whole
    assert len(with_joint((parts[0], replace(parts[1], priority=2)), sharing=True)) == 2


def test_more_traffic_costs_no_less() -> None:
    fleet = small_fleet(4)
    rents = []
    for factor in np.linspace(0.2, 1.0, 4).tolist():
        classes = tuple(
            replace(it, rate_per_s=it.rate_per_s * factor) for it in fleet.request.classes
        )
        less = SmallFleet(
            request=replace(fleet.request, classes=classes), kinds=fleet.kinds, offers=fleet.offers
        )
        rents.append(bound(less.market()))
    assert rents == sorted(rents)
    assert rents[0] < rents[-1]


def test_of_deployments_of_one_shape_each_counts_whoever_numbered_it() -> None:
    """Rows of two sources have the same numbers, and are of other stations."""
    fleet = small_fleet(4)
    fast = {name: tuple(mine[:1]) for name, mine in fleet.offers.items()}
    slow = {
        name: tuple(
            replace(it, stations=tuple(s.slowed(decode=30.0, reading=30.0) for s in it.stations))
            for it in mine
        )
        for name, mine in fast.items()
    }
    both = {name: (*fast[name], *slow[name]) for name in fast}
    alone, beside = (
        bound(SmallFleet(request=fleet.request, kinds=fleet.kinds, offers=offers).market())
        for offers in (fast, both)
    )
    assert alone > 0.0
    assert beside == pytest.approx(alone)


def test_what_no_devices_serve_is_cheaper_at_no_rent() -> None:
    fleet = small_fleet(0)
    more = tuple(
        replace(it, rate_per_s=1e6) for it in with_joint(fleet.request.classes, sharing=True)
    )
    asked = replace(fleet, request=replace(fleet.request, classes=more))
    assert fluid_bound(asked.market(), math.inf) == math.inf
