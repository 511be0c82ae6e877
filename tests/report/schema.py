"""JSON Schemas of what `as_json` writes: pydantic's of what reads it back.

docs/schema holds one for each kind of answer; a test compares, so that no field comes or goes
unseen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from planner.report.answer_kinds import AnswerKind, Path
from planner.report.as_json import ANSWER
from planner.report.decoding import ANSWERS
from planner.report.saved import Envelope

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NULL: Schema = {"type": "null"}


class _Schemas(GenerateJsonSchema):
    """As pydantic has them, in the order of the fields, which may be followed by others."""

    def sort(self, value: Any, parent_key: str | None = None) -> Any:
        return value

    def field_title_should_be_set(self, schema: CoreSchema) -> bool:
        return False

    def typed_dict_schema(self, schema: Any) -> Schema:
        found = super().typed_dict_schema(schema)
        del found["title"], found["additionalProperties"]
        return {"description": found.pop("description").split("\n")[0], **found}

    def nullable_schema(self, schema: Any) -> Schema:
        found = super().nullable_schema(schema)
        number = {"type": "number"}
        return {"type": ["number", "null"]} if number in found.get("anyOf", ()) else found

    def tagged_union_schema(self, schema: Any) -> Schema:
        """What tells them apart is in most of them, not in all."""
        return {"anyOf": super().tagged_union_schema(schema)["oneOf"]}


def answer_schema(kind: AnswerKind) -> Schema:
    """The schema of the envelope of one kind of answer."""
    definitions = {**_definitions(Envelope), **_definitions(kind.record)}
    body = {"$ref": f"#/$defs/{kind.record.__name__}"}
    if kind.repeated:
        _taken(body, kind.repeated[0], definitions)
    beside = {name: _taken(body, path, definitions) for name, path in reversed(kind.moved)}
    envelope = definitions.pop("Envelope")
    envelope["properties"] |= {
        "schema": {"const": ANSWER},
        "kind": {"const": kind.name},
        **beside,
        "answer": body,
        "unverified": {"const": list(kind.unverified)},
        "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }
    named = dict(sorted(_used(envelope, definitions).items()))
    return {"$schema": _DIALECT, "title": f"{ANSWER} {kind.name}", **envelope, "$defs": named}


def _definitions(record: type) -> dict[str, Schema]:
    """The schemas of a record and of those in it, by name."""
    generator = _Schemas(ref_template="#/$defs/{model}")
    found = generator.generate(ANSWERS.whole(record), mode="validation")
    inside = found.pop("$defs", {})
    return inside if "$ref" in found else {**inside, record.__name__: found}


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
