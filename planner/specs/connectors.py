"""Load connectors from TOML files; every fault of a file at once."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import SpecError
from planner.specs.finding import find
from planner.specs.places import Kind
from planner.specs.reading import read_named
from planner.specs.roles import Connector
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.files import validate
from planner.specs.validation.layouts import Section, lay_out, provenance

USUAL_CONNECTOR = "nixl"
"""What hands caches over where nothing else is asked."""


lay_out(
    Connector,
    Section("connector", "name title", sourced=False),
    Section("transfer", "latency_s bytes_per_s=bytes_per_s"),
)


@arguments_checked()
def load_connector(name_or_path: str, *, asked_by: str = "--connector") -> Connector:
    """Load a connector, by a name such as `nixl` or the path of a file.

    Raises:
        SpecError: there is no such connector, or its file has faults; all are listed.
    """
    found = find(Kind.CONNECTOR, name_or_path, asked_by=asked_by)
    table, problems = read_named(found, "connector", Kind.CONNECTOR)
    connector, faults = validate(Connector, table, found.shown) if table else (None, [])
    if connector is None or problems:
        raise SpecError([*faults, *problems])
    return replace(connector, provenance=tuple(provenance(Connector, table)))
