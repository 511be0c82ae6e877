"""What was read of a cluster, what was assumed, and what to do with the files."""

from collections.abc import Iterator, Sequence

from planner.quantities.units import show
from planner.report.documents.blocks import Document, Note, Table, hint, notes, section
from planner.report.words import plural
from planner.specs.files.tables import ASSUMED
from planner.tools.importing.fabrics import ImportedFiles
from planner.tools.importing.records import ClusterText, words
from planner.tools.importing.writing import values_of

_Fact = tuple[str, str, str, str]
"""Key, value, source and note."""


def imported_document(
    cluster: ClusterText, imported: ImportedFiles, title: str, *, is_written: bool
) -> Document:
    """The whole report.

    Args:
        title: what prints such a text.
        is_written: files are written of it.
    """
    facts = list({fact[:3]: fact for fact in (*_beside(cluster), *_facts(imported))}.values())
    option = words("given")
    assumed, given = ([it for it in facts if it[2] == source] for source in (ASSUMED, option))
    read = [fact for fact in facts if fact[2] not in (ASSUMED, option)]
    keys = ", ".join(dict.fromkeys(it[0].partition(".")[2].replace(".", " ") for it in assumed))
    by_option = f", {len(given)} by `{option}`" if given else ""
    count = f"read {plural(len(read), 'fact')}{by_option}, assumed {len(assumed)}: {keys}"
    line = f"{cluster.shown}, {title}: {count}"
    sections = (
        section("read", _table([*read, *given])),
        section("assumed", _table(assumed)),
        section("left out", *notes(cluster.notes, "item")),
        hint(_next(imported) if is_written else words("not_written")),
    )
    return Document(title=cluster.name, line=line, head=(Note(line),), sections=sections)


def _beside(cluster: ClusterText) -> Iterator[_Fact]:
    """What no file has as it is: of which rates are made, and how many servers have a name."""
    pairs = sorted({n for row in cluster.n_links for n in row} - {0})
    if pairs:
        yield "NVLinks of a pair", " or ".join(map(str, pairs)), cluster.at(cluster.links_line), ""
    for name, label in (("n_ports", "ports of a server"), ("port_bytes_per_s", "a port")):
        if name in cluster.network:
            value, line = cluster.network[name]
            shown = f"{value:g}" if name == "n_ports" else show(value, "B/s")
            yield label, shown, cluster.at(line), ""
    n_named = sum(bool(it.name) for it in cluster.servers)
    if n_named:
        yield "servers by name", str(n_named), cluster.at(cluster.servers[0].line), ""


def _facts(imported: ImportedFiles) -> Iterator[_Fact]:
    for table in imported.tables.values():
        for key, it in values_of(table):
            yield key, str(it["value"]), it["source"], it.get("note", "")


def _table(facts: Sequence[_Fact]) -> Table:
    """A row each, with its source, or else why it is assumed."""
    rows = [
        (key, value, note if source == ASSUMED else f"{source}: {note}".removesuffix(": "))
        for key, value, source, note in facts
    ]
    return Table(rows=rows, wraps=True)


def _next(imported: ImportedFiles) -> str:
    """The command that plans on what is written."""
    first = next(iter(imported.tables))
    state = "".join(words("state", path) for path in imported.state)
    is_fabric = imported.placed_on == first and len(imported.tables) > 1
    plans = [] if is_fabric else [words("plans", first)]
    places = words("places", imported.placed_on, state)
    return ", ".join([*plans, *([places] if state or is_fabric else [])])
