"""All files of a cluster: topologies of like nodes, leaves above them, parts, and the state.

The report says what was read for them, what was assumed, and what to do with the files.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from planner.quantities.units import show
from planner.report.documents import blocks
from planner.report.words import plural
from planner.specs.files.tables import ASSUMED, Table
from planner.specs.validation.problems import Problems
from planner_workshop.importing.pools import Node, NodeKind, kinds_of, price_of
from planner_workshop.importing.records import ClusterText, words
from planner_workshop.importing.writing import said, topology_table, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFiles:
    """What is written.

    Args:
        tables: by path, the one that was asked for first.
        placed_on: the file whose names of nodes the state has.
        state: its path and its text; empty where no server has a name.
    """

    tables: Mapping[str, Table]
    placed_on: str
    state: Mapping[str, str]

    def texts(self, cluster: ClusterText) -> list[tuple[str, str]]:
        head = words("head", cluster.name)
        texts = {path: "\n".join(_toml(it)) + "\n" for path, it in self.tables.items()}
        return [(path, f"{head}\n{text}") for path, text in {**texts, **self.state}.items()]


_SWITCHES = {"n_rails": "a leaf is one switch", "oversubscription": "as many links up as down"}
"""What is told of leaf switches, and why it is 1 where it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes below leaves of one size."""

    name: str
    leaves: Sequence[Sequence[Node]]

    def table(self, cluster: ClusterText, topology: str) -> Table:
        first = self.leaves[0][0][0]
        line, size = cluster.at(first.line), len(self.leaves[0])
        switches = {}
        for name, why in _SWITCHES.items():
            read = cluster.network.get(name)
            switches[name] = said(read.value, cluster.at(read.line)) if read else said(1, note=why)
        return {
            "name": self.name,
            "topology": topology,
            "n_nodes": said(sum(map(len, self.leaves)), line, is_plain=True),
            "n_nodes_per_leaf": said(size, line, f"below {first.leaf or 'a leaf without a name'}"),
            **switches,
            "spine_latency": said("1 us", note="two more switches"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Like nodes, or a slice of a torus: its topology, and a fabric where it has several leaves."""

    label: str
    path: str
    kind: NodeKind

    @property
    def groups(self) -> list[Group]:
        """The leaves of one size each, the largest first; none of a torus."""
        sizes = [] if self.kind.first.shape else list(dict.fromkeys(map(len, self.kind.leaves)))
        names = [f"leaves-of-{size}" if len(sizes) > 1 else self.label for size in sizes]
        return [
            Group(name=name, leaves=[leaf for leaf in self.kind.leaves if len(leaf) == size])
            for name, size in zip(names, sizes, strict=True)
        ]

    @property
    def placed_on(self) -> str:
        return _beside(self.path, "fabric") if len(self.kind.leaves) > 1 else self.path

    def tables(self, cluster: ClusterText, price: Table | None) -> Iterator[tuple[str, Table]]:
        yield self.path, topology_table(self.path, self.kind, cluster, price)
        if self.placed_on != self.path:
            named = {"name": Path(self.placed_on).stem, "title": "{n_devices} devices"}
            groups = [group.table(cluster, Path(self.path).name) for group in self.groups]
            yield self.placed_on, {"cluster": named, "group": groups}


def files_of(
    cluster: ClusterText, path: str, *, device: str | None, prices: str | None
) -> ImportedFiles:
    """Everything that is written of a cluster.

    Args:
        path: of the topology; other files are beside it, `mine-state.toml` of `mine.toml`.
        device: of what the text does not say, or nobody here knows.
        prices: a list of prices, in CSV.

    Raises:
        SpecError: devices or prices that are not known; all are listed.
    """
    parts = list(_parts(path, kinds_of(cluster, device)))
    rents, wrong = dict.fromkeys(part.kind.spec for part in parts), Problems()
    if prices is not None:
        rents = {it: wrong.collect(partial(price_of, prices, it)) for it in rents}
    wrong.settle()
    tables = dict(it for part in parts for it in part.tables(cluster, rents[part.kind.spec]))
    placed_on = parts[0].placed_on
    if len(parts) > 1:
        named = [{"name": it.label, "topology": Path(it.placed_on).name} for it in parts]
        tables = {path: {"cluster": {"name": Path(path).stem}, "part": named}, **tables}
        placed_on = path
    state = _state(parts, cluster, placed_on)
    files = {_beside(path, "state"): state} if state else {}
    return ImportedFiles(tables=tables, placed_on=placed_on, state=files)


def _beside(path: str, label: str) -> str:
    return str(Path(path).with_name(f"{Path(path).stem}-{label}.toml"))


def _parts(path: str, kinds: Sequence[NodeKind]) -> Iterator[Part]:
    """A part of each kind, called after its devices, and how many a node has where that tells."""
    names = [kind.label for kind in kinds]
    for kind in kinds:
        label = f"{kind.label}-x{kind.n_devices}" if names.count(kind.label) > 1 else kind.label
        own = path if len(kinds) == 1 else _beside(path, label)
        yield Part(label=label, path=own, kind=kind)


