"""Load connectors from TOML files; every fault of a file at once."""

from __future__ import annotations

from planner.errors import SpecError
from planner.specs.building import provenance, record_of
from planner.specs.engines.files import SpareSeconds, misnamed
from planner.specs.faults import validate
from planner.specs.finding import find
from planner.specs.patterns import name_of
from planner.specs.places import Kind
from planner.specs.roles import Connector
from planner.specs.schemas import Section, Sourced, Strict
from planner.specs.tables import read_table
from planner.specs.validation.arguments import arguments_checked
from planner.specs.values import BytesPerSecond, Text

USUAL_CONNECTOR = "nixl"
"""What hands caches over where nothing else is asked."""


class ConnectorHead(Strict):
    name: Text
    title: Text


class Transfer(Section):
    latency: Sourced[SpareSeconds]
    bytes_per_s: Sourced[BytesPerSecond] | None = None


class ConnectorFile(Strict):
    connector: ConnectorHead
    transfer: Transfer


@arguments_checked()
def load_connector(name_or_path: str, *, asked_by: str = "--connector") -> Connector:
    """Load a connector, by a name such as `nixl` or the path of a file.

    Raises:
        SpecError: there is no such connector, or its file has faults; all are listed.
    """
    found = find(Kind.CONNECTOR, name_or_path, asked_by=asked_by)
    table, unread = read_table(found.path, found.shown, use=found.use(Kind.CONNECTOR))
    file, faults = validate(ConnectorFile, table, found.shown) if table else (None, [])
    problems = [*unread, *faults, *misnamed(found, name_of(table, "connector"), "connector")]
    if file is None or problems:
        raise SpecError(problems)
    sources = tuple(provenance(file))
    return record_of(Connector, file.connector, file.transfer, provenance=sources)
