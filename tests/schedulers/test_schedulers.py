"""Both simulators do with each request what vLLM's own scheduler does with it."""

from __future__ import annotations

import os
from itertools import zip_longest

import pytest

from planner.estimates.simulation import core
from tests.schedulers.recorded import differing, driven, recorded
from tests.schedulers.workloads import by_arrays, by_verifier, workload

RECORDED = recorded()
SOME = range(1000, 1300, 5)
"""Of workloads that no clause was looked at with; `python -m tests.schedulers engines` has 300."""


def test_what_was_recorded_has_every_clause():
    """Preemptions of all kinds of stations, prompts that begin alike, priorities, both clocks."""
    short = [it for it in RECORDED if it["preempted"]]
    assert len(short) >= 6
    for clause in ("caches", "ahead", "priority"):
        assert {it[clause] for it in short} == {False, True}
    assert any(row[3] >= 0 for it in RECORDED for row in it["requests"])
    assert any(it["watermark"] for it in RECORDED)
    assert len({it["block"] for it in RECORDED}) > 1


@pytest.mark.parametrize("work", RECORDED, ids=lambda it: str(it["seed"]))
def test_tokens_come_when_the_engine_had_them(work, monkeypatch):
    assert differing(by_verifier(work), work) == []
    assert differing(by_arrays(work), work) == []
    monkeypatch.setenv(core.SETTING, "0")
    core._loaded.cache_clear()
    assert differing(by_arrays(work), work) == []
    monkeypatch.undo()
    core._loaded.cache_clear()


@pytest.mark.engines
@pytest.mark.timeout(600)
def test_tokens_come_when_the_engine_has_them():
    """Deselected by default; docs/rules.md says how to get the package of the engine there."""
    works = [workload(seed) for seed in SOME]
    outcomes = driven(os.environ["PLANNER_ENGINES"], works)
    for work, outcome in zip_longest(works, outcomes):
        assert differing(by_verifier(work), outcome) == [], work["seed"]
        assert differing(by_arrays(work), outcome) == [], work["seed"]
