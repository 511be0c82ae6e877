"""Pools that get each class in a part of its own make small fleets cheaper, and nothing late."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from planner.equations.arrays import FloatArray, IntArray
from planner.placing.fleets.choosing import confirming
from planner.placing.fleets.choosing.dividing import divisions, rounded, sizes_of
from planner.placing.fleets.request_classes import WHOLE
from planner.placing.fleets.solutions import Solution
from planner.running.deadlines import out_of_time
from planner.solvers.solution import Status
from tests.fleets.forced import plan, small_market
from tests.fleets.forcing import Search

UNEQUAL = 129
"""A market in which one class more in one pool than in the other saves a replica."""

EVEN = np.array([[0.5, 0.5], [0.5, 0.5]])


def test_parts_of_classes_are_as_cheap_as_by_force(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = small_market(UNEQUAL)
    found, least = plan(fleet), Search(fleet=fleet).least()
    assert found.rent == pytest.approx(least.rent)
    assert found.fleet is not None
    assert any({*it.parts} != {WHOLE} for it in found.fleet.streams)
    assert found.fleet.chosen.solution.status is Status.FEASIBLE  # nobody proves mixtures
    monkeypatch.setattr(confirming, "in_mixtures", lambda chosen: iter(()))
    assert plan(fleet).rent > found.rent * 1.05


def test_a_fleet_stands_where_time_ends_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(chosen: Solution) -> Iterator[object]:
        raise out_of_time()
        yield chosen

    fleet = small_market(UNEQUAL)
    monkeypatch.setattr(confirming, "in_mixtures", ended)
    found = plan(fleet)
    assert found.rent < math.inf
    assert found.fleet is not None


def test_what_comes_of_each_class_is_all_that_is_asked() -> None:
    fleet = small_market(UNEQUAL)
    found = plan(fleet).fleet
    assert found is not None
    for one in fleet.request.classes:
        sent = sum(pool.rates_per_s.get(one.name, 0.0) for pool in found.pools)
        assert sent == pytest.approx(one.rate_per_s)


def _lateness(parts: IntArray) -> FloatArray:
    """Of a pool that is only in time with one class, and another that may have some of both."""
    alone, both = parts[0] / WHOLE, parts[1] / WHOLE
    return np.array([[5.0 * alone[0], 5.0 * alone[0]], [max(0.0, both.sum() - 1.1)] * 2])


def test_what_is_late_goes_where_it_is_not() -> None:
    seen = [
        (late, parts.tolist())
        for improved in divisions(EVEN, np.ones((2, 2)), _lateness, lambda: False)
        for parts, late in improved
    ]
    late, parts = min(seen)
    assert late == 0.0
    assert parts[0][0] == 0
    assert sum(parts[1]) <= 1.1 * WHOLE
    assert np.sum([it for _, it in seen], axis=1).tolist() == [[WHOLE] * 2] * len(seen)


def test_nothing_more_is_tried_once_it_is_over() -> None:
    first = [[*improved] for improved in divisions(EVEN, np.ones((2, 2)), _lateness, lambda: True)]
    assert {len(it) for it in first} == {1}


def test_parts_are_all_of_each_class() -> None:
    parts = rounded(np.array([[1 / 3, 0.02], [1 / 3, 0.0], [1 / 3, 0.98]]))
    assert parts.sum(axis=0).tolist() == [WHOLE, WHOLE]
    assert parts[:, 1].tolist() == [0, 0, 20]


def test_pools_of_counts_are_one_of_each_sort_then_two_of_one() -> None:
    assert [*sizes_of([2, 0, 1])] == [[(0, 2), (2, 1)], [(0, 1), (0, 1), (2, 1)]]
