"""Bounds by prices: whatever the prices, no choice is better, and columns fall behind as said."""

from __future__ import annotations

import numpy as np
import pytest

from planner.programs.placement import Counts, placement_objective, violations
from planner.programs.relaxation import priced, relaxation
from planner.solvers.placement import solve_placement
from planner.solvers.solution import Status
from tests.solvers.test_placement import _random, _rooms


@pytest.mark.parametrize("seed", range(40))
def test_any_prices_bound_the_optimum_and_the_columns(seed):
    program = _random(seed)
    best = solve_placement(program, solver="exhaustive")
    rng = np.random.default_rng(seed)
    relaxed = relaxation(program)
    for _ in range(5):
        prices = rng.random(relaxed.n_rows) * rng.choice([0, 1, 10], relaxed.n_rows)
        found = priced(relaxed, prices)
        if best.status is not Status.OPTIMAL:
            continue
        assert found.bound <= best.objective + 1e-7
        falls_behind = (
            max(found.reduced[j] for j, _ in best.answer.chosen) if best.answer.chosen else 0
        )
        assert found.bound + max(falls_behind, 0.0) <= best.objective + 1e-7


def test_the_right_prices_are_the_bound():
    """One copy fits, in the second room: a price of 1/4 a device would say 5/4, rounded room 1."""
    program = _rooms()
    found = priced(relaxation(program), np.zeros(0))
    assert found.bound == -1.0
    assert violations(program, Counts(copies=(0, 1))) == {}
    assert placement_objective(program, Counts(copies=(0, 1))) == -1.0
