"""Answers that were saved: files that a command with `--json` wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from planner.errors import Problem, SpecError
from planner.placement_results import Placement
from planner.repair_results import Repair
from planner.report.as_json import Json
from planner.report.from_json import ReadAnswer, answer_of
from planner.specs.ledger import Use, enter
from planner.specs.tables import literal

MOST_CHARACTERS = 256_000_000


def load_answer(path: str, *, asked_by: str) -> ReadAnswer:
    """Read what a command with `--json` wrote.

    Args:
        path: of the file.
        asked_by: the option that named it, for messages.

    Raises:
        SpecError: no such file, or it holds no answer; every fault is listed.
    """
    try:
        content = Path(path).read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        fact = "is a folder" if isinstance(error, IsADirectoryError) else "no such file"
        problem = Problem(where=asked_by, value=literal(path), fact=fact)
        raise SpecError([problem]) from None
    except ValueError:
        problem = Problem(where=asked_by, value=literal(path), fact="is no text")
        raise SpecError([problem]) from None
    read = read_answer(text, shown=path)
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
    fact, twice = "", list[str]()

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    def refuse(name: str) -> object:
        raise ValueError(f"`{name}` is no number")

    try:
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"it has more than {MOST_CHARACTERS:,} characters")
        found = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except RecursionError:
        fact = "is nested too deeply"
    except ValueError as error:
        fact = f"is not JSON: {error}"
    else:
        if twice:
            fact = f"has keys twice: {', '.join(f'`{name}`' for name in dict.fromkeys(twice))}"
        elif not isinstance(found, dict):
            fact = "is no object"
    if fact:
        remedy = "give what a command with `--json` wrote"
        raise SpecError([Problem(where=shown, fact=fact, remedy=remedy)])
    return cast("Json", found)


def load_placement(path: str) -> Placement:
    """Read what `plan place --json` wrote, or the repaired placement of `plan repair --json`.

    Raises:
        SpecError: no such file, or it is no placement; all faults are listed.
    """
    read = load_answer(path, asked_by="PLACEMENT")
    found = read.answer.placement if isinstance(read.answer, Repair) else read.answer
    if not isinstance(found, Placement):
        fact, remedy = f"is a {read.kind.name}", "write one with `plan place … --json`"
        problem = Problem(where=path, key="/kind", fact=fact, remedy=remedy)
        raise SpecError([problem])
    problems = list(_faults(found, path))
    if problems:
        raise SpecError(problems)
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
