"""The table of options: every row is used, and says what it says truly."""

from __future__ import annotations

import shlex

import pytest

from planner.commands.options.commands import COMMANDS, called, options_of, owners, typed
from planner.commands.options.helping import help_page
from planner.commands.options.parsing import parse
from planner.quantities.units import UnitError
from planner.specs.options.meanings import REFUSALS
from planner.specs.options.option import Option
from planner.specs.options.readers import one_of
from planner.specs.options.table import HEADINGS, set_by

ROWS = [row for rows in HEADINGS.values() for row in rows]


def test_every_row_is_an_option_of_a_command():
    used = {id(row) for command in COMMANDS for row in options_of(command).values()}
    assert [row.usage for row in ROWS if id(row) not in used] == []


def test_every_name_of_a_command_is_in_the_table():
    known = {row.name for row in ROWS}
    for command in COMMANDS.values():
        assert {*command.names, *command.keeps} <= known


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.usage} {row.of}")
def test_a_row_reads_what_is_usual_and_its_example_and_nothing_without_sense(row):
    """Readers that are found by name are there: what they do not know they refuse."""
    divided = [row.example] if " " in row.value else shlex.split(row.example)  # some take two words
    examples = divided if row.gathers is None else []
    for text in filter(None, (row.usual, *examples)):
        assert row.reads(text) is not None
    refused: list[str] = []

    def read(text, reads):
        try:
            return reads(text)
        except UnitError as error:
            refused.append(error.fact)
            return None

    read("?!", row.reads)
    if row.gathers is not None:
        row.gathers(("?!",), read)
    assert all(refused)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_option_needs_and_what_may_stand_alone_are_options_of_the_command(command):
    rows = options_of(command)
    assert {row.needs for row in rows.values()} - {""} <= rows.keys()
    assert not COMMANDS[command].word or COMMANDS[command].word in rows


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_each_option_of_a_command_once_and_fits(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = help_page(command).splitlines()
    starts = ("  --", "  NAME", "  REQUEST")
    shown = [line.split()[0].rstrip(",") for line in lines if line.startswith(starts)]
    standing = ["--help", "--version", "--install-completion"] if command == "plan" else []
    assert sorted(shown) == sorted([*options_of(command), *standing])
    assert lines[0].startswith(f"usage: {called(command)}")
    assert all(len(line) <= 100 or line.startswith("  --") for line in lines)


def test_help_says_what_is_usual_and_that_a_repair_leaves_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert "Stages of a pipeline. [1]" in help_page("predict")
    assert "Seed of the solver, and of what is drawn; default: as before." in help_page("repair")
    assert "default: as published" not in help_page("repair")
    assert "Most of the objective to lose for fewer bytes. [0]" in help_page("repair")


def test_what_the_table_of_meanings_refuses_is_an_option_of_some_command():
    named = {name for row in REFUSALS for name in row.options if name.startswith("--")}
    assert named <= owners().keys()


def test_an_option_is_typed_as_its_name_in_python_says():
    for row in ROWS:
        if row.name.startswith("-"):
            assert typed(row.argument) == typed(row.name[2:].replace(".", "-")) == row.name


def test_a_row_of_a_command_is_of_it_alone():
    assert parse(["predict"]).tp == 1
    assert parse([]).tp is None
    assert isinstance(options_of("predict")["--tp"], Option)
    assert options_of("predict")["--tp"] is not options_of("plan")["--tp"]


def test_a_word_is_one_of_those_that_there_are():
    with pytest.raises(UnitError) as caught:
        one_of("axis", "a", "b", "c")("z")
    assert (caught.value.fact, caught.value.remedy) == ("no such axis", "it is a, b or c")


def test_what_an_option_sets_is_set_by_no_other():
    named: dict[str, set[str]] = {}
    for row in ROWS:
        named.setdefault(row.sets, set()).add(row.name)
    del named[""]
    assert {key: names for key, names in named.items() if len(names) > 1} == {}
    assert set_by()["SolverOptions.gap"] == set_by()["gap"] == "--gap"
