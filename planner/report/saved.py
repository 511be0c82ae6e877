"""Answers that were saved, read back: the inverse of `as_json`, strictly and all faults at once."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from planner.errors import Problem, SpecError
from planner.report.answer_kinds import ANSWER_KINDS, AnswerKind, Path as Way, kind_named
from planner.report.as_json import ANSWER, Json
from planner.report.decoding import ANSWERS, as_written, fault
from planner.report.times import Times
from planner.results.placements import Placement
from planner.results.repairs import Repair
from planner.specs.files.ledger import DataFile, Use, enter
from planner.specs.files.tables import literal
from planner.specs.files.texts import UnreadError, json_of, read_bytes, text_of
from planner.specs.validation.arguments import arguments_checked

MOST_BYTES = 32 * 2**20
"""Of an answer, which is read in five times as much memory; one of 4,096 devices has 2.4 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An answer with all that stands beside it, as `as_json` writes it."""

    schema: str
    kind: str
    request: Any
    state: Any
    answer: Mapping[str, Any]
    certificate: Any
    times: tuple[Times, ...]
    versions: Mapping[str, str]
    data: tuple[DataFile, ...]
    unverified: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """An answer as it was read.

    Args:
        envelope: all of it.
        kind: what it is.
        answer: its record.
    """

    envelope: Json
    kind: AnswerKind
    answer: Any


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
        value = json_of(text)
        if not isinstance(value, dict):
            raise UnreadError("is no object")
    except UnreadError as error:
        remedy = "give what a command with `--json` wrote"
        raise SpecError([error.problem(shown, remedy=remedy)]) from None
    return cast("Json", value)


@arguments_checked()
def load_placement(path: str | Path) -> Placement:
    """Read what `plan place --json` wrote, or the repaired placement of `plan repair --json`.

    Raises:
        SpecError: no such file, or it is no placement; all faults are listed.
    """
    read = load_answer(path, asked_by="PLACEMENT")
    placement = read.answer.placement if isinstance(read.answer, Repair) else read.answer
    if not isinstance(placement, Placement):
        fact, remedy = f"is a {read.kind.name}", "write one with `plan place … --json`"
        problem = Problem(where=str(path), key="/kind", fact=fact, remedy=remedy)
        raise SpecError([problem])
    SpecError.raise_if_any(_faults(placement, str(path)))
    return placement


def _faults(placement: Placement, path: str) -> Iterator[Problem]:
    """What would make no sense of a placement that stands."""
    names = Counter(rank.device for one in placement.replicas for rank in one.ranks)
    for name in (name for name, n in names.items() if n > 1):
        yield Problem(where=path, fact=f"has several ranks on `{name}`")
    for i, replica in enumerate(placement.replicas):
        if not 0 <= replica.recipe < len(placement.recipes):
            fact = f"is no recipe: there are {len(placement.recipes)}"
            key, value = f"/answer/replicas/{i}/recipe", str(replica.recipe)
            yield Problem(where=path, key=key, value=value, fact=fact)


def answer_of(envelope: Json, *, shown: str) -> ReadAnswer:
    """The answer of an envelope.

    Args:
        envelope: as `as_json.answer_json` makes it.
        shown: where it is from, for messages.

    Raises:
        SpecError: it is no answer; every fault is listed, with its JSON pointer.
    """
    if envelope.get("schema") != ANSWER:
        raise SpecError([_other_schema(envelope.get("schema"), shown)])
    kind = kind_named(envelope.get("kind"))
    if kind is None:
        names = ", ".join(one.name for one in ANSWER_KINDS)
        fact, remedy = "is no kind of answer", f"it is one of {names}"
        value = as_written(envelope.get("kind"))
        problem = Problem(where=shown, key="/kind", value=value, fact=fact, remedy=remedy)
        raise SpecError([problem])
    _, problems = ANSWERS.read(Envelope, envelope, shown)
    says = envelope.get("unverified", [*kind.unverified])
    is_listed = isinstance(says, list) and all(isinstance(one, str) for one in says)
    if is_listed and not {*kind.unverified} <= {*says}:  # some list more: nobody judged it then
        problems.append(fault(shown, ("unverified",), says, "is not what a kind has"))
    answer = None
    if (whole := _whole(envelope, kind)) is not None:
        answer, faults = ANSWERS.read(kind.record, whole, shown)
        problems += [_placed(problem, kind) for problem in faults]
    SpecError.raise_if_any(problems)
    return ReadAnswer(envelope=envelope, kind=kind, answer=answer)


def _other_schema(schema: object, shown: str) -> Problem:
    """What is wrong with a file of another schema, an older one above all."""
    if isinstance(schema, str) and schema.startswith("planner."):
        fact = f"is of the schema `{schema}`, which does not hold what was asked"
        remedy = "make it again with this version: `plan … --json`"
    else:
        fact, remedy = "is no answer of the planner", "give what a command with `--json` wrote"
    return Problem(where=shown, key="/schema", value=as_written(schema), fact=fact, remedy=remedy)


def _whole(envelope: Json, kind: AnswerKind) -> Json | None:
    """The record of an answer, with what stands beside it put back."""
    if not isinstance(envelope.get("answer"), dict):
        return None
    whole = dict(envelope["answer"])
    # the state lies in the request, so it is put back last
    for name, path in kind.moved:
        if name in envelope and path:
            whole = _put(whole, path, envelope[name])
    if kind.repeated:
        here, there = kind.repeated
        whole = _put(whole, here, _at(whole, there))
    return whole


def _at(whole: Json, path: Way) -> object:
    """A value of a nested object; None where there is none."""
    value: object = whole
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _put(into: Json, path: Way, value: object) -> Json:
    """An object with a value at a place, without touching the one given."""
    first, *rest = path
    if not rest:
        return {**into, first: value}
    below = into.get(first)
    return {**into, first: _put(below, tuple(rest), value)} if isinstance(below, dict) else into


def _placed(problem: Problem, kind: AnswerKind) -> Problem:
    """A problem of the record as one of the envelope."""
    path = tuple(problem.key.split("/")[1:])
    return dataclasses.replace(problem, key="/" + "/".join(kind.place_of(path)))
