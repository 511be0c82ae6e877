"""Records out of JSON by the hints of their fields, strictly and all faults at once.

A key too many or too few, a value of another type, a number that is not finite: each is a
problem with its JSON pointer. What a record computes from its fields has to be there too; it is
not read, so whoever believes the answer compares it (`planner.planning.verification`).
"""

import dataclasses
import json
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, get_args, get_type_hints

from pydantic_core import CoreSchema, ValidationError, core_schema

from planner.errors import Problem
from planner.report.answer_kinds import Path
from planner.report.json_records import COLUMNS, JOINT, KINDS, RANGES, computed_of, record_hints
from planner.specs.validation.borders import Border
from planner.specs.validation.hints import LATER
from planner.specs.validation.problems import Fault, faults_of
from planner.specs.validation.values import FaultError

MOST_IN_SPANS = 1_000_000
"""Integers that spans may stand for, all together."""

MISSING = object()
"""In place of a value that is not there, or that does not say what is wrong."""

_FACTS = {"dict_type": "is no object", "extra_forbidden": "is not known"}
_SCALARS: Mapping[type, CoreSchema] = {
    bool: core_schema.bool_schema(strict=True),
    int: core_schema.int_schema(strict=True),
    str: core_schema.str_schema(strict=True),
}
_NUMBER = core_schema.nullable_schema(core_schema.float_schema())
_RUN = core_schema.list_schema(core_schema.int_schema(), min_length=3, max_length=3)


def _plain(read: Callable[[Any], object], written: CoreSchema) -> CoreSchema:
    """What reads a value, of which schemas of JSON say how it is written."""
    plain = core_schema.no_info_plain_validator_function
    return plain(read, json_schema_input_schema=written)


class _Reading:
    """What was read of an answer so far: integers in spans, and records of arrays."""

    def __init__(self) -> None:
        self.n_in_spans = 0
        self.tables: list[object] = []


class Answers(Border):
    """Holds the JSON of answers against their records, and makes these."""

    def read(self, hint: Any, value: object, shown: str) -> tuple[Any, list[Problem]]:  # noqa: ANN401
        """A value of a type, or None and what is wrong with it.

        Args:
            shown: where the JSON is from, for messages.
        """
        try:
            return self.validator(hint).validate_python(value, context=_Reading()), []
        except ValidationError as error:
            return None, [_problem(one, shown) for one in faults_of(error)]

    def scalar(self, kind: type, name: str) -> CoreSchema:
        del name
        return _plain(_number, _NUMBER) if kind is float else _SCALARS[kind]

    def key(self, hint: Any) -> CoreSchema:  # noqa: ANN401
        n_parts = len(get_args(hint))

        def read(name: str) -> object:
            if hint is float:
                return _float_of(name)
            parts = tuple(name.split(JOINT))
            if n_parts and len(parts) != n_parts:
                raise FaultError(f"is no key of {n_parts} parts")
            return parts if n_parts else name

        return _plain(read, _SCALARS[str])

    def record(self, record: type) -> CoreSchema:
        hints, named = record_hints(record), KINDS.get(record)
        fields = {
            field.name: self._field(record, field.name, hints)
            for field in dataclasses.fields(record)
        }
        later = {it.name for it in dataclasses.fields(record) if it.metadata.get(LATER)}
        schemas = {
            **({named[0]: self.literal(named[1:])} if named else {}),
            **fields,
            **{name: self._derived(record, name) for name in computed_of(record)},
        }

        def built(table: Mapping[str, Any], info: Any) -> object:  # noqa: ANN401
            said = {name: table[name] for name in fields if name in table}
            if record in COLUMNS:
                return _table(record, said, info.context.tables)
            try:
                return record(**said)
            except (ValueError, TypeError, ArithmeticError) as error:
                raise FaultError(f"is no {record.__name__}: {error}") from None

        whole = core_schema.typed_dict_schema(
            {
                name: core_schema.typed_dict_field(schema, required=name not in later)
                for name, schema in schemas.items()
            },
            cls=record,
            extra_behavior="forbid",
        )
        return core_schema.with_info_after_validator_function(built, whole)

    def _field(self, record: type, name: str, hints: Mapping[str, Any]) -> CoreSchema:
        """The schema of a field, whose integers may be spans and whose arrays are texts."""
        code = COLUMNS.get(record, {}).get(name)
        if code is not None:
            return _plain(_column(code), _SCALARS[str])
        if name not in RANGES:
            return self.schema(hints[name], name)
        run = core_schema.with_info_plain_validator_function(_run, json_schema_input_schema=_RUN)
        runs = core_schema.list_schema(run)
        spans = core_schema.no_info_after_validator_function(lambda r: (*chain(*r),), runs)
        is_free = type(None) in get_args(hints[name])
        return core_schema.nullable_schema(spans) if is_free else spans

    def _derived(self, record: type, name: str) -> CoreSchema:
        """The schema of what a record computes from its fields: whatever is there is not read."""
        returned = get_type_hints(getattr(record, name).fget)["return"]
        return _plain(lambda value: value, self.schema(returned, name))

    def likeliest(self, value: object, hints: Sequence[Any]) -> Any:  # noqa: ANN401
        records = [hint for hint in hints if dataclasses.is_dataclass(hint)]
        if not isinstance(value, dict) or not records:
            return super().likeliest(value, hints)

        def likeness(record: Any) -> tuple[bool, int]:  # noqa: ANN401
            told = KINDS.get(record)
            named = told is not None and value.get(told[0]) == told[1]
            names = {field.name for field in dataclasses.fields(record)}
            return named, len(names & value.keys()) - len(names - value.keys())

        return max(records, key=likeness)


