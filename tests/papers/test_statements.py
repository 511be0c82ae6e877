"""Sentences of [Pope2022], each with the range that counts as reproduced."""

from __future__ import annotations

import pytest

from tests.papers.statements import STATEMENTS, Statement

ROWS = tuple(row for statement in STATEMENTS for row in statement.rows())


def cases() -> list:
    return [
        pytest.param(
            statement,
            id=statement.text,
            marks=pytest.mark.xfail(strict=True, reason=statement.fails_because)
            if statement.fails_because
            else (),
        )
        for statement in STATEMENTS
    ]


@pytest.mark.parametrize("statement", cases())
def test_the_model_says_what_the_paper_says(statement: Statement):
    assert statement.low <= statement.predict() <= statement.high


@pytest.mark.parametrize(
    "statement", [s for s in STATEMENTS if s.row], ids=lambda statement: statement.text
)
def test_a_statement_names_one_row(statement: Statement):
    assert len(statement.rows()) == 1
