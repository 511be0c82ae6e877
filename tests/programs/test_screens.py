"""Screens lose nothing: on every program the referee finds the same behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from planner.programs.layout import Assignment, objective, restrict, violations
from planner.programs.rows import dominated
from planner.programs.screens import screen
from planner.solvers import solve
from planner.solvers.solution import Status
from tests.clocks import least_s
from tests.programs.instances import INFINITE, program, programs, random_program


def best_of_each_context(layout):
    """Objective of each context's best assignment, best first, by the referee."""
    bests = []
    for k in range(layout.n_contexts):
        alone = restrict(
            layout, contexts=np.array([k]), columns=np.flatnonzero(layout.column_context == k)
        )
        solution = solve(alone, solver="exhaustive")
        if solution.answer is not None:
            bests.append(solution.objective)
    return sorted(bests)


def rejected(screening, screen_name):
    return screening.rejected[screen_name]


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(programs(max_contexts=5, max_columns=6), st.integers(1, 3))
def test_the_best_of_the_best_contexts_survives_and_infeasible_stays_so(layout, n_best):
    screening = screen(layout, n_best=n_best)
    before, after = best_of_each_context(layout), best_of_each_context(screening.program)
    assert after[:n_best] == pytest.approx(before[:n_best], rel=1e-9, abs=1e-12)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(programs(max_contexts=5, max_columns=6))
def test_an_answer_to_the_screened_program_is_verified_by_the_original(layout):
    screening = screen(layout)
    solution = solve(screening.program, solver="exhaustive")
    if solution.answer is None:
        assert screening.incumbent is None
        return
    original = screening.original(solution.answer)
    assert violations(layout, original) == {}
    assert objective(layout, original) == pytest.approx(solution.objective, rel=1e-12, abs=1e-12)
    assert solution.objective <= screening.bound + 1e-9 * abs(screening.bound)
    if screening.incumbent is not None:
        assert violations(layout, screening.incumbent) == {}
        assert solution.objective <= objective(layout, screening.incumbent) + 1e-9


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(programs(max_contexts=5, max_columns=6), st.integers(1, 2))
def test_what_is_rejected_and_what_is_left_add_up(layout, n_best):
    screening = screen(layout, n_best=n_best)
    n_columns, n_contexts = (
        sum(counts) for counts in zip(*screening.rejected.values(), strict=True)
    )
    assert n_columns + screening.program.n_columns == layout.n_columns
    assert n_contexts + screening.program.n_contexts == layout.n_contexts
    assert min(min(counts) for counts in screening.rejected.values()) >= 0


def test_each_screen_rejects_what_it_is_named_after():
    """Four contexts: one lacks decode; one is dear (100 against 3); one needs 9 of 8 devices;
    in the last a column of 20 GiB is over 16, one of 31 ms over 30, one dearer and bigger."""
    layout = program(
        [(0, 0, 16), (100, 0, 16), (0, 0, 16), (0, 0, 16)],
        [
            (0, 0, 1, 1),
            *[(1, 0, 1, 1), (1, 1, 1, 1)],
            *[(2, 0, 1, 1), (2, 1, 1, 1)],
            *[(3, 0, 1, 2), (3, 0, 0, 20), (3, 0, 2, 3), (3, 1, 2, 1), (3, 1, 1, 1)],
        ],
        limits=[
            ("tpot", [0] * 4, [0] * 8 + [10, 31], 30.0),
            ("devices", [1, 1, 9, 8], [0] * 10, 8.0),
        ],
    )
    screening = screen(layout)
    assert screening.contexts.tolist() == [3]
    assert screening.columns.tolist() == [5, 8]
    assert rejected(screening, "empty") == (1, 1)
    assert rejected(screening, "devices") == (2, 1)
    assert rejected(screening, "hbm") == (1, 0)
    assert rejected(screening, "tpot") == (1, 0)
    assert rejected(screening, "bound") == (3, 1)
    assert screening.bound == 4.0  # the dearer column: 2 + 2, before 102 and for 3
    assert screening.incumbent == Assignment(context=3, columns=(5, 8))


