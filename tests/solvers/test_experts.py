"""Placements of experts: every way to find them agrees, and no bound is beyond an optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.solvers.solution import Effort
from planner_workshop.experts.loads import zipf_loads
from planner_workshop.experts.program import (
    ExpertProgram,
    copies_bound,
    equal_placement,
    max_load,
    mean_bound,
    n_moves,
    objective,
    simple_bound,
    traffic,
    violations,
)
from planner_workshop.experts.solvers import greedy_placement, solve_experts
from planner_workshop.experts.solvers.choosing import (
    pair_rows,
    pair_slots,
    paired,
    pairs_refuted,
    pairs_within,
)
from planner_workshop.experts.solvers.flat import greedy, race, replicate
from planner_workshop.experts.solvers.grouped import Divided
from planner_workshop.experts.solvers.joint import best_shares, formulation, improve
from planner_workshop.experts.solvers.patterns import refutes
from planner_workshop.experts.solvers.slots import Limits
from tests.solvers.every_placement import solve_exhaustive


def tiny(seed: int, **asked: object) -> ExpertProgram:
    """Three or four experts on two or three ranks, with few slots; loads are whole numbers."""
    rng = np.random.default_rng(seed)
    n_experts, n_ranks = int(rng.integers(3, 5)), int(rng.integers(2, 4))
    n_slots = -(-(n_experts + 1) // n_ranks)
    load = rng.integers(1, 30, n_experts).astype(float)
    return ExpertProgram(load=load, n_ranks=n_ranks, n_slots=n_slots, **asked)


def present_of(program: ExpertProgram, seed: int) -> np.ndarray:
    """Each expert once, dealt in turn."""
    order = np.random.default_rng(seed).permutation(program.n_experts)
    copies = np.zeros((program.n_experts, program.n_ranks), dtype=np.int64)
    copies[order, np.arange(len(order)) % program.n_ranks] = 1
    return copies


def by_rows(program):
    """The least objective as HiGHS proves it, in units of load."""
    return formulation(program).word("highs", Effort()).proof.bound * program.mean_load


@pytest.mark.parametrize("seed", range(5))
def test_enumeration_and_both_solvers_agree_on_equal_shares(seed):
    program = tiny(seed)
    _, least = solve_exhaustive(program)
    by_cpsat = formulation(program).word("cpsat", Effort())
    assert by_rows(program) == pytest.approx(least, rel=1e-7)
    assert max_load(program, equal_placement(by_cpsat.answer)) == pytest.approx(least, rel=1e-9)
    assert by_cpsat.proof.bound * program.mean_load == pytest.approx(least, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_what_enumeration_finds(seed):
    """Equal and weighted shares; with weighted ones the optimum may be lower, never higher."""
    program = tiny(seed)
    least = {}
    for split in ("equal", "weighted"):
        asked = replace(program, split=split)
        _, least[split] = solve_exhaustive(asked)
        found = solve_experts(asked, gap=0.0)
        assert found.proved.objective == pytest.approx(least[split], rel=1e-7), split
        assert found.proved.bound <= least[split] * (1 + 1e-9)
    assert least["weighted"] <= least["equal"] * (1 + 1e-9)
    assert by_rows(replace(program, split="weighted")) == pytest.approx(least["weighted"], rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("price", [0.02, 0.3])
def test_priced_moves_cost_what_enumeration_says(seed, price):
    bare = tiny(seed)
    program = replace(bare, present=present_of(bare, seed), move_price=price)
    _, least = solve_exhaustive(program)
    found = solve_experts(program, gap=0.0)
    assert by_rows(program) == pytest.approx(least, rel=1e-7)
    assert found.proved.objective == pytest.approx(least, rel=1e-7)
    assert found.proved.bound <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_groups_stay_on_their_nodes_at_the_least_load(seed):
    """Four experts in two groups on two nodes of one rank each, or of two."""
    rng = np.random.default_rng(seed)
    load, group = rng.integers(1, 30, 4).astype(float), np.array([0, 0, 1, 1])
    program = ExpertProgram(load=load, n_ranks=2, n_slots=4, n_nodes=2, group=group)
    _, least = solve_exhaustive(program)
    found = solve_experts(program, gap=0.0)
    assert found.proved.objective == pytest.approx(least)
    assert by_rows(program) == pytest.approx(least)
    assert not violations(program, found.placement)


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_fill_their_nodes_to_the_last_slot_are_placed(seed):
    """Two groups of four experts on two nodes of two ranks: no slot is to spare."""
    load = np.random.default_rng(seed).integers(1, 30, 8).astype(float)
    program = ExpertProgram(
        load=load, n_ranks=4, n_slots=2, n_nodes=2, group=np.array([0, 0, 0, 0, 1, 1, 1, 1])
    )
    found = solve_experts(program, gap=0.0)
    each = [load[:4], load[4:]]
    pairs = [[one[0] + one[k] for k in (1, 2, 3)] for one in each]
    least = max(
        min(max(pair, one.sum() - pair) for pair in sums)
        for one, sums in zip(each, pairs, strict=True)
    )
    assert found.proved.objective == pytest.approx(least)
    assert found.proved.bound == pytest.approx(least)
    assert not violations(program, found.placement)


@pytest.mark.parametrize(("n_slots", "fits"), [(2, True), (1, False)])
def test_a_set_of_groups_fits_a_node_that_has_a_slot_for_each_expert(n_slots, fits):
    """Both groups of two are too many for one slot on each of two ranks, and just fit two."""
    program = ExpertProgram(
        load=np.ones(8), n_ranks=4, n_slots=n_slots, n_nodes=2, group=np.arange(8) // 2
    )
    divided = Divided(program, Limits(gap=0.0))
    assert np.isfinite(divided.bound(0b0011)) == fits
    assert divided.bound(0) == 0.0


def test_a_hot_expert_is_copied_as_often_as_it_must():
    """Loads 6, 1, 1, 1, 1 on two ranks of three slots: the mean is 5, and 6/2 + 1 + 1 is it."""
    program = ExpertProgram(load=np.array([6.0, 1, 1, 1, 1]), n_ranks=2, n_slots=3)
    found = solve_experts(program, gap=0.0)
    assert found.proved.objective == pytest.approx(5.0)
    assert found.proved.bound == pytest.approx(5.0)
    assert found.placement.n_copies.tolist() == [2, 1, 1, 1, 1]


def test_copies_are_bounded_by_slots():
    """Loads 10, 1, 1 on three ranks of one slot and a spare one each: 6 slots, so 10/4 at best."""
    program = ExpertProgram(load=np.array([10.0, 1.0, 1.0]), n_ranks=3, n_slots=2)
    assert mean_bound(program) == pytest.approx(4.0)
    assert copies_bound(program) == pytest.approx(2.5)
    assert copies_bound(replace(program, n_slots=1)) == pytest.approx(10.0)


def test_replication_goes_to_the_heaviest_copies():
    """8 and 3 and 2 with six slots: 4 4 3 2, then 8/3 8/3 8/3 3 2, then the 3 in two."""
    assert replicate(np.array([8.0, 3.0, 2.0]), 6).tolist() == [3, 2, 1]


def test_the_greedy_balancer_follows_its_rules():
    """5, 4, 3, 2 on two ranks of two slots: 5 and 4 apart, 3 to the 4, 2 to the 5."""
    slots = greedy(ExpertProgram(load=np.array([5.0, 4.0, 3.0, 2.0]), n_ranks=2, n_slots=2))
    assert sorted(map(sorted, slots.held.tolist())) == [[0, 3], [1, 2]]


def test_the_greedy_balancer_deals_groups_evenly():
    """Groups of 9, 5, 4, 1: 9 and 1 on one node, 5 and 4 on the other."""
    load = np.array([9.0, 5.0, 4.0, 1.0])
    program = ExpertProgram(load=load, n_ranks=2, n_slots=2, n_nodes=2, group=np.arange(4))
    assert sorted(greedy_placement(program).copies.T.tolist()) == [[0, 1, 1, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize(
    ("load", "published"),
    [
        (
            [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
            [[5, 6], [5, 7], [8, 4], [3, 4], [10, 9], [10, 2], [0, 1], [11, 1]],
        ),
        (
            [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
            [[7, 10], [6, 8], [6, 11], [8, 9], [2, 4], [5, 1], [5, 0], [3, 1]],
        ),
    ],
)
def test_the_greedy_balancer_reproduces_the_published_example(load, published):
    """Twelve experts in four groups, two nodes, eight ranks of two slots, as in the README of
    [EPLB2025]; half of 172 is as heavy as 86, so which of the two is where is not compared."""
    program = ExpertProgram(
        load=np.array(load, dtype=float),
        n_ranks=8,
        n_slots=2,
        n_nodes=2,
        group=np.arange(12) // 3,
    )
    slots = greedy(program)
    counts = np.bincount(np.ravel(published), minlength=12)
    sizes = program.load / counts
    assert slots.counts.tolist() == counts.tolist()
    assert slots.values(program.load) == pytest.approx(sizes[np.array(published)])


@pytest.mark.parametrize("seed", range(5))
def test_a_refuted_load_is_below_the_optimum(seed):
    """And one well below the mean is refuted: the check can fail both ways."""
    program = tiny(seed)
    _, least = solve_exhaustive(program)
    assert not refutes(program, least * (1 + 1e-9))
    assert refutes(program, mean_bound(program) * 0.98)
    assert simple_bound(program)[0] <= least * (1 + 1e-9)


def test_patterns_refute_what_counting_cannot():
    """Loads 3, 3, 3 on two ranks of two slots: the mean is 4.5; with two copies of one expert
    3/2 + 3 stays at 4.5, which needs whole copies that pair: 3 + 1.5 twice. Four loads of 3 and
    no slot to spare put 6 on a rank of three that has 4 as its mean."""
    spare = ExpertProgram(load=np.full(3, 3.0), n_ranks=2, n_slots=2)
    assert not refutes(spare, 4.5 * (1 + 1e-9))
    full = ExpertProgram(load=np.array([3.0, 3.0, 3.0, 1.0]), n_ranks=2, n_slots=2)
    assert simple_bound(full)[0] == pytest.approx(5.0)
    assert refutes(full, 5.5)
    assert solve_exhaustive(full)[1] == pytest.approx(6.0)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_exact(seed):
    """With two slots a rank: found at the optimum, proved to be absent just below it."""
    rng = np.random.default_rng(seed)
    load = rng.integers(1, 40, 4).astype(float)
    program = ExpertProgram(load=load, n_ranks=3, n_slots=2)
    _, least = solve_exhaustive(program)
    posed = pair_rows(load, least * (1 + 1e-9), n_ranks=3)
    found = pair_slots(posed, pairs_within(posed, Limits()).answer, load, 3)
    assert float(found.loads(load).max()) == pytest.approx(least)
    below = pair_rows(load, least * (1 - 1e-6), n_ranks=3)
    if below is None:  # by counting
        return
    word = pairs_within(below, Limits())
    assert word.proof.outcome == "infeasible"
    assert len(pairs_refuted(below, word, Limits()).vouched.by) > 1


def test_the_heaviest_copy_pairs_with_the_lightest():
    """5 4 3 2 1 1 in pairs: 5+1, 4+1, 3+2."""
    slots = paired(np.array([5.0, 4.0, 3.0, 2.0, 1.0, 1.0]), np.ones(6, dtype=np.int64), 3)
    assert slots.loads(np.array([5.0, 4.0, 3.0, 2.0, 1.0, 1.0])).tolist() == [6.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("n_experts", "n_ranks", "n_slots", "exponent"),
    [(64, 8, 9, 0.8), (40, 20, 3, 0.6), (48, 30, 2, 1.0), (64, 36, 2, 0.4), (40, 12, 5, 1.2)],
)
def test_never_above_the_greedy_balancer_and_never_below_the_bound(
    n_experts, n_ranks, n_slots, exponent
):
    """A few of the fifty vectors of tests/benchmarks, smaller."""
    load = zipf_loads(n_experts, exponent, seed=3)
    program = ExpertProgram(load=load, n_ranks=n_ranks, n_slots=n_slots)
    at = race(program, Limits())
    assert at.bound <= at.least <= max_load(program, greedy_placement(program))
    assert at.least <= at.bound * 1.02
    assert not violations(program, equal_placement(at.slots.copies()))


def test_weighted_shares_are_no_worse_at_size():
    """With two slots a rank copies are scarce: where they are decides, however they share."""
    program = ExpertProgram(load=zipf_loads(48, 0.5), n_ranks=27, n_slots=2)
    equal = solve_experts(program, gap=0.005)
    weighted = solve_experts(replace(program, split="weighted"), gap=0.005)
    assert weighted.proved.bound <= weighted.proved.objective <= equal.proved.objective * (1 + 1e-9)
    assert weighted.proved.objective <= max_load(program, greedy_placement(program))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_shares_are_the_same_whatever_loads_are_counted_in(scale):
    """The first expert has a copy on each rank and fills them up: to a third of 12 on each."""
    load = np.array([6.0, 1.5, 1.5, 3.0]) * scale
    copies = np.array([[1, 1, 1], [1, 0, 0], [1, 0, 0], [0, 1, 0]])
    program = ExpertProgram(load=load, n_ranks=3, n_slots=3, split="weighted")
    found = best_shares(program, copies)
    assert (load @ found.shares) / scale == pytest.approx([4.0, 4.0, 4.0])
    assert violations(program, found) == {}


def test_experts_without_any_load_share_equally():
    copies = np.array([[1, 1], [1, 0]])
    program = ExpertProgram(load=np.zeros(2), n_ranks=2, n_slots=2, split="weighted")
    assert best_shares(program, copies).shares.tolist() == [[0.5, 0.5], [1.0, 0.0]]


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_of_weighted_copies_keep_groups_on_their_nodes(seed):
    """Two groups of six experts on two nodes of three ranks: no copy crosses."""
    load = np.random.default_rng(seed).integers(1, 30, 12).astype(float)
    program = ExpertProgram(
        load=load, n_ranks=6, n_slots=3, n_nodes=2, group=np.arange(12) // 6, split="weighted"
    )
    start = greedy(program).copies()
    found = improve(program, (start,), goal=0.0, limits=Limits(seed=seed))
    assert violations(program, found) == {}
    assert max_load(program, found) <= max_load(program, best_shares(program, start)) + 1e-9


def test_the_same_program_and_seed_give_the_same_placement():
    program = ExpertProgram(load=zipf_loads(48, 0.7), n_ranks=16, n_slots=4)
    first, second = solve_experts(program), solve_experts(program)
    assert (first.placement.copies == second.placement.copies).all()
    assert first.proved.bound == second.proved.bound


def test_a_placement_that_is_good_enough_stays():
    load = zipf_loads(32, 1.0)
    program = ExpertProgram(load=load, n_ranks=8, n_slots=5)
    found = solve_experts(program)
    again = solve_experts(replace(program, present=found.placement.copies))
    assert n_moves(replace(program, present=found.placement.copies), again.placement) == 0


def test_contents_go_to_the_ranks_that_hold_most_of_them():
    """The present placement, its ranks renamed, needs no move at all."""
    load = np.arange(1.0, 13.0)
    program = ExpertProgram(load=load, n_ranks=4, n_slots=3)
    best = solve_experts(program, gap=0.0).placement.copies
    there = replace(program, present=best[:, [2, 0, 3, 1]])
    found = solve_experts(there, gap=0.0)
    assert n_moves(there, found.placement) == 0


def test_pairs_that_are_used_together_share_a_node():
    """Experts 0-1 and 2-3 are co-activated; all loads are alike, so any ranks balance."""
    pairs = np.zeros((4, 4))
    pairs[0, 2] = pairs[2, 0] = pairs[1, 3] = pairs[3, 1] = 5.0
    program = ExpertProgram(load=np.ones(4), n_ranks=4, n_slots=1, n_nodes=2, coactivation=pairs)
    found = solve_experts(program)
    assert traffic(program, greedy_placement(program)) == 10.0
    assert traffic(program, found.placement) == 0.0


def test_slack_buys_less_traffic():
    """Loads 4 2 | 3 3 balance, and traffic wants 4 3 | 2 3: 7 is 17 % above 6."""
    pairs = np.zeros((4, 4))
    pairs[0, 2] = pairs[2, 0] = pairs[1, 3] = pairs[3, 1] = 1.0
    program = ExpertProgram(
        load=np.array([4.0, 2.0, 3.0, 3.0]), n_ranks=2, n_slots=2, n_nodes=2, coactivation=pairs
    )
    strict, loose = solve_experts(program), solve_experts(program, slack=0.2)
    assert (strict.proved.objective, traffic(program, strict.placement)) == (6.0, 2.0)
    assert (loose.proved.objective, traffic(program, loose.placement)) == (7.0, 0.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda copies: copies * 0, "placed"),
        (lambda copies: copies + 5, "slots"),
    ],
)
def test_violations_name_what_is_broken(change, name):
    program = tiny(0)
    good = equal_placement(greedy(program).copies())
    assert violations(program, good) == {}
    assert name in violations(program, equal_placement(change(good.copies)))


def test_violations_look_at_shares_and_groups():
    program = ExpertProgram(
        load=np.ones(2), n_ranks=2, n_slots=2, n_nodes=2, group=np.array([0, 0])
    )
    torn = equal_placement(np.eye(2, dtype=np.int64))
    assert violations(program, torn).keys() == {"groups"}
    uneven = replace(
        equal_placement(np.array([[1, 1], [1, 0]])), shares=np.array([[0.9, 0.1], [1, 0]])
    )
    assert violations(replace(program, group=None), uneven).keys() == {"split"}
    assert violations(replace(program, group=None, split="weighted"), uneven) == {}


def test_the_objective_prices_moves():
    """Two experts of load 1 change places: 2 moves at 10 % of a mean of 1."""
    there = np.eye(2, dtype=np.int64)
    program = ExpertProgram(load=np.ones(2), n_ranks=2, n_slots=1, present=there, move_price=0.1)
    assert objective(program, equal_placement(there[::-1].copy())) == pytest.approx(1.2)


def test_counting_claims_nothing_where_experts_find_no_slots():
    """Four experts have three slots: no load of the fullest rank would do, and none is claimed."""
    program = ExpertProgram(load=np.ones(4), n_ranks=1, n_slots=3)
    assert copies_bound(program) == 0.0


def test_counting_bounds_by_the_copies_of_a_busy_expert():
    """Loads 9, 1 and 1 on four slots: two copies of the first, so that a rank has 4.5."""
    program = ExpertProgram(load=np.array([9.0, 1.0, 1.0]), n_ranks=4, n_slots=1)
    assert copies_bound(program) == pytest.approx(4.5)
    assert copies_bound(program) <= 4.5
