"""Where a file has the values of a record: under which key, and whether with a source.

A value of the world is a table `{ value = …, source = … }`. Where a whole section comes from one
place, the section has the `source`, and its values may stand alone. A key is the name of a field
without its unit: `hbm` for `hbm_bytes`, `hbm_bandwidth` for `hbm_bytes_per_s`.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args

from planner.quantities.tables import packaged_table
from planner.specs.files.tables import Provenance, Table
from planner.specs.validation.hints import hints_of, is_mapping, kind_of
from planner.specs.validation.values import FaultError

_UNIT = re.compile(r"_(bytes|s|w|flop_per_s|tokens_per_s)$")


class Place(NamedTuple):
    """Where a file has a value.

    Args:
        field: of the record that holds it.
        sourced: it is a value of the world, with a source.
    """

    field: str
    sourced: bool


Layout = Mapping[str, Place]
"""Where a file has the values of a record: by dotted key."""

_SECTIONS = packaged_table("specs/validation/layouts.toml")
"""Parts of files that have values of a record, by its module and name."""


def key_of(field: str) -> str:
    """The key of a field: its name without the unit."""
    return _UNIT.sub("", re.sub(r"bytes_per_s$", "bandwidth", field))


@cache
def layout_of(record: type) -> Layout:
    """Where a file has the values of a record; one without a layout has its fields as keys."""
    sections = _SECTIONS.get(record.__module__.rpartition(".")[2], {}).get(record.__name__)
    if sections is None:
        names = (field.name for field in dataclasses.fields(record))
        return {name: Place(name, sourced=False) for name in names}
    places = {}
    for section in sections:
        sourced = "sourced" in section
        for said in section["sourced" if sourced else "plain"].split():
            key, _, field = said.rpartition("=")
            place = f"{section.get('section', '')}.{key or key_of(field)}".lstrip(".")
            places[place] = Place(field, sourced)
    return places


@cache
def sections_of(record: type) -> frozenset[str]:
    """Tables that a record has values in and that are no values themselves."""
    layout = layout_of(record)
    parts = [place.split(".") for place in layout]
    above = (".".join(part[:n]) for part in parts for n in range(1, len(part)))
    return frozenset(above) - layout.keys()


def opened(record: type, raw: object) -> Table:
    """The values of a table by dotted key, each with the source of its section."""
    layout, sections = layout_of(record), sections_of(record)
    flat: Table = {}

    def walk(table: Table, before: str) -> None:
        source = table.get("source")
        for key, said in table.items():
            place, value = before + key, said
            if isinstance(value, dict) and place in sections:
                walk(value, f"{place}.")
            elif isinstance(value, dict) and place in layout:
                own = [inner for inner in value if f"{place}.{inner}" in layout]
                flat.update((f"{place}.{inner}", value[inner]) for inner in own)
                value = {inner: value[inner] for inner in value if inner not in own}
            elif place in layout and layout[place].sourced and isinstance(source, str):
                value = {"value": value, "source": source}
            flat[place] = value

    walk(as_table(raw), "")
    return flat


def as_table(raw: object) -> Table:
    if not isinstance(raw, dict):
        raise FaultError("is not a table")
    return raw


def key_of_field(field: str, record: type) -> str:
    """Where a file has a field, or one of a record within it: `nodes.scale_up.bandwidth`."""
    whole, _, rest = field.partition(".")
    name, bracket, index = whole.partition("[")
    key = next((key for key, place in layout_of(record).items() if place.field == name), name)
    inner = record_in(hints_of(record).get(name))
    rest = key_of_field(rest, inner) if rest and inner else rest
    return ".".join(filter(None, (key + bracket + index, rest)))


def record_in(hint: Any) -> type | None:  # noqa: ANN401
    """The record of `Record`, `Record | None`, `tuple[Record, ...]` or `Mapping[str, Record]`."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    records = (record_in(inner) for inner in get_args(hint))
    return next((record for record in records if record is not None), None)


def provenance(record: type, table: Table, before: str = "") -> Iterator[Provenance]:
    """Every value of a table that is sound with its source, under its dotted key."""
    flat, hints = opened(record, table), hints_of(record)
    for key, place in layout_of(record).items():
        if key in flat:
            yield from _sources(hints[place.field], flat[key], before + key)


def _sources(hint: Any, value: Any, key: str) -> Iterator[Provenance]:  # noqa: ANN401
    kind, inner = kind_of(hint), [one for one in get_args(hint) if one is not type(None)]
    if kind in (Union, UnionType, Annotated):
        yield from _sources(inner[0], value, key)
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        yield from provenance(kind, value, f"{key}.")
    elif is_mapping(kind):
        for name, one in value.items():
            yield from _sources(inner[1], one, f"{key}.{name}")
    elif isinstance(value, dict):
        yield Provenance(key=key, source=value["source"])
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from _sources(inner[0], one, f"{key}[{i}]")
