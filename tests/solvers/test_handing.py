"""Placements that hand over: equal to all choices of copies with flows by another solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.errors import SolverError
from planner.programs.handover import (
    DEMAND,
    SHARE,
    THROUGHPUT,
    flow_violations,
    served_with_flows,
    share_of,
)
from planner.programs.placement import Counts, Cut, PlacementLimit, violations
from planner.solvers.placement import PLACEMENT_SOLVERS, handing, solve_placement
from planner.solvers.placement.handing import solve_handing
from planner.solvers.solution import Effort, Status
from tests.solvers.handing import best, handed, instance, two_halls

N_RANDOM = 150
BACKENDS = ("highs", "cpsat")


@pytest.mark.parametrize("seed", range(N_RANDOM))
def test_the_answer_is_the_best_of_all_choices(seed):
    one = instance(seed)
    least = best(one)
    for solver in BACKENDS:
        found, rates = solve_handing(one.program, one.network, solver=solver)
        assert found.status is (Status.INFEASIBLE if least == np.inf else Status.OPTIMAL)
        assert found.objective == pytest.approx(least, rel=1e-7, abs=1e-9)
        if found.answer is None:
            assert rates is None
            continue
        assert found.bound <= found.objective
        assert found.gap <= 1e-8
        copies = np.array(found.answer.copies, float)
        assert violations(one.program, found.answer) == {}
        assert flow_violations(one.program, one.network, copies, rates) == {}


def test_random_instances_are_of_every_sort():
    """Otherwise the agreement above says little."""
    some = [instance(seed) for seed in range(N_RANDOM)]
    feasible = dict.fromkeys((DEMAND, SHARE, THROUGHPUT), 0)
    n_linked = n_apart = 0
    for one in some:
        free = replace(one.network, capacity=np.full(len(one.network.links), np.inf))
        found, rates = solve_handing(one.program, one.network, proof="one")
        wide, _ = solve_handing(one.program, free, proof="one")
        feasible[one.network.aim] += found.answer is not None
        n_linked += wide.objective < found.objective - 1e-6
        n_apart += rates is not None and bool((rates > 1e-9).any())
    assert min(feasible.values()) > 16
    assert n_linked > 10
    assert n_apart > 37


@pytest.mark.parametrize("solver", BACKENDS)
@pytest.mark.parametrize(("capacity", "share"), [(np.inf, 2.0), (1.0, 1.0), (0.25, 0.25)])
def test_a_link_between_halls_carries_what_it_carries(solver, capacity, share):
    """Prefill fits in one hall and decode in the other: 2 devices each, a rate of 1 a copy."""
    one = two_halls(capacity)
    found, rates = solve_handing(one.program, one.network, solver=solver)
    assert found.answer is not None
    assert found.objective == pytest.approx(-share)
    assert rates.tolist() == pytest.approx([share])


def test_what_is_asked_is_served_and_of_the_rest_the_most():
    """The demand is 0.5; both copies of either side are placed anyway, so all of it is served."""
    one = two_halls(np.inf)
    network = replace(one.network, aim=DEMAND, demand=np.array([0.5]))
    program = replace(one.program, least=np.array([4]))
    _, rates = solve_handing(program, network)
    assert rates.tolist() == pytest.approx([2.0])


def test_ties_are_broken_among_those_that_hand_over():
    """Of two columns of decode the one with the least tie has no room on its link."""
    one = two_halls(1.0, n_decode=2)
    network = replace(
        one.network, aim=DEMAND, demand=np.array([0.9]), capacity=np.array([0.1, 1.0])
    )
    program = replace(one.program, objective=np.ones(3), ties=(np.array([0.0, 1.0, 2.0]),))
    found, _ = solve_handing(program, network)
    assert found.answer == Counts(copies=(1, 0, 1))
    assert found.status is Status.OPTIMAL


def test_out_of_time_there_is_no_answer_that_does_not_hand_over():
    one = two_halls(0.25)
    network = replace(one.network, aim=DEMAND, demand=np.array([0.3]))
    found, rates = solve_handing(one.program, network, effort=Effort(time_limit_s=1e-6))
    assert found.answer is None
    assert rates is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": np.array([2])}, "roles"),
        ({"demand": np.zeros(1), "aim": SHARE}, "share"),
        ({"demand": np.zeros(2)}, "demands"),
    ],
)
def test_a_network_of_another_program_is_refused(change, words):
    one = two_halls(1.0)
    changed = dict(change)
    if "role" in changed:
        changed |= {
            name: np.zeros(0, np.int64) for name in ("prefill", "decode", "use_pair", "use_link")
        }
        changed["gbytes"] = np.zeros(0)
    with pytest.raises(ValueError, match=words):
        solve_handing(one.program, replace(one.network, **changed))


@pytest.mark.parametrize("seed", range(30))
def test_all_backends_keep_cuts(seed):
    """Cuts of any sort in a random program: what enumeration finds, all find and prove."""
    rng = np.random.default_rng(1000 + seed)
    program = instance(3 * seed + 1).program
    cuts = tuple(
        Cut(
            name=f"cut{k}",
            column=np.round(rng.uniform(0.0, 1.0, program.n_columns), 2),
            added=float(np.round(rng.uniform(-0.5, 0.9), 2)),
            is_of_share=bool(rng.random() < 0.7) or k == 0,
        )
        for k in range(int(rng.integers(1, 4)))
    )
    program = replace(program, cuts=cuts, is_for_share=bool(rng.random() < 0.5))
    referee = solve_placement(program, solver="exhaustive")
    for solver in PLACEMENT_SOLVERS:
        found = solve_placement(program, solver=solver)
        assert found.status is referee.status
        assert found.objective == pytest.approx(referee.objective, rel=1e-7, abs=1e-9)
        if found.answer is not None:
            assert violations(program, found.answer) == {}
            assert found.gap <= 1e-8


def test_a_cut_that_comes_short_is_named():
    program = replace(
        two_halls(1.0).program,
        cuts=(Cut(name="cut0", column=np.array([0.25, 0.0]), added=0.5),),
    )
    assert violations(program, Counts(copies=(1, 0))) == {"cut0": 0.25}
    assert violations(program, Counts(copies=(2, 0))) == {}
    rent = PlacementLimit(name="cut0", column=np.ones(2), at_most=1.0)
    with pytest.raises(ValueError, match="share a name"):
        replace(program, limits=(rent,))


def test_the_sum_of_what_is_served_is_the_throughput():
    for seed in range(2, 60, 3):
        one = instance(seed)
        found, rates = solve_handing(one.program, one.network)
        if found.answer is None:
            continue
        copies = np.array(found.answer.copies, float)
        what = served_with_flows(one.program, one.network, copies, rates)
        assert what.sum() == pytest.approx(-found.objective, abs=1e-7)
        assert share_of(one.network, what) >= 1 - 1e-8
        assert handed(one, found.answer) == pytest.approx(what.sum(), abs=1e-7)


def test_a_bound_beyond_verified_copies_is_no_proof(monkeypatch):
    """A solver whose bound is refuted by the flow of an answer is not believed."""
    one = next(it for it in map(instance, range(60)) if it.network.aim == DEMAND and best(it) < 9)
    real = handing.solve_placement

    def boasting(*args, **keywords):
        found = real(*args, **keywords)
        bound = found.objective + 1.0
        vouched = replace(found.vouched, bound=bound, alone=bound)
        return replace(found, vouched=vouched)

    monkeypatch.setattr(handing, "solve_placement", boasting)
    with pytest.raises(SolverError, match="what copies reach"):
        solve_handing(one.program, one.network)


def test_where_the_search_ends_in_nothing_a_first_placement_is_in_hand(monkeypatch):
    """The solver has time for programs of few sorts only: these may be all."""
    n_feasible = n_first = 0
    for seed in range(N_RANDOM // 3):
        one = instance(seed)
        program = replace(one.program, sort=np.arange(one.program.n_columns))

        def solve(some, n_columns=program.n_columns, **asked):
            solution = solve_placement(some, **asked)
            if some.n_columns < n_columns:
                return solution
            nobody = replace(solution.vouched, bound=-np.inf, alone=-np.inf)
            return replace(
                solution,
                status=Status.UNKNOWN,
                answer=None,
                objective=np.inf,
                vouched=nobody,
                stopped_by="time limit",
            )

        least = best(one)
        monkeypatch.setattr(handing, "solve_placement", solve)
        found, rates = solve_handing(program, one.network, effort=Effort(time_limit_s=30.0))
        n_feasible += np.isfinite(least)
        if found.answer is None or not np.isfinite(least):
            assert found.answer is None
            continue
        n_first += 1
        assert found.status is Status.FEASIBLE
        assert found.objective >= least - 1e-7 * abs(least)
        assert violations(program, found.answer) == {}
        copies = np.array(found.answer.copies, float)
        assert flow_violations(program, one.network, copies, rates) == {}
    assert n_first >= 0.75 * n_feasible > 20, (n_first, n_feasible)
