"""Numbers of files count, or a warning names them; all of them: `python -m tests.cli.fields`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import fields
from tests.cli.fields import FILES, READERS, Case, cases, fault, write_all

N_DRAWN = 24
"""Of 180; with each of them the commands of its file are run a few times."""


def _drawn() -> Iterator[Case]:
    """One number of each file, and some more."""
    draw, every = random.Random(11), list(cases())
    for file in READERS:
        yield draw.choice([one for one in every if one.file == file])
    yield from draw.sample(every, N_DRAWN - len(READERS))


@pytest.fixture(scope="module", name="known")
def _known() -> dict[str, object]:
    return {}


@pytest.fixture(name="files")
def _files(folder: Path) -> Path:
    write_all(folder)
    return folder


def test_every_file_has_readers_and_numbers():
    assert READERS.keys() == FILES.keys() - {"rails.toml"}
    assert {one.file for one in cases()} == READERS.keys()


@pytest.mark.parametrize("case", dict.fromkeys(_drawn()), ids=lambda case: case.name)
def test_a_number_of_a_file_changes_an_answer_or_is_warned_of(files, known, case):
    assert fault(case, files, known) == ""


def test_a_number_that_nothing_reads_is_found(files, known, monkeypatch):
    """Kernels of a device, and a command that is timed by layouts."""
    line = fields._plan("toy", "toymeasured", "--tp 2")
    monkeypatch.setitem(READERS, "kernels/toykernels.toml", (line,))
    case = next(one for one in cases() if one.file == "kernels/toykernels.toml")
    assert fault(case, files, known) == "changes no answer, and no warning names it"
