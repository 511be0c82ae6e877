"""No row of a paper is further off than it was: `python -m research.reproduced --write`."""

from __future__ import annotations

import pytest

from planner.specs.files.papers import paper_names
from research.reproduced import DISAGREES, errors, kept

CLOSE = 5e-4  # errors are kept to four digits after the point, and are of other machines too


@pytest.mark.parametrize("name", paper_names())
def test_each_row_is_as_near_to_the_paper_as_it_was(name: str):
    found = errors(name)
    before = {key: error for key, error in kept().items() if key[0] == name}
    assert found.keys() == before.keys()
    further = {
        key: (before[key], error) for key, error in found.items() if is_further(error, before[key])
    }
    assert not further


def is_further(error: str, before: str) -> bool:
    if error == DISAGREES or before == DISAGREES:
        return error == DISAGREES and before != DISAGREES
    return bool(error) and abs(float(error)) > abs(float(before)) + CLOSE


def test_an_error_that_grew_is_further():
    assert is_further("0.02", "-0.01")
    assert is_further(DISAGREES, "0.5")
    assert not is_further("0.009", "-0.01")
    assert not is_further("0.9", DISAGREES)
