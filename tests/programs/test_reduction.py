"""A program in blocks is reduced to the same as whole, with the same account of the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import planner.programs.reduction
from planner.programs.blocks import InMemory, joined
from planner.programs.layout import Assignment, objective, violations
from planner.programs.reduction import loosened, reduced
from planner.programs.screens import screen
from planner.programs.targets import Facts
from planner.solvers import solve
from tests.programs.instances import (
    INFINITE,
    InBlocks,
    in_order,
    posed,
    program,
    programs,
    random_program,
)

BLOCKS = st.lists(st.integers(0, 3), min_size=6, max_size=6)


def optimum(layout):
    return solve(layout, solver="exhaustive").objective


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(programs(max_contexts=6, max_columns=5), BLOCKS, st.integers(1, 3), st.sampled_from([0, 30]))
def test_blocks_leave_and_reject_what_the_whole_does(layout, blocks, n_best, most_whole):
    whole = in_order(posed(layout))
    expected = screen(whole.program, n_best=n_best)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner.programs.reduction, "MOST_WHOLE", most_whole)
        left = reduced(InBlocks(whole, blocks[: layout.n_contexts]), n_best=n_best)
    assert left.screening.rejected == expected.rejected
    assert left.screening.bound == expected.bound
    assert (left.n_columns, left.n_contexts) == (layout.n_columns, layout.n_contexts)
    found = left.screening
    assert left.posed.arm[found.columns].tolist() == whole.arm[expected.columns].tolist()
    assert left.posed.number[found.contexts].tolist() == expected.contexts.tolist()
    assert (found.incumbent is None) == (expected.incumbent is None)
    if found.incumbent is not None:
        own = whole.place_of(left.posed, found.incumbent)
        assert violations(whole.program, own) == {}
        assert objective(whole.program, own) == objective(whole.program, expected.incumbent)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(programs(max_contexts=6, max_columns=5), BLOCKS)
def test_what_a_loosened_limit_lets_in_is_kept_if_it_could_be_better(layout, blocks):
    """Each limit by itself a half wider: what is then the optimum is among what is left."""
    names = {limit.name: 1.5 for limit in layout.limits}
    left = reduced(InBlocks(posed(layout), blocks[: layout.n_contexts]), reliefs=names)
    known = optimum(layout)
    for name, relief in names.items():
        better = optimum(loosened(posed(layout), name, relief).program)
        found = optimum(left.relieved[name].program)
        assert min(found, known) == pytest.approx(min(better, known), rel=1e-9)


def test_a_plan_known_elsewhere_leaves_only_what_is_as_good():
    """Three contexts at 2, 4 and 6, in a block each."""
    layout = program(
        [(0, 0, 16), (2, 0, 16), (4, 0, 16)], [(k, s, 1, 1) for k in range(3) for s in range(2)]
    )
    source = InBlocks(posed(layout), [2, 1, 0])
    assert reduced(source, n_best=3, known=4.0).screening.program.n_contexts == 2
    assert reduced(source, n_best=3, known=1.0).screening.program.n_contexts == 0
    first = reduced(source, until_met=True)
    assert first.n_contexts == 1
    assert first.screening.incumbent == Assignment(context=0, columns=(0, 1))
    assert first.posed.number.tolist() == [2]


def test_what_blocks_left_is_looked_through_as_soon_as_it_is_much(monkeypatch):
    """The dearest contexts come first: what they left goes once something better is known."""
    monkeypatch.setattr(planner.programs.reduction, "MOST_WHOLE", 0)
    monkeypatch.setattr(planner.programs.reduction, "MOST_KEPT", 20)
    layout = random_program(60, 12, seed=5)
    whole = in_order(posed(layout))
    dear = np.argsort(np.argsort(-layout.context_objective))
    left = reduced(InBlocks(whole, dear), n_best=2)
    expected = screen(whole.program, n_best=2)
    assert left.screening.rejected == expected.rejected
    assert left.posed.arm[left.screening.columns].tolist() == whole.arm[expected.columns].tolist()


def test_parts_of_several_models_are_told_apart():
    """Two programs of one context each, in which arms have the same numbers."""
    layout = program([(0, 0, INFINITE)], [(0, 0, 5, 0), (0, 1, 5, 0)])
    one, other = posed(layout), posed(layout)
    facts = other.quantities.facts
    facts.of_context["model"][:] = 1
    both = joined([other, one])
    assert both.model.tolist() == [0, 1]
    second = Assignment(context=1, columns=(2, 3))
    assert other.place_of(both, second) == Assignment(context=0, columns=(0, 1))
    with pytest.raises(LookupError):
        one.place_of(both, second)
    assert isinstance(facts, Facts)
    assert InMemory(both).of(1, np.array([0])).model.tolist() == [1]
