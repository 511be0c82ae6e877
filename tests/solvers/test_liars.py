"""A solver that lies never leads to an answer called optimal that is not, whatever is asked."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.programs.blocks import InMemory
from planner.programs.layout import objective
from planner.solvers import search, solve
from planner.solvers.placement import solve_placement
from planner.solvers.solution import Status
from planner.specs.ask.targets import SolverOptions
from planner_workshop.experts.program import ExpertProgram
from planner_workshop.experts.solvers import solve_experts
from planner_workshop.staging.cuts import cut
from tests.planning.test_search import posed
from tests.programs.chains import by_enumeration
from tests.programs.instances import knapsack, random_program
from tests.solvers.every_placement import solve_exhaustive
from tests.solvers.liars import LIES, lies
from tests.solvers.test_placement import _random
from tests.solvers.test_stages import heterogeneous

SEEDS = range(12)
CASES = list(product(LIES, SEEDS))
SAME = 1e-7


def is_honest(found, optimum):
    """Whether nothing is called optimal that is not, and no bound is above what exists."""
    assert found.bound <= optimum + SAME * max(1.0, abs(optimum)) or found.status.value in (
        "unconfirmed",
        "unknown",
    )
    if found.status is Status.OPTIMAL:
        assert found.objective == pytest.approx(optimum, rel=SAME, abs=SAME)
    if found.status is Status.INFEASIBLE:
        assert optimum == np.inf
    return True


@pytest.mark.parametrize(("lie", "seed"), CASES)
def test_of_layouts(monkeypatch, lie, seed):
    """HiGHS lies; every assignment is looked at, so the plan is right all the same."""
    layout = random_program(4, 6, seed=seed)
    optimum = solve(layout, solver="exhaustive").objective
    lies(monkeypatch, "highs", lie)
    found = search.search(InMemory(posed(layout)), SolverOptions(proof="two"))
    assert is_honest(found.solution, optimum)
    assert found.solution.objective == pytest.approx(optimum, rel=SAME)
    assert objective(found.posed.program, found.assignment) == pytest.approx(optimum, rel=SAME)


@pytest.mark.parametrize("lie", LIES)
def test_of_layouts_too_many_to_look_at(monkeypatch, lie):
    """Without enumeration CP-SAT contradicts HiGHS, and the two that are left have to agree."""
    layout = knapsack(6, 6)
    optimum = solve(layout, solver="exhaustive").objective
    monkeypatch.setattr("planner.solvers.exhaustive.MOST_ASSIGNMENTS", 1)
    lies(monkeypatch, "highs", lie)
    found = solve(layout)
    assert is_honest(found, optimum)
    assert found.objective == pytest.approx(optimum, rel=SAME)
    assert [one.lineage for one in found.vouched.proofs if not one.is_accepted] == ["highs"]


@pytest.mark.parametrize("lie", LIES)
def test_of_layouts_by_cpsat(monkeypatch, lie):
    layout = knapsack(5, 5)
    optimum = solve(layout, solver="exhaustive").objective
    monkeypatch.setattr("planner.solvers.exhaustive.MOST_ASSIGNMENTS", 1)
    lies(monkeypatch, "cpsat", lie)
    found = solve(layout, solver="cpsat")
    assert is_honest(found, optimum)
    assert found.objective == pytest.approx(optimum, rel=SAME)


@pytest.mark.parametrize(("lie", "seed"), CASES)
def test_of_placements(monkeypatch, lie, seed):
    program = _random(seed)
    optimum = solve_placement(program, solver="exhaustive").objective
    lies(monkeypatch, "highs", lie)
    found = solve_placement(program)
    assert is_honest(found, optimum)
    assert found.objective == pytest.approx(optimum, rel=SAME, abs=SAME)


@pytest.mark.parametrize(("lie", "seed"), [(lie, seed) for lie in LIES for seed in range(3)])
def test_of_placements_too_many_to_look_at(monkeypatch, lie, seed):
    """CP-SAT contradicts HiGHS; SCIP agrees with one of the two."""
    program = _random(seed)
    optimum = solve_placement(program, solver="exhaustive").objective
    monkeypatch.setattr("planner.solvers.placement.MOST_COUNTED", 1)
    lies(monkeypatch, "highs", lie)
    found = solve_placement(program)
    assert is_honest(found, optimum)
    assert found.objective == pytest.approx(optimum, rel=SAME, abs=SAME)


@pytest.mark.parametrize(("lie", "seed"), [(lie, seed) for lie, seed in CASES if seed < 4])
def test_of_experts(monkeypatch, lie, seed):
    """Two programs of each split; each takes as long as ten of the others."""
    rng = np.random.default_rng(seed)
    load = rng.integers(1, 40, 4).astype(float)
    split = ("equal", "weighted")[seed % 2]
    program = ExpertProgram(load=load, n_ranks=3, n_slots=2, split=split)
    _, optimum = solve_exhaustive(program)
    for solver in ("highs", "cpsat"):
        lies(monkeypatch, solver, lie)
    found = solve_experts(program, gap=0.0).proved
    assert is_honest(found, optimum)


@pytest.mark.parametrize(("lie", "seed"), CASES)
def test_of_stages(monkeypatch, lie, seed):
    objective_name = ("latency", "bottleneck")[seed % 2]
    program = heterogeneous(seed)
    optimum = by_enumeration(program, objective_name)
    lies(monkeypatch, "highs", lie)
    found = cut(program, objective_name).found
    assert is_honest(found, optimum)


@pytest.mark.parametrize("solver", ["highs", "cpsat", "scip"])
@pytest.mark.parametrize("lie", LIES)
def test_one_word_alone_is_never_called_optimal(monkeypatch, solver, lie):
    """One prover is all that is wanted, and it lies: its bound is its own, and said to be."""
    program = heterogeneous(3)
    optimum = by_enumeration(program, "latency")
    lies(monkeypatch, solver, lie)
    found = cut(program, "latency", solver="highs" if solver == "scip" else solver, proof="one")
    assert found.found.status is not Status.OPTIMAL or found.found.objective == pytest.approx(
        optimum
    )
