"""Cuts of chains: equal to dynamic programming, to enumeration, whatever the solver."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import SolverError
from planner.solvers.solution import Effort, Status
from planner_workshop.staging.cuts import STAGE_SOLVERS, cut
from planner_workshop.staging.cuts.program import bottleneck_ms, latency_ms, violations
from tests.programs.chains import by_dynamic_programming, by_enumeration, chain
from tests.programs.test_stages import line

OBJECTIVES = ("latency", "bottleneck")
VALUE_MS = {"latency": latency_ms, "bottleneck": bottleneck_ms}
N_CHAINS = {"latency": 150, "bottleneck": 25}
"""`python -m tests.benchmarks.cuts` draws more."""


def agrees(program, objective, solver, best):
    """Whether a solver's answer is verified, has this value, and proves it."""
    found = cut(program, objective, solver=solver).found
    if not np.isfinite(best):
        return found.status is Status.INFEASIBLE and found.answer is None
    assert found.answer is not None
    return (
        found.status is Status.OPTIMAL
        and violations(program, found.answer) == {}
        and found.objective == pytest.approx(best, rel=1e-9)
        and VALUE_MS[objective](program, found.answer) == found.objective
        and found.bound == pytest.approx(best, rel=1e-6)
        and found.bound <= found.objective
    )


def homogeneous(seed):
    rng = np.random.default_rng(seed)
    n_groups, n_units = (int(rng.integers(1, most)) for most in (6, 13))
    room = float(rng.choice([0.9, 1.3, 4.0]))
    return chain(rng, n_units=n_units, n_groups=(n_groups,), room=room)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_random_chains_on_equal_groups_equal_dynamic_programming(objective):
    values = []
    for seed in range(N_CHAINS[objective]):
        program = homogeneous(seed)
        values.append(by_dynamic_programming(program, objective))
        assert agrees(program, objective, "highs", values[-1]), seed
    n_without = np.count_nonzero(~np.isfinite(values))
    assert 0 < n_without < len(values) / 2  # both kinds were drawn


def heterogeneous(seed):
    rng = np.random.default_rng(seed)
    n_groups = [(1, 1), (2, 2), (1, 1, 1), (3, 1), (1, 2, 1)][seed % 5]
    room = float(rng.choice([0.8, 1.2, 3.0]))
    return chain(rng, n_units=int(rng.integers(3, 8)), n_groups=n_groups, room=room)


@pytest.mark.parametrize("solver", STAGE_SOLVERS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_random_chains_on_unequal_groups_equal_enumeration(objective, solver):
    for seed in range(20):
        program = heterogeneous(seed)
        assert agrees(program, objective, solver, by_enumeration(program, objective)), seed


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_eight_groups_of_two_kinds_equal_enumeration(objective):
    """9 units on up to 8 groups: 4 and 4, in every order, with every cut."""
    program = chain(np.random.default_rng(3), n_units=9, n_groups=(4, 4), room=2.0)
    best = by_enumeration(program, objective)
    for solver in STAGE_SOLVERS:
        assert agrees(program, objective, solver, best), solver


def test_of_equal_bottlenecks_the_least_latency_is_returned():
    """Two units cannot be faster than 1 ms each; three groups of a, one of b as fast.

    b hands over at once, a in half a millisecond: the only bottleneck of 1 ms is b, then a.
    """
    program = replace(line(2, n_groups=(3, 1)), hand_ms=np.array([[0.5, 0.5], [0.0, 0.0]]))
    found = cut(program, "bottleneck").found
    assert [stage.kind for stage in found.answer] == [1, 0]
    assert found.objective == 1.0


def test_one_group_takes_everything_where_that_is_soonest():
    """Handing over costs 1 ms, so three units stay together for latency, not for a bottleneck."""
    program = line(4, n_groups=(2,), hand=1.0)
    assert len(cut(program, "latency").found.answer) == 1
    assert cut(program, "bottleneck").found.objective == 3.0


def test_out_of_time_is_no_proof():
    program = chain(np.random.default_rng(1), n_units=40, n_groups=(4, 4), room=3.0)
    found = cut(program, "bottleneck", effort=Effort(time_limit_s=1e-9)).found
    assert found.status is Status.UNKNOWN
    assert found.answer is None


def test_a_solver_that_is_none_is_refused():
    with pytest.raises(SolverError, match="no solver `simplex`"):
        cut(line(2, n_groups=(1,)), "latency", solver="simplex")


def test_the_same_request_gives_the_same_cut():
    program = chain(np.random.default_rng(5), n_units=30, n_groups=(4, 3), room=3.0)
    assert cut(program, "bottleneck").found.answer == cut(program, "bottleneck").found.answer


def test_a_chain_of_sixty_units_on_eighteen_groups_takes_seconds():
    """Bisection: the least maximum as one program takes HiGHS over five seconds and more."""
    program = chain(np.random.default_rng(1), n_units=61, n_groups=(8, 6, 4), room=4.0)
    began_s = time.process_time()
    found = cut(program, "bottleneck")
    assert found.found.status is Status.OPTIMAL
    assert found.n_solves < 25
    assert time.process_time() - began_s < 10
