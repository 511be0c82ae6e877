"""The best of each runtime beside the choice: counted, and held against what stands there."""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

import pytest

from planner import plan, verify
from planner.verifier.plans import _scale, judge_plan
from planner.verifier.runtimes.counting import Countings
from tests.verifier.alterations import leaves, of_each_field, tried
from tests.verifier.answers import SOME, answer, envelope

NAME = "plan of several engines"


def told(record, *, prove=False):
    return {one.pointer: one.fact for one in verify(record, prove=prove).falsehoods}


def test_the_simplest_is_not_the_best():
    found = answer(NAME)
    best = min(found.rivals, key=lambda one: one.loss_fraction)
    assert (found.deployment.engine, best.runtime) == ("trtllm", "trtllm")
    assert found.given_up_fraction > 0.01
    assert found.deployment != best.deployment
    assert [one.runtime for one in found.rivals] == ["vllm", "sglang", "trtllm"]
    assert [one.engine for one in found.other_requests] == ["vllm", "sglang"]


def test_each_figure_of_a_rival_is_counted():
    """Every field of them: a sample would miss some for many runs."""
    record, draw = envelope(NAME), Random(5)
    places = [path for path in leaves(record) if path[:2] == ("answer", "rivals")]
    some = of_each_field(places)
    found = [tried("plan", answer(NAME), record, path, draw) for path in some]
    assert len([one for one in found if one and one.is_refused]) > 25
    assert [one.told for one in found if one and one.is_let_through] == []


def test_a_worse_deployment_in_place_of_the_best_is_seen_where_a_better_one_is_listed():
    """The plan, which is of TensorRT-LLM, is better than the best of it that is claimed."""
    record = copy.deepcopy(envelope(NAME))
    mine, other = record["answer"]["rivals"][2], record["answer"]["alternatives"][-1]
    assert mine["runtime"] == other["deployment"]["engine"] == "trtllm"
    mine |= {key: other[key] for key in ("deployment", "objective", "loss_fraction")}
    facts = told(record)
    assert facts == {
        "/answer/rivals/2/objective": "is not the best of trtllm: one is listed here that is better"
    }


@pytest.mark.parametrize("i", [0, 1, 2])
def test_a_rival_that_is_left_out_is_missed(i):
    record = copy.deepcopy(envelope(NAME))
    del record["answer"]["rivals"][i]
    assert "were asked" in told(record)["/answer/rivals"]


def test_a_rival_that_beats_the_plan_and_its_ties_is_refused():
    record = copy.deepcopy(envelope(NAME))
    plan_of = record["answer"]
    given_up = plan_of["given_up_fraction"]
    plan_of["alternatives"] = [
        one for one in plan_of["alternatives"] if one["loss_fraction"] > given_up
    ]
    assert told(record)["/answer/rivals/2/objective"] == "is better than the plan"


def test_another_runtime_that_was_asked_something_else_is_told():
    record = copy.deepcopy(envelope(NAME))
    record["answer"]["other_requests"][0]["targets"]["tpot_s"] = 0.11
    assert "/answer/other_requests/0/targets/tpot_s" in told(record)


def test_a_search_again_finds_the_best_of_each_engine():
    """A true deployment of SGLang, not its best, with all that follows: only a search can tell."""
    mine = answer(NAME)
    (asked,) = [one for one in mine.other_requests if one.engine == "sglang"]
    model, cluster = asked.records.models[0], asked.records.cluster
    wanted = {"targets": asked.targets, "objective": "latency", "prefer": "objective"}
    wanted["confidence"] = asked.confidence
    worse = plan(model, cluster, "sglang", **wanted, **{**SOME, "batches": (16,)}).deployment
    first, best, last = mine.rivals
    truth, _ = judge_plan(replace(mine, rivals=(first, replace(best, deployment=worse), last)))
    assert truth.rivals[1].loss_fraction > best.loss_fraction + 0.01
    assert verify(truth).is_true
    assert told(truth, prove=True).keys() == {"/answer/rivals/1/objective"}


def test_of_plans_that_are_equal_but_for_rounding_the_plan_itself_leads():
    """Copies of a layout cost the same to the last bit or one less; their errors may differ."""
    found = answer(NAME)
    copies = [one.deployment for one in found.alternatives]
    leader, scale = _scale([found.request], Countings.of((found.request,)), [found.deployment])
    nearly = replace(found.deployment, usd_per_token=scale.least * (1 - 1e-15))
    of = [found.request], Countings.of((found.request,))
    assert _scale(*of, [found.deployment, nearly])[0] is leader
    cheaper = replace(found.deployment, usd_per_token=scale.least * (1 - 1e-6))
    assert _scale(*of, [found.deployment, cheaper, *copies])[0] is not leader
