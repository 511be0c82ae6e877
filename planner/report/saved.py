"""Answers that were saved: files that a command with `--json` wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from planner.errors import Problem, SpecError
from planner.report.as_json import Json
from planner.report.from_json import ReadAnswer, answer_of
from planner.results.placements import Placement
from planner.results.repairs import Repair
from planner.specs.ledger import Use, enter
from planner.specs.tables import literal
from planner.specs.texts import UnreadError, json_of, read_bytes, text_of
from planner.specs.validation.arguments import arguments_checked

MOST_BYTES = 32 * 2**20
"""Of an answer, which is read in five times as much memory; one of 4,096 devices has 2.4 MB."""


@arguments_checked()
def load_answer(path: str | Path, *, asked_by: str) -> ReadAnswer:
    """Read what a command with `--json` wrote.

    Args:
        path: of the file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: no such file, or it holds no answer; every fault is listed.
    """
    try:
        content = read_bytes(path, most_bytes=MOST_BYTES)
        text = text_of(content)
    except UnreadError as error:
        raise SpecError([error.problem(asked_by, value=literal(str(path)))]) from None
    read = read_answer(text, shown=str(path))
    enter(Use(kind=read.kind.name), Path(path), content)
    return read


def read_answer(text: str, *, shown: str) -> ReadAnswer:
    """The answer that a text holds.

    Args:
        text: JSON, as `as_json.dumps` writes it.
        shown: where it is from, for messages.

    Raises:
        SpecError: it is no answer; every fault is listed, with its JSON pointer.
    """
    return answer_of(_parsed(text, shown), shown=shown)


def _parsed(text: str, shown: str) -> Json:
    """The object that a text holds.

    Raises:
        SpecError: it holds none, or keys twice.
    """
    try:
        found = json_of(text)
        if not isinstance(found, dict):
            raise UnreadError("is no object")
    except UnreadError as error:
        remedy = "give what a command with `--json` wrote"
        raise SpecError([error.problem(shown, remedy=remedy)]) from None
    return cast("Json", found)


@arguments_checked()
def load_placement(path: str | Path) -> Placement:
    """Read what `plan place --json` wrote, or the repaired placement of `plan repair --json`.

    Raises:
        SpecError: no such file, or it is no placement; all faults are listed.
    """
    read = load_answer(path, asked_by="PLACEMENT")
    found = read.answer.placement if isinstance(read.answer, Repair) else read.answer
    if not isinstance(found, Placement):
        fact, remedy = f"is a {read.kind.name}", "write one with `plan place … --json`"
        problem = Problem(where=str(path), key="/kind", fact=fact, remedy=remedy)
        raise SpecError([problem])
    SpecError.raise_if_any(_faults(found, str(path)))
    return found


def _faults(placement: Placement, path: str) -> Iterator[Problem]:
    """What would make no sense of a placement that stands."""
    names = Counter(rank.device for one in placement.replicas for rank in one.ranks)
    for name in (name for name, n in names.items() if n > 1):
        yield Problem(where=path, fact=f"has several ranks on `{name}`")
    for i, one in enumerate(placement.replicas):
        if not 0 <= one.recipe < len(placement.recipes):
            fact = f"is no recipe: there are {len(placement.recipes)}"
            key, value = f"/answer/replicas/{i}/recipe", str(one.recipe)
            yield Problem(where=path, key=key, value=value, fact=fact)
