"""Rows of the hand-over: each holds of all copies that there are, whoever found its multipliers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.programs.handover import (
    DEMAND,
    THROUGHPUT,
    Multipliers,
    cut_of,
    first_cuts,
    flow_violations,
    is_proof,
    lifted,
)
from planner.solvers.placement.flows import best_flow
from tests.solvers.handing import choices, handed, instance, two_halls

N_RANDOM = 90


def proved(one, copies, given):
    present = one.program.rate * copies > 0
    rows = lifted(one.program, one.network, given, present)
    assert all(is_proof(one.program, one.network, row) for row in rows)
    return [cut_of(one.program, one.network, row, "row") for row in rows]


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_every_row_holds_of_all_copies(seed):
    """Rows to begin with, those of the best flows, and those of multipliers at random."""
    one, rng = instance(seed), np.random.default_rng(seed)
    every = choices(one.program)
    rows = first_cuts(one.program, one.network)
    for counts in every[:: max(1, len(every) // 12)]:
        copies = np.array(counts.copies, float)
        flow = best_flow(one.program, one.network, copies)
        noise = Multipliers(
            model=rng.exponential(1.0, len(one.program.models)),
            column=rng.exponential(0.3, one.program.n_columns),
            link=rng.exponential(0.3, len(one.network.links)),
            of_sum=one.network.aim == THROUGHPUT,
        )
        found = [] if np.isinf(flow.value) else proved(one, copies, flow.multipliers)
        for row in found:  # what proves that these copies fall short does so
            least = 1.0 if not row.is_of_share else flow.value
            if flow.is_short or one.network.aim != DEMAND:
                assert row.reached(copies) <= max(flow.value, 0.0) + 1e-7 * max(1.0, least)
        rows += found + proved(one, copies, noise)
    for counts in every:
        copies = np.array(counts.copies, float)
        t = handed(one, counts)
        for row in rows:
            if np.isneginf(t):  # demands are not met: rows of them say nothing
                continue
            known = t if row.is_of_share else 1.0
            if not np.isinf(known):
                assert row.reached(copies) >= min(known, 1e9) * (1.0 - 1e-8) - 1e-8


def test_of_no_demand_nothing_is_proved():
    one = two_halls(1.0)
    network = replace(one.network, aim=DEMAND, demand=np.zeros(1))
    given = Multipliers(model=np.ones(1), column=np.zeros(2), link=np.zeros(1), of_sum=False)
    assert lifted(one.program, network, given, np.ones(2, np.bool_)) == []
    assert first_cuts(one.program, network) == []


def test_rows_of_a_pair_are_its_sides_and_its_link():
    """A copy of either side serves 1 of a demand of 1; the link, half of it."""
    one = two_halls(0.5)
    first = first_cuts(one.program, one.network)
    assert [row.column.tolist() for row in first] == [
        pytest.approx([1.0, 0.0]),
        pytest.approx([0.0, 1.0]),
    ]
    flow = best_flow(one.program, one.network, np.array([2.0, 2.0]))
    assert flow.value == pytest.approx(0.5)
    row = proved(one, np.array([2.0, 2.0]), flow.multipliers)[0]
    assert row.column.tolist() == pytest.approx([0.0, 0.0])
    assert row.added == pytest.approx(0.5)


def test_multipliers_of_an_absent_side_are_raised():
    """Nothing is said of decode, of which there is none: all of it is raised, or all prefill."""
    one = two_halls(np.inf)
    given = Multipliers(model=np.ones(1), column=np.zeros(2), link=np.zeros(1), of_sum=False)
    both = lifted(one.program, one.network, given, np.array([True, False]))
    assert both[0].column.tolist() == [0.0, 1.0]
    assert all(is_proof(one.program, one.network, each) for each in both)
    assert not is_proof(one.program, one.network, given)


@pytest.mark.parametrize(
    ("rate", "copies", "named"),
    [
        (1.0, [1, 1], set()),
        (1.5, [1, 2], {"rate(0)", "link(link0)"}),
        (0.4, [1, 1], {"demand(m0)"}),
        (-1.0, [1, 1], {"flow(0)", "demand(m0)"}),
    ],
)
def test_flows_that_break_a_bound_are_named(rate, copies, named):
    one = two_halls(1.2)
    network = replace(one.network, aim=DEMAND)
    broken = flow_violations(one.program, network, np.array(copies, float), np.array([rate]))
    assert set(broken) == named
