"""What is planned outside the measured region, and what stands beside it."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
from scipy.special import ndtr, stdtr, stdtrit

from planner import load_architecture, load_topology, plan, verify
from planner.equations.tails import sigmas
from planner.errors import NoPlanError
from planner.planning import ties
from planner.report.as_json import answer_json, digest_of
from planner.specs.ask.targets import Degrees, Targets
from planner.specs.records.devices import Workload
from planner.specs.records.model_errors import common_error
from planner.specs.region import settings
from tests.report.rendering import report_text

MODEL, POOL = load_architecture("llama-3.1-70b"), load_topology("h100-nvl8-x1")
ASKED = {
    "workload": Workload(n_input_tokens=2000, n_output_tokens=500),
    "weights_formats": ("fp8",),
    "batches": (4, 16, 24, 32, 64, 256),
    "chunks": (2048, 8192),
    "targets": Targets(tpot_s=0.1),
    "prefer": "objective",
}
"""Which TensorRT-LLM was measured at on H100, with some of these batches."""


def planned(**asked):
    return plan(MODEL, POOL, asked.pop("engine", "trtllm"), **{**ASKED, **asked})


@pytest.fixture(scope="module")
def found():
    return planned()


def test_inside_is_what_is_predicted_and_outside_what_holds_in_nine_cases_of_ten(found):
    for one in (found.deployment, *(it.deployment for it in found.alternatives)):
        beyond = sigmas(0.8) if one.outside else 0.0
        for planned_s, times in (
            (one.planned_tpot_s, one.tpot_s),
            (one.planned_ttft_s, one.ttft_s),
        ):
            assert planned_s == pytest.approx(times.value + beyond * (times.high - times.value))
    assert any(it.deployment.outside for it in found.alternatives) or found.deployment.outside


def test_the_best_inside_is_that_of_degrees_and_batches_that_are_inside(found):
    """Of each deployment by itself, whether it is inside and what it costs."""
    assert found.inside is not None
    costs = []
    for tensor in (1, 2, 4, 8):
        for batch in ASKED["batches"]:
            try:
                one = planned(
                    batches=(batch,),
                    targets=Targets(tpot_s=0.1, degrees=Degrees(tensor=tensor, pipeline=1, data=1)),
                )
            except NoPlanError:  # nothing fits, or is quick enough
                continue
            if not one.deployment.outside:
                costs.append(one.deployment.usd_per_token)
    assert len(costs) > 2
    assert found.inside.deployment.outside == ()
    assert found.inside.objective == pytest.approx(min(costs))


def test_the_best_as_predicted_is_the_plan_without_confidence(found):
    best = planned(confidence=0.0)
    assert found.anywhere.objective == pytest.approx(best.certificate.objective)
    assert found.anywhere.deployment == best.deployment
    assert best.inside is best.anywhere is None


def test_what_costs_its_error_outside_is_not_taken(found):
    """Stages are cheaper as predicted, and nobody ever measured one."""
    assert {one.pp for one in settings()} == {"1"}
    assert found.deployment.n_stages == 1
    values = [found.anywhere.objective, found.certificate.objective, found.inside.objective]
    assert values == sorted(values)


def test_the_report_names_what_is_outside():
    one = planned(targets=Targets(tpot_s=0.1, degrees=Degrees(pipeline=2)))
    text = " ".join(report_text(one, 100).split())
    assert "how sure outside of what was measured: PP 2;" in text
    assert "outside PP 2 (judged on no device);" in text
    assert "inside none is known to hold all limits" in text


def test_engines_closer_than_their_errors_are_a_tie_with_the_run_that_would_decide():
    one = planned(engine=("vllm", "trtllm"))
    (other,) = [it for it in one.rivals if it.loss_fraction > 0.0]
    errors = []
    for it in one.rivals:
        errors.append(it.deployment.tpot_s.high / it.deployment.tpot_s.value - 1.0)
    first, second = (it.deployment for it in one.rivals)
    assert ties._is_alike(first, second)
    assert not ties._is_alike(first, replace(second, n_tensor=4))
    assert not ties._is_alike(first, replace(second, batch=3 * first.batch))
    both = common_error("dense", "TPOT")
    joint = math.sqrt(math.hypot(*errors) ** 2 - 2.0 * both * math.prod(errors))
    deviation = stdtrit(2, ndtr(1.0))  # of errors of servers: within it are 68 % of all cases
    assert stdtr(2, deviation * other.error_fraction / joint) == pytest.approx(2 / 3)
    assert other.is_tie == (other.loss_fraction < other.error_fraction)
    text = " ".join(report_text(one, 100).split())
    assert ("a run of llama-3.1-70b on h100-sxm" in text) == other.is_tie
    far = replace(other, loss_fraction=other.error_fraction * 1.01)
    assert not far.is_tie


ALTERED = [
    (("inside", "objective"), 0.9),
    (("inside", "loss_fraction"), 0.5),
    (("inside", "deployment", "planned_tpot_s"), 0.9),
    (("anywhere", "objective"), 0.9),
    (("anywhere", "deployment", "usd_per_token"), 0.9),
]


@pytest.mark.parametrize(("path", "factor"), ALTERED, ids=lambda it: str(it))
def test_altered_figures_beside_a_plan_are_told(found, path, factor):
    record = answer_json(found)
    inner = record["answer"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = inner[path[-1]] * factor + (0.01 if inner[path[-1]] == 0 else 0.0)
    assert told(record)


def test_a_setting_that_was_not_measured_cannot_be_hidden(found):
    record = answer_json(planned(targets=Targets(tpot_s=0.1, degrees=Degrees(pipeline=2))))
    assert not told(record)
    assert record["answer"]["deployment"]["outside"]
    hidden = copy.deepcopy(record)
    hidden["answer"]["deployment"]["outside"] = []
    assert any("outside" in one for one in told(hidden))
    inside = copy.deepcopy(answer_json(found))
    inside["answer"]["inside"] = inside["answer"]["anywhere"]
    assert any("/inside" in one for one in told(inside))


def told(record):
    record["digest"] = digest_of(record)
    return {one.pointer for one in verify(record).falsehoods}


def test_a_conflict_says_that_predictions_alone_would_have_a_plan(found):
    limit = found.anywhere.deployment.planned_tpot_s * 1.01
    quick = Targets(tpot_s=min(limit, planned(objective="latency").deployment.planned_tpot_s * 0.9))
    with pytest.raises(NoPlanError) as none:
        planned(targets=quick)
    assert planned(targets=quick, confidence=0.0).deployment.planned_tpot_s <= quick.tpot_s
    assert any("--confidence 0" in one for one in none.value.conflict.verified)
    with pytest.raises(NoPlanError) as never:
        planned(targets=Targets(tpot_s=1e-4))
    assert not any("--confidence" in one for one in never.value.conflict.verified)
