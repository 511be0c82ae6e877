"""Records out of JSON by the hints of their fields, strictly and all faults at once.

A key too many or too few, a value of another type, a number that is not finite: each is a
problem with its JSON pointer. What a record computes from its fields has to be there too; it is
not read, so whoever believes the answer compares it (`planner.planning.verification`).
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin

from planner.errors import Problem
from planner.report.answer_kinds import Path
from planner.report.as_json import Json
from planner.report.json_records import COLUMNS, DERIVED, JOINT, KINDS, RANGES, record_hints

MOST_IN_SPANS = 1_000_000
"""Integers that spans may stand for, all together."""

MISSING = object()
"""In place of a value that is not there, or that does not say what is wrong."""

_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Decoder:
    """JSON to records by the hints of their fields; collects what is wrong.

    Args:
        shown: where the JSON is from, for messages.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._n_in_spans = 0
        self._tables: list[object] = []
        self.problems: list[Problem] = []

    def record(self, record: type, value: object, path: Path) -> object:
        """A record, or None with its faults told."""
        if not isinstance(value, dict):
            return self._fault(path, value, f"is no object of a {record.__name__}")
        n_before = len(self.problems)
        names = [field.name for field in dataclasses.fields(record)]
        told = KINDS.get(record)
        wanted = [*([told[0]] if told else []), *names, *DERIVED.get(record, ())]
        for name in wanted:
            if name not in value:
                self._fault((*path, name), MISSING, "is missing")
        for name in value:
            if name not in wanted:
                self._fault((*path, escaped(name)), value[name], "is not known")
        if told and value.get(told[0], told[1]) != told[1]:
            self._fault((*path, told[0]), value[told[0]], f"is not `{told[1]}`")
        read = {}
        for name in names:
            if name in value:
                here = (*path, name)
                read[name] = self._field(record, name, value[name], here)
        if len(self.problems) > n_before:
            return None
        if record in COLUMNS:
            return self._table(record, read)
        try:
            return record(**read)
        except (ValueError, TypeError, ArithmeticError) as error:
            return self._fault(path, MISSING, f"is no {record.__name__}: {error}")

    def _field(self, record: type, name: str, value: object, path: Path) -> object:
        """The value of a field."""
        hint = _hints(record)[name]
        if name in RANGES and not (value is None and type(None) in get_args(hint)):
            return self._spans(value, path)
        code = COLUMNS.get(record, {}).get(name)
        return self.value(hint, value, path) if code is None else self._column(code, value, path)

    def _column(self, code: str, value: object, path: Path) -> object:
        """An array of numbers, out of a text."""
        number: type[float] = float if code == "d" else int
        try:
            found = array(code, map(number, value.split(" ") if isinstance(value, str) else [""]))
        except (ValueError, OverflowError):
            found = array(code)
        is_sound = found and (code != "d" or all(map(math.isfinite, found)))
        if not is_sound:
            return self._fault(path, value, "is no text of numbers with a space between")
        return found

    def _table(self, record: type, read: dict[str, object]) -> object:
        """A record of arrays: the same one wherever it stands, as it was."""
        for one in self._tables:
            if isinstance(one, record) and all(getattr(one, k) == v for k, v in read.items()):
                return one
        self._tables.append(record(**read))
        return self._tables[-1]

    def value(self, hint: Any, value: object, path: Path) -> object:  # noqa: ANN401
        """A value of a type."""
        origin, inner = get_origin(hint), get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self.record(cast("type", hint), value, path)
        if hint in _WORDS:
            return self._scalar(hint, value, path)
        if origin in (Union, types.UnionType):
            return self._one_of(inner, value, path)
        if origin is Literal:
            fact = f"is none of {', '.join(map(str, inner))}"
            return value if value in inner else self._fault(path, value, fact)
        if origin is tuple:
            return self._tuple(inner, value, path)
        assert isinstance(origin, type), hint
        if issubclass(origin, Mapping):
            return self._mapping(inner, value, path)
        assert issubclass(origin, Sequence), hint
        return self._tuple((inner[0], Ellipsis), value, path)

    def _scalar(self, hint: type, value: object, path: Path) -> object:
        if hint is float and value is None:
            return math.inf
        if isinstance(value, bool):
            fits = hint is bool
        elif hint is float:
            fits = isinstance(value, (int, float)) and _is_finite(value)
        else:
            fits = isinstance(value, hint)
        if not fits:
            return self._fault(path, value, f"is not {_WORDS[hint]}")
        return float(cast("float", value)) if hint is float else value

    def _one_of(self, hints: tuple[Any, ...], value: object, path: Path) -> object:
        """A value of one of several types: null, a record by what tells them apart, a scalar."""
        if value is None and type(None) in hints:
            return None
        rest = [hint for hint in hints if hint is not type(None)]
        records = [hint for hint in rest if dataclasses.is_dataclass(hint)]
        if isinstance(value, dict) and records:
            return self.record(cast("type", _likeliest(records, value)), value, path)
        for hint in rest:
            tried = Decoder(self._shown)
            found = tried.value(hint, value, path)
            if not tried.problems or len(rest) == 1:
                self.problems += tried.problems
                return found
        return self._fault(path, value, "is of no type that can stand here")

    def _tuple(self, inner: tuple[Any, ...], value: object, path: Path) -> object:
        if not isinstance(value, list):
            return self._fault(path, value, "is no list")
        if inner[-1] is Ellipsis:
            hints = [inner[0]] * len(value)
        else:
            hints = list(inner)
            if len(value) != len(hints):
                fact = f"has {len(value)} entries, not {len(hints)}"
                return self._fault(path, MISSING, fact)
        return tuple(
            self.value(hint, one, (*path, str(i)))
            for i, (hint, one) in enumerate(zip(hints, value, strict=True))
        )

    def _mapping(self, inner: tuple[Any, ...], value: object, path: Path) -> object:
        if not isinstance(value, dict):
            return self._fault(path, value, "is no object")
        found = {}
        for name, one in value.items():
            here = (*path, escaped(name))
            found[self._key(inner[0], name, here)] = self.value(inner[1], one, here)
        return found

    def _key(self, hint: Any, name: str, path: Path) -> object:  # noqa: ANN401
        """A key of a mapping: a text, a number, or several names."""
        if hint is float:
            try:
                return float(name)
            except ValueError:
                return self._fault(path, name, "is no number")
        parts = len(get_args(hint))
        names = tuple(name.split(JOINT))
        if parts and len(names) != parts:
            return self._fault(path, name, f"is no key of {parts} parts")
        return names if parts else name

    def _spans(self, value: object, path: Path) -> object:
        """Integers that are written as [first, last, step] of each run."""
        found: list[int] = []
        runs = value if isinstance(value, list) else [None]
        for i, run in enumerate(runs):
            whole = isinstance(run, list) and len(run) == 3
            if not whole or not all(type(one) is int for one in run) or run[2] < 1:
                return self._fault((*path, str(i)), run, "is no [first, last, step]")
            numbers = range(run[0], run[1] + 1, run[2])
            self._n_in_spans += len(numbers)
            if self._n_in_spans > MOST_IN_SPANS:
                return self._fault(path, MISSING, f"stands for more than {MOST_IN_SPANS:,}")
            found += numbers
        return tuple(found)

    def _fault(self, path: Path, value: object, fact: str) -> object:
        """None in place of what cannot be read; the fault is kept."""
        self.problems.append(fault(self._shown, path, value, fact))
        return None


def _likeliest(records: Sequence[Any], value: Json) -> Any:  # noqa: ANN401
    """Of records that may stand in a place the one that an object is meant to be."""

    def likeness(record: type) -> tuple[bool, int]:
        told = KINDS.get(record)
        named = told is not None and value.get(told[0]) == told[1]
        names = {field.name for field in dataclasses.fields(record)}
        return named, len(names & value.keys()) - len(names - value.keys())

    return max(records, key=likeness)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


@cache
def _hints(record: type) -> Mapping[str, Any]:
    return record_hints(record)


def escaped(name: str) -> str:
    """A key as part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def fault(shown: str, path: Path, value: object, fact: str) -> Problem:
    """What is wrong with a value; `MISSING` where it is not the value that says it."""
    written = "" if value is MISSING else literal(value)
    return Problem(where=shown, key=f"/{'/'.join(path)}", value=written, fact=fact)


def literal(value: object) -> str:
    """A value as it was written, short."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
