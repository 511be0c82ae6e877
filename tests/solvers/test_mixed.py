"""Mixed programs: two solvers vouch, bounds by multipliers are safe, and MPS says what is meant."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from planner.programs.mixed import (
    MixedBuilder,
    MixedProgram,
    mixed_objective,
    mixed_violations,
    priced,
)
from planner.programs.mps import as_mps
from planner.programs.proofs import vouched
from planner.solvers.mixed import solve_mixed, solver_of
from planner.solvers.mixed.multipliers import multipliers_of
from planner.solvers.recording import recording
from planner.solvers.solution import Effort, Status
from tests.solvers.cases import cases
from tests.solvers.liars import lies

SAME = 1e-6


def knapsack(*, n=6, seed=0, share=0.5):
    """Whole numbers and one continuous column, all rows and columns with finite sides."""
    rng = np.random.default_rng(seed)
    weight, worth = rng.integers(3, 30, n).astype(float), rng.integers(3, 30, n).astype(float)
    return MixedProgram(
        name="knapsack",
        cost=-np.append(worth, 0.5),
        row=np.zeros(n + 1, dtype=np.int64),
        column=np.arange(n + 1),
        value=np.append(weight, 1.0),
        low=np.array([0.0]),
        high=np.array([float(share * weight.sum()) + 0.25]),
        lower=np.zeros(n + 1),
        upper=np.append(np.ones(n), 4.0),
        is_whole=np.append(np.ones(n, dtype=np.bool_), False),
        columns=(*(f"take[{i}]" for i in range(n)), "rest"),
        rows=("room",),
        offset=3.0,
    )


def least(program):
    """The optimum of a knapsack by looking at every choice."""
    n, values = program.n_columns - 1, []
    for bits in range(1 << n):
        taken = np.array([(bits >> i) & 1 for i in range(n)], dtype=float)
        room = program.high[0] - program.value[:n] @ taken
        if room >= 0:
            values.append(mixed_objective(program, np.append(taken, min(room, 4.0))))
    return min(values)


@pytest.mark.parametrize("case", cases()[::8], ids=lambda case: case.name)
def test_nothing_is_called_optimal_that_is_not(case):
    """Programs on which HiGHS errs under some setting; `tests.benchmarks.solver_cases` has all."""
    found = solve_mixed(case.program(), Effort())
    assert found.objective == pytest.approx(case.optimum, rel=SAME)
    assert found.vouched.bound <= case.optimum + SAME * abs(case.optimum)
    assert found.status in (Status.OPTIMAL, Status.UNCONFIRMED)


def test_a_solver_that_errs_is_refused_and_the_other_one_is_alone():
    """HiGHS 1.13.1, as it is called here, proves a value that SCIP beats.

    So it does of `10.mps`, which takes four times as long: `tests.benchmarks.solver_cases`.
    """
    case = next(one for one in cases() if one.name == "160.mps")
    with recording() as kept:
        found = solve_mixed(case.program(), Effort())
    outcomes = {one.lineage: one.outcome for one in found.vouched.proofs}
    assert outcomes == {"highs": "refused", "scip": "optimal"}
    assert found.status is Status.UNCONFIRMED
    assert "refused" in kept.text()
    assert kept.text().startswith("* to be minimised")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_both_solvers_find_what_enumeration_finds(solver, seed):
    program = knapsack(seed=seed)
    word = solver_of(solver)(program, Effort())
    assert word.proof.value == pytest.approx(least(program))
    assert word.proof.bound == pytest.approx(least(program))
    assert mixed_violations(program, word.answer, tolerance=1e-6) == {}


def test_cpsat_takes_whole_numbers_only():
    program = knapsack()
    assert solver_of("cpsat")(program, Effort()).proof.outcome == "refused"
    whole = replace(program, is_whole=np.ones(7, dtype=np.bool_), high=np.floor(program.high))
    by_highs, by_cpsat = (solver_of(name)(whole, Effort()).proof for name in ("highs", "cpsat"))
    assert by_cpsat.value == pytest.approx(by_highs.value)
    assert by_cpsat.bound == pytest.approx(by_cpsat.value)


def minimax(seed, n=7, n_ranks=3):
    """The least fullest rank: switches with loads that are no whole numbers, and the most of them.

    The last column is any number, which its rows hold from below and the objective draws there.
    """
    rng = np.random.default_rng(seed)
    loads, cost = rng.uniform(0.1, 9.0, (n_ranks, n)), rng.uniform(0.0, 0.3, n)
    build = MixedBuilder(rounding=1e-9)
    for j in range(n):
        build.column(f"take[{j}]", 1.0, cost=float(cost[j]), is_whole=True)
    fullest = build.column("fullest", float(loads.sum()), cost=1.0)
    for r in range(n_ranks):
        build.row(f"rank[{r}]", {**dict(enumerate(loads[r])), fullest: -1.0}, -math.inf, 0.0)
    build.row("enough", dict(enumerate(rng.uniform(1.0, 2.0, n))), 4.7, math.inf)
    build.row("room", dict(enumerate(rng.uniform(1.0, 2.0, n))), -math.inf, 8.3)
    return build.program("minimax"), loads, cost


def fewest(program, loads, cost):
    """The exact optimum of `minimax`, in fractions, by looking at every choice."""
    n, values = len(cost), []
    rows = [program.row == r for r in (len(loads), len(loads) + 1)]
    enough, room = ([Fraction(a) for a in program.value[row].tolist()] for row in rows)
    for taken in product((0, 1), repeat=n):
        held, used = (
            sum(a * x for a, x in zip(each, taken, strict=True)) for each in (enough, room)
        )
        if held >= Fraction(4.7) and used <= Fraction(8.3):
            ranks = ([Fraction(a) * x for a, x in zip(row, taken, strict=True)] for row in loads)
            costs = sum(Fraction(c) * x for c, x in zip(cost, taken, strict=True))
            values.append(max(map(sum, ranks)) + costs)
    return min(values)


@pytest.mark.parametrize("seed", range(12))
def test_cpsat_bounds_from_below_what_numbers_that_are_not_whole_come_to(seed):
    """Not by a rounding above: its coefficients and costs are rounded to the safe side."""
    program, loads, cost = minimax(seed)
    best, proof = fewest(program, loads, cost), solver_of("cpsat")(program, Effort()).proof
    assert proof.outcome == "optimal"
    assert Fraction(proof.bound) <= best
    assert proof.bound == pytest.approx(float(best), rel=1e-9)
    assert proof.value == pytest.approx(float(best), rel=1e-9)


@pytest.mark.parametrize("solver", ["highs", "scip", "multipliers"])
def test_what_cannot_be_is_infeasible(solver):
    """Each of six items weighs 3 at least, and the room is below zero."""
    program = replace(knapsack(), low=np.array([-9.0]), high=np.array([-1.0]))
    word = solver_of(solver)(program, Effort())
    assert (word.answer, word.proof.outcome, word.proof.bound) == (None, "infeasible", math.inf)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(
    st.integers(0, 50),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=1),
)
def test_any_multipliers_give_a_bound(seed, multipliers):
    program = knapsack(seed=seed)
    assert priced(program, np.array(multipliers)).bound <= least(program)


def test_the_multipliers_of_the_relaxation_give_its_value():
    program = knapsack(seed=3)
    prices, _ = multipliers_of(program, Effort())
    relaxed = replace(program, is_whole=np.zeros(7, dtype=np.bool_))
    value = solver_of("highs")(relaxed, Effort()).proof.value
    assert value - 1e-9 * abs(value) <= priced(program, prices).bound <= value


def test_multipliers_of_a_side_that_is_not_there_count_as_none():
    program = replace(knapsack(), low=np.array([-np.inf]))
    assert priced(program, np.array([5.0])).bound == priced(program, np.array([0.0])).bound
    assert priced(program, np.array([np.nan])).bound == priced(program, np.array([0.0])).bound


def test_sums_are_rounded_to_the_safe_side():
    """Ten thousand columns at 0.1: their sum in floats is above 1000 by a rounding."""
    n = 10_000
    program = MixedProgram(
        name="tenths",
        cost=np.full(n, 0.1),
        row=np.zeros(0, dtype=np.int64),
        column=np.zeros(0, dtype=np.int64),
        value=np.zeros(0),
        low=np.zeros(0),
        high=np.zeros(0),
        lower=np.ones(n),
        upper=np.ones(n),
        is_whole=np.zeros(n, dtype=np.bool_),
        columns=tuple(f"x{j}" for j in range(n)),
        rows=(),
    )
    exact = sum([0.1] * n) - 1.6e-10  # 0.1 is above a tenth by 5.6e-18, the sum of them by 5.6e-14
    assert exact - 1e-7 < priced(program, np.zeros(0)).bound < 1000.0 + 5.6e-14


def test_a_program_without_finite_bounds_is_none():
    with pytest.raises(ValueError, match="upper"):
        replace(knapsack(), upper=np.full(7, np.inf))


def test_mps_reads_back_to_the_last_bit(tmp_path):
    """Ranges, equal sides, one side, marked whole numbers, an offset, names with blanks."""
    import highspy

    program = replace(
        knapsack(seed=5),
        cost=np.array([-0.1, -1 / 3, 2**-40, 1e9 / 7, 0.0, 1.0, 2.0]),
        row=np.repeat([0, 1, 2, 3], [3, 2, 1, 1]),
        column=np.array([0, 1, 6, 2, 3, 4, 5]),
        value=np.array([0.1, 0.2, 0.3, 1 / 7, 1.0, 2.0, 3.0]),
        low=np.array([0.125, 1.0, -np.inf, 0.5]),
        high=np.array([0.75, 1.0, 2.0, np.inf]),
        rows=("a range", "equal", "most", "least"),
        columns=("a b", "c", "d", "e", "f", "g", "h"),
    )
    path = tmp_path / "program.mps"
    path.write_text(as_mps(program, notes=["of nobody"]), encoding="utf-8")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    lp = highs.getLp()
    assert lp.offset_ == program.offset
    assert np.array_equal(lp.col_cost_, program.cost)
    assert np.array_equal(lp.row_lower_, program.low)
    assert np.array_equal(lp.row_upper_, program.high)
    assert np.array_equal(lp.col_upper_, program.upper)
    assert sorted(lp.a_matrix_.value_) == sorted(program.value)
    whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_]
    assert whole == program.is_whole.tolist()


@pytest.mark.parametrize("lie", ["worst answer", "false bound", "false infeasible"])
def test_a_lie_of_either_is_contradicted_by_the_other(monkeypatch, lie):
    program = knapsack(seed=1)
    for solver in ("highs", "scip"):
        with monkeypatch.context() as patch:
            lies(patch, solver, lie)
            found = solve_mixed(program, Effort())
        assert found.objective == pytest.approx(least(program))
        assert found.status is not Status.OPTIMAL
        assert found.vouched.bound <= least(program) + 1e-9


def test_the_weaker_of_two_bounds_is_kept():
    found = solve_mixed(knapsack(), Effort())
    first, second = found.vouched.proofs
    weaker = replace(second, bound=second.bound - 1.0)
    assert vouched([first, weaker], found.objective).bound == weaker.bound
    assert vouched([first, weaker], found.objective).alone == min(first.bound, found.objective)


def hard(seed=1, n=34):
    """A market split, which no solver closes in minutes: two rows that random weights must meet."""
    rng = np.random.default_rng(seed)
    n_rows = 4
    weight = rng.integers(0, 100, (n_rows, n)).astype(float)
    row, column = np.nonzero(weight)
    over = np.arange(n_rows)
    return MixedProgram(
        name="split",
        cost=np.append(np.zeros(n), np.ones(2 * n_rows)),
        row=np.concatenate([row, over, over]),
        column=np.concatenate([column, n + over, n + n_rows + over]),
        value=np.concatenate([weight[row, column], np.ones(n_rows), -np.ones(n_rows)]),
        low=np.floor(weight.sum(axis=1) / 2),
        high=np.floor(weight.sum(axis=1) / 2),
        lower=np.zeros(n + 2 * n_rows),
        upper=np.append(np.ones(n), np.full(2 * n_rows, 1e4)),
        is_whole=np.append(np.ones(n, dtype=np.bool_), np.zeros(2 * n_rows, dtype=np.bool_)),
        columns=tuple(f"x{j}" for j in range(n + 2 * n_rows)),
        rows=tuple(f"r{i}" for i in range(n_rows)),
    )


def test_the_second_proof_is_inside_the_time_limit():
    began_s = time.perf_counter()
    found = solve_mixed(hard(), Effort(time_limit_s=2.0))
    assert time.perf_counter() - began_s < 15.0
    assert {one.lineage for one in found.vouched.proofs} == {"highs", "scip"}
    assert found.status is Status.FEASIBLE
    assert found.stopped_by == "time limit"


ASKS_SCIP = """
import sys
from planner.solvers.mixed import solver_of
from planner.solvers.solution import Effort
from tests.solvers.test_mixed import hard
import os
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("begun", flush=True)
solver_of("scip")(hard(), Effort(time_limit_s=60.0))
"""


def workers_of(parent):
    """Processes of SCIP that this process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            ppid = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it is gone
            continue
        if ppid == parent and b"scip_worker" in words:
            found.append(int(folder.name))
    return found


