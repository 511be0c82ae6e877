"""Published models that HiGHS 1.14.0 answers wrongly with presolve on.

The planner pins HiGHS below 1.14; these keep watch over the pin.
Each is solved through highspy itself, as published, presolve on.
"""

from __future__ import annotations

import highspy
import pytest

INTEGER = highspy.HighsVarType.kInteger
INFINITE = highspy.kHighsInf


@pytest.fixture
def highs():
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("presolve", "on")
    return solver


def optimum(solver, cost):
    solver.minimize(cost)
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value


def test_covering_by_an_integer_and_a_continuous(highs):
    """HiGHS #2957: x + y ≥ 20.1, y ≥ 8. Twelve of x at 1 and 8.1 of y at 2 make 28.2."""
    x = highs.addVariable(lb=0, ub=20, type=INTEGER)
    y = highs.addVariable(lb=8, ub=20)
    highs.addConstr(x + y >= 20.1)
    assert optimum(highs, x + 2 * y) == pytest.approx(28.2)


def test_two_hours_of_a_plant_that_is_on_or_off(highs):
    """HiGHS #2995 published its model as an attachment: 2 rows, 6 columns, 6 nonzeros, 2 binaries.
    This one has its shape: each hour covers 30 by a plant of 60 (200 to run) or by buying at 10
    or at 0.1, the latter up to 1. Running costs 200; buying 29 at 10 and 1 at 0.1 costs 290.1."""
    costs = []
    for _ in range(2):
        on = highs.addVariable(lb=0, ub=1, type=INTEGER)
        dear = highs.addVariable(lb=0, ub=INFINITE)
        cheap = highs.addVariable(lb=0, ub=1)
        highs.addConstr(60 * on + dear + cheap >= 30)
        costs += [200 * on, 10 * dear, 0.1 * cheap]
    assert optimum(highs, sum(costs[1:], costs[0])) == pytest.approx(400.0)


def test_an_equality_that_leaves_a_half_over(highs):
    """HiGHS #3002: z - y = 7.5 with integer z, so z = 8, y = 0.5, x = 2: 2 + 2 + 72 = 76, or
    z = 7, y = -0.5, x = 3: 3 - 2 + 63 = 64."""
    x = highs.addVariable(lb=0, ub=4)
    y = highs.addVariable(lb=-1, ub=1)
    z = highs.addVariable(lb=0, ub=INFINITE, type=INTEGER)
    highs.addConstr(x + y <= 5)
    highs.addConstr(x + z >= 10)
    highs.addConstr(z - y == 7.5)
    assert optimum(highs, x + 4 * y + 9 * z) == pytest.approx(64.0)


def test_one_row_of_two_columns(highs):
    """HiGHS #3043: x + z ≥ 4.5 at 2 and 3: all of it from x, 9."""
    x = highs.addVariable(lb=0, ub=10)
    z = highs.addVariable(lb=0, ub=10, type=INTEGER)
    highs.addConstr(x + z >= 4.5)
    assert optimum(highs, 2 * x + 3 * z) == pytest.approx(9.0)


def test_a_distance_to_an_integer(highs):
    """HiGHS #3073: gap + x = 3 with integer x, |x| ≤ t: x = 3, no gap, 0.01 · 3 = 0.03."""
    gap = highs.addVariable(lb=0, ub=INFINITE)
    t = highs.addVariable(lb=-INFINITE, ub=INFINITE)
    x = highs.addVariable(lb=0, ub=INFINITE, type=INTEGER)
    highs.addConstr(gap + x == 3)
    highs.addConstr(x - t <= 0)
    highs.addConstr(-1 * x - t <= 0)
    highs.addConstr(x <= 3)
    highs.addConstr(-1 * x <= -0.45)
    assert optimum(highs, 100 * gap + 0.01 * t) == pytest.approx(0.03)


def test_one_of_two_slots(highs):
    """HiGHS #3094: one of two is served whole, the other loses 1000: lose the one at 8, 8000."""
    served = [highs.addVariable(lb=0, ub=1, type=INTEGER) for _ in range(2)]
    used = [highs.addVariable(lb=0, ub=1000) for _ in range(2)]
    lost = [highs.addVariable(lb=0, ub=1000) for _ in range(2)]
    for on, amount, missing in zip(served, used, lost, strict=True):
        highs.addConstr(amount - 1000 * on <= 0)
        highs.addConstr(amount + missing == 1000)
    highs.addConstr(served[0] + served[1] <= 1)
    assert optimum(highs, 10 * lost[0] + 8 * lost[1]) == pytest.approx(8000.0)
