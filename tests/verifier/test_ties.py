"""Ties of an engine's plan: no fewer than are listed, and no more where others are listed too.

`plan of an engine` lists a tie and two that are none; `among variants` three ties of five.
"""

from __future__ import annotations

import copy

import pytest

from planner.planning.verification import verify
from tests.verifier.answers import envelope

LISTED = {
    "plan of an engine": [True, False, False],
    "plan of an engine among variants": [True, True, True],
}


def findings(name, n_ties):
    record = copy.deepcopy(envelope(name))
    assert [one["is_tie"] for one in record["answer"]["alternatives"]] == LISTED[name]
    record["answer"]["n_ties"] = n_ties
    return {one.pointer for one in verify(record).falsehoods}


@pytest.mark.parametrize(
    ("name", "n_ties", "is_true"),
    [
        ("plan of an engine", 0, False),
        ("plan of an engine", 1, True),
        ("plan of an engine", 2, False),
        ("plan of an engine among variants", 2, False),
        ("plan of an engine among variants", 3, True),
        ("plan of an engine among variants", 5, True),
    ],
)
def test_ties_are_counted(name, n_ties, is_true):
    assert findings(name, n_ties) == (set() if is_true else {"/answer/n_ties"})
