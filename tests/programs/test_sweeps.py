"""What may begin at a boundary of a sweep, and what machines waste by it."""

from __future__ import annotations

import numpy as np
import pytest

from planner_workshop.staging.machines.program import Classes
from planner_workshop.staging.machines.worth import sweep_program


def alike(*n_machines, n_layers, rates):
    n = len(n_machines)
    return Classes(
        n_layers=n_layers,
        members=tuple(tuple(range(count)) for count in n_machines),
        region=np.zeros(n, dtype=np.int64),
        rates=np.array(rates),
        crossing=np.full((1, 1), np.inf),
        entry=np.full(1, np.inf),
        leaving=np.full(1, np.inf),
    )


def test_beginnings_waste_what_their_machine_could_have_brought_and_no_more_than_all_may():
    """Three machines of 10, 6 and 2 token/s with one, two and three layers are worth 12 each,
    with two layers: 36 in all, of which three layers at 8 take 24. One layer at 8 wastes 4, two
    none, three 6: all within the 12; at most the rate is served.
    """
    rates = [[10.0, 6.0, 2.0]]
    found = sweep_program(alike(3, n_layers=3, rates=rates), np.array(rates), 8.0)
    assert found.allowance == pytest.approx(12.0)
    assert found.held.tolist() == [1, 2, 3]
    assert found.served.tolist() == [8.0, 6.0, 2.0]
    assert found.wasted.tolist() == [4.0, 0.0, 6.0]


def test_what_wastes_more_than_all_may_does_not_begin():
    """Two machines are worth 24, all that three layers at 8 take: only two layers waste nothing."""
    rates = [[10.0, 6.0, 2.0]]
    found = sweep_program(alike(2, n_layers=3, rates=rates), np.array(rates), 8.0)
    assert found.allowance == pytest.approx(0.0)
    assert found.held.tolist() == [2]


def test_nobody_holds_more_layers_than_there_are():
    rates = [[10.0, 6.0, 6.0]]
    found = sweep_program(alike(9, n_layers=2, rates=rates), np.array(rates), 8.0)
    assert max(found.held) == 2


def test_counts_of_machines_fit_one_number_or_there_is_no_sweep():
    """Three machines take three bits of a number, the next class begins at the fourth."""
    rates = [[10.0], [5.0]]
    found = sweep_program(alike(3, 1, n_layers=2, rates=rates), np.array(rates), 4.0)
    assert found.unit.tolist() == [1, 8]
    full = 3 * 1 + 1 * 8
    assert (full + found.most) & found.carry == 0
    for one in found.unit.tolist():
        assert (full + one + found.most) & found.carry
    many = alike(*[2**20] * 4, n_layers=2, rates=[[1.0]] * 4)
    assert sweep_program(many, np.ones((4, 1)), 1.0) is None
