"""False answers that a recount believes are refused by a new search."""

from __future__ import annotations

import pytest

from planner import verify
from tests.verifier.forgeries import CLAIMED, FORGERIES

ONLY_BY_SEARCH = [
    "conflict: a set that is not",
    "conflict: more is reachable",
    "conflict: no dearer change",
    "conflict: a cheaper change is left out",
    "conflict: a limit that its command has not",
    "conflict: another command",
    "fleet: another next one",
    "staircase: words of a step",
    "staircase: devices of a step",
    "comparison: the best is denied",
    "comparison: the best roles are denied",
    "comparison: denied for another reason",
    "frontiers: a curve is denied",
    "repair: no whole frontier",
    "audit: a change was not tried",
]
"""Those of which a recount, even of what follows from them, knows nothing."""

SAMPLE = [*(name for name in FORGERIES if name not in CLAIMED)][::4] + ONLY_BY_SEARCH
"""The others take as long; `python -m tests.benchmarks.alterations --prove` has them all."""


@pytest.mark.parametrize("name", SAMPLE)
def test_a_forgery_is_refused_by_a_new_search(name):
    assert not verify(FORGERIES[name](), prove=True).is_true


@pytest.mark.parametrize("name", SAMPLE)
def test_a_recount_believes_it(name):
    """So that it is the search that refuses it."""
    assert verify(FORGERIES[name]()).is_true


def test_a_denied_case_of_which_nobody_can_ask_again_says_why():
    """Nothing that was read, and no time that ended: a request has to be there."""
    record = CLAIMED["comparison: the best is denied"]()
    best = next(one for one in record["answer"]["rows"] if one["requests"])
    best["requests"] = []
    (told,) = verify(record).falsehoods
    assert told.pointer.endswith("/reason")
    best["reason"] = "`fp6`: is no format of it"
    found = verify(record, prove=True)
    assert found.is_true
    assert found.taken == ("rows/0: no answer, `fp6`: is no format of it",)