def test_scip_is_started_again_only_where_it_was_ended():
    """Programs follow each other in one process; one that waits may have been killed."""
    word = solver_of("scip")(knapsack(), Effort())
    first = set(workers_of(os.getpid()))
    assert solver_of("scip")(knapsack(), Effort()).answer.tolist() == word.answer.tolist()
    assert set(workers_of(os.getpid())) == first != set()
    for worker in first:
        os.kill(worker, signal.SIGKILL)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)  # all threads of it have ended
    assert solver_of("scip")(knapsack(), Effort()).answer.tolist() == word.answer.tolist()
    assert len(set(workers_of(os.getpid())) - first) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_scip_ends_with_whoever_asked_it(how):
    """Ctrl-C reaches the parent alone, and a parent that is killed cannot end its child."""
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKS_SCIP], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert asking.stdout is not None
    assert asking.stdout.readline() == b"begun\n"
    until_s = time.monotonic() + 30.0
    while not (workers := workers_of(asking.pid)) and time.monotonic() < until_s:
        time.sleep(0.05)
    (worker,) = workers
    time.sleep(0.5)
    asking.send_signal(how)
    asking.wait(20.0)
    asking.stdout.close()
    until_s = time.monotonic() + 10.0
    while _is_alive(worker) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not _is_alive(worker)


def _is_alive(pid):
    try:
        state = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
