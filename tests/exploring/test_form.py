"""A form is its command line, and a command line its form."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, strategies as st

from planner.commands.options.commands import called, options_of
from planner.commands.options.parsing import parse
from planner.errors import RequestError
from planner_workshop.exploring.form import (
    OFFERED,
    TABLE,
    fields_of,
    form,
    line_of,
    said_of,
    state_of,
)
from tests.fuzz.values import value

FORM = form()


def read_back(line):
    assert line.startswith("plan")
    return parse(shlex.split(line)[1:])


@st.composite
def states(draw):
    """Forms in which some fields are filled, each by texts that its option takes."""
    command = draw(st.sampled_from(OFFERED))
    rows = fields_of(command)
    rng = draw(st.randoms(use_true_random=False))
    options = {}
    for name in draw(st.lists(st.sampled_from(sorted(rows)), unique=True, max_size=8)):
        n_texts = rng.choice((1, 2)) if rows[name].gathers else 1
        texts = [value(rng, name, hostility=0.2) for _ in range(n_texts)]
        options[name] = [it for it in texts if it] if rows[name].value else []
    return {
        "command": command,
        "options": {it: t for it, t in options.items() if t or not rows[it].value},
    }


@given(states())
def test_a_form_is_the_command_line_that_is_parsed_to_the_same(state):
    said = said_of(state)
    parsed = read_back(line_of(said))
    assert (parsed.command, parsed.texts) == (state["command"], state["options"])
    assert parsed.values == parse(said.words).values


@pytest.mark.parametrize("line", [it["line"] for it in TABLE["example"]])
def test_a_command_line_fills_a_form_that_is_that_command_line(line):
    state = state_of(line)
    assert line_of(said_of(state)) == line
    assert read_back(line).texts == state["options"]


@pytest.mark.parametrize(
    "line",
    [
        "plan --what-if=-1x --max-rent '$90/h' --model 'a b.toml'",
        "plan place --model a --model b --demand a=1tok/s --demand b=2tok/s --align",
    ],
)
def test_what_is_given_again_is_quoted_or_begins_with_a_dash_is_kept(line):
    said = read_back(line)
    state = {"command": said.command, "options": said.texts}
    assert read_back(line_of(said_of(state))).texts == said.texts


@pytest.mark.parametrize("command", OFFERED)
def test_every_option_of_a_command_is_a_field_or_a_button(command):
    """Those that are left out say where an answer goes, which buttons do, or how text looks."""
    groups = next(it["groups"] for it in FORM["commands"] if it["name"] == command)
    drawn = [field["name"] for group in groups for field in group["fields"]]
    assert sorted(drawn) == sorted({*drawn})
    rest = {it for it in options_of(command) if it not in drawn}
    assert rest <= {
        *("--json", "--quiet", "--html", "--csv", "--svg", "--save-request", "--emit"),
        *("--keep-program", "--brief", "--full", "--solver-report"),
    }


def test_fields_know_the_words_that_their_options_take():
    drawn = {
        (command["name"], field["name"]): field
        for command in FORM["commands"]
        for group in command["groups"]
        for field in group["fields"]
    }
    offered = {key: FORM["lists"][field["list"]] for key, field in drawn.items()}
    assert offered["plan", "--objective"][0] == "cost"
    assert drawn["plan", "--objective"]["is_closed"]
    assert "fp8" in offered["plan", "--weights"]
    assert not drawn["plan", "--weights"]["is_closed"]
    assert "vllm" in offered["fleet", "--engine"]
    assert offered["plan", "--proof"] == ["two", "one"]
    assert offered["plan", "--time-limit"] == []
    assert "llama-3.1-70b" in offered["place", "--model"]
    assert "tpu-v4-4x8x8" in offered["plan", "--topology"]
    assert not [it for it in offered["plan", "--topology"] if "{" in it]
    assert drawn["place", "--align"]["value"] == ""
    for (command, name), field in drawn.items():
        assert not field["is_closed"] or offered[command, name]
        for word in offered[command, name] if field["is_closed"] else ():
            said = said_of({"command": command, "options": {name: [word]}})
            assert not [it for it in parse(said.words).problems if "no such" in it.fact]


@pytest.mark.parametrize(
    "state",
    [
        {"command": "verify", "options": {}},
        {"command": "plan", "options": {"--html": ["/etc/passwd"]}},
        {"command": "plan", "options": {"--emit": ["k8s out"]}},
        {"command": "plan", "options": {"--keep-program": ["x.mps"]}},
        {"command": "plan", "options": {"--save-request": ["x.toml"]}},
        {"command": "plan", "options": {"--no-such": ["1"]}},
        {"command": "plan", "options": {"--batch": "8"}},
        {"command": "place", "options": {"--align": ["yes"]}},
        {"command": "plan", "options": {"--batch": [8]}},
        {"command": ["plan"], "options": {}},
        {"options": {}},
        [],
        None,
    ],
)
def test_what_is_not_in_the_form_is_refused(state):
    with pytest.raises(RequestError):
        said_of(state)


@pytest.mark.parametrize(
    "line",
    ["sweep examples/sweep.toml", "verify a.json", "--latnecy-target 1s", "--batch 0", "--help"],
)
def test_a_command_line_that_the_form_has_not_is_refused(line):
    with pytest.raises(RequestError):
        state_of(line)


def test_an_option_that_writes_files_is_left_out_of_a_form_that_is_filled():
    state = state_of("plan --batch 8 --html x.html --json")
    assert state == {"command": "plan", "options": {"--batch": ["8"]}}
    assert called(state["command"]) == "plan"
