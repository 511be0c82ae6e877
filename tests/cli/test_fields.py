"""Numbers of files count, or a warning names them; all of them: `python -m tests.cli.fields`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.field_files import FILES
from tests.cli.field_readers import READERS, plan_of
from tests.cli.fields import ABSENT, SPOILT, Case, cases, fault, spoilt, write_all

N_DRAWN = 18
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


def _spoilt() -> Iterator[tuple[Case, object]]:
    """Each way to spoil a number, of one file after the other."""
    draw, every, names = random.Random(5), list(cases()), list(READERS)
    for place, value in enumerate((*SPOILT, *SPOILT)):
        file = names[place % len(names)]
        yield draw.choice([one for one in every if one.file == file]), value


def _named(one: object) -> str:
    """The same in every process, whatever is tested there."""
    return one.name if isinstance(one, Case) else "absent" if one is ABSENT else repr(one)[:20]


@pytest.mark.parametrize(("case", "value"), list(_spoilt()), ids=_named)
def test_a_number_that_is_none_is_refused_by_its_key_or_counts(files, known, case, value):
    assert spoilt(case, value, files, known) == ""


def test_a_number_that_nothing_reads_is_found(files, known, monkeypatch):
    """Kernels of a device, and a command that is timed by layouts."""
    line = plan_of("toy", "toymeasured", "--tp 2")
    monkeypatch.setitem(READERS, "kernels/toykernels.toml", (line,))
    case = next(one for one in cases() if one.file == "kernels/toykernels.toml")
    assert fault(case, files, known) == "changes no answer, and no warning names it"