ANSWERS = Answers()


def _number(value: object) -> float:
    """A number, which is null where it is not finite."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise FaultError("is not a number")
    return float(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _float_of(name: str) -> float:
    try:
        return float(name)
    except ValueError:
        raise FaultError("is no number") from None


def _column(code: str) -> Callable[[object], object]:
    """What reads an array of numbers out of a text."""
    number: type[float] = float if code == "d" else int

    def read(value: object) -> object:
        try:
            column = array(code, map(number, value.split(" ") if isinstance(value, str) else [""]))
        except (ValueError, OverflowError):
            column = array(code)
        if not column or (code == "d" and not all(map(math.isfinite, column))):
            raise FaultError("is no text of numbers with a space between")
        return column

    return read


def _table(record: type, said: Mapping[str, object], tables: list[object]) -> object:
    """A record of arrays: the same one wherever it stands, as it was."""
    for one in tables:
        if isinstance(one, record) and all(getattr(one, k) == v for k, v in said.items()):
            return one
    tables.append(record(**said))
    return tables[-1]


def _run(value: object, info: Any) -> range:  # noqa: ANN401
    """Integers that are written as [first, last, step]."""
    if not (isinstance(value, list) and [type(one) for one in value] == [int] * 3 and value[2] > 0):
        raise FaultError("is no [first, last, step]")
    first, last, step = value
    numbers = range(first, last + 1, step)
    info.context.n_in_spans += len(numbers)
    if info.context.n_in_spans > MOST_IN_SPANS:
        raise FaultError(f"stands for more than {MOST_IN_SPANS:,}")
    return numbers


def _problem(first: Fault, shown: str) -> Problem:
    path = tuple(escaped(str(part)) for part in first.way if part != "[key]")
    value = MISSING if first.kind == "missing" else first.value
    return fault(shown, path, value, _FACTS.get(first.kind, first.fact))


def escaped(name: str) -> str:
    """A key as part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def fault(shown: str, path: Path, value: object, fact: str) -> Problem:
    """What is wrong with a value; `MISSING` where it is not the value that says it."""
    written = "" if value is MISSING else as_written(value)
    return Problem(where=shown, key=f"/{'/'.join(path)}", value=written, fact=fact)


def as_written(value: object) -> str:
    """A value as it was written, short."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
