"""Fleets as planned are no dearer, and no cheaper, than the cheapest by force."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from planner.placing.fleets.choosing import alternatives
from planner.placing.fleets.choosing.alternatives import most_factor
from tests.fleets.forced import compared, no_cheaper_restricted, plan, same_when_split, small_market
from tests.fleets.forcing import N_PARTS, OfModel, Search

QUICK = (2, 3, 19, 22, 27, 35)
"""Markets of one and two models, with fleets of one pool and of several, few seconds in all."""

SHARED = 27
"""A market of two classes of one model whose cheapest fleet serves both with the same replicas."""

DIVIDED = (0, 1)
"""Markets of which a class is divided."""


@pytest.mark.parametrize("seed", QUICK)
def test_no_fleet_by_force_is_cheaper(seed: int) -> None:
    one = compared(seed, math.inf)
    assert one.is_decided, one
    assert one.loss == pytest.approx(0.0, abs=1e-9), one
    assert one.planned.fluid <= one.forced.rent * (1.0 + 1e-9), one


def test_alternatives_are_called_by_the_degrees_that_they_leave_out() -> None:
    """Devices inside a node times nodes, and stages where there are several."""
    used = [
        SimpleNamespace(model=0, pattern=SimpleNamespace(kind_name="h100-sxm", shape=shape))
        for shape in ((4, 1, 1), (8, 2, 1), (8, 1, 3), "2×2×4")
    ]
    streams = [SimpleNamespace(name="llama"), SimpleNamespace(name="qwen")]
    names = [name for name, _ in alternatives._shapes(used, SimpleNamespace(streams=streams[:1]))]
    said = ["TP 4", "TP 16", "TP 8 PP 3", "2×2×4"]
    assert names == [f"without {words} on h100-sxm" for words in said]
    (first, _), *_ = alternatives._shapes(used, SimpleNamespace(streams=streams))
    assert first == "without TP 4 on h100-sxm for llama"


def test_what_the_product_may_not_do_is_seen_to_be_dearer() -> None:
    fleet = small_market(SHARED)
    least = Search(fleet=fleet).least()
    alone = replace(fleet, request=replace(fleet.request, sharing=False))
    assert plan(alone).rent > least.rent * 1.01
    assert plan(fleet).rent == pytest.approx(least.rent)


def test_what_serves_all_serves_as_much_at_its_rent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the program of the largest share, whose streams are whole, finds less."""
    fleet = plan(small_market(SHARED)).fleet
    assert fleet is not None
    found = most_factor(fleet)
    monkeypatch.setattr(alternatives, "largest_factor", lambda market, rent: 0.99)
    least = most_factor(fleet)
    assert found is not None
    assert least is not None
    assert 1.0 <= least <= found


def test_force_looks_at_every_division() -> None:
    """Of two classes and two pools that have time for all: in fortieths, none of them empty."""
    fleet = small_market(SHARED)
    one = OfModel(fleet, next(iter(fleet.offers)))
    parts = next(it for it in one.sets_of_pools((4, 0)) if len(it) == 2)
    one.deployed = [replace(it, work_s=(0.0,) * len(it.work_s)) for it in one.deployed]
    shares = range(0, N_PARTS + 1, 5)
    both = {
        ((a, b), (N_PARTS - a, N_PARTS - b))
        for a, b in product(shares, repeat=2)
        if 0 < a + b < 2 * N_PARTS
    }
    assert {tuple(it) for it in one.divisions(parts)} == both


@pytest.mark.parametrize("seed", DIVIDED)
def test_a_class_divided_at_random_moves_neither_rent_nor_bound(seed: int) -> None:
    assert same_when_split(seed) is None


@pytest.mark.parametrize("seed", range(5))
def test_less_to_choose_from_is_never_cheaper(seed: int) -> None:
    assert no_cheaper_restricted(seed) is None
