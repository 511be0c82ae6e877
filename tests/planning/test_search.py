"""`search` keeps the best that it meets, keeps time, and does not take a solver's word."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest

from planner.programs import reduction
from planner.programs.blocks import InMemory
from planner.programs.layout import objective, restrict
from planner.programs.reduction import reduced
from planner.programs.screens import screen
from planner.solvers import enumerated, provers_of, search, solve
from planner.solvers.solution import Status, Word
from planner.specs.ask.targets import SolverOptions
from planner.specs.records.certificates import Proof
from tests.programs.instances import INFINITE, in_order, posed, program, random_program


def source(layout, tie=None):
    """A program whose columns are nothing but numbers; `tie` breaks ties."""
    if tie is None:
        return InMemory(posed(layout))
    return InMemory(posed(layout, tie="cost", cost=tie))


# Two contexts in which one column each slot, at 10 and at 11.
TWO = program(
    [(0, 0, INFINITE), (1, 0, INFINITE)],
    [(0, 0, 5, 0), (0, 1, 5, 0), (1, 0, 5, 0), (1, 1, 5, 0)],
)


SECOND = np.array([1, 3])
"""The columns of the second context, where those of one slot come before those of the other."""


def words(monkeypatch, change):
    """Let `search` hear changed words of the solver, and of nobody else."""

    def changed(layout, solver):
        prover = provers_of(layout, solver)[0]
        return [lambda effort: change(layout, prover(effort))]

    monkeypatch.setattr(search, "provers_of", changed)
    monkeypatch.setattr(search, "enumerated", lambda *_: [])


def content_with_eleven(layout, word):
    """Within a gap of a half, the solver is content with the context at 11."""
    if layout.n_contexts < 2:
        return word
    worse = replace(word.answer, context=1, columns=(1, 3))
    return replace(word, answer=worse, proof=replace(word.proof, value=11.0, bound=5.5))


def meeting_nothing(monkeypatch):
    """Let `search` see screens that have met no assignment."""

    def without(*args, **choices):
        left = reduced(*args, **choices)
        return replace(left, screening=replace(left.screening, incumbent=None))

    monkeypatch.setattr(search, "reduced", without)


def test_of_tied_plans_the_cheaper_one_is_chosen_even_below_zero():
    """Both columns decode 7 sequences, and 7 (1 + 1e-9) is below −7 on that side of zero."""
    layout = program(
        [(0, 0, INFINITE)], [(0, 0, -7, 0), (0, 0, -7, 0), (0, 0, -3, 0)], slots=("decode",)
    )
    found = search.search(source(layout, tie=[4.0, 2.0, 1.0]), SolverOptions())
    assert found.assignment is not None
    assert found.assignment.columns == (1,)


def test_what_the_screens_met_is_kept_when_the_solver_stops_at_something_worse(monkeypatch):
    words(monkeypatch, content_with_eleven)
    found = search.search(source(TWO), SolverOptions(gap=0.5))
    assert (found.solution.objective, found.solution.bound) == (10.0, 10.0)
    assert objective(found.posed.program, found.assignment) == 10.0
    assert [value for _, value in found.alternatives] == [11.0]


def test_no_runner_up_is_better_than_the_plan(monkeypatch):
    """The screens meet nothing; the solver gives 11 first, and 10 among the runners-up."""
    meeting_nothing(monkeypatch)
    words(monkeypatch, content_with_eleven)
    monkeypatch.setattr(search, "counted", unknown)
    found = search.search(source(TWO), SolverOptions(gap=0.5, proof="one"))
    assert found.solution.objective == 10.0
    assert objective(found.posed.program, found.assignment) == 10.0
    assert [value for _, value in found.alternatives] == [11.0]


def unknown(_layout):
    """Arithmetic that says nothing."""
    proof = Proof(prover="nobody", outcome="stopped", value=inf, bound=-inf, wall_s=0.0)
    return Word(answer=None, proof=proof)


def test_out_of_time_gives_what_the_screens_met_and_a_bound_below_it(monkeypatch):
    """Of the columns at 1, only one fits beside one at 3: 4 in all, and no less than 1 + 1."""
    layout = program([(0, 0, 10)], [(0, s, cost, 11 - 3 * cost) for s in (0, 1) for cost in (1, 3)])

    def late(_layout, word):
        proof = replace(word.proof, outcome="stopped", value=inf, bound=-inf)
        return replace(word, answer=None, proof=proof, stopped_by="time limit")

    words(monkeypatch, late)
    found = search.search(source(layout), SolverOptions(time_limit_s=1.0))
    assert found.solution.status is Status.FEASIBLE
    assert (found.solution.objective, found.solution.bound) == (4.0, 2.0)
    assert (found.solution.gap, found.alternatives) == (0.5, ())


@pytest.mark.parametrize("incumbent", [True, False])
def test_a_solver_that_calls_infeasible_what_has_a_plan_is_not_believed(monkeypatch, incumbent):
    def denies(_layout, word):
        proof = replace(word.proof, outcome="infeasible", value=inf, bound=inf)
        return replace(word, answer=None, proof=proof)

    if not incumbent:
        meeting_nothing(monkeypatch)
    words(monkeypatch, denies)
    if not incumbent:  # somebody else has to find it
        monkeypatch.setattr(search, "enumerated", enumerated)
    found = search.search(source(TWO), SolverOptions())
    assert found.solution.objective == 10.0
    refused = [one.lineage for one in found.solution.vouched.proofs if not one.is_accepted]
    assert refused == ["highs"]


def test_a_screen_that_loses_the_optimum_is_seen_on_small_programs(monkeypatch):
    """The screen drops the context at 10; all four columns are looked at before it too."""

    def loses(*args, **choices):
        right = screen(*args, **choices)
        left = restrict(in_order(posed(TWO)).program, contexts=np.array([1]), columns=SECOND)
        return replace(
            right,
            program=left,
            contexts=np.array([1]),
            columns=SECOND,
            incumbent=None,
        )

    monkeypatch.setattr(reduction, "screen", loses)
    found = search.search(source(TWO), SolverOptions())
    assert found.solution.objective == 10.0
    refused = {one.lineage for one in found.solution.vouched.proofs if not one.is_accepted}
    assert "highs" in refused


def test_all_solves_of_a_search_share_one_time_limit(monkeypatch):
    """Each is given what those before it have left, never the whole limit again."""
    given = []

    def noted(layout, solver):
        def ask(effort, prover):
            given.append(effort.time_limit_s)
            return prover(effort)

        return [partial(ask, prover=prover) for prover in provers_of(layout, solver)]

    def noted_solve(layout, **options):
        given.append(options["effort"].time_limit_s)
        return solve(layout, **options)

    monkeypatch.setattr(search, "provers_of", noted)
    monkeypatch.setattr(search, "solve", noted_solve)
    layout = random_program(12, 15)
    search.search(source(layout, tie=layout.column_bytes), SolverOptions(time_limit_s=60.0))
    first, *others = given
    assert first < 60.0
    assert len(others) == 4
    assert others[0] < 60.0
    assert others == sorted(others, reverse=True)
    assert len(set(others)) == 4


def test_a_sum_that_cancels_does_not_screen_its_own_plan_away():
    """0.1 + 0.2 − 0.3 is 5.6e-17, and 0.2 − 0.3 + 0.1 is 2.8e-17: no difference is that small."""
    for order in ((0.1, 0.2, -0.3), (0.2, -0.3, 0.1), (-0.3, 0.1, 0.2)):
        layout = program(
            [(0, 0, INFINITE)],
            [(0, slot, value, 0) for slot, value in enumerate(order)],
            slots=("prefill", "decode", "draft"),
        )
        assert screen(layout).program.n_columns == 3
