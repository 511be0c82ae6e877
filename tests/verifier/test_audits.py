"""Audits of layouts read again: what runs, what could run, and each change by itself."""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

import pytest

from planner import verify
from planner.verifier.audits import judge_audit
from tests.verifier.alterations import at, leaves, of_each_field, tried
from tests.verifier.answers import answer, envelope

NAME = "audit of layouts"


def told(record, *, prove=False):
    return {one.pointer: one.fact for one in verify(record, prove=prove).falsehoods}


def with_value(place, value):
    record = copy.deepcopy(envelope(NAME))
    *above, last = place.split("/")
    inner = at(record["answer"], tuple(above))
    inner[int(last) if isinstance(inner, list) else last] = value
    return record


def test_each_figure_outside_of_deployments_is_counted():
    record, draw = envelope(NAME), Random(11)
    places = [path for path in leaves(record) if len(path) < 6 and "mesh" not in path]
    some = of_each_field(places)
    found = [tried("audit", answer(NAME), record, path, draw) for path in some]
    assert len([one for one in found if one and one.is_refused]) > 40
    assert [one.told for one in found if one and one.is_let_through] == []


def test_the_answer_holds_what_it_is_to_show():
    names = [one.name for one in answer(NAME).changes]
    assert {*names} == {"8 devices", "drafts by llama-3.1-8b", "fp8 weights", "all of these"}
    assert answer(NAME).equal_cost is not None


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("observed/tpot_s", 0.02, "/answer/observed/usd_per_token"),
        ("observed/n_devices", 9, "/answer/observed/n_devices"),
        ("observed/weights_format", "fp8", "/answer/observed/weights_format"),
        ("observed/batch", 10**6, "/answer/observed/batch"),
        ("observed/mfu_fraction", 0.5, "/answer/observed/mfu_fraction"),
        ("observed/n_devices", 8, "/answer/possible/mesh/n_devices"),
        ("changes/0/name", "fewer users", "/answer/changes/0/name"),
        ("weights_formats", ["fp8"], "/answer/weights_formats"),
    ],
)
def test_what_a_user_reads_of_an_audit_is_judged(place, value, said):
    assert said in told(with_value(place, value))


def test_a_change_that_changes_more_than_it_says_is_told():
    """8-bit weights, or more devices, under the name of another batch."""
    names = [one.name for one in answer(NAME).changes]
    i, j = names.index("fp8 weights"), names.index("8 devices")
    facts = told(with_value(f"changes/{i}/name", "another batch"))
    assert facts[f"/answer/changes/{i}/deployment/weights_format"] == "is none of what was offered"
    facts = told(with_value(f"changes/{j}/name", "another batch"))
    assert facts[f"/answer/changes/{j}/deployment/mesh/n_devices"] == "are not the 2 that run"


def test_changes_in_another_order_are_told():
    record = copy.deepcopy(envelope(NAME))
    record["answer"]["changes"].reverse()
    last = len(record["answer"]["changes"]) - 1
    assert f"/answer/changes/{last}/usd_per_token" in told(record)


def test_a_slower_deployment_is_not_one_of_equal_speed():
    """What is as fast as the possible is, of a speed that nobody reaches."""
    record = with_value("observed/tpot_s", answer(NAME).equal_speed.tpot_s * 0.9)
    assert any("breaks a limit: tpot" in fact for fact in told(record).values())


def test_a_dearer_deployment_is_not_one_of_equal_cost():
    mine = answer(NAME)
    dear = max((mine.possible, *(one.deployment for one in mine.changes)),
               key=lambda one: one.usd_per_decoded_token)  # fmt: skip
    seen = replace(mine.observed, usd_per_token=dear.usd_per_decoded_token / 2)
    seen = replace(seen, tpot_s=seen.usd_per_token / mine.observed.usd_per_token * seen.tpot_s)
    _, wrong = judge_audit(replace(mine, observed=seen, equal_cost=dear))
    assert any("a token, beyond" in one.fact for one in wrong)


def test_a_search_again_finds_what_is_better_and_what_was_left_out():
    mine = answer(NAME)
    worse = replace(mine, equal_speed=mine.equal_cost, changes=mine.changes[1:])
    assert verify(worse).is_true
    assert told(worse, prove=True).keys() == {"/answer/equal_speed", "/answer/changes"}
