"""Every command that lists says the same to programs, in the envelope of all answers."""

from __future__ import annotations

import json

import pytest

from planner.commands.cli import main
from planner.commands.options.commands import COMMANDS

LISTED = {"models": 20, "topologies": 20, "connectors": 2, "clients": 2, "reproduce --list": 10}
RECORDS = {"devices": "devices", "engines": "engines"}


def told(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_listing_takes_json():
    """What names tables of papers is an option: `plan reproduce --list`."""
    own = [name for name, one in COMMANDS.items() if one.module == "catalogue"]
    assert {*own, "reproduce --list"} == {*LISTED, *RECORDS, "topologies-import"}
    assert all("--json" in COMMANDS[name.split()[0]].names for name in (*LISTED, *RECORDS))


@pytest.mark.parametrize(("command", "least"), LISTED.items())
def test_a_list_has_the_names_and_facts_of_its_text(command, least, capsys):
    answer = told(capsys, *command.split())
    assert answer["kind"] == "catalogue"
    entries = [entry for part in answer["answer"]["lists"] for entry in part["entries"]]
    assert len(entries) >= least
    assert main(command.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    for entry in entries:
        assert entry["name"] in text
        assert entry["facts"] in text
        assert entry["file"].endswith(".toml")


def test_models_and_topologies_have_their_records(capsys):
    models = told(capsys, "models")["answer"]["models"]
    assert next(one for one in models if one["name"] == "llama-3.1-70b")["n_layers"] == 80
    sites = told(capsys, "topologies")["answer"]["sites"]
    assert {one["site"] for one in sites} >= {"cluster", "pool"}


@pytest.mark.parametrize(
    ("words", "key", "name"),
    [
        (("models", "llama-3.1-8b"), "models", "llama-3.1-8b"),
        (("topologies", "h100-nvl8-x2"), "sites", "h100-nvl8-x2"),
        (("devices", "h100-sxm"), "devices", "h100-sxm"),
        (("engines", "vllm"), "engines", "vllm"),
    ],
)
def test_what_is_named_is_told_whole(words, key, name, capsys):
    (record,) = told(capsys, *words)["answer"][key]
    assert record["name"] == name


def test_what_cannot_be_read_is_an_error_in_json(capsys):
    assert main(["models", "llama-3.1-8bb", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "error"
