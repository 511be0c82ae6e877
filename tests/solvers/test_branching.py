"""Bounds by branches on pairs: true whatever HiGHS says, and closed where the relaxation is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.programs.cells import cell_rows
from planner.programs.mixed import priced
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementProgram,
    Uses,
    placement_objective,
    violations,
)
from planner.programs.relaxation import relaxation, whole_counts
from planner.solvers.placement import branching, pricing, solve_placement
from planner.solvers.placement.pricing import Vertices, prices_of
from planner.solvers.solution import Clock, Effort, Status
from planner.topology.openings import all_free, openings
from tests.topology.pools import torus_fabric


def packing(uses: list[list[int]], gains: list[float]) -> PlacementProgram:
    """Columns that each take one of some resources, of which there is one each."""
    column = np.repeat(np.arange(len(uses)), [len(one) for one in uses])
    resource = np.concatenate([np.array(one) for one in uses])
    n_resources = int(resource.max()) + 1
    return PlacementProgram(
        resources=tuple(map(str, range(n_resources))),
        free=np.ones(n_resources, np.int64),
        uses=Uses(resource=resource, column=column, amount=np.ones(len(column), np.int64)),
        models=("a",),
        column_model=np.zeros(len(uses), np.int64),
        objective=-np.array(gains),
        rate=np.array(gains),
        demand=np.zeros(1),
        least=np.zeros(1, np.int64),
        most=np.array([UNLIMITED]),
    )


def holed(seed: int) -> PlacementProgram:
    """Slices of four chips on 3×4×4 chips, of which one in six is busy, single ones at random."""
    fabric = torus_fabric(3, 4, 4, slice_dims=(1, 2, 4))
    rng = np.random.default_rng(seed)
    state = replace(all_free(fabric), is_free=rng.random(fabric.shape) > 1 / 6)
    table = openings(fabric, state, shapes=((1, 2, 2), (1, 1, 4)))
    gains = table.n_devices * np.where(table.closes.any(axis=1), 1.02, 1.0)
    rows = cell_rows(table, np.arange(len(table)))
    listed = [rows.uses.resource[rows.uses.column == j].tolist() for j in range(len(table))]
    return packing(listed, gains.tolist())


def odd_ring(gains: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> PlacementProgram:
    """Three columns of which each two share a resource: halves of all are 1.5, one is all."""
    return packing([[0, 1], [1, 2], [2, 0]], list(gains))


def test_whole_numbers_close_an_odd_ring_without_a_branch():
    found = branching.solve(odd_ring(), Effort())
    assert found.n_nodes == 0
    assert found.proof.bound == pytest.approx(-1.0)
    assert found.proof.outcome == "optimal"


def test_a_pair_closes_an_odd_ring_whose_columns_differ():
    """Halves of 3, 4 and 6 are 6.5; either the last column or one of the others: 6."""
    program = odd_ring((3.0, 4.0, 6.0))
    (most, *_) = whole_counts(program)
    np.testing.assert_array_equal(most, [1, 1, 2])
    found = branching.solve(program, Effort())
    assert found.proof.outcome == "optimal"
    assert found.proof.bound == pytest.approx(-6.0)
    assert found.answer is not None
    assert found.answer.copies == (0, 0, 1)


@pytest.mark.parametrize("seed", [2, 3])
def test_branches_close_what_the_relaxation_leaves_open(seed):
    """The optimum is CP-SAT's, and the bound without branches is above it by more than 1 %."""
    program = holed(seed)
    best = solve_placement(program, solver="cpsat")
    assert best.status is Status.OPTIMAL
    relaxed = relaxation(program)
    prices = prices_of(relaxed, Effort(), Clock())
    assert priced(relaxed, -prices).bound < best.objective * 1.01
    found = branching.solve(program, Effort())
    assert found.proof.is_own
    assert found.proof.outcome == "optimal"
    assert found.proof.bound == pytest.approx(best.objective, rel=1e-8)
    assert found.answer is not None
    assert violations(program, found.answer) == {}


@pytest.mark.parametrize("seed", [2, 3])
def test_no_prices_make_a_bound_that_is_beyond_the_optimum(seed, monkeypatch):
    """Whoever proposes prices and vertices, and however wrong they are."""
    program = holed(seed)
    best = solve_placement(program, solver="cpsat").objective
    rng = np.random.default_rng(seed)

    def at(self, most, left_s):
        n_rows = self._relaxed.n_rows
        return rng.random(n_rows) * rng.choice([0.0, 1.0, 3.0], n_rows), rng.random(len(most))

    monkeypatch.setattr(Vertices, "at", at)
    monkeypatch.setattr(branching, "MOST_SPLITS", 40)
    found = branching.solve(program, Effort())
    assert found.n_nodes > 0
    assert found.proof.bound <= best + 1e-9
    assert found.proof.value >= best - 1e-9


def test_out_of_time_there_is_a_packing_and_what_was_proved():
    found = branching.solve(holed(0), Effort(time_limit_s=0.05))
    assert found.answer is not None
    assert found.proof.bound <= found.proof.value


def test_ctrl_c_ends_it_with_the_packing_in_hand(monkeypatch):
    """HiGHS runs in a thread of its own and says that it was interrupted."""
    calls = []

    def interrupted(highs, *, is_linear):
        calls.append(highs)
        return True

    monkeypatch.setattr(pricing, "run_highs", interrupted)
    found = branching.solve(holed(2), Effort(time_limit_s=60.0))
    assert found.stopped_by == "interrupt"
    assert found.answer is not None
    assert len(calls) <= 2


def test_a_demand_that_is_served_but_for_rounding_leaves_no_slice_out():
    """Five chips: two copies of a model serve all but 5e-10 of its demand, which counts as all."""
    chips = [[chip] for chip in range(5)]
    program = replace(
        packing(chips + chips, [0.3] * 5 + [1.0] * 5),
        models=("a", "b"),
        column_model=np.repeat([0, 1], 5),
        rate=np.repeat([(1 - 5e-10) / 2, 0.0], 5),
        demand=np.array([1.0, 0.0]),
        least=np.zeros(2, np.int64),
        most=np.full(2, UNLIMITED),
    )
    best = Counts(copies=(1, 1, 0, 0, 0, 0, 0, 1, 1, 1))
    assert violations(program, best) == {}
    found = branching.solve(program, Effort())
    assert found.proof.bound <= placement_objective(program, best) == pytest.approx(-3.6)
    assert found.proof.outcome == "optimal"


def test_a_bound_beyond_a_packing_in_hand_is_refused(monkeypatch):
    monkeypatch.setattr(branching._Tree, "run", lambda *_: -1.0)
    found = branching.solve(odd_ring((2.0, 3.0, 2.0)), Effort())
    assert found.proof.outcome == "refused"
    assert "is beyond its packing of -3" in found.proof.note