def _state(parts: Sequence[Part], cluster: ClusterText, placed_on: str) -> str:
    """Which node is which, and which cannot be used; empty where no server has a name."""
    nodes = list(_named_nodes(parts))
    taken: dict[str, list[str]] = {"failed": [], "reserved": []}
    for state, entry in (it for name, node in nodes for it in _unusable(name, node, cluster)):
        taken[state].append(entry)
    lists = [[f"{state} = [", *entries, "]"] for state, entries in taken.items() if entries]
    head = words("state_head", Path(placed_on).name)
    names = [f"# {name}  {' '.join(server.name for server in node)}" for name, node in nodes]
    text = "\n".join([head, *names, "", "busy = []", *chain.from_iterable(lists), ""])
    return text if nodes and nodes[0][1][0].name else ""


def _named_nodes(parts: Sequence[Part]) -> Iterator[tuple[str, Node]]:
    """Nodes by the names that they have in the pool of all parts."""
    groups = {
        f"{part.label}-{group.name}" if len(parts) > 1 < len(part.groups) else group.name: group
        for part in parts
        for group in part.groups
    }
    for name, group in groups.items():
        before = f"{name}/" if len(groups) > 1 else ""
        for i, node in enumerate(chain.from_iterable(group.leaves)):
            yield f"{before}node{i}", node


def _unusable(name: str, node: Node, cluster: ClusterText) -> Iterator[tuple[str, str]]:
    """State and devices of servers of a node that take no work, as lines of a list."""
    first = 0
    for server in node:
        last = first + (server.n_devices or 1) - 1
        devices = f"/gpu{{{first}..{last}}}" if len(node) > 1 else ""
        first = last + 1
        if server.state:
            why = f"{server.name}: {server.why}, {cluster.at(server.line)}"
            yield server.state, f'  "{name}{devices}",  # {why}'


def _toml(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """A table as TOML: its values, then its sections."""
    entries = {key: it if isinstance(it, list) else [it] for key, it in table.items()}
    is_section = {
        key: isinstance(it[0], dict) and "value" not in it[0] for key, it in entries.items()
    }
    yield from (f"{key} = {_value(it)}" for key, it in table.items() if not is_section[key])
    for key in filter(is_section.get, table):
        name = f"[{before}{key}]"
        for entry in entries[key]:
            lines = list(_toml(entry, f"{before}{key}."))
            if lines[:1] != [""]:  # it has values, not sections alone
                yield from ("", f"[{name}]" if isinstance(table[key], list) else name)
            yield from lines


def _value(it: Any) -> str:  # noqa: ANN401 as TOML has it
    if not isinstance(it, dict):
        return json.dumps(it, ensure_ascii=False)
    if it.get("is_plain"):
        why = it["note"] if it["source"] == ASSUMED else it["source"]
        return f"{_value(it['value'])}  # {why}"
    return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in it.items())} }}"


_Fact = tuple[str, str, str, str]
"""Key, value, source and note."""


def imported_document(
    cluster: ClusterText, imported: ImportedFiles, title: str, *, is_written: bool
) -> blocks.Document:
    """The whole report.

    Args:
        title: what prints such a text.
        is_written: files are written of it.
    """
    facts = list({fact[:3]: fact for fact in (*_unwritten(cluster), *_facts(imported))}.values())
    option = words("given")
    assumed, given = ([it for it in facts if it[2] == source] for source in (ASSUMED, option))
    read = [fact for fact in facts if fact[2] not in (ASSUMED, option)]
    keys = ", ".join(dict.fromkeys(it[0].partition(".")[2].replace(".", " ") for it in assumed))
    by_option = f", {len(given)} by `{option}`" if given else ""
    count = f"read {plural(len(read), 'fact')}{by_option}, assumed {len(assumed)}: {keys}"
    line = f"{cluster.shown}, {title}: {count}"
    sections = (
        blocks.section("read", _table([*read, *given])),
        blocks.section("assumed", _table(assumed)),
        blocks.section("left out", *blocks.notes(cluster.notes, "item")),
        blocks.hint(_next(imported) if is_written else words("not_written")),
    )
    return blocks.Document(title=cluster.name, line=line, sections=sections)


def _unwritten(cluster: ClusterText) -> Iterator[_Fact]:
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


def _table(facts: Sequence[_Fact]) -> blocks.Table:
    """A row each, with its source, or else why it is assumed."""
    rows = [
        (key, value, note if source == ASSUMED else f"{source}: {note}".removesuffix(": "))
        for key, value, source, note in facts
    ]
    return blocks.Table(rows=rows, wraps=True)


def _next(imported: ImportedFiles) -> str:
    """The command that plans on what is written."""
    first = next(iter(imported.tables))
    state = "".join(words("state", path) for path in imported.state)
    is_fabric = imported.placed_on == first and len(imported.tables) > 1
    plans = [] if is_fabric else [words("plans", first)]
    places = words("places", imported.placed_on, state)
    return ", ".join([*plans, *([places] if state or is_fabric else [])])
