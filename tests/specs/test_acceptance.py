"""Acceptance from the probabilities that two models give to the same tokens."""

from __future__ import annotations

import pytest

from planner.quantities.units import UnitError
from planner.specs.files.acceptance import acceptance_of

HEAD = "context,token,target,draft\n"


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "probabilities.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_context_accepts_the_lesser_of_both_probabilities_of_each_token(file):
    """0.5 + 0.2 + 0.1 in one context, 0.5 + 0.1 in the other: 0.7 on average."""
    path = file(HEAD + "1,a,0.5,0.7\n1,b,0.4,0.2\n1,c,0.1,0.1\n\n2,a,0.9,0.5\n2,b,0.1,0.5\n")
    assert acceptance_of(path) == pytest.approx((0.7,))


def test_positions_of_a_draft_have_rates_of_their_own(file):
    path = file("position,context,token,target,draft\n1,x,a,1,1\n2,x,a,0.25,1\n2,y,a,0.75,1\n")
    assert acceptance_of(path) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "is empty"),
        ("context,token,target\n1,a,1\n", "has no column draft"),
        (HEAD, "holds no probability"),
        (HEAD + "1,a,0.5\n", "line 2: is no line of"),
        (HEAD + "1,a,0.5,x\n", "line 2: is no line of"),
        (HEAD + "1,a,1.5,1\n", "line 2: a probability is not from 0 to 1"),
        (HEAD + "1,a,nan,1\n", "line 2: a probability is not from 0 to 1"),
        (HEAD + "1,a,0.5,1\n1,a,0.5,0\n", "line 3: token a is there twice"),
        (HEAD + "1,a,0.5,1\n1,b,0.6,0\n", "line 3: target adds up to 1.1"),
        ("position,context,token,target,draft\n2,x,a,1,1\n", "has positions 2, not 1, 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_by_line(file, text: str, fact: str):
    with pytest.raises(UnitError, match=fact):
        acceptance_of(file(text))
