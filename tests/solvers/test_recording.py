"""What is recorded of solvers: sizes, bounds over time, verdicts, multipliers; nothing moves."""

from __future__ import annotations

import math
from dataclasses import replace

import highspy
import numpy as np
import pytest

from planner.programs.mixed import priced
from planner.programs.relaxation import relaxation
from planner.solvers import solve
from planner.solvers.mixed import highs as mixed_highs, solve_mixed, solver_of
from planner.solvers.placement import solve_placement
from planner.solvers.recording import MOST_EVENTS, RunNotes, recording, solving_for
from planner.solvers.solution import Effort
from planner.specs.records.solving import ProgramSize, Progress
from tests.programs.instances import random_program
from tests.programs.test_lp import read
from tests.solvers.cases import cases
from tests.solvers.test_branching import holed
from tests.solvers.test_mixed import knapsack, minimax

SEARCHED = next(case for case in cases() if case.name == "160.mps").program()
"""On which HiGHS branches."""


def recorded(program, solvers=("highs", "scip")):
    with recording() as log:
        solution = solve_mixed(program, Effort(), solvers=solvers)
    (solved,) = log.programs
    return log, solved, solution


def counted(lp):
    """The size of a program as HiGHS reads it."""
    kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
    whole = np.array([kind == highspy.HighsVarType.kInteger for kind in kinds])
    n_binary = int((whole & (np.array(lp.col_upper_) <= 1)).sum())
    return ProgramSize(
        n_binary=n_binary,
        n_integer=int(whole.sum()) - n_binary,
        n_continuous=int((~whole).sum()),
        n_rows=lp.num_row_,
        n_nonzeros=len(lp.a_matrix_.value_),
    )


@pytest.mark.parametrize("program", [SEARCHED, minimax(3)[0], knapsack()], ids=lambda one: one.name)
@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_sizes_are_those_of_the_program_that_is_kept(program, suffix, tmp_path):
    log, solved, _ = recorded(program, ("highs",))
    kept = read(log.text(is_lp=suffix == "lp"), suffix, tmp_path)
    stated = counted(kept.getLp())
    sides = np.isfinite(program.low) & np.isfinite(program.high)
    n_two = int((sides & (program.low < program.high)).sum())
    extra = n_two if suffix == "lp" else 0  # a row with two sides is two
    assert solved.size.n_rows + extra == stated.n_rows
    assert replace(stated, n_rows=solved.size.n_rows, n_nonzeros=solved.size.n_nonzeros) == (
        solved.size
    )
    assert extra or stated.n_nonzeros == solved.size.n_nonzeros
    assert sum(solved.rows.values()) == program.n_rows
    assert [run.size for run in solved.runs] == [solved.size] * len(solved.runs)


def test_presolve_is_what_highs_leaves_of_it(tmp_path):
    """HiGHS by itself, of the file: the one option that changes what presolve does is set."""
    log, solved, _ = recorded(SEARCHED, ("highs",))
    highs = read(log.text(), "mps", tmp_path)
    highs.setOptionValue("presolve_rule_off", 32768)
    highs.presolve()
    assert solved.runs[0].presolved == counted(highs.getPresolvedLp())
    assert solved.runs[0].presolved.n_rows < solved.size.n_rows


@pytest.mark.parametrize(
    ("program", "solvers"),
    [
        (SEARCHED, ("highs", "scip")),
        (minimax(3, n=12)[0], ("cpsat", "highs")),
        (knapsack(), ("multipliers", "highs", "scip")),
    ],
    ids=["highs, scip", "cpsat, highs", "multipliers"],
)
def test_the_last_bound_and_incumbent_are_those_of_the_verdict(program, solvers):
    log, solved, solution = recorded(program, solvers)
    assert solved.proofs == solution.vouched.proofs
    assert (solved.objective, solved.bound) == (solution.objective, solution.vouched.bound)
    assert solved.vouched_by == solution.vouched.by
    assert {run.proof.lineage for run in solved.runs} == {one.lineage for one in solved.proofs}
    for run in solved.runs:
        assert (run.events[-1].incumbent, run.events[-1].bound) == (
            run.proof.value,
            run.proof.bound,
        )
        times = [event.elapsed_s for event in run.events]
        assert times == sorted(times)
        assert times[-1] <= run.proof.wall_s + 0.1
    assert log.rows() is program


@pytest.mark.parametrize("solver", ["highs", "cpsat"])
def test_bounds_rise_and_incumbents_fall_to_each_other(solver):
    """In one unit, the program's, offset included."""
    program = SEARCHED if solver == "highs" else replace(minimax(3, n=14)[0], offset=40.0)
    with recording() as log:
        solver_of(solver)(program, Effort())
    (run,) = log.programs[0].runs
    assert len(run.events) > 5
    assert run.n_nodes > 0
    assert run.n_iterations > 0
    step = 1e-6 * max(1.0, abs(run.proof.value))
    for before, after in zip(run.events, run.events[1:], strict=False):
        assert after.incumbent <= before.incumbent + step
        assert after.bound >= before.bound - step
        assert after.bound <= after.incumbent + step
    assert any(math.isfinite(event.bound) for event in run.events[:-1])


