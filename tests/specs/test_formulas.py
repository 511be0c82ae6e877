"""Formulas of files: arithmetic over names, and nothing else."""

from __future__ import annotations

import pytest

from planner.specs.files.formulas import FormulaError, names_in, value_of

NAMES = {
    "batch": 4.0,
    "word": "WS2D",
    "answer": {"tpot_s": 0.5, "points": [{"x": 1.0}, {"x": 3.0}], "preferred": 1},
}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("2 * batch - 1", 7.0),
        ("-batch ** 2 / 8", -2.0),
        ("(1 + batch) * answer.tpot_s", 2.5),
        ("answer.points[-1].x", 3.0),
        ("answer.points[answer.preferred].x", 3.0),
        ("sum(answer.points.x)", 4.0),
        ("max(answer.points.x) - min(answer.points.x)", 2.0),
        ("1e3", 1000.0),
        ("7 % batch", 3.0),
    ],
)
def test_a_formula_is_a_number(formula: str, value: float):
    assert value_of(formula, NAMES) == value


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "batch +",
        "none",
        "answer.none",
        "answer.points[2].x",
        "answer.points",
        "answer",
        "word",
        "word + 1",
        "batch / 0",
        "9 ** 9 ** 9",
        "'text'",
        "True and batch",
        "batch if batch else 1",
        "[batch]",
        "print(batch)",
        "answer.__class__",
        "sum(batch)",
        "sum(answer.points.x, 1)",
        "(lambda: 1)()",
        "__import__('os')",
        "(" * 500 + "1" + ")" * 500,
    ],
)
def test_whatever_is_no_number_says_why(formula: str):
    with pytest.raises(FormulaError, match="formula"):
        value_of(formula, NAMES)


def test_names_are_those_that_are_looked_up():
    assert names_in("time_ms / 1e3 + answer.tpot_s") == {"time_ms", "answer"}
    assert names_in("batch +") == frozenset()
