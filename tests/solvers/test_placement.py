"""Placement programs: arithmetic ones, and random ones on which all backends agree.

rooms   two resources with 3 and 5 devices; a copy of column 0 takes 4 of the first, of
        column 1 takes 4 of the second: only one copy fits, although 8 devices are free.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import SolverError
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementLimit,
    PlacementProgram,
    Uses,
    columns_of,
    most_copies,
    violations,
    worst_share,
)
from planner.solvers.placement import PLACEMENT_SOLVERS, solve_placement
from planner.solvers.solution import Status

N_RANDOM = 60
BACKENDS = tuple(PLACEMENT_SOLVERS)


def _rooms() -> PlacementProgram:
    return PlacementProgram(
        resources=("node0", "node1"),
        free=np.array([3, 5]),
        uses=Uses(resource=np.array([0, 1]), column=np.array([0, 1]), amount=np.array([4, 4])),
        models=("a",),
        column_model=np.array([0, 0]),
        objective=np.array([-1.0, -1.0]),
        rate=np.array([1.0, 1.0]),
        demand=np.array([0.0]),
        least=np.array([0]),
        most=np.array([UNLIMITED]),
    )


def _random(seed: int) -> PlacementProgram:
    """Up to 6 columns, 4 resources, 3 models; demands, replicas, a limit, a share: now and then."""
    rng = np.random.default_rng(seed)
    n_columns, n_resources, n_models = (int(rng.integers(1, most)) for most in (7, 5, 4))
    takes = rng.integers(0, 4, (n_resources, n_columns)) * (rng.random((n_resources, 1)) < 0.7)
    takes[rng.integers(0, n_resources, n_columns), np.arange(n_columns)] = 2
    resource, column = np.nonzero(takes)
    demand = np.where(rng.random(n_models) < 0.6, rng.integers(1, 12, n_models), 0).astype(float)
    is_for_share = bool(rng.random() < 0.4)
    demand[0] = max(demand[0], 1.0) if is_for_share else demand[0]
    costs = np.round(rng.random(n_columns) * 5, 1)
    limits = (PlacementLimit(name="rent", column=costs, at_most=float(rng.integers(0, 15))),)
    return PlacementProgram(
        resources=tuple(f"r{i}" for i in range(n_resources)),
        free=rng.integers(0, 9, n_resources),
        uses=Uses(resource=resource, column=column, amount=takes[resource, column]),
        models=tuple(f"m{i}" for i in range(n_models)),
        column_model=rng.integers(0, n_models, n_columns),
        objective=np.round(rng.random(n_columns) * 7, 2) * rng.choice([-1, 1]),
        rate=np.round(rng.random(n_columns) * 10, int(rng.integers(0, 3))),
        demand=demand,
        least=np.where(rng.random(n_models) < 0.2, 1, 0),
        most=np.where(rng.random(n_models) < 0.3, rng.integers(0, 4, n_models), UNLIMITED),
        limits=limits if rng.random() < 0.5 else (),
        is_for_share=is_for_share,
        ties=(rng.integers(0, 3, n_columns).astype(float), np.arange(float(n_columns))),
    )


@pytest.mark.parametrize("solver", BACKENDS)
def test_three_and_five_free_devices_are_not_eight_in_one_node(solver: str) -> None:
    found = solve_placement(_rooms(), solver=solver)
    assert found.answer == Counts(copies=(0, 1))
    assert (found.objective, found.bound, found.gap) == (-1.0, -1.0, 0.0)
    assert found.status is Status.OPTIMAL


@pytest.mark.parametrize("solver", BACKENDS)
def test_what_cannot_be_served_is_infeasible_by_two_words(solver: str) -> None:
    program = replace(_rooms(), demand=np.array([2.0]))
    found = solve_placement(program, solver=solver)
    assert found.status is Status.INFEASIBLE
    assert found.vouched.by


@pytest.mark.parametrize("solver", BACKENDS)
def test_the_worst_served_model_gets_as_much_as_it_can(solver: str) -> None:
    """6 devices for copies of 2, demands of 2 and 1 at a rate of 1 a copy: 2 and 1 copies."""
    program = PlacementProgram(
        resources=("pool",),
        free=np.array([6]),
        uses=Uses(resource=np.zeros(2, int), column=np.arange(2), amount=np.array([2, 2])),
        models=("a", "b"),
        column_model=np.array([0, 1]),
        objective=np.zeros(2),
        rate=np.ones(2),
        demand=np.array([2.0, 1.0]),
        least=np.zeros(2, int),
        most=np.full(2, UNLIMITED),
        is_for_share=True,
    )
    found = solve_placement(program, solver=solver)
    assert found.answer == Counts(copies=(2, 1))
    assert found.objective == -1.0


@pytest.mark.parametrize("solver", BACKENDS)
def test_of_equal_choices_the_one_with_the_least_ties_is_returned(solver: str) -> None:
    """Either node holds a copy of 2; the second is tied to fewer leaves, so it is taken."""
    program = replace(
        _rooms(),
        uses=Uses(resource=np.array([0, 1]), column=np.array([0, 1]), amount=np.array([2, 2])),
        most=np.array([1]),
        ties=(np.array([2.0, 1.0]),),
    )
    assert solve_placement(program, solver=solver).answer == Counts(copies=(0, 1))


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_all_backends_find_the_same_objective_and_prove_it(seed: int) -> None:
    program = _random(seed)
    found = {solver: solve_placement(program, solver=solver) for solver in BACKENDS}
    referee = found["exhaustive"]
    for one in found.values():
        assert one.status is referee.status
        assert one.objective == pytest.approx(referee.objective, rel=1e-7, abs=1e-9)
        if one.answer is None:
            continue
        assert violations(program, one.answer) == {}
        assert one.gap <= 1e-8
        assert one.bound <= one.objective
        tie = program.ties[0]
        assert tie @ np.array(one.answer.copies) == tie @ np.array(referee.answer.copies)


@pytest.mark.parametrize("solver", BACKENDS)
def test_what_has_no_room_may_cost_anything(solver: str) -> None:
    takes = Uses(resource=np.array([0, 1]), column=np.array([0, 1]), amount=np.array([3, 6]))
    program = replace(_rooms(), uses=takes, objective=np.array([-1.0, -1e30]))
    assert solve_placement(program, solver=solver).answer == Counts(copies=(1, 0))


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_a_column_may_take_what_a_later_one_adds(seed: int) -> None:
    """Up to two copies of four columns that take of three resources, or add to them."""
    rng = np.random.default_rng(seed)
    amounts = rng.integers(-1, 3, size=(3, 4))
    resource, column = np.nonzero(amounts)
    program = replace(
        _rooms(),
        resources=("a", "b", "c"),
        free=rng.integers(-1, 3, size=3),
        uses=Uses(resource=resource, column=column, amount=amounts[resource, column]),
        column_model=np.zeros(4, int),
        objective=rng.integers(-4, 4, size=4).astype(float),
        rate=np.ones(4),
        column_most=np.full(4, 2),
        ties=(),
    )
    every = np.array(list(itertools.product(range(3), repeat=4)))
    every = every[(every @ amounts.T <= program.free).all(axis=1)]
    every = every[every.sum(axis=1) >= program.least[0]]
    for solver in BACKENDS:
        found = solve_placement(program, solver=solver)
        assert found.objective == pytest.approx((every @ program.objective).min(initial=np.inf))


def test_random_programs_are_of_every_sort() -> None:
    """Otherwise the agreement above says little."""
    statuses = [solve_placement(_random(s), solver="exhaustive").status for s in range(N_RANDOM)]
    assert 15 < statuses.count(Status.OPTIMAL) < N_RANDOM - 15


def test_violations_name_the_row_and_its_excess() -> None:
    program = replace(_rooms(), least=np.array([3]), demand=np.array([2.5]))
    rent = PlacementLimit(name="rent", column=np.array([2.0, 2.0]), at_most=3.0)
    broken = violations(replace(program, limits=(rent,)), Counts(copies=(1, 1)))
    assert broken == {"free(node0)": 1.0, "replicas(a)": 1.0, "demand(a)": 0.5, "rent": 1.0}
    assert violations(program, Counts(copies=(-1, 0))) == {"copies": 1.0}
    assert violations(program, Counts(copies=(1,))) == {"copies": 1.0}


def test_copies_are_bounded_by_what_is_free_and_by_limits() -> None:
    rent = PlacementLimit(name="rent", column=np.array([1.0, 9.0]), at_most=8.0)
    assert most_copies(_rooms()).tolist() == [0, 1]
    assert most_copies(replace(_rooms(), limits=(rent,))).tolist() == [0, 0]


def test_the_columns_of_a_part_keep_what_they_use() -> None:
    part = columns_of(_rooms(), np.array([1]))
    assert (part.n_columns, part.uses.resource.tolist()) == (1, [1])
    assert worst_share(replace(part, demand=np.array([4.0])), Counts(copies=(1,))) == 0.25


def test_programs_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="columns are not all of length"):
        replace(_rooms(), rate=np.ones(3))
    with pytest.raises(ValueError, match="out of range"):
        replace(_rooms(), column_model=np.array([0, 1]))
    with pytest.raises(ValueError, match="no demand"):
        replace(_rooms(), is_for_share=True)
    with pytest.raises(SolverError, match="no solver `gurobi`"):
        solve_placement(_rooms(), solver="gurobi")
