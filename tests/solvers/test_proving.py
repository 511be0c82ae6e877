"""What is raised where provers settle nothing: time only where there was a limit."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from planner import solvers
from planner.errors import OutOfTimeError, UnsettledError
from planner.programs.blocks import InMemory
from planner.report.messages import solver_text
from planner.running.deadlines import within
from planner.solvers import search
from planner.solvers.proving import prove
from planner.solvers.solution import Effort, Status, Word
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import Proof
from tests.programs.instances import knapsack, posed

ALONE = Word(
    answer=None,
    proof=Proof(prover="highs 1.13.1", outcome="infeasible", value=inf, bound=inf, wall_s=0.0),
)


def stopped(by):
    proof = Proof(prover="cpsat 9.15", outcome="stopped", value=inf, bound=-inf, wall_s=0.0)
    return Word(answer=None, proof=proof, stopped_by=by)


def fallen_over(_effort):
    proof = replace(ALONE.proof, prover="cpsat 9.15", outcome="refused", bound=-inf, note="it fell")
    return replace(ALONE, proof=proof)


def settled(*words):
    return prove([lambda _, word=word: word for word in words], Effort())


def test_an_infeasibility_that_nobody_confirms_is_an_error_of_solvers_and_names_them():
    found = settled(ALONE, stopped(""))
    assert found.status is Status.UNKNOWN
    error = found.unsettled()
    assert isinstance(error, UnsettledError)
    assert str(error) == (
        "no prover's word is confirmed by another's: highs 1.13.1: infeasible; cpsat 9.15: stopped"
    )
    text = solver_text(error, 100)
    assert text.startswith("error: it is not known whether there is an answer\n\n  no prover's")


def test_it_is_no_matter_of_time_where_time_is_left():
    with within(1000.0):
        assert isinstance(settled(ALONE, stopped("")).unsettled(), UnsettledError)


@pytest.mark.parametrize("limit_s", [0.0, 1000.0])
def test_out_of_time_says_the_limit_and_the_bound(limit_s):
    with within(limit_s):
        error = settled(stopped("time limit")).unsettled(3.0, "s")
    assert isinstance(error, OutOfTimeError)
    assert (error.time_limit_s, error.bound, error.dimension) == (limit_s, 3.0, "s")


def test_a_solver_that_ends_early_by_itself_is_not_said_to_be_out_of_time():
    assert isinstance(settled(stopped("time limit")).unsettled(), UnsettledError)


def test_ctrl_c_without_an_answer_is_ctrl_c():
    assert isinstance(settled(stopped("interrupt")).unsettled(), KeyboardInterrupt)


@pytest.fixture
def one_word(monkeypatch):
    """HiGHS calls everything infeasible, the others fall over, and nothing is met on the way."""

    def reduced(*args, **choices):
        left = whole(*args, **choices)
        return replace(left, screening=replace(left.screening, incumbent=None))

    whole = search.reduced
    monkeypatch.setattr(search, "reduced", reduced)
    monkeypatch.setattr(solvers, "enumerated", lambda *_: [])
    monkeypatch.setattr(solvers, "provers_of", lambda *_: [lambda _: ALONE, fallen_over])
    return InMemory(posed(knapsack(6, 6)))


@pytest.mark.parametrize("ask", [search.is_feasible, search.optimum])
def test_what_one_solver_alone_calls_infeasible_is_not_called_so(one_word, ask):
    with pytest.raises(UnsettledError, match=r"highs 1\.13\.1: infeasible"):
        ask(one_word, SolverOptions())
