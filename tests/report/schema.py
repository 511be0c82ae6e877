"""JSON Schemas of what `as_json` writes, from the types of the records.

docs/schema holds one for each kind of answer; a test compares, so that no field comes or goes
unseen.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.report.answer_kinds import AnswerKind, Path
from planner.report.as_json import ANSWER
from planner.report.json_records import COLUMNS, DERIVED, KINDS, RANGES, record_hints
from planner.report.times import Times
from planner.specs.ledger import DataFile

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null: not finite
    str: {"type": "string"},
}
_SPANS: Schema = {
    "description": "[first, last, step] of each run of integers",
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
}
_COLUMN: Schema = {"description": "numbers with a space between", "type": "string"}
_NULL: Schema = {"type": "null"}


def answer_schema(kind: AnswerKind) -> Schema:
    """The schema of the envelope of one kind of answer."""
    definitions: dict[str, Schema] = {}
    body = {"$ref": _type(kind.record, definitions)["$ref"]}
    if kind.repeated:
        _taken(body, kind.repeated[0], definitions)
    state = _taken(body, kind.state, definitions)
    certificate = _taken(body, kind.certificate, definitions)
    request = _taken(body, kind.request, definitions)
    envelope = _object(
        {
            "schema": {"const": ANSWER},
            "kind": {"const": kind.name},
            "request": request,
            "state": state,
            "answer": body,
            "certificate": certificate,
            "times": _type(tuple[Times, ...], definitions),
            "versions": {"type": "object", "additionalProperties": _SCALARS[str]},
            "data": _type(tuple[DataFile, ...], definitions),
            "unverified": {"const": list(kind.unverified)},
            "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        }
    )
    named = dict(sorted(_used(envelope, definitions).items()))
    return {"$schema": _DIALECT, "title": f"{ANSWER} {kind.name}", **envelope, "$defs": named}


def _taken(body: Schema, path: Path, definitions: dict[str, Schema]) -> Schema:
    """The schema of a nested property, which is taken out; what is above it is written out."""
    if not path:
        return _NULL
    here = body
    for key in path:
        _write_out(here, definitions)
        properties, found = here["properties"], here["properties"][key]
        if key is not path[-1]:
            properties[key] = here = dict(found)
    del properties[key]
    here["required"] = list(properties)
    return dict(found)


def _write_out(schema: Schema, definitions: dict[str, Schema]) -> None:
    """The definition that a schema refers to in its place."""
    if "$ref" in schema:
        found = definitions[schema.pop("$ref").rpartition("/")[2]]
        schema |= {**found, "properties": dict(found["properties"])}


def _used(schema: Schema, definitions: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions that a schema refers to, and those that these do."""
    found: dict[str, Schema] = {}
    stack: list[object] = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found[name] = definitions[name]
                stack.append(definitions[name])
            stack += value.values()
        elif isinstance(value, Sequence) and not isinstance(value, str):
            stack += value
    return found


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _type(annotation: Any, definitions: dict[str, Schema]) -> Schema:
    """The schema of a type; records are defined once and referred to."""
    if dataclasses.is_dataclass(annotation):
        assert isinstance(annotation, type)
        if annotation.__name__ not in definitions:
            definitions[annotation.__name__] = {}  # a record may hold itself
            definitions[annotation.__name__] = _properties(annotation, definitions)
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return {"enum": list(inner)}
    if get_origin(annotation) in (Union, types.UnionType):
        return {"anyOf": [_type(one, definitions) for one in inner]}
    if annotation is type(None):
        return dict(_NULL)
    if get_origin(annotation) is tuple:
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": _type(inner[0], definitions)}
        size = {"minItems": len(inner), "maxItems": len(inner)}
        if len(set(inner)) > 1:
            each = [_type(one, definitions) for one in inner]
            return {"type": "array", "prefixItems": each, **size}
        return {"type": "array", "items": _type(inner[0], definitions), **size}
    if get_origin(annotation) is Sequence:
        return {"type": "array", "items": _type(inner[0], definitions)}
    assert issubclass(get_origin(annotation), Mapping), annotation
    return {"type": "object", "additionalProperties": _type(inner[1], definitions)}


def _properties(record: type, definitions: dict[str, Schema]) -> Schema:
    hints = record_hints(record)
    properties: dict[str, Schema] = {}
    if record in KINDS:
        key, value = KINDS[record]
        properties[key] = {"const": value}
    for field in dataclasses.fields(record):
        name = field.name
        if name in RANGES:
            is_free = type(None) in get_args(hints[name])
            properties[name] = {"anyOf": [_SPANS, _NULL]} if is_free else _SPANS
        elif name in COLUMNS.get(record, ()):
            properties[name] = _COLUMN
        else:
            properties[name] = _type(hints[name], definitions)
    for name in DERIVED.get(record, ()):
        returned = get_type_hints(getattr(record, name).fget)["return"]
        properties[name] = _type(returned, definitions)
    about = (record.__doc__ or "").split("\n")[0]
    return {"description": about, **_object(properties)}
