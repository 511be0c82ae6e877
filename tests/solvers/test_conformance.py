"""What every solver promises, checked on every solver against the referee."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings

from planner.errors import SolverError
from planner.programs.layout import Assignment, lower_bounds, objective, violations
from planner.solvers import SOLVERS, solve
from planner.solvers.answers import run_interruptibly
from planner.solvers.solution import Effort, Status, Word
from planner.specs.records.certificates import Proof
from tests.programs.instances import INFINITE, knapsack, program, programs, random_program

SEARCHING = ("highs", "cpsat")  # the others look at everything


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(programs())
def test_all_solvers_agree_with_the_referee(layout):
    """Same objective, same assignment even among ties, infeasible only together."""
    referee = solve(layout, solver="exhaustive")
    for name in SEARCHING:
        solution = solve(layout, solver=name, proof="one")
        assert solution.status.is_final
        assert (solution.status is Status.INFEASIBLE) == (referee.status is Status.INFEASIBLE)
        assert solution.answer == referee.answer
        assert solution.objective == referee.objective
        assert solution.bound <= solution.objective
        assert solution.bound == pytest.approx(referee.objective, rel=1e-7, abs=1e-7)
        assert solution.stopped_by == ""
        if solution.answer is not None:
            assert violations(layout, solution.answer) == {}
            assert solution.objective == objective(layout, solution.answer)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_contexts_of_real_numbers_have_the_referees_optimum(name, seed):
    layout = random_program(12, 15, seed=seed)
    assert (
        solve(layout, solver=name, proof="one").answer == solve(layout, solver="exhaustive").answer
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_seed_gives_the_same_plan(name):
    layout = random_program(8, 12, seed=5)
    one, other = (solve(layout, solver=name, proof="one", effort=Effort(seed=7)) for _ in range(2))
    assert one.answer == other.answer
    assert (one.objective, one.bound, one.n_nodes) == (other.objective, other.bound, other.n_nodes)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_limit_that_is_met_exactly_is_met(name):
    """0.1 + 0.2 in floats is beyond 0.3 by rounding; 10 + 6 of 16 GiB is not beyond at all."""
    layout = program(
        [(0, 10, 16)],
        [(0, 0, 1, 2), (0, 1, 1, 4)],
        limits=[("cost", [0], [0.1, 0.2], 0.3)],
    )
    assert solve(layout, solver=name, proof="one").answer == Assignment(context=0, columns=(0, 1))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("at_most", [1e-3, 1.0, 1e4])
def test_a_limit_that_is_missed_by_a_millionth_is_missed(name, at_most):
    """The cheap column is beyond by 1e-6 of the limit, the dear one within."""
    layout = program(
        [(0, 0, INFINITE)],
        [(0, 0, 1, 0), (0, 0, 2, 0)],
        slots=("decode",),
        limits=[("tpot", [0], [at_most * (1 + 1e-6), at_most], at_most)],
    )
    assert solve(layout, solver=name, proof="one").answer == Assignment(context=0, columns=(1,))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_millionth_in_the_objective_decides(name, scale):
    """Two ways, 1 and 1 + 1e-6; the dearer comes first."""
    layout = program(
        [(0, 0, INFINITE)],
        [(0, 0, scale * (1 + 1e-6), 0), (0, 0, scale, 0)],
        slots=("decode",),
    )
    assert solve(layout, solver=name, proof="one").answer == Assignment(context=0, columns=(1,))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_context_without_memory_to_give_is_no_contradiction(name):
    """The first context's devices keep more back than they have; the second is chosen."""
    layout = program(
        [(0, 0, -1), (5, 1, 16)],
        [(0, 0, 1, 0), (1, 0, 1, 1)],
        slots=("decode",),
    )
    assert solve(layout, solver=name, proof="one").answer == Assignment(context=1, columns=(1,))


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    "layout",
    [
        program([], []),
        program([(0, 0, 16)], [(0, 0, 1, 1)]),
        program([(0, 0, 16)], [(0, 0, 1, 9), (0, 1, 1, 9)]),
        program([(0, 17, 16)], [(0, 0, 1, 0), (0, 1, 1, 0)]),
        program(
            [(0, 0, 16)], [(0, 0, 1, 1), (0, 1, 1, 1)], limits=[("devices", [0], [0, 0], -1.0)]
        ),
    ],
    ids=["nothing", "no decode", "too much together", "no room", "a limit below zero"],
)
def test_what_cannot_be_is_infeasible(name, layout):
    solution = solve(layout, solver=name, proof="one")
    assert solution.status is Status.INFEASIBLE
    assert (solution.answer, solution.objective, solution.gap) == (None, math.inf, math.inf)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("name", SEARCHING)
def test_ctrl_c_gives_the_incumbent_with_a_true_bound(name):
    """Interrupted at the first incumbent: bound ≤ optimum ≤ objective, where the optimum is the
    referee's, of 8^7 assignments."""
    layout = knapsack(7, 8)
    news = []

    def interrupt(progress):
        if not news and math.isfinite(progress.incumbent):
            news.append(progress)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(1.0)  # else a quick solver ends before a busy machine hears the signal

    optimum = solve(layout, solver="exhaustive").objective
    try:
        solution = solve(layout, solver=name, proof="one", effort=Effort(on_progress=interrupt))
    except KeyboardInterrupt:  # it would end the test run
        pytest.fail("Ctrl-C went past the solver")
    assert (solution.status, solution.stopped_by) == (Status.FEASIBLE, "interrupt")
    assert solution.bound <= optimum <= solution.objective <= news[0].incumbent + 1e-6


