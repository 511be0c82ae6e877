"""Load connectors from TOML files; every fault of a file at once."""

from __future__ import annotations

from planner.specs.finding import find
from planner.specs.places import Kind
from planner.specs.reading import read_named, record_of
from planner.specs.roles import Connector
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.layouts import Section, lay_out

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
    return record_of(Connector, *read_named(found, "connector", Kind.CONNECTOR), shown=found.shown)
