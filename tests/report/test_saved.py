"""Answers read back: what was written comes back as it was, and nothing else is believed."""

from __future__ import annotations

import contextlib
import copy
import json

import pytest
from hypothesis import given, settings, strategies as st

from planner.errors import SpecError
from planner.report.as_json import Json, answer_json, digest_of, dumps
from planner.report.saved import MOST_BYTES, load_answer, read_answer
from tests.report.examples import PLAN
from tests.report.floorplans import REPAIR
from tests.report.test_as_json import ANSWERS

ENVELOPE: Json = json.loads(dumps(answer_json(PLAN)))


def refusals(envelope: Json) -> dict[str, str]:
    """What is wrong with an envelope, by JSON pointer."""
    with pytest.raises(SpecError) as refused:
        read_answer(json.dumps(envelope), shown="answer.json")
    return {problem.key: problem.fact for problem in refused.value.problems}


def altered(**changes: object) -> Json:
    """The plan with values at places, `answer__deployment__storage=…`."""
    envelope = copy.deepcopy(ENVELOPE)
    for place, value in changes.items():
        *above, last = place.split("__")
        inner = envelope
        for key in above:
            inner = inner[key]
        inner[last] = value
    return envelope


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: type(one).__name__)
def test_every_kind_of_answer_is_read_back_as_it_was_written(answer):
    written = answer_json(answer)
    found = read_answer(dumps(written), shown="answer.json").answer
    assert answer_json(found) == written
    assert type(found) is type(answer)


def test_a_repair_is_read_back_with_the_request_of_its_placement():
    found = read_answer(dumps(answer_json(REPAIR)), shown="answer.json").answer
    assert found == REPAIR
    assert found.placement.request == found.request.wanted


def test_all_faults_are_told_at_once_with_their_pointers():
    envelope = altered(
        answer__deployment__mesh__n_devices="64",
        answer__deployment__decode__batch=True,
        request__batches=[[1, 8, 0]],
        request__cluster__fabric__kind="donut",
        request__targets__tpot_s="30ms",
        certificate__gap=None,
        digest=7,
    )
    del envelope["answer"]["deployment"]["storage"]
    envelope["answer"]["deployment"]["colour"] = "red"
    assert refusals(envelope) == {
        "/answer/deployment/mesh/n_devices": "is not a whole number",
        "/answer/deployment/decode/batch": "is not a whole number",
        "/answer/deployment/storage": "is missing",
        "/answer/deployment/colour": "is not known",
        "/request/batches/0": "is no [first, last, step]",
        "/request/cluster/fabric/kind": "is not 'torus'",
        "/request/targets/tpot_s": "is not a number",
        "/digest": "is not text",
    }


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "is not JSON"),
        ("[]", "is no object"),
        ('{"schema": NaN}', "`NaN` is no number"),
        ('{"schema": 1, "schema": 2}', "schema  is said twice"),
        ("[" * 100_000, "is nested deeper than 64 levels"),
        ('{"schema": "planner.plan/1"}', "does not hold what was asked"),
        ('{"schema": "other/1"}', "is no answer of the planner"),
        ('{"schema": "planner.answer/1", "kind": "poem"}', "is no kind of answer"),
        ('{"schema": "planner.answer/1", "kind": ["plan"]}', "is no kind of answer"),
    ],
)
def test_what_is_no_answer_is_refused_with_the_reason(text, fact):
    with pytest.raises(SpecError, match=fact.replace("[", r"\[")):
        read_answer(text, shown="answer.json")


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with (tmp_path / "long.json").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    faults = {"bytes": "text", "long": "is larger than 32 MiB", "none": "no such file"}
    for name, fact in (*((f"{name}.json", fact) for name, fact in faults.items()), ("", "folder")):
        with pytest.raises(SpecError, match=fact):
            load_answer(str(tmp_path / name), asked_by="ANSWER")


def test_whole_numbers_that_another_tool_wrote_without_a_point_are_the_same_answer():
    envelope = json.loads(dumps(answer_json(PLAN)).replace(".0,", ","))
    assert read_answer(json.dumps(envelope), shown="answer.json").answer == PLAN
    assert digest_of(envelope) == ENVELOPE["digest"]


def test_the_digest_sees_all_but_what_is_unverified():
    assert digest_of(altered(certificate__wall_s=9.0)) == ENVELOPE["digest"]
    assert digest_of(altered(versions={})) == ENVELOPE["digest"]
    assert digest_of(altered(answer__deployment__usd_per_hour=1.0)) != ENVELOPE["digest"]
    assert digest_of(altered(request__objective="rent")) != ENVELOPE["digest"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data(), value=JSON)
def test_anything_anywhere_is_read_or_refused(data, value):
    """No value in any place ends in anything but an answer or a list of problems."""
    envelope = copy.deepcopy(ENVELOPE)
    inner: object = envelope
    while isinstance(inner, (dict, list)) and inner:
        keys = sorted(inner) if isinstance(inner, dict) else range(len(inner))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(inner[key], (dict, list)) or data.draw(st.booleans()):
            inner[key] = value
            break
        inner = inner[key]
    with contextlib.suppress(SpecError):
        read_answer(json.dumps(envelope), shown="answer.json")
