"""README's and docs' command lines: what they name is there, they parse, and some are run.

All are run by `python -m tests.cli.front_door`, which takes ten minutes.
"""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import pytest

from planner.commands.cli import main
from planner.commands.options.parsing import parse
from planner.commands.requests import as_typed
from planner.errors import RequestError
from tests.cli.front_door import DOCUMENTS, CommandLine, Ended, clone, command_lines, faults

EVERY = [one for path in DOCUMENTS for one in command_lines(path)]
PLANS = [one for one in EVERY if one.text.startswith("plan ")]
QUICK = ("models", "topologies", "devices", "layers", "calibrate", "predict", "repair", "verify")
WRITTEN = ("--html", "--csv", "--output", "--plot", "--save-request", ">")
"""What stands before a file that the command writes."""


def ids(lines):
    return [f"{one.where} {one.text[:40]}" for one in lines]


@pytest.fixture(scope="module")
def cloned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone")
    clone(folder)
    return folder


def test_there_are_command_lines():
    assert len(PLANS) > 80


def problems_of(words, files, folder, monkeypatch):
    """What is wrong with words; a request file is one that the document shows, or that ships."""
    with monkeypatch.context() as patch:
        if files.keys() & set(words[1:2]):
            patch.chdir(folder)
            (folder / words[1]).write_text(files[words[1]])
        try:
            return parse(as_typed([word for word in words if word != ">"])).problems
        except RequestError as error:
            return error.problems


def written_before(one):
    """Files that earlier command lines of the same document write."""
    document = one.where.split(":")[0]
    earlier = [it for it in PLANS[: PLANS.index(one)] if it.where.split(":")[0] == document]
    lines = [shlex.split(it.text) for it in earlier]
    return {word for line in lines for before, word in pairwise(line) if before in WRITTEN}


@pytest.mark.parametrize("one", PLANS, ids=ids(PLANS))
def test_a_command_line_parses_and_its_files_ship(one, cloned, tmp_path, monkeypatch):
    words = shlex.split(one.text)[1:]
    assert bool(problems_of(words, one.files, tmp_path, monkeypatch)) <= (one.code == 2)
    pairs = zip(["", *words], words, strict=False)
    named = [word for before, word in pairs if before not in WRITTEN and one.code != 2]
    paths = [path for word in named for path in re.findall(r"[\w./-]+\.(?:toml|json|csv)\b", word)]
    there = {*one.files, *written_before(one)}
    missing = [path for path in paths if path not in there and not (cloned / path).exists()]
    assert missing == []


SAMPLE = [one for one in PLANS if "commands.md" in one.where and one.text.split()[1] in QUICK]


@pytest.mark.parametrize("one", SAMPLE, ids=ids(SAMPLE))
def test_a_quick_command_line_ends_as_it_says(one, cloned, monkeypatch, capsys):
    monkeypatch.chdir(cloned)
    code = main(shlex.split(one.text)[1:])
    err = capsys.readouterr().err
    assert faults(one, Ended(code=code, err=err, cpu_s=0.0)) == [], (
        f"{err}\nexamples that are answers: `python -m tests.cli.front_door --write`"
    )


def test_what_a_command_line_does_and_does_not_say_is_a_fault():
    one = CommandLine(where="x:1", text="plan")
    assert faults(one, Ended(code=0, err="wrote a.html\n", cpu_s=1.0)) == []
    assert len(faults(one, Ended(code=1, err="error\n", cpu_s=1.0))) == 2
    assert faults(one, Ended(code=0, err="warning: x\n", cpu_s=1.0)) == ["writes to stderr"]
    assert len(faults(one, Ended(code=0, err="", cpu_s=11.0))) == 2
    said = CommandLine(where="x:1", text="plan --time-limit 9s", code=1, takes="20 s")
    assert faults(said, Ended(code=1, err="error\n", cpu_s=11.0)) == []


def test_command_lines_are_those_of_blocks_and_tables_and_prose(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.cli.front_door.ROOT", tmp_path)
    path = tmp_path / "README.md"
    path.write_text(
        "| why | `plan --tp 8` (exit 1) |\n"
        "| slow, takes 40 s (warns: of x) | `plan fleet a.toml` |\n"
        "| here (needs a GPU) | `plan measure --gpus 8` |\n"
        "By `plan place` or `plan --engine NAME` or `plan place`.\n"
        "```toml file=a.toml\nb = 1\n```\n"
        "```console exit=2\n$ plan fleet a.toml\nerror\n```\n",
        encoding="utf-8",
    )
    found = [(one.text, one.code, one.warns, one.takes) for one in command_lines(path)]
    assert found == [
        ("plan --tp 8", 1, False, ""),
        ("plan fleet a.toml", 0, True, "40 s"),
        ("plan fleet a.toml", 2, False, ""),
    ]
    assert list(command_lines(path))[-1].files == {"a.toml": "b = 1\n"}