def test_ctrl_c_while_the_solver_s_thread_starts_is_heard(monkeypatch):
    start, stopped = threading.Thread.start, threading.Event()

    def starting(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", starting)
    assert run_interruptibly(lambda: stopped.wait(10.0), stopped.set)
    assert stopped.is_set()


@pytest.mark.parametrize("name", SEARCHING)
def test_the_time_limit_gives_the_incumbent_with_a_true_bound(name):
    """Thirty slots of thirty columns, three rows: hours to prove, moments to find."""
    layout = knapsack(30, 30)
    solution = solve(layout, solver=name, proof="one", effort=Effort(time_limit_s=1.0))
    assert (solution.status, solution.stopped_by) == (Status.FEASIBLE, "time limit")
    assert violations(layout, solution.answer) == {}
    assert lower_bounds(layout).min() <= solution.bound < solution.objective
    assert solution.gap == pytest.approx(1 - solution.bound / solution.objective)
    assert solution.vouched.proofs[0].wall_s < 10.0


@pytest.mark.parametrize("name", SEARCHING)
def test_no_time_at_all_gives_no_plan_and_still_a_bound(name):
    layout = random_program(40, 40)
    solution = solve(layout, solver=name, proof="one", effort=Effort(time_limit_s=0.0))
    assert solution.status is Status.UNKNOWN
    assert solution.answer is None
    assert solution.bound >= lower_bounds(layout).min()


@pytest.mark.parametrize("name", SEARCHING)
def test_a_gap_that_is_asked_for_is_kept_and_reported(name):
    layout = knapsack(7, 8)
    optimum = solve(layout, solver="exhaustive").objective
    solution = solve(layout, solver=name, proof="one", effort=Effort(gap=0.2))
    assert solution.status.is_final
    assert solution.bound <= optimum <= solution.objective
    assert solution.gap <= 0.2 + 1e-9


@pytest.mark.parametrize("name", SEARCHING)
def test_threads_may_change_within_a_process(name):
    layout = random_program(8, 12, seed=2)
    plans = [
        solve(layout, solver=name, proof="one", effort=Effort(threads=threads))
        for threads in (1, 2, 1)
    ]
    assert len({plan.answer for plan in plans}) == 1


@pytest.mark.parametrize("name", SEARCHING)
def test_what_the_caller_raises_on_progress_reaches_the_caller(name):
    def refuse(_progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        solve(knapsack(7, 8), solver=name, effort=Effort(on_progress=refuse))


def test_progress_tells_an_incumbent_and_a_bound_below_it():
    news = []
    solve(knapsack(7, 8), solver="highs", effort=Effort(on_progress=news.append))
    assert news
    assert all(each.bound <= each.incumbent + 1e-6 for each in news)


def test_an_unknown_solver_and_a_program_too_large_for_the_referee_are_refused():
    with pytest.raises(SolverError, match="highs, cpsat, exhaustive"):
        solve(program([], []), solver="cplex")
    with pytest.raises(SolverError, match="too many"):
        solve(knapsack(12, 12), solver="exhaustive")


def test_an_answer_that_breaks_a_row_is_never_handed_over(monkeypatch):
    """A solver gone wrong: it names the column that is 9 GiB over; another one is asked."""
    from planner.solvers.mixed import highs

    layout = program([(0, 0, 16)], [(0, 0, 1, 25), (0, 0, 2, 1)], slots=("decode",))
    proof = Proof(prover="highs 1", outcome="optimal", value=1.0, bound=1.0, wall_s=0.0)
    wrong = Word(answer=np.array([1.0, 1.0, 0.0]), proof=proof)
    monkeypatch.setattr(highs, "solve", lambda *_: wrong)
    found = solve(layout, solver="highs", proof="one")
    assert found.answer == Assignment(context=0, columns=(1,))
    refused = [one for one in found.vouched.proofs if not one.is_accepted]
    assert [(one.lineage, one.note) for one in refused] == [
        ("highs", "its answer breaks `hbm` by 9")
    ]


ONE_MODEL_EACH = """
import highspy
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
x = highs.addVariable(lb=0, ub=9, type=highspy.HighsVarType.kInteger)
highs.addConstr(2 * x >= 5)
highs.minimize(x)
assert highs.getInfo().objective_function_value == 3.0

from ortools.sat.python import cp_model
model = cp_model.CpModel()
y = model.new_int_var(0, 9, "y")
model.add(2 * y >= 5)
model.minimize(y)
solver = cp_model.CpSolver()
assert solver.solve(model) == cp_model.OPTIMAL
assert solver.objective_value == 3.0
"""


@pytest.mark.parametrize(
    "first", ["import highspy", "from ortools.sat.python import cp_model"], ids=["highs", "cpsat"]
)
def test_highs_and_cpsat_share_a_process_in_either_order(first):
    """Some releases of the two carry clashing libraries; the pins in pyproject.toml do not."""
    script = f"{first}\n{ONE_MODEL_EACH}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_no_solver_is_imported_before_it_is_asked_for():
    script = (
        "import sys, planner.solvers, planner.programs.screens\n"
        "print(sorted({'highspy', 'ortools', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr


def test_a_large_tie_ends_with_the_solvers_own_choice():
    """2^14 equal assignments under a row that only some keep: settled or not, it is verified."""
    layout = program(
        [(0, 0, INFINITE)],
        [(0, s, 1, 0) for s in range(14) for _ in range(2)],
        slots=[f"layer{s}" for s in range(14)],
        limits=[("cost", [0], list(np.tile([1.0, 0.0], 14)), 7.0)],
    )
    solution = solve(layout, solver="highs")
    assert solution.objective == 14.0
    assert violations(layout, solution.answer) == {}
