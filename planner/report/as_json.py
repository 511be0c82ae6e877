"""Answers for machines: one JSON envelope for every kind, with every field of the records.

    schema       of the envelope; its number rises when a key goes or changes its meaning
    kind         what was answered: `plan`, `placement`, …
    request      all that was asked, records of models and devices included; null where nothing was
    state        what of the cluster was busy or broken; null where nobody said
    answer       the record of the answer, but for what stands beside it
    certificate  its proof; null where the kind has none
    times        whose times these are, and how far off such times were; empty without any
    versions     of the planner, and of what it computes with
    data         the files that were read, with their digests
    unverified   JSON pointers to what nobody can recount: seconds, versions; `*` is any index
    digest       SHA-256 of all the rest

Keys are the names of the fields, which name their units, SI. New keys may come. What is not
finite is `null`. The schemas are in docs/schema.
"""

import dataclasses
import hashlib
import json
import math
import platform
from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import NoneType
from typing import Any

from planner.errors import PlannerError, RequestError
from planner.report.answer_kinds import Path, kind_of
from planner.report.json_records import JOINT, KINDS, RANGES, computed_of
from planner.report.times import times_of
from planner.results.listings import Failure
from planner.specs.files.ledger import files_used
from planner.specs.options.counts import spans

Json = dict[str, Any]

ANSWER = "planner.answer/1"

_PACKAGES = ("numpy", "networkx", "highspy", "ortools")


def answer_json(answer: object) -> Json:
    """The envelope of an answer: a plan, a placement, curves, a conflict, a failure, …

    Raises:
        TypeError: it is no answer of the planner.
    """
    kind = kind_of(answer)
    envelope: Json = {
        "schema": ANSWER,
        "kind": kind.name,
        **parts_json(answer),
        "times": [record_json(one) for one in times_of(answer)],
        "versions": versions(),
        "data": [record_json(file) for file in files_used()],
        "unverified": list(kind.unverified),
    }
    return {**envelope, "digest": digest_of(envelope)}


def parts_json(answer: object) -> Json:
    """What an envelope holds of the record of an answer: request, state, answer, certificate."""
    kind = kind_of(answer)
    body = record_json(answer)
    if kind.repeated:
        _taken(body, kind.repeated[0])
    beside = {name: _taken(body, path) for name, path in reversed(kind.moved)}
    order = ("request", "state", "answer", "certificate")
    return {name: body if name == "answer" else beside[name] for name in order}


def rows_of(answer: object) -> list[Json]:
    """The rows of an answer: figures of each entry, behind those of the entries that it lies in.

    Raises:
        TypeError: it is no answer, or has no rows.
    """
    kind = kind_of(answer)
    if not kind.rows:
        raise TypeError(f"a {kind.name} has no rows")
    body = record_json(answer)
    return [row for path in kind.rows for row in _rows(body, path, {})]


def _rows(value: Any, path: Path, before: Json, at: str = "") -> Iterator[Json]:  # noqa: ANN401
    """Entries at a path, `*` for all of a list, each with the figures on the way to it.

    Args:
        at: where the value is; the names of its figures begin so where others have them.
    """
    if not path or value is None:
        own = _flat(value or {})
        yield before | {f"{at}.{key}" if key in before else key: it for key, it in own.items()}
        return
    key, *rest = path
    if key != "*":
        yield from _rows(value[key], tuple(rest), before, key)
        return
    for entry in value:
        beside = {name: it for name, it in entry.items() if rest and name != rest[0]}
        yield from _rows(entry, tuple(rest), before | _flat(beside, within="case"), at)


def _flat(value: Json, *, within: str = "") -> Json:
    """Figures and words of an object, those of objects in it by `outer.inner`.

    Args:
        within: the only one of these whose figures are had; all of them where empty.
    """
    row: Json = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            names = _flat(inner) if within in ("", key) else {}
            row |= {f"{key}.{name}": it for name, it in names.items()}
        elif not isinstance(inner, list):
            row[key] = inner
    return row


def failure_of(error: BaseException, *, exit_code: int) -> Failure:
    """An error other than a conflict as an answer."""
    return Failure(
        error=type(error).__name__ if isinstance(error, PlannerError) else "InternalError",
        exit_code=exit_code,
        message=str(error) or type(error).__name__,
        problems=error.problems if isinstance(error, RequestError) else (),
        hint=error.hint if isinstance(error, RequestError) else "",
    )


def dumps(record: Json) -> str:
    """As text, in ASCII, so that it passes through every terminal and pipe unchanged."""
    return json.dumps(record, indent=2, allow_nan=False)


def digest_of(envelope: Mapping[str, Any]) -> str:
    """SHA-256 of an envelope without its digest and what is unverified.

    Keys are in order and whole numbers without a point, however they were written.
    """
    rest = {key: value for key, value in envelope.items() if key != "digest"}
    patterns = [pointer.split("/")[1:] for pointer in rest.get("unverified", ())]
    text = json.dumps(_without(rest, patterns), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def record_json(record: object) -> Json:
    """A record as an object: its fields, and what it computes from them."""
    assert dataclasses.is_dataclass(record)
    kind: type = type(record)
    named = dict([KINDS[kind]]) if kind in KINDS else {}
    fields = {f.name: _value(getattr(record, f.name), f.name) for f in dataclasses.fields(record)}
    derived = {name: _value(getattr(record, name)) for name in computed_of(kind)}
    return {**named, **fields, **derived}


def _value(value: object, name: str = "") -> object:
    if type(value) in (NoneType, str, int, bool):
        return value
    if dataclasses.is_dataclass(value):
        return record_json(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(key): _value(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [*map(list, spans(value))] if name in RANGES else [*map(_value, value)]
    return " ".join(map(repr, value)) if isinstance(value, array) else value


def _key(key: object) -> str:
    return JOINT.join(key) if isinstance(key, tuple) else str(key)


def _taken(body: Json, path: Path) -> object:
    """A value of a nested object, taken out of it; None without a way to it."""
    if not path:
        return None
    *above, last = path
    for key in above:
        body = body[key]
    return body.pop(last)


def _without(value: object, patterns: list[list[str]]) -> object:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        if not patterns:  # as of nearly all of an answer
            return [_without(inner, patterns) for inner in value]
        table = {str(i): inner for i, inner in enumerate(value)}
        return list(_without_keys(table, patterns).values())
    return _without_keys(value, patterns) if isinstance(value, Mapping) else value


def _without_keys(table: Mapping[str, object], patterns: list[list[str]]) -> Json:
    kept = {}
    for key, inner in table.items():
        below = [one[1:] for one in patterns if one[:1] in ([key], ["*"])] if patterns else []
        if [] not in below:
            kept[key] = _without(inner, below)
    return kept


@cache
def versions() -> dict[str, str]:
    by_name = {"planner": _version("llm-serving-planner"), "python": platform.python_version()}
    return {**by_name, **{name: _version(name) for name in _PACKAGES}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
