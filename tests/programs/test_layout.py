"""The layout program: its rows, its judge, and the text of its mathematics.

`rows/` holds, for every kind of row, the smallest program that has it, in free MPS. Run this
module as a script to write them anew after a deliberate change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.programs.layout import (
    Assignment,
    choosable,
    layout_rows,
    lower_bounds,
    objective,
    restrict,
    violations,
)
from planner.programs.mps import as_mps
from tests.programs.instances import INFINITE, program

GOLDEN = Path(__file__).parent / "rows"

SMALLEST = {
    "one_context": program([(3, 0, INFINITE), (5, 0, INFINITE)], [], slots=()),
    "one_layout": program([(0, 0, INFINITE)], [(0, 0, 2, 0), (0, 0, 7, 0)], slots=("decode",)),
    "hbm": program([(0, 10, 16)], [(0, 0, 2, 4)], slots=("decode",)),
    "limit": program(
        [(0, 0, INFINITE)], [(0, 0, 2, 0)], slots=("decode",), limits=[("tpot", [1], [28], 30)]
    ),
}
CLAIMS = {"one_context": "one_context", "one_layout": "one_layout", "hbm": "hbm", "limit": "tpot"}

# Two contexts. The first: 10 of 16 GiB are weights, prefill in 4 GiB or 1, decode in 2.
# The second: free of weights, one column a slot, dear.
PLAN = program(
    [(1, 10, 16), (0, 0, 16)],
    [(0, 0, 5, 4), (0, 0, 6, 1), (0, 1, 3, 2), (1, 0, 20, 1), (1, 1, 20, 1)],
    limits=[("tpot", [0, 0], [0, 0, 25, 0, 40], 30.0)],
)
FIRST = Assignment(context=0, columns=(0, 2))


def test_objective_adds_the_context_and_one_column_a_slot():
    """1 + 5 + 3 = 9."""
    assert objective(PLAN, FIRST) == 9.0


def test_an_assignment_that_meets_every_row_exactly_is_verified():
    """10 + 4 + 2 = 16 GiB of 16, 25 ms of 30."""
    assert violations(PLAN, FIRST) == {}


@pytest.mark.parametrize(
    ("assignment", "broken"),
    [
        (Assignment(context=2, columns=(0, 2)), {"one_context": 1.0}),
        (Assignment(context=-1, columns=(0, 2)), {"one_context": 1.0}),
        (Assignment(context=0, columns=(0,)), {"one_layout": 1.0}),
        (Assignment(context=0, columns=(2, 0)), {"one_layout": 2.0}),
        (Assignment(context=0, columns=(0, 4)), {"one_layout": 1.0}),
        (Assignment(context=0, columns=(0, 99)), {"one_layout": 1.0}),
        (Assignment(context=1, columns=(3, 4)), {"tpot": 10.0}),
    ],
)
def test_a_broken_row_is_named_with_its_amount(assignment, broken):
    """The second context decodes in 40 ms, 10 beyond the limit."""
    assert violations(PLAN, assignment) == broken


def test_memory_beyond_capacity_is_named_hbm_in_gib():
    """16 GiB held on a device that has 15.5."""
    small = replace(PLAN, capacity_bytes=np.array([15.5, 16.0]))
    assert violations(small, FIRST) == {"hbm": 0.5}


def test_an_excess_of_rounding_is_none_and_a_millionth_is_one():
    """0.1 + 0.2 is 0.30000000000000004, within 0.3; 0.3000003 is not."""
    sums = program(
        [(0, 0, INFINITE)],
        [(0, 0, 0, 0), (0, 1, 0, 0)],
        limits=[("cost", [0], [0.1, 0.2], 0.3)],
    )
    both = Assignment(context=0, columns=(0, 1))
    assert violations(sums, both) == {}
    (limit,) = sums.limits
    assert "cost" in violations(replace(sums, limits=(replace(limit, at_most=0.3 - 3e-7),)), both)


def test_a_context_without_a_column_or_without_room_cannot_be_chosen():
    """The first lacks decode, the second's weights are 17 GiB of 16, the third is whole."""
    some = program(
        [(0, 0, 16), (0, 17, 16), (2, 0, 16)],
        [(0, 0, 1, 0), (1, 0, 1, 0), (1, 1, 1, 0), (2, 0, 1, 0), (2, 1, 1, 0)],
    )
    assert choosable(some).tolist() == [False, False, True]
    assert lower_bounds(some).tolist() == [INFINITE, INFINITE, 4.0]


def test_restricting_renumbers_contexts_columns_and_limits():
    """Only the second context stays: its columns 3 and 4 are now 0 and 1."""
    less = restrict(PLAN, contexts=np.array([1]), columns=np.array([3, 4]))
    assert less.column_context.tolist() == [0, 0]
    assert violations(less, Assignment(context=0, columns=(0, 1))) == {"tpot": 10.0}


def test_arrays_that_differ_in_length_and_rows_that_share_a_name_are_refused():
    with pytest.raises(ValueError, match="columns differ"):
        replace(PLAN, column_bytes=np.zeros(3))
    with pytest.raises(ValueError, match="contexts differ"):
        replace(PLAN, capacity_bytes=np.zeros(3))
    with pytest.raises(ValueError, match="share a name"):
        replace(PLAN, limits=(replace(PLAN.limits[0], name="hbm"),))


def text_of(name):
    return as_mps(layout_rows(SMALLEST[name]))


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_program_with_a_row_reads_as_its_golden_file(name):
    golden = (GOLDEN / f"{name}.mps").read_text(encoding="utf-8")
    assert text_of(name) == golden
    assert f" {CLAIMS[name]}" in golden


def test_every_row_of_the_model_is_claimed_by_a_golden_file():
    """A row that is added to the model without a golden file has no name here."""
    rows = {name.partition("[")[0] for name in layout_rows(PLAN).rows}
    limits = {limit.name for limit in PLAN.limits}
    assert rows - limits | {"limit"} == set(SMALLEST)
    assert {path.stem for path in GOLDEN.glob("*.mps")} == set(SMALLEST)


if __name__ == "__main__":
    for each in SMALLEST:
        (GOLDEN / f"{each}.mps").write_text(text_of(each), encoding="utf-8")
