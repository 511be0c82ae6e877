"""What stands beside a placement: the best that was measured, and the best if predictions held."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from planner import load_architecture, load_topology, place, plan, verify
from planner.estimates.serving.timer import Timer
from planner.placing.floorplans import floorplan_of
from planner.report.as_json import answer_json, digest_of
from planner.specs.ask.placement import Serve
from planner.specs.ask.targets import Targets
from planner.specs.files.pools import load_site
from planner.specs.records.devices import Workload
from tests.report.rendering import report_page, report_text

MODEL = "llama-3.1-70b"
ASKED = {
    "workload": Workload(n_input_tokens=2000, n_output_tokens=500),
    "batches": (4, 24, 256),
    "targets": Targets(tpot_s=0.1),
    "engine": "trtllm",
}
"""Which TensorRT-LLM was measured at on H100, with some of these batches."""


def wish(**wanted):
    return Serve(model=load_architecture(MODEL), weights_formats=("fp8",), **wanted)


@cache
def placed(objective="rent", **asked):
    wanted = {"demand_tokens_per_s": 5000.0} if objective == "rent" else {"replicas": 1}
    site = load_site(asked.pop("site", "h100-nvl8-x2"))
    return place(site, wish(**wanted), objective=objective, **{**ASKED, **asked})


def outside(some):
    return [one.deployment.outside for one in some.recipes if one.deployment.outside]


def test_of_one_replica_both_are_those_of_a_plan():
    found = placed("cost", site="h100-nvl8-x1")
    model, pool = load_architecture(MODEL), load_topology("h100-nvl8-x1")
    best = plan(model, pool, weights_formats=("fp8",), prefer="objective", **ASKED)
    assert found.certificate.objective == pytest.approx(best.certificate.objective)
    for mine, other in ((found.inside, best.inside), (found.anywhere, best.anywhere)):
        assert mine.objective == pytest.approx(other.objective)
        assert mine.loss_fraction == pytest.approx(other.loss_fraction, abs=1e-9)


@pytest.mark.parametrize("objective", ["rent", "cost", "throughput"])
def test_the_best_as_predicted_is_the_placement_without_confidence(objective):
    found, bare = placed(objective), placed(objective, confidence=0.0)
    assert found.anywhere.objective == pytest.approx(bare.certificate.objective)
    assert found.anywhere.recipes == bare.recipes
    assert found.anywhere.replicas == bare.replicas
    assert bare.inside is bare.anywhere is None


def test_what_stands_beside_is_inside_and_loses_or_wins_what_is_said():
    found = placed()
    least = found.certificate.objective
    assert outside(found)
    assert not outside(found.inside)
    for one in (found.inside, found.anywhere):
        assert one.objective == pytest.approx(least * (1.0 + one.loss_fraction))
        rents = [one.recipes[it.recipe].deployment.usd_per_hour for it in one.replicas]
        assert sum(rents) == pytest.approx(one.objective)
        assert one.served[0].output_tokens_per_s >= 5000.0
    assert found.anywhere.loss_fraction < 0.0 < found.inside.loss_fraction


def test_replicas_that_do_one_phase_were_measured_nowhere():
    found = placed(roles="apart", targets=Targets(tpot_s=0.1, ttft_s=2.0))
    assert found.inside is None
    assert {one.role for one in found.anywhere.recipes} == {"prefill", "decode"}
    assert found.anywhere.handovers
    assert verify(found).is_true


def test_nothing_is_timed_for_them(monkeypatch):
    timed = []
    choices = Timer.choices
    monkeypatch.setattr(Timer, "choices", lambda *it: timed.append(it) or choices(*it))
    placed.__wrapped__()
    n_timed = len(timed)
    placed.__wrapped__(confidence=0.0)
    assert len(timed) == 2 * n_timed


ALTERED = [
    ("inside", "objective"),
    ("inside", "loss_fraction"),
    ("inside", "served", 0, "output_tokens_per_s"),
    ("inside", "recipes", 0, "deployment", "planned_tpot_s"),
    ("inside", "replicas", 0, "nodes", 0),
    ("anywhere", "objective"),
    ("anywhere", "recipes", 0, "deployment", "usd_per_token"),
    ("anywhere", "replicas", 0, "leaves", 0),
]


@pytest.mark.parametrize("path", ALTERED, ids=lambda it: ".".join(map(str, it)))
def test_altered_figures_beside_a_placement_are_told(path):
    record = answer_json(placed())
    inner = record["answer"]
    for key in path[:-1]:
        inner = inner[key]
    value = inner[path[-1]]
    inner[path[-1]] = "node9" if isinstance(value, str) else value * 0.9 + 0.01
    assert any(path[0] in one for one in told(record))


def told(record, *, prove=False):
    record["digest"] = digest_of(record)
    return {one.pointer for one in verify(record, prove=prove).falsehoods}


def test_one_of_what_was_not_measured_is_not_inside():
    record = answer_json(placed())
    record["answer"]["inside"] = record["answer"]["anywhere"]
    assert any(one.startswith("/answer/inside") for one in told(record))


def test_a_worse_one_beside_a_placement_is_refused_by_a_new_search():
    """It is all that it says, and that it is the best a search alone can say."""
    record = answer_json(placed())
    record["answer"]["anywhere"] = None
    assert not told(record)
    assert told(record, prove=True) == {"/answer/anywhere/objective"}
    dearer = placed(batches=(24,), targets=Targets(tpot_s=0.02)).inside
    assert dearer.objective > placed().inside.objective
    lost = dearer.objective / placed().certificate.objective - 1.0
    dearer = replace(dearer, loss_fraction=lost)
    record = answer_json(replace(placed(), inside=dearer))
    assert not told(record)
    assert told(record, prove=True) == {"/answer/inside/objective"}


def test_reports_say_what_stands_beside():
    found = placed()
    page = report_page(found, floorplan=floorplan_of(load_site("h100-nvl8-x2"), None))
    for text in (" ".join(report_text(found, 100).split()), page):
        assert "easured region" in text
        assert "outside of what was measured: " in text
        assert "$35.4/h, 50 % worse, by 6 × 2 devices TP 2, fp8 weights" in text
        assert "$20.7/h, 12.5 % better, by 1 × 7 devices PP 7, fp8 weights" in text
    assert "measured region" not in report_text(placed(confidence=0.5), 100)
