"""Programs as LP: what HiGHS reads of them is the same program, and has the same optimum."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import highspy
import numpy as np
import pytest

from planner.programs.layout import layout_rows
from planner.programs.mixed import MixedProgram
from planner.programs.mps import as_lp, as_mps
from tests.programs.instances import random_program
from tests.solvers.cases import cases
from tests.solvers.test_mixed import knapsack, minimax

NAMED = replace(
    knapsack(),
    columns=("1 end", "x-y", "x+y", "a/b", "e[1,2]", "free", "st"),
    rows=("min limit^2",),
)
PROGRAMS = {
    "knapsack, two sides": knapsack(),
    "names that LP has no room for": NAMED,
    "names that LP makes one": replace(NAMED, columns=("x+y", "x-y", *NAMED.columns[2:])),
    "minimax": minimax(1)[0],
    "negative numbers": replace(knapsack(), lower=np.full(7, -2.0), offset=-1.5e-7),
    "layout": layout_rows(random_program(5, 9)),
    **{case.name: case.program() for case in cases()[::40]},
}


def read(text, suffix, tmp_path):
    """A file as HiGHS reads it."""
    path = tmp_path / f"program.{suffix}"
    path.write_text(text, encoding="utf-8")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    return highs


def arrays(lp):
    """Costs, bounds and dense rows by the names of columns, sides by rows': an order of neither."""
    order = np.argsort([re.sub(r"\W", "_", name) for name in lp.col_names_])
    dense = np.zeros((lp.num_row_, lp.num_col_))
    starts = list(lp.a_matrix_.start_)
    for k, (first, last) in enumerate(itertools.pairwise(starts)):
        for e in range(first, last):
            at = (lp.a_matrix_.index_[e], k)
            is_by_row = lp.a_matrix_.format_ == highspy.MatrixFormat.kRowwise
            dense[at[::-1] if is_by_row else at] = lp.a_matrix_.value_[e]
    columns = [np.array(v)[order] for v in (lp.col_cost_, lp.col_lower_, lp.col_upper_)]
    whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_]
    return [*columns, np.array(whole or [False] * lp.num_col_)[order], dense[:, order]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_highs_reads_the_same_program_and_the_same_optimum(name, tmp_path):
    program: MixedProgram = PROGRAMS[name]
    by_lp = read(as_lp(program, notes=["a note"]), "lp", tmp_path)
    by_mps = read(as_mps(program), "mps", tmp_path)
    both = [highs.getLp() for highs in (by_lp, by_mps)]
    assert both[0].offset_ == pytest.approx(program.offset, abs=0)
    n_two = int((np.isfinite(program.low) & (program.high > program.low)
                 & np.isfinite(program.high)).sum())  # fmt: skip
    assert both[0].num_row_ == program.n_rows + n_two
    if not n_two and program.columns != PROGRAMS["names that LP makes one"].columns:
        for one, other in zip(*map(arrays, both), strict=True):
            np.testing.assert_array_equal(one, other)
    values = []
    for highs in (by_lp, by_mps):
        highs.run()
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values.append(highs.getInfo().objective_function_value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_rows_have_their_names_and_two_sides_are_two_rows():
    text = as_lp(knapsack())
    assert " room_least: " in text
    assert " room_most: " in text
    assert " fullest <= " not in text
    assert "\n take(0)\n" in text  # whole
    one_sided = as_lp(minimax(1)[0])
    assert " rank(0): " in one_sided
    assert "_least" not in one_sided


def test_a_row_without_columns_is_kept_and_one_without_sides_is_none():
    program = knapsack()
    bare = replace(
        program,
        low=np.array([-math.inf, 2.0, -math.inf]),
        high=np.array([9.0, math.inf, math.inf]),
        rows=("room", "nothing", "any"),
    )
    lines = as_lp(bare).splitlines()
    assert " nothing: 0 take(0) >= 2.0" in lines
    assert not [line for line in lines if line.startswith(" any")]
    none = replace(bare, **{name: getattr(bare, name)[:0] for name in (
        "cost", "row", "column", "value", "lower", "upper", "is_whole", "columns")})  # fmt: skip
    assert " nothing: 0 none >= 2.0" in as_lp(none).splitlines()