@pytest.mark.parametrize(
    ("name", "program"),
    [
        *(("highs", program) for program in (minimax(2)[0], SEARCHED)),
        *((name, minimax(2)[0]) for name in ("cpsat", "scip", "multipliers")),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_an_answer_is_the_same_whether_it_is_recorded_or_not(name, program):
    alone = solver_of(name)(program, Effort(seed=3))
    with recording():
        again = solver_of(name)(program, Effort(seed=3))
    assert replace(again.proof, wall_s=0.0) == replace(alone.proof, wall_s=0.0)
    assert again.n_nodes == alone.n_nodes
    np.testing.assert_array_equal(again.answer, alone.answer)


@pytest.mark.parametrize("program", [minimax(2)[0], SEARCHED], ids=lambda one: one.name)
def test_multipliers_prove_the_bound_when_somebody_else_adds_them_up(program):
    with recording() as log:
        word = solver_of("multipliers")(program, Effort())
    (run,) = log.programs[0].runs
    assert run.multipliers
    assert 0.0 not in run.multipliers.values()
    given = [run.multipliers.get(program.row_name(r), 0.0) for r in range(program.n_rows)]
    assert priced(program, np.array(given)).bound == word.proof.bound
    assert run.proof == word.proof


def test_a_solver_that_is_asked_alone_is_a_program_of_its_own():
    with recording() as log, solving_for("outside"), solving_for("inside"):
        solver_of("highs")(minimax(1)[0], Effort())
    (solved,) = log.programs
    assert solved.purpose == "outside: inside"
    assert (solved.name, solved.rows) == ("minimax", {"rank": 3, "enough": 1, "room": 1})
    assert solved.vouched_by == ()  # a solver's word alone
    assert log.text() == ""  # `--keep-program` keeps what is proved


def test_where_only_a_program_is_kept_solvers_do_no_more_than_without(monkeypatch):
    monkeypatch.setattr(mixed_highs, "_presolved", None)  # which would be called after the run
    with recording(is_reported=False) as log:
        solve_mixed(SEARCHED, Effort(), solvers=("highs",))
    assert log.programs == []
    assert "ROWS" in log.text()


def test_what_is_infeasible_is_said_of_the_last_bound_and_nothing_of_what_is_unknown():
    program = knapsack()
    program = replace(program, low=np.full(program.n_rows, 1e6), high=np.full(program.n_rows, 2e6))
    _, solved, _ = recorded(program, ("highs",))
    (run,) = solved.runs
    assert [(event.incumbent, event.bound) for event in run.events] == [(math.inf, math.inf)]
    assert run.events[0].elapsed_s == run.proof.wall_s


def test_layouts_say_what_was_enumerated():
    with recording() as log:
        solve(random_program(5, 9))
    provers = [proof.prover for proof in log.programs[0].proofs]
    assert any(prover.startswith("enumeration of ") for prover in provers)
    assert log.programs[0].rows["one_context"] == 1


def test_parts_of_a_packing_are_counted_and_its_prices_named():
    program = holed(2)
    with recording() as log:
        found = solve_placement(program, solver="narrowing")
    (solved, *_) = log.programs
    run = next(run for run in solved.runs if run.multipliers)
    assert run.n_parts > 0
    assert run.size is None  # it reads arrays
    relaxed = relaxation(program)
    given = [run.multipliers.get(relaxed.row_name(r), 0.0) for r in range(relaxed.n_rows)]
    (word,) = [one for one in solved.proofs if one.prover == "multipliers of all columns"]
    assert priced(relaxed, np.array(given)).bound == pytest.approx(word.bound, rel=1e-9)
    assert word.bound <= found.objective
    assert set(run.multipliers) <= set(relaxed.rows)
    assert solved.rows.keys() >= {"free"}


def test_events_of_a_long_search_are_thinned_and_keep_both_ends():
    notes = RunNotes()
    for i in range(10 * MOST_EVENTS):
        news = Progress(incumbent=math.inf, bound=float(i), elapsed_s=i / 10, n_nodes=i)
        notes.hear(news)
        notes.hear(news)  # none
    assert len(notes.events) <= MOST_EVENTS
    assert notes.events[0].bound == 0.0
    assert notes.events[-1].bound == 10 * MOST_EVENTS - 1
    bounds = [event.bound for event in notes.events]
    assert bounds == sorted(set(bounds))
