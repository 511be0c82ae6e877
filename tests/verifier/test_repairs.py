"""Points of the frontier of a repair are what its moves and its replicas come to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import verify
from planner.results.repairs import RepairPoint
from tests.verifier.answers import answer

REPAIR = answer("repair on servers")
(POINT,) = REPAIR.frontier


def told(*points: RepairPoint) -> dict[str, str]:
    found = verify(replace(REPAIR, frontier=points))
    return {one.pointer: one.fact for one in found.falsehoods}


@pytest.mark.parametrize("name", ["moved_bytes", "objective"])
def test_the_chosen_point_is_the_placement_and_its_moves(name):
    assert told(POINT) == {}
    altered = replace(POINT, **{name: getattr(POINT, name) * 1.001})
    assert f"/answer/frontier/0/{name}" in told(altered)


def test_a_better_point_moves_more_bytes_than_the_one_before_it():
    """Eight devices for these bytes; nine for fewer, and for no fewer they are no point."""
    dearer = {"objective": 9.0, "loss_fraction": 1 / 8, "is_chosen": False}
    fewer = replace(POINT, moved_bytes=1e9, **dearer)
    assert told(fewer, POINT) == {}
    assert set(told(replace(POINT, **dearer), POINT)) == {"/answer/frontier/1/objective"}
    assert told(POINT, fewer)
