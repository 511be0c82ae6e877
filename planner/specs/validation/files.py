"""Tables of TOML files as records: values in SI units, all faults at once."""

import dataclasses
import pickle
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, cast, get_args

from pydantic_core import CoreSchema, ValidationError, core_schema

from planner.errors import Problem
from planner.specs.files.tables import Table, literal
from planner.specs.validation import layouts
from planner.specs.validation.borders import Border
from planner.specs.validation.hints import hints_of, is_list, is_mapping, kind_of
from planner.specs.validation.problems import (
    UNSOUND,
    Fault,
    Finding,
    KeyPath,
    did_you_mean,
    dotted,
    faults_of,
)
from planner.specs.validation.values import Reader, line, number_of

_T = TypeVar("_T")

_NO_REMEDIES: Mapping[object, str] = {
    "source": 'name where the value comes from, or write source = "assumed"',
    "value": "",
}

_plain = core_schema.no_info_plain_validator_function
_after = core_schema.no_info_after_validator_function
_before = core_schema.no_info_before_validator_function
_key = core_schema.typed_dict_field

_LINE = _plain(line)
_SECTION = _plain(layouts.as_table)


class Files(Border):
    """Holds tables against records, and makes these."""

    def scalar(self, kind: type, name: str) -> CoreSchema:
        if kind is bool:
            return core_schema.bool_schema(strict=True)
        return _plain(line if kind is str else number_of(name, kind))

    def noted(self, hint: Any, note: object, name: str) -> CoreSchema:  # noqa: ANN401
        return _plain(note.read) if isinstance(note, Reader) else super().noted(hint, note, name)

    def record(self, record: type) -> CoreSchema:
        def built(said: Mapping[str, Any]) -> object:
            return record(**said)

        flat = _before(partial(layouts.opened, record), self.fields(record))
        return _after(built, flat)

    def fields(self, record: type, *, is_part: bool = False) -> CoreSchema:
        """The schema of the values of a table by dotted key, which makes fields of them.

        Args:
            is_part: any may be missing.
        """
        layout, hints = layouts.layout_of(record), hints_of(record)
        needed = {f.name for f in dataclasses.fields(record) if _is_needed(f) and not is_part}
        schemas = {
            place: _key(
                self._sourced(hints[field], field) if sourced else self.schema(hints[field], field),
                required=field in needed,
            )
            for place, (field, sourced) in layout.items()
        }
        for section in layouts.sections_of(record):
            schemas[section] = _key(_SECTION, required=False)
        for place in [place for place, one in layout.items() if one.sourced]:
            source = f"{place.rpartition('.')[0]}.source".lstrip(".")
            schemas.setdefault(source, _key(_LINE, required=False))

        def said(table: Mapping[str, Any]) -> dict[str, Any]:
            return {place.field: table[key] for key, place in layout.items() if key in table}

        flat = core_schema.typed_dict_schema(schemas, extra_behavior="forbid")
        return _after(said, flat)

    def said(self, record: type, flat: Table, *, is_part: bool = False) -> dict[str, Any]:
        """The fields of a record that the values of a table are.

        Raises:
            ValidationError: some cannot be.
        """
        schema = partial(self.fields, record, is_part=is_part)
        return dict(self.compiled((record, is_part), schema).validate_python(flat))

    def _sourced(self, hint: Any, name: str) -> CoreSchema:  # noqa: ANN401
        """A value with its source, or a mapping of such values."""
        if kind_of(hint) is Annotated and is_mapping(kind_of(get_args(hint)[0])):
            inside, note = get_args(hint)
            return _after(note.checked, self._sourced(inside, name))
        if is_mapping(kind_of(hint)):
            keys, values = get_args(hint)
            return self.mapping(self.key(keys), self._sourced(values, name))
        whole = core_schema.typed_dict_schema(
            {
                "value": _key(self.schema(hint, name)),
                "source": _key(_LINE),
                "note": _key(_LINE, required=False),
            },
            extra_behavior="forbid",
        )
        table = _before(_with_source, whole)
        return _after(lambda value: value["value"], table)


def _with_source(raw: object) -> object:
    return raw if isinstance(raw, dict) else {"value": raw}


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


Coherent = Callable[[Mapping[str, Any]], Iterator[Finding]]
"""What is wrong with fields of a record only together; those left out are not there."""


def validate(
    record: type[_T], table: Table, shown: str, coherent: Coherent | None = None
) -> tuple[_T | None, list[Problem]]:
    """The record that a table is, and no problems; or None, and every problem found."""
    value, problems = _validated(cast("type", record), pickle.dumps(table), shown, coherent)
    return cast("_T | None", value), list(problems)


@lru_cache(maxsize=256)
def _validated(
    record: type, pickled: bytes, shown: str, coherent: Coherent | None
) -> tuple[object, tuple[Problem, ...]]:
    """What a table is, made once: records are frozen, and one command reads it many times."""
    table = pickle.loads(pickled)
    said, faults = _read(record, table)
    problems = list(file_problems(faults, record, shown))
    for finding in coherent(said) if coherent else ():
        key = layouts.key_of_field(finding.field, record)
        text = literal(_value_at(table, key) if finding.value is None else finding.value)
        problems.append(
            Problem(where=shown, key=key, value=text, fact=finding.fact, remedy=finding.remedy)
        )
    if problems:
        return None, tuple(problems)
    if "provenance" in hints_of(record):
        said["provenance"] = tuple(layouts.provenance(record, table))
    return record(**said), ()


