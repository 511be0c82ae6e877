"""What pydantic found, as problems that name the key, the value, the fact and the remedy."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import Problem
from planner.specs.tables import Table, literal
from planner.specs.values import did_you_mean

_Location = tuple[int | str, ...]
_File = TypeVar("_File", bound=BaseModel)

_FACTS = {
    "string_type": "is not text",
    "bool_type": "is neither true nor false",
    "list_type": "is not a list",
    "dict_type": "is not a table",
    "model_type": "is not a table",
    "model_attributes_type": "is not a table",
    "missing": "is missing",
    "extra_forbidden": "unknown key",
}
_NO_SOURCE = 'name where the value comes from, or write source = "assumed"'


def validate(schema: type[_File], table: Table, shown: str) -> tuple[_File | None, list[Problem]]:
    """Check a file against its schema.

    Returns:
        The checked file and no problems, or None and every problem found.
    """
    try:
        return _validated(schema, pickle.dumps(table)), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    return None, list(_problems(details, schema, shown))


@lru_cache(maxsize=256)
def _validated(schema: type[_File], table: bytes) -> _File:
    """The checked file of a table, made once: it is frozen, and one command reads it many times.

    Raises:
        ValidationError: the table has faults.
    """
    return schema.model_validate(pickle.loads(table))


def dotted(location: _Location) -> str:
    """`link[0].bandwidth`; the key `value` of a sourced value is left out."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in ("value", "[key]"):
            path += f".{part}" if path else part
    return path


def _problems(
    details: list[ErrorDetails], schema: type[BaseModel], shown: str
) -> Iterator[Problem]:
    misspelt = {
        detail["loc"]: _meant(detail["loc"], details, schema)
        for detail in details
        if detail["type"] == "extra_forbidden"
    }
    meant = {(*loc[:-1], word) for loc, word in misspelt.items()}
    for detail in details:
        location = detail["loc"]
        if detail["type"] == "missing" and location in meant:
            continue  # one fault, told once: as the misspelt key
        if detail["type"] == "extra_forbidden":
            word, section = misspelt[location], _section_of(location, schema)
            remedy = f"did you mean `{word}`?" if word else ""
            remedy = f"write it in {section}" if section else remedy
            yield Problem(where=shown, key=dotted(location), fact="unknown key", remedy=remedy)
        else:
            yield _problem(detail, shown)


def _problem(detail: ErrorDetails, shown: str) -> Problem:
    kind, location, context = detail["type"], detail["loc"], detail.get("ctx", {})
    value = "" if kind == "missing" else literal(detail["input"])
    fact, remedy = _FACTS.get(kind, ""), ""
    if kind == "fault":
        fact, remedy = context["fact"], context["remedy"]
    elif kind == "missing" and location[-1] in ("source", "value"):
        fact = f"has no {location[-1]}"
        remedy = _NO_SOURCE if location[-1] == "source" else ""
        location = location[:-1]
    elif kind == "list_type" and isinstance(detail["input"], dict):
        remedy = f"open it with [[{dotted(location)}]], once for each"
    elif kind == "list_type" and isinstance(detail["input"], str):
        remedy = f'write ["{value}"]'
    elif kind in ("too_short", "too_long"):
        wanted = context.get("min_length", context.get("max_length"))
        fact = f"has {context['actual_length']} entries, but {wanted} are wanted"
    return Problem(
        where=shown,
        key=dotted(location),
        value=value,
        fact=fact or detail["msg"][:1].lower() + detail["msg"][1:],
        remedy=remedy,
    )


def _meant(location: _Location, details: list[ErrorDetails], schema: type[BaseModel]) -> str:
    """The key that a misspelt one was meant to be; empty if none is near."""
    *inside, word = location
    missing = [
        d["loc"][-1] for d in details if d["type"] == "missing" and d["loc"][:-1] == (*inside,)
    ]
    known = [*map(str, missing), *_fields(schema, (*inside,))]
    text = did_you_mean(str(word), known)
    return text.split("`")[1] if text else ""


def _section_of(location: _Location, schema: type[BaseModel]) -> str:
    """The section that an unknown key belongs to, `[torus]` or `[[link]]`; empty if none has it."""
    *_, key = location
    for name, field in schema.model_fields.items():
        section = _model_in(field.annotation)
        if section is not None and key in section.model_fields.keys() - {"source"}:
            return f"[[{name}]]" if get_origin(field.annotation) is list else f"[{name}]"
    return ""


def _fields(schema: type[BaseModel], location: _Location) -> list[str]:
    """Keys that the table at a location may have."""
    for part in location:
        if isinstance(part, str) and part in schema.model_fields:
            inner = _model_in(schema.model_fields[part].annotation)
            if inner is None:
                return []
            schema = inner
    return list(schema.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model of `Model`, `Model | None`, `list[Model]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)
