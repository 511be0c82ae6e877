"""`search` keeps the best that it meets, keeps time, and does not take a solver's word."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from planner import SolverError, search
from planner.programs.layout import objective
from planner.programs.posed import InMemory
from planner.programs.reduction import reduced
from planner.programs.screens import screen
from planner.solvers import solve
from planner.solvers.solution import Status
from planner.specs.request import SolverOptions
from tests.programs.instances import INFINITE, posed, program, random_program


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


def answers(monkeypatch, change):
    """Let `search` see changed answers of the solver."""

    def changed(layout, **effort):
        return change(layout, solve(layout, **effort))

    monkeypatch.setattr(search, "solve", changed)


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
    """Within a gap of a half, the solver is content with the context at 11."""

    def content(layout, solution):
        if layout.n_contexts < 2 or solution.assignment is None:
            return solution
        worse = replace(solution.assignment, context=1, columns=(1, 3))
        return replace(solution, assignment=worse, objective=11.0, bound=5.5, gap=0.5)

    answers(monkeypatch, content)
    found = search.search(source(TWO), SolverOptions(gap=0.5))
    assert (found.solution.objective, found.solution.bound) == (10.0, 10.0)
    assert found.assignment is not None
    assert objective(found.posed.program, found.assignment) == 10.0
    assert [value for _, value in found.alternatives] == [11.0]


def test_no_runner_up_is_better_than_the_plan(monkeypatch):
    """The screens meet nothing; the solver gives 11 first, and 10 among the runners-up."""

    def content(layout, solution):
        if layout.n_contexts < 2:
            return solution
        worse = replace(solution.assignment, context=1, columns=(1, 3))
        return replace(solution, assignment=worse, objective=11.0, bound=5.5, gap=0.5)

    meeting_nothing(monkeypatch)
    answers(monkeypatch, content)
    found = search.search(source(TWO), SolverOptions(gap=0.5))
    assert found.solution.objective == 10.0
    assert found.assignment is not None
    assert objective(found.posed.program, found.assignment) == 10.0
    assert [value for _, value in found.alternatives] == [11.0]


def test_out_of_time_gives_what_the_screens_met_and_a_bound_below_it(monkeypatch):
    """Of the columns at 1, only one fits beside one at 3: 4 in all, and no less than 1 + 1."""
    layout = program([(0, 0, 10)], [(0, s, cost, 11 - 3 * cost) for s in (0, 1) for cost in (1, 3)])

    def late(layout, solution):
        return replace(
            solution, status=Status.UNKNOWN, assignment=None, objective=math.inf, bound=-math.inf
        )

    answers(monkeypatch, late)
    found = search.search(source(layout), SolverOptions(time_limit_s=1.0))
    assert found.solution.status is Status.FEASIBLE
    assert (found.solution.objective, found.solution.bound) == (4.0, 2.0)
    assert (found.solution.gap, found.alternatives) == (0.5, ())


@pytest.mark.parametrize("incumbent", [True, False])
def test_a_solver_that_calls_infeasible_what_has_a_plan_is_not_believed(monkeypatch, incumbent):
    def denies(layout, solution):
        if solution.solver == "exhaustive":
            return solution
        return replace(solution, status=Status.INFEASIBLE, assignment=None, objective=math.inf)

    if not incumbent:
        meeting_nothing(monkeypatch)
    answers(monkeypatch, denies)
    with pytest.raises(SolverError, match="calls infeasible"):
        search.search(source(TWO), SolverOptions())


def test_all_solves_of_a_search_share_one_time_limit(monkeypatch):
    """Each is given what those before it have left, never the whole limit again."""
    given = []

    def noted(layout, **effort):
        given.append(effort["time_limit_s"])
        return solve(layout, **effort)

    monkeypatch.setattr(search, "solve", noted)
    layout = random_program(12, 15)
    search.search(source(layout, tie=layout.column_bytes), SolverOptions(time_limit_s=60.0))
    assert len(given) == 5
    assert given[0] < 60.0
    assert given == sorted(given, reverse=True)
    assert len(set(given)) == 5


def test_a_sum_that_cancels_does_not_screen_its_own_plan_away():
    """0.1 + 0.2 − 0.3 is 5.6e-17, and 0.2 − 0.3 + 0.1 is 2.8e-17: no difference is that small."""
    for order in ((0.1, 0.2, -0.3), (0.2, -0.3, 0.1), (-0.3, 0.1, 0.2)):
        layout = program(
            [(0, 0, INFINITE)],
            [(0, slot, value, 0) for slot, value in enumerate(order)],
            slots=("prefill", "decode", "draft"),
        )
        assert screen(layout).program.n_columns == 3