def _read(record: type, table: Table) -> tuple[dict[str, Any], list[Fault]]:
    """The fields of a table as far as they are sound, and what is wrong with the others."""
    flat = layouts.opened(record, table)
    try:
        return FILES.said(record, flat), []
    except ValidationError as error:
        faults = [*faults_of(error)]
        return _sound(record, flat, {fault.way[0] for fault in faults}), faults


def _sound(record: type, flat: Table, wrong: Collection[int | str]) -> dict[str, Any]:
    """The fields of a table that are sound, `UNSOUND` for others; those of records within too.

    Args:
        wrong: keys that have a fault, or something in them.
    """
    sound = {key: value for key, value in flat.items() if key not in wrong}
    said = FILES.said(record, sound, is_part=True)
    for key, place in layouts.layout_of(record).items():
        if key in wrong and key in flat:
            said[place.field] = _parts(layouts.record_in(hints_of(record)[place.field]), flat[key])
    return said


def _parts(record: type | None, value: object) -> object:
    """Records within another one, as far as they are sound; `UNSOUND` if it is none of them."""
    if record and isinstance(value, dict):
        return _part(record, value)
    if record and isinstance(value, list):
        return [_part(record, one) for one in value if isinstance(one, dict)]
    return UNSOUND


def _part(record: type, table: Table) -> SimpleNamespace:
    """A record within another one, as far as it is sound."""
    unsaid = {
        one.name: UNSOUND if _is_needed(one) else one.default for one in dataclasses.fields(record)
    }
    return SimpleNamespace(**unsaid | _read(record, table)[0])


def _value_at(table: Table, key: str) -> object:
    """The value at a dotted key without its source; empty where there is none."""
    value: object = table
    for part in re.split(r"[.\[\]]+", key.removesuffix("]")):
        if isinstance(value, list) and part.isdecimal():
            value = value[int(part)]
        else:
            value = value.get(part, "") if isinstance(value, dict) else ""
    return value.get("value", "") if isinstance(value, dict) else value


def file_problems(faults: list[Fault], record: type, shown: str) -> Iterator[Problem]:
    """Faults of a table as problems: a misspelt key, or a section that is missing, told once."""
    unknown = (fault for fault in faults if fault.kind == "extra_forbidden")
    meant = {fault.way: _meant(fault, faults, record) for fault in unknown}
    told = {(*way[:-1], key) for way, key in meant.items()}
    for fault in faults:
        key, value, fact, remedy = dotted(fault.way), literal(fault.value), fault.fact, fault.remedy
        if fault.kind == "extra_forbidden":
            value, remedy = "", _remedy(str(fault.way[-1]), meant[fault.way], record)
        elif fault.kind == "missing":
            way = _shallowest(fault)
            if way in told:
                continue
            told.add(way)
            key, value = dotted(way), ""
            if way[-1] in _NO_REMEDIES:
                key, fact = dotted(way[:-1]), f"has no {way[-1]}"
                remedy = _NO_REMEDIES[way[-1]]
        elif fault.kind == "tuple_type":
            each: dict[type, str] = {dict: f"open it with [[{key}]], once for each"}
            each[str] = f'write ["{value}"]'
            remedy = each.get(type(fault.value), remedy)
        yield Problem(where=shown, key=key, value=value, fact=fact, remedy=remedy)


def _remedy(place: str, meant: str, record: type) -> str:
    """What to do about an unknown key: to move it, or to spell it as it was meant."""
    section = _section_with(place.rpartition(".")[2], record)
    if section:
        return f"write it in {section}"
    return f"did you mean `{meant.rpartition('.')[2]}`?" if meant else ""


def _shallowest(fault: Fault) -> KeyPath:
    """The way to what is missing: to its section where all of that is."""
    *outer, place = fault.way
    parts = str(place).split(".")
    above = [".".join(parts[:n]) for n in range(1, len(parts))]
    return (*outer, next((one for one in above if one not in fault.value), place))


def _meant(fault: Fault, faults: list[Fault], record: type) -> str:
    """The key that a misspelt one was meant to be; empty if none is near."""
    *outer, place = fault.way
    inside = _record_at(outer, record)
    section, _, word = str(place).rpartition(".")
    before = f"{section}." if section else ""
    missing = [one.way[-1] for one in faults if one.kind == "missing" and one.way[:-1] == (*outer,)]
    known = [str(one) for one in (*missing, *(layouts.layout_of(inside) if inside else ()))]
    beside = [one[len(before) :].partition(".")[0] for one in known if one.startswith(before)]
    remedy = did_you_mean(word, dict.fromkeys(beside))
    return before + remedy.split("`")[1] if remedy else ""


def _record_at(way: Collection[int | str], record: type) -> type | None:
    """The record at the end of a way into another one."""
    inside: type | None = record
    for part in way:
        field = (
            layouts.layout_of(inside).get(str(part)) if inside and isinstance(part, str) else None
        )
        inside = layouts.record_in(hints_of(inside)[field.field]) if inside and field else inside
    return inside


def _section_with(key: str, record: type) -> str:
    """The section that an unknown key belongs to, `[torus]` or `[[link]]`; empty if none has it."""
    layout = layouts.layout_of(record)
    for place, (field, _) in layout.items():
        section, _, name = place.rpartition(".")
        if name == key and section:
            return f"[{section}]"
        hint = hints_of(record)[field]
        inner = layouts.record_in(hint)
        if inner and key in layouts.layout_of(inner):
            return f"[[{place}]]" if is_list(kind_of(hint)) else f"[{place}]"
    return ""


FILES = Files()
