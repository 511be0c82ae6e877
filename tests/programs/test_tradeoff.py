"""Screens of a trade-off lose no point, and what is in hand is the frontier."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import planner.programs.narrowing
import planner.programs.tradeoff
from planner.programs.layout import Assignment, objective, violations
from planner.programs.narrowing import narrow
from planner.programs.rows import merged, stairs
from planner.programs.tradeoff import Tradeoff
from planner.solvers.solution import Status
from planner.solvers.tracing import trace
from planner.specs.ask.targets import SolverOptions
from tests.programs.instances import (
    TENTHS,
    InBlocks,
    posed,
    program,
    programs,
    random_program,
)

EQUAL = 1e-9


def non_dominated(points):
    """(delay, price) that no other is as good as in both, the fastest first, one by one."""
    kept = []
    for delay, price in sorted(points):
        if kept and price >= kept[-1][1] * (1 - EQUAL):
            continue
        if kept and delay <= kept[-1][0] * (1 + EQUAL):
            kept.pop()
        kept.append((delay, price))
    return kept


def everything(tradeoff):
    """(delay, price) of every assignment that keeps every row."""
    layout = tradeoff.program
    for k in range(layout.n_contexts):
        here = np.flatnonzero(layout.column_context == k)
        slots = [here[layout.column_slot[here] == s].tolist() for s in range(layout.n_slots)]
        for columns in product(*slots):
            chosen = Assignment(context=k, columns=columns)
            if not violations(layout, chosen):
                yield tradeoff.delay(chosen), objective(layout, chosen)


@st.composite
def tradeoffs(draw):
    """Small programs with positive prices, and a delay of contexts and of one slot."""
    layout = draw(programs(max_contexts=4, max_columns=5))
    slot = draw(st.integers(0, layout.n_slots - 1))
    delays = np.array([draw(TENTHS) for _ in range(layout.n_columns)])
    return Tradeoff(
        program=replace(layout, column_objective=layout.column_objective + 1.1),
        context_delay=np.array([draw(TENTHS) for _ in range(layout.n_contexts)]),
        column_delay=np.where(layout.column_slot == slot, delays, 0.0),
    )


def source(tradeoff, blocks=None):
    """A trade-off as a source, whole or in blocks: the block of each context."""
    delay = tradeoff.context_delay, tradeoff.column_delay
    whole = posed(tradeoff.program, late=delay)
    return InBlocks(whole, blocks or [0] * tradeoff.program.n_contexts)


@st.composite
def blocks(draw):
    """A block for each of as many contexts as there may be; some blocks are empty."""
    return draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(sorted(found), sorted(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(tradeoffs(), blocks())
def test_what_is_left_has_the_same_frontier_and_it_is_in_hand(tradeoff, block):
    expected = non_dominated(everything(tradeoff))
    narrowed = narrow(source(tradeoff, block[: tradeoff.program.n_contexts]), "late")
    same(non_dominated(everything(narrowed.tradeoff)), expected)
    in_hand = narrowed.in_hand
    same(non_dominated(zip(in_hand.delay, in_hand.price, strict=True)), expected)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(tradeoffs(), blocks())
def test_what_is_rejected_and_what_is_left_add_up(tradeoff, block):
    narrowed = narrow(source(tradeoff, block[: tradeoff.program.n_contexts]), "late")
    n_columns, n_contexts = (
        sum(counts) for counts in zip(*narrowed.rejected.values(), strict=True)
    )
    assert n_columns + narrowed.tradeoff.program.n_columns == tradeoff.program.n_columns
    assert n_contexts + narrowed.tradeoff.program.n_contexts == tradeoff.program.n_contexts
    assert narrowed.n_columns == tradeoff.program.n_columns
    assert narrowed.n_contexts == tradeoff.program.n_contexts


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(tradeoffs(), st.sampled_from(["highs", "cpsat"]))
def test_the_trace_is_the_frontier_of_all_assignments(tradeoff, solver):
    traced = trace(source(tradeoff), "late", SolverOptions(solver=solver))
    expected = non_dominated(everything(tradeoff))
    assert traced.status is (Status.OPTIMAL if expected else Status.INFEASIBLE)
    same([(step.delay, step.price) for step in traced.steps], expected)
    for step in traced.steps:
        own = posed(tradeoff.program).place_of(traced.narrowed.posed, step.assignment)
        assert violations(tradeoff.within(step.delay), own) == {}
        assert step.bound == pytest.approx(step.price, rel=1e-9)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(tradeoffs())
def test_with_little_in_hand_the_question_is_asked_until_the_frontier_is_whole(tradeoff):
    expected = non_dominated(everything(tradeoff))
    assume(len(expected) > 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner.programs.tradeoff, "MOST_IN_GRID", 1)
        patch.setattr(
            planner.programs.narrowing, "companies", lambda field, *_: stairs_of_nothing(field)
        )
        traced = trace(source(tradeoff), "late", SolverOptions())
    same([(step.delay, step.price) for step in traced.steps], expected)


def stairs_of_nothing(field):
    empty = np.empty((0, field.program.n_slots), dtype=np.int64)
    return stairs(np.empty(0), np.empty(0), empty)


def test_a_larger_program_is_traced_as_enumerated():
    """40 contexts of 2 × 12 columns where cheap columns are big: memory couples the slots."""
    layout = random_program(40, 12, seed=3)
    delay = next(limit.column for limit in layout.limits if limit.name == "tpot")
    tradeoff = Tradeoff(program=layout, context_delay=np.zeros(40), column_delay=delay)
    traced = trace(source(tradeoff, [k % 7 for k in range(40)]), "late", SolverOptions())
    expected = non_dominated(everything(tradeoff))
    assert len(expected) >= 5
    same([(step.delay, step.price) for step in traced.steps], expected)


def test_only_one_slot_may_add_to_the_delay():
    layout = program([(0, 0, 9)], [(0, 0, 1, 1), (0, 1, 1, 1)])
    with pytest.raises(ValueError, match="2 slots"):
        Tradeoff(program=layout, context_delay=np.zeros(1), column_delay=np.ones(2))


class TestStairs:
    """Five points: (1, 9) (2, 5) (2, 7) (3, 5) (4, 2); the third and fourth are dominated."""

    FIVE = np.array([1.0, 2, 2, 3, 4]), np.array([9.0, 5, 7, 5, 2]), np.arange(5).reshape(-1, 1)

    def test_keep_what_is_not_dominated_in_order(self):
        kept = stairs(*self.FIVE)
        assert kept.columns.ravel().tolist() == [0, 1, 4]

    def test_say_the_least_price_within_a_delay(self):
        prices = stairs(*self.FIVE).price_at(np.array([0.5, 1.0, 2.9, 4.0, 9.0]))
        assert prices.tolist() == [np.inf, 9, 5, 2, 2]

    def test_of_two_are_those_of_both_together(self):
        halves = [tuple(array[part] for array in self.FIVE) for part in (slice(2), slice(2, 5))]
        both = merged(stairs(*halves[0]), stairs(*halves[1]))
        assert both.columns.ravel().tolist() == stairs(*self.FIVE).columns.ravel().tolist()
        assert all(a < b for a, b in pairwise(both.delay))
