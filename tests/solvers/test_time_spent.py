"""One limit is of a whole search: who is asked later has only what is left of it.

The clock of these tests goes on by what the test says, and by nothing else.
"""

from __future__ import annotations

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from planner import solvers
from planner.solvers import proving, solution
from planner.solvers.mixed import cpsat, highs
from planner.solvers.proving import FIRST_SHARE, prove
from planner.solvers.solution import Effort, Word
from planner.specs.records.certificates import Proof
from planner_workshop.staging import cuts as stages
from tests.programs.chains import chain
from tests.programs.instances import knapsack

LIMIT_S = 10.0
NOTHING = Word(
    answer=None,
    proof=Proof(prover="nobody", outcome="stopped", value=inf, bound=-inf, wall_s=0.0),
)


@pytest.fixture
def clock(monkeypatch):
    """Of all modules that look at the time."""
    now = SimpleNamespace(s=100.0)
    time = SimpleNamespace(perf_counter=lambda: now.s)
    for module in (solution, proving, stages):
        monkeypatch.setattr(module, "time", time)
    return now


def asked(clock, *seconds):
    """What provers that take so many seconds each are given."""
    given = []

    def prover(effort, takes_s):
        given.append(effort.time_limit_s)
        clock.s += takes_s
        return NOTHING

    provers = [lambda effort, takes_s=one: prover(effort, takes_s) for one in seconds]
    prove(provers, Effort(time_limit_s=LIMIT_S))
    return given


def test_a_prover_that_others_follow_has_most_of_what_is_left_and_the_last_one_all(clock):
    assert asked(clock, 2.0, 3.0, 1.0) == pytest.approx(
        [FIRST_SHARE * 10.0, FIRST_SHARE * 8.0, 5.0]
    )


def test_where_nothing_is_left_only_the_first_prover_is_asked(clock):
    assert len(asked(clock, 11.0, 1.0)) == 1
    assert len(asked(clock, 10.0, 1.0)) == 1
    assert len(asked(clock, 9.0, 1.0)) == 2


@pytest.mark.parametrize(("spent_s", "left_s"), [(0.0, 10.0), (4.0, 6.0), (10.0, 0.0), (12.0, 0.0)])
def test_cpsat_has_what_writing_its_rows_has_left(spent_s, left_s):
    solver = cp_model.CpSolver()
    cpsat.set_parameters(solver, Effort(time_limit_s=LIMIT_S), spent_s=spent_s)
    assert solver.parameters.max_time_in_seconds == left_s


@pytest.mark.parametrize(("spent_s", "left_s"), [(4.0, 6.0), (12.0, 0.0)])
def test_rows_of_a_layout_are_solved_in_what_writing_them_has_left(
    clock, monkeypatch, spent_s, left_s
):
    given = []

    def late(program):
        clock.s += spent_s
        return written(program)

    written = solvers.layout_rows
    monkeypatch.setattr(solvers, "layout_rows", late)
    monkeypatch.setattr(highs, "solve", lambda _, effort: given.append(effort) or NOTHING)
    solvers.formulation(knapsack(3, 3)).word("highs", Effort(time_limit_s=LIMIT_S))
    assert [one.time_limit_s for one in given] == [left_s]


def test_each_step_of_a_bisection_has_what_those_before_it_left(clock, monkeypatch):
    given = []

    def slow(*asked_of):
        given.append(asked_of[-1].time_limit_s)
        clock.s += 0.5
        return whole(*asked_of)

    whole = stages._backend("highs")
    monkeypatch.setattr(stages, "_backend", lambda _: slow)
    effort = Effort(time_limit_s=LIMIT_S)
    program = chain(np.random.default_rng(7), n_units=6, n_groups=(3,))
    solution = stages.cut(program, "bottleneck", effort=effort, proof="one")
    assert len(given) == solution.n_solves >= 3
    assert given == pytest.approx([LIMIT_S - 0.5 * i for i in range(len(given))])
