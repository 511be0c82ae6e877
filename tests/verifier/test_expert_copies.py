"""Copies of experts counted apart from who placed them: on paper, and against the finder's code."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from planner import place_experts
from planner.specs.ask.stages import ExpertsRequest
from planner.verifier.expert_copies import (
    counted,
    counting_bound,
    greedy_copies,
    least_fullest,
    unserved,
)
from planner_workshop.experts.program import ExpertProgram, simple_bound
from planner_workshop.experts.solvers.flat import greedy
from planner_workshop.experts.solvers.joint import best_shares
from planner_workshop.experts.verifier import judge_experts

LOADS = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 3.0, 7.25]), min_size=4, max_size=8)


@st.composite
def _asked(draw):
    loads = draw(LOADS.filter(any))
    n_nodes, width = draw(st.sampled_from([1, 2])), draw(st.integers(1, 3))
    n_ranks = n_nodes * width
    n_slots = -(-len(loads) // n_ranks) + draw(st.integers(0, 2))
    n_groups = draw(st.sampled_from([0, 1, len(loads)]))
    asked = ExpertsRequest(
        loads=tuple(loads), n_ranks=n_ranks, n_slots=n_slots, n_nodes=n_nodes, n_groups=n_groups
    )
    return asked if n_groups != 1 or len(loads) <= n_slots * width else replace(asked, n_groups=0)


def _program(asked: ExpertsRequest) -> ExpertProgram:
    n = asked.n_experts
    return ExpertProgram(
        load=np.array(asked.loads),
        n_ranks=asked.n_ranks,
        n_slots=asked.n_slots,
        n_nodes=asked.n_nodes,
        group=np.arange(n) // (n // asked.n_groups) if asked.n_groups else None,
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(asked=_asked())
def test_greedy_copies_are_those_of_the_balancer_that_finds_them(asked):
    found = greedy(_program(asked)).copies()
    held = greedy_copies(asked)
    assert [[rank.get(e, 0) for rank in held] for e in range(asked.n_experts)] == found.tolist()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(asked=_asked())
def test_the_bound_by_counting_is_the_finders(asked):
    assert counting_bound(asked) == pytest.approx(simple_bound(_program(asked))[0], rel=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(asked=_asked())
def test_a_cut_says_what_a_linear_program_says_of_the_best_shares(asked):
    held = greedy_copies(asked)
    copies = greedy(_program(asked)).copies()
    best = float((np.array(asked.loads) @ best_shares(_program(asked), copies).shares).max())
    assert float(least_fullest(asked, held)) == pytest.approx(best, rel=1e-9)


def test_two_experts_that_are_on_one_rank_alone_fill_it():
    """Rank 0 holds experts 0 and 1, rank 1 expert 2, and expert 2 is on both."""
    asked = ExpertsRequest(loads=(3.0, 2.0, 1.0), n_ranks=2, n_slots=3)
    held = counted([(0, 1, 2), (2,)])
    assert least_fullest(asked, held) == 5
    loads = [Fraction(load) for load in asked.loads]
    assert unserved(loads, held, [Fraction(5), Fraction(1)]) == set()
    assert unserved(loads, held, [Fraction(4), Fraction(2)]) == {0, 1}


PLAN = place_experts((9.0, 1.0, 4.0, 2.0), n_ranks=2, n_slots=3, n_nodes=2, n_groups=2)
SHARED = place_experts((9.0, 1.0, 4.0, 2.0), n_ranks=2, n_slots=3, split="weighted")


def _with_rank(plan, g, **changes):
    ranks = [replace(rank, **changes) if i == g else rank for i, rank in enumerate(plan.ranks)]
    return replace(plan, ranks=tuple(ranks))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (_with_rank(PLAN, 0, experts=(0, 0), shares=(0.5, 0.5)), "is nowhere"),
        (_with_rank(PLAN, 0, experts=(0, 1, 2), shares=(1.0, 1.0, 0.5)), "is on nodes 0, 1"),
        (_with_rank(PLAN, 0, experts=(0, 0, 0, 1), shares=(0.25,) * 4), "in 3 slots"),
        (_with_rank(PLAN, 0, experts=(0, 9), shares=(1.0, 1.0)), "is no expert"),
        (_with_rank(PLAN, 0, experts=(1, 0), shares=(1.0, 1.0)), "is not in order"),
        (replace(PLAN, ranks=PLAN.ranks[:1]), "are 1, and there are 2"),
        (replace(PLAN, is_cut_short=True), "without a limit"),
        (replace(PLAN, proof="pairs"), "is nobody's in the certificate"),
        (_with_rank(SHARED, 0, shares=tuple(0.0 for _ in SHARED.ranks[0].shares)), "serve"),
        (_with_rank(SHARED, 0, shares=tuple(-1.0 for _ in SHARED.ranks[0].shares)), "no share"),
        (replace(PLAN, request=replace(PLAN.request, n_nodes=3)), "does not divide 2 ranks"),
    ],
)
def test_what_no_placement_can_be_is_told(changed, told):
    wrong = judge_experts(changed)[1]
    assert any(told in str(one) for one in wrong), wrong


def test_a_bound_that_counting_does_not_prove_is_told():
    """Five experts of load 1 in six slots of three ranks: two on one rank, the mean is 5/3."""
    plan = place_experts((1.0,) * 5, n_ranks=3, n_slots=2, gap=0.5)
    assert (plan.proof, plan.max_load) == ("mean", 2.0)
    raised = replace(plan.certificate, bound=1.7)
    wrong = judge_experts(replace(plan, certificate=raised))[1]
    assert any("that counting proves" in one.fact for one in wrong)
