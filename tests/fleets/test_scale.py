"""A market of many configurations is proved in seconds, and its staircase without a gap."""

from __future__ import annotations

from itertools import pairwise

import pytest

from planner.placing.fleets.capacity import Capacities
from planner.placing.fleets.choosing.searching import settled
from tests.fleets.scale import climbed, gap, given_rates, known, large_market, some_rate

MOST_GAP = 1e-3


@pytest.fixture(autouse=True)
def rates_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in given_rates(some_rate).items():
        monkeypatch.setattr(Capacities, name, answer)


def test_many_configurations_are_proved_by_two() -> None:
    chosen = settled(known(large_market(3, 3, 60)))
    assert chosen.program.n_columns > 60  # few stand for others
    assert gap(chosen) <= MOST_GAP
    assert len(chosen.solution.vouched.by) > 1


def test_steps_follow_each_other_and_rise() -> None:
    steps = climbed(known(large_market(2, 2, 20, has_rents=False)), 4)
    assert len(steps) == 4
    for (_, rent, upto), (above, next_rent, _) in pairwise(steps):
        assert above == pytest.approx(upto, rel=1e-5)
        assert next_rent > rent
