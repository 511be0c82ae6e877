"""Answers read back: the inverse of `as_json`, strictly and all faults at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Problem, SpecError
from planner.report.answer_kinds import ANSWER_KINDS, AnswerKind, Path, kind_named
from planner.report.as_json import ANSWER, Json
from planner.report.decoding import ANSWERS, fault, literal
from planner.report.times import Times
from planner.specs.ledger import DataFile


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
        value = literal(envelope.get("kind"))
        problem = Problem(where=shown, key="/kind", value=value, fact=fact, remedy=remedy)
        raise SpecError([problem])
    _, problems = ANSWERS.read(Envelope, envelope, shown)
    says = envelope.get("unverified", [*kind.unverified])
    is_listed = isinstance(says, list) and all(isinstance(one, str) for one in says)
    if is_listed and not {*kind.unverified} <= {*says}:  # some list more: nobody judged it then
        problems.append(fault(shown, ("unverified",), says, "is not what a kind has"))
    found = None
    if (whole := _whole(envelope, kind)) is not None:
        found, faults = ANSWERS.read(kind.record, whole, shown)
        problems += [_placed(problem, kind) for problem in faults]
    SpecError.raise_if_any(problems)
    return ReadAnswer(envelope=envelope, kind=kind, answer=found)


def _other_schema(schema: object, shown: str) -> Problem:
    """What is wrong with a file of another schema, an older one above all."""
    if isinstance(schema, str) and schema.startswith("planner."):
        fact = f"is of the schema `{schema}`, which does not hold what was asked"
        remedy = "make it again with this version: `plan … --json`"
    else:
        fact, remedy = "is no answer of the planner", "give what a command with `--json` wrote"
    return Problem(where=shown, key="/schema", value=literal(schema), fact=fact, remedy=remedy)


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


def _at(whole: Json, path: Path) -> object:
    """A value of a nested object; None where there is none."""
    found: object = whole
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _put(into: Json, path: Path, value: object) -> Json:
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
