"""`place_experts`: what it answers and refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.errors import RequestError, SolverError
from planner.report.as_json import answer_json, dumps
from planner.verifier.findings import refuse
from planner_workshop.experts.loads import load_placement
from planner_workshop.experts.placing import place_experts
from planner_workshop.experts.verifier import judge_experts


def test_it_is_exported():
    assert planner.place_experts is place_experts


def test_a_plan_adds_up():
    """Twelve experts on four ranks: loads of ranks are those of the experts, shared out."""
    loads = np.arange(1.0, 13.0)
    plan = place_experts(loads, n_ranks=4, n_slots=4, n_nodes=2)
    served = np.zeros(12)
    for rank in plan.ranks:
        for e, share in zip(rank.experts, rank.shares, strict=True):
            served[e] += share
    assert served == pytest.approx(np.ones(12))
    assert sum(rank.load for rank in plan.ranks) == pytest.approx(78.0)
    assert plan.max_load == max(rank.load for rank in plan.ranks)
    assert plan.mean_load == 19.5
    assert plan.certificate.bound <= plan.max_load <= plan.greedy.max_load
    assert [rank.node for rank in plan.ranks] == [0, 0, 1, 1]


@pytest.mark.parametrize(("n_experts", "n_ranks", "n_slots"), [(8, 4, 3), (9, 4, 3), (7, 4, 2)])
def test_unasked_a_rank_has_one_slot_beside_its_share_of_the_experts(n_experts, n_ranks, n_slots):
    """8 on 4: two each, and one for a copy; 7 on 4: one each, and one for those that are over."""
    plan = place_experts(np.arange(1.0, n_experts + 1.0), n_ranks=n_ranks)
    assert plan.request.n_slots == n_slots
    assert max(len(rank.experts) for rank in plan.ranks) <= n_slots


def test_json_is_a_present_placement(tmp_path):
    """What is printed can be read back, and then nothing has to move."""
    plan = place_experts(range(1, 25), n_ranks=6, n_slots=5)
    file = tmp_path / "placement.json"
    file.write_text(dumps(answer_json(plan)))
    ranks = load_placement(str(file))
    assert ranks == tuple(rank.experts for rank in plan.ranks)
    again = place_experts(range(1, 25), n_ranks=6, n_slots=5, present=ranks)
    assert again.n_moves == 0
    assert again.before == "present"
    assert json.loads(dumps(answer_json(again)))["answer"]["n_moves"] == 0


def test_a_higher_price_moves_less():
    loads, present = np.array([8.0, 1, 1, 1, 1, 4]), [[0, 5], [1, 2], [3], [4]]
    moves, peaks = zip(
        *(
            (plan.n_moves, plan.max_load)
            for price in (0.0, 0.1, 5.0)
            for plan in [
                place_experts(loads, n_ranks=4, n_slots=3, present=present, move_price=price)
            ]
        ),
        strict=True,
    )
    assert moves[0] >= moves[1] >= moves[2] == 0
    assert peaks[0] <= peaks[1] <= peaks[2] == 12.0


def test_a_slot_more_never_hurts():
    loads = 1.0 / np.arange(1, 33)
    peaks = [place_experts(loads, n_ranks=8, n_slots=s).certificate.bound for s in (4, 5, 6)]
    assert peaks == sorted(peaks, reverse=True)


def test_scaling_the_loads_changes_nothing():
    loads = 1.0 / np.arange(1, 25)
    one = place_experts(loads, n_ranks=6, n_slots=5, gap=0.01)
    many = place_experts(loads * 2.0**20, n_ranks=6, n_slots=5, gap=0.01)
    assert many.n_copies == one.n_copies
    assert many.imbalance == pytest.approx(one.imbalance)


@pytest.mark.parametrize(
    ("loads", "asked", "wheres"),
    [
        ([], {"n_ranks": 2}, {"--loads"}),
        ([1.0, -1.0], {"n_ranks": 0}, {"--loads", "--ranks"}),
        ([1.0, float("nan")], {"n_ranks": 1}, {"--loads"}),
        ([0.0, 0.0], {"n_ranks": 1}, {"--loads"}),
        ([[1.0, 2.0]], {"n_ranks": 1}, {"--loads"}),
        ([1.0] * 5, {"n_ranks": 2, "n_slots": 2}, {"--slots"}),
        ([1.0] * 4, {"n_ranks": 3, "n_nodes": 2, "n_groups": 3}, {"--nodes", "--groups"}),
        ([1.0] * 6, {"n_ranks": 2, "n_slots": 4, "n_nodes": 2, "n_groups": 1}, {"--groups"}),
        ([1.0] * 4, {"n_ranks": 2, "split": "fair", "gap": -1.0}, {"--split", "--gap"}),
        ([1.0] * 4, {"n_ranks": 2, "present": [[0]]}, {"--present"}),
        (
            [1.0] * 4,
            {"n_ranks": 2, "present": [[9], [1]], "coactivation": np.ones((3, 3))},
            {"--present", "--coactivation"},
        ),
        ([1.0] * 2, {"n_ranks": 2, "coactivation": [[0, 1], [2, 0]]}, {"--coactivation"}),
    ],
)
def test_everything_that_is_wrong_is_said_at_once(loads, asked, wheres):
    with pytest.raises(RequestError) as caught:
        place_experts(loads, **asked)
    assert {problem.where for problem in caught.value.problems} == wheres


def test_the_recount_can_fail():
    plan = place_experts([2.0, 1.0], n_ranks=2, n_slots=1)
    refuse(judge_experts(plan)[1])
    with pytest.raises(SolverError, match=r"max_load 1\.9 is 2\.0"):
        refuse(judge_experts(replace(plan, max_load=1.9))[1])


def test_a_node_without_a_group_stays_empty():
    plan = place_experts([3.0, 1.0], n_ranks=2, n_slots=2, n_nodes=2, n_groups=1)
    assert [rank.experts for rank in plan.ranks] == [(0, 1), ()]


def test_an_expert_that_is_nowhere_yet_has_to_move_even_with_shares():
    plan = place_experts(
        [3.0, 1.0],
        n_ranks=2,
        n_slots=1,
        split="weighted",
        present=((0,), ()),
        move_price=0.1,
    )
    assert [rank.experts for rank in plan.ranks] == [(0,), (1,)]
    assert plan.n_moves == 1
    assert plan.certificate.objective == pytest.approx(3.0 + 0.1 * 2.0)
