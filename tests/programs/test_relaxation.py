"""Bounds by prices: whatever the prices, no choice is better, and columns fall behind as said."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from planner.programs.mixed import MixedProgram, priced
from planner.programs.placement import Counts, placement_objective, violations
from planner.programs.relaxation import relaxation
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
        found = priced(relaxed, -prices)
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
    assert found.bound == pytest.approx(-1.0, rel=1e-12)
    assert found.bound <= -1.0
    assert violations(program, Counts(copies=(0, 1))) == {}
    assert placement_objective(program, Counts(copies=(0, 1))) == -1.0


def test_bounds_by_prices_are_rounded_down():
    """Sums of fractions say what they come to exactly; the bound is below, by next to nothing."""
    for seed in range(10):
        program = _random(seed)
        relaxed = relaxation(program)
        prices = np.random.default_rng(seed).random(relaxed.n_rows)
        found = priced(relaxed, -prices)
        reduced = [Fraction(one) for one in relaxed.cost.tolist()]
        entries = zip(relaxed.row, relaxed.column, relaxed.value.tolist(), strict=True)
        for row, column, value in entries:
            reduced[column] += Fraction(value) * Fraction(float(prices[row]))
        exact = sum(min(d, 0) * Fraction(m) for d, m in zip(reduced, relaxed.upper, strict=True))
        exact -= sum(Fraction(p) * Fraction(b) for p, b in zip(prices, relaxed.high, strict=True))
        assert Fraction(found.bound) <= exact
        assert float(exact) - found.bound <= 1e-9 * (1.0 + abs(float(exact)))
        assert all(Fraction(a) <= b for a, b in zip(found.reduced, reduced, strict=True))


@pytest.mark.parametrize("n_columns", [1, 7, 40, 300])
def test_a_sum_of_many_columns_that_no_row_holds_is_rounded_down_too(n_columns):
    """Each gains 0.1 and a copy of each may be taken: in floats ten tenths are less than one."""
    relaxed = MixedProgram(
        name="free",
        row=np.zeros(0, np.int32),
        column=np.zeros(0, np.int32),
        value=np.zeros(0),
        low=np.zeros(0),
        high=np.zeros(0),
        cost=np.full(n_columns + 1, -0.1),
        lower=np.zeros(n_columns + 1),
        upper=np.ones(n_columns + 1),
        is_whole=np.ones(n_columns + 1, np.bool_),
    )
    found = priced(relaxed, np.zeros(0))
    exact = (n_columns + 1) * Fraction(-0.1)
    assert Fraction(found.bound) <= exact
    assert found.bound == pytest.approx(float(exact), rel=1e-12)
    assert all(Fraction(one) <= Fraction(-0.1) for one in found.reduced)