def test_runners_up_survive_when_they_are_asked_for():
    """Three contexts at 2, 4 and 6: one best keeps one, two keep two."""
    layout = program(
        [(0, 0, 16), (2, 0, 16), (4, 0, 16)],
        [(k, s, 1, 1) for k in range(3) for s in range(2)],
    )
    assert screen(layout, n_best=1).contexts.tolist() == [0]
    assert screen(layout, n_best=2).contexts.tolist() == [0, 1]
    assert screen(layout, n_best=9).contexts.tolist() == [0, 1, 2]


def test_memory_keeps_the_dearer_column_that_is_smaller():
    """Two bytes-hungry cheap columns do not fit together; each survives for the other's sake."""
    layout = program(
        [(0, 0, 10)],
        [(0, 0, 1, 8), (0, 0, 3, 2), (0, 1, 1, 8), (0, 1, 3, 2), (0, 1, 3, 3)],
    )
    screening = screen(layout, n_best=2)
    assert screening.columns.tolist() == [0, 1, 2, 3]
    assert rejected(screening, "dominated") == (1, 0)


@pytest.mark.parametrize("n_criteria", [1, 2, 3, 4])
@pytest.mark.parametrize("n_columns", [60, 30_000])
def test_a_dominated_column_has_a_survivor_that_dominates_it(n_criteria, n_columns):
    """Few different values, so that many are equal; up to two criteria, no survivor has one."""
    r = np.random.default_rng(n_criteria)
    criteria = [r.integers(0, 12, n_columns).astype(float) for _ in range(n_criteria)]
    group = r.integers(0, 4, n_columns)
    gone = dominated(criteria, group, 4)
    points = np.array(criteria).T
    for g in range(4):
        stay = points[(group == g) & ~gone]
        lost = np.unique(points[(group == g) & gone], axis=0)
        assert all((stay <= point).all(axis=1).any() for point in lost)
        if n_criteria <= 2:
            beats = (stay[:, None] <= stay[None]).all(axis=2)
            assert beats.sum() == len(stay)  # itself alone


def test_of_equal_columns_the_first_stays():
    equal = [np.ones(5), np.ones(5)]
    assert dominated(equal, np.array([0, 1, 0, 1, 0]), 2).tolist() == [False, False, *[True] * 3]
    assert dominated(equal[:1], np.zeros(5, dtype=np.int64), 1).tolist() == [False, *[True] * 4]
    assert dominated(equal * 2, np.zeros(5, dtype=np.int64), 1).tolist() == [False, *[True] * 4]


def test_the_order_of_columns_does_not_matter():
    layout = random_program(20, 30)
    order = np.random.default_rng(1).permutation(layout.n_columns)
    shuffled = restrict(layout, contexts=np.arange(20), columns=order)
    one, other = screen(layout, n_best=2), screen(shuffled, n_best=2)
    assert other.rejected == one.rejected
    assert sorted(order[other.columns]) == one.columns.tolist()


def test_no_limits_and_infinite_memory_leave_one_column_a_slot():
    layout = random_program(10, 50)
    free = replace(layout, limits=(), capacity_bytes=np.full(10, INFINITE))
    screening = screen(free)
    assert screening.program.n_columns == 2
    assert solve(screening.program, solver="exhaustive").status is Status.OPTIMAL


def test_two_million_columns_cost_less_than_thirty_passes_over_them():
    """A sort of one array is the yardstick; nothing loops over columns."""
    layout = random_program(500, 2_000)
    screening = screen(layout, n_best=3)
    sort_s, screen_s = least_s(
        lambda: np.sort(layout.column_bytes),
        lambda: screen(layout, n_best=3),
        until=lambda a, b: b < 30 * a,
    )
    assert screen_s < 30 * sort_s
    assert screening.program.n_columns < 1_000
    assert screening.incumbent is not None
