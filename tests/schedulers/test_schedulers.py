"""Both simulators do with each request what engines' own schedulers do with it."""

from __future__ import annotations

import os
from itertools import zip_longest

import pytest

from planner.estimates.simulation import core
from tests.schedulers.recorded import differing, driven, recorded
from tests.schedulers.workloads import ENGINES, N_REQUESTS, by_arrays, by_verifier, workload

RECORDED = [work for engine in ENGINES for work in recorded(engine)]
SOME = range(1000, 1300, 5)
"""Of workloads that no clause was looked at with; `python -m tests.schedulers engines` has 300."""


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_recorded_has_every_clause(engine):
    """Preemptions of all kinds of stations, prompts that begin alike, priorities, both clocks."""
    works = [it for it in RECORDED if it["engine"] == engine]
    short = [it for it in works if it["preempted"]]
    assert len(short) >= 6
    for clause in ("caches", "ahead", "priority"):
        assert {it[clause] for it in short} == {False, True}
    assert any(row[3] >= 0 for it in works for row in it["requests"])
    assert len({it["watermark" if engine == "vllm" else "reserves"] for it in works}) > 1
    assert len({it["block"] for it in works}) > 1


@pytest.mark.parametrize("work", RECORDED, ids=lambda it: f"{it['engine']}-{it['seed']}")
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
@pytest.mark.parametrize("engine", ENGINES, ids=lambda it: f"{it}-scheduler")
def test_tokens_come_when_the_engine_has_them(engine):
    """Deselected by default; docs/rules.md says how to get the packages of the engines there."""
    works = [workload(seed, N_REQUESTS, engine) for seed in SOME]
    outcomes = driven(os.environ["PLANNER_ENGINES"], works)
    for work, outcome in zip_longest(works, outcomes):
        assert differing(by_verifier(work), outcome) == [], work["seed"]
        assert differing(by_arrays(work), outcome) == [], work["seed"]
