"""Lists of hosts: Slurm's topology.conf and models of Topograph; and JSON that lists nodes.

Hosts of texts are below switches or in blocks. JSON is of `kubectl get nodes`, of ResourceSlices
of DRA drivers, and NetQ's graph of a network.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from planner.specs.files.tables import at
from planner_workshop.importing.links import SWITCH, Vertex, read_ports
from planner_workshop.importing.records import ClusterText, Server, names, words

_MOST_HOSTS = 100_000
_FIRST_KEYS = {"switchname", "blockname", "blocksizes"}
_KEYS = {*_FIRST_KEYS, "switches", "nodes", "linkspeed"}


def hosts(text: str) -> list[str]:
    """Hosts of a list as Slurm writes them.

    >>> hosts("a[1-2]b[08-09],c")
    ['a1b08', 'a1b09', 'a2b08', 'a2b09', 'c']

    Raises:
        ValueError: brackets do not close, a range leads nowhere, or there are too many.
    """
    listed: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+|[\[\]]", text):
        pieces = re.split(r"\[([^\]]*)\]", part)
        columns = [_run(piece) if i % 2 else [piece] for i, piece in enumerate(pieces)]
        listed += map("".join, product(*columns))
        if part in "[]" or len(listed) > _MOST_HOSTS:
            raise ValueError(part)
    return listed


def _run(text: str) -> list[str]:
    """Numbers of a range, as wide as its first: `08-10`."""
    numbers: list[str] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not low <= high <= low + _MOST_HOSTS:
            raise ValueError(part)
        numbers += (f"{n:0{len(first)}}" for n in range(low, high + 1))
    return numbers


def _listed(cluster: ClusterText, line: int, text: str) -> list[str]:
    try:
        return hosts(text)
    except ValueError:
        cluster.refuse(line, "is no list of hosts", "write `srv[1-8,12]`", text)
        return []


def read_slurm(cluster: ClusterText) -> None:
    """Nodes below switches, or in blocks."""
    servers: dict[str, Server] = {}
    switches: set[str] = set()
    above: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, said in _slurm_lines(cluster):
        name = said.get("switchname", "")
        switches.add(name)
        for host in _listed(cluster, number, said.get("nodes", "")):
            if host in servers:
                fact = f"is named in line {servers[host].line} too"
                cluster.refuse(number, fact, "name each node once", host)
            block = said.get("blockname", "")
            servers[host] = Server(name=host, line=number, leaf=name, domain=block)
        children = _listed(cluster, number, said.get("switches", ""))
        above |= dict.fromkeys(children, name)
        lines |= dict.fromkeys(children, number)
    for child in sorted(above.keys() - switches):
        remedy = f"add a line `SwitchName={child} Nodes=…`"
        cluster.refuse(lines[child], "is a switch without a line", remedy, child)
    cluster.servers += servers.values()
    _note_tiers(cluster, above)


def _slurm_lines(cluster: ClusterText) -> Iterator[tuple[int, dict[str, str]]]:
    """Values of lines by their keys, in small letters."""
    for number, line in cluster.lines():
        bare = line.partition("#")[0].strip()
        said = {key.lower(): value for key, _, value in (it.partition("=") for it in bare.split())}
        if said.keys() <= _KEYS and all(said.values()) and said.keys() & _FIRST_KEYS:
            yield number, said
        elif bare:
            fact = "is no line of topology.conf: `SwitchName=` or `BlockName=`, without spaces"
            cluster.refuse(number, fact, "", bare)


def _note_tiers(cluster: ClusterText, above: dict[str, str]) -> None:
    """That there are more tiers of switches than a fabric has: leaves, and a spine."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(above.items())
    n_tiers = len(nx.dag_longest_path(graph)) if nx.is_directed_acyclic_graph(graph) else 0
    if n_tiers > 2:
        cluster.note(n_tiers - 1, "tier", "of switches above leaves, taken for one spine")


_KEY = re.compile(r"""(\s*)["']?([^\s"'\[{&*!|>-][^"']*?)["']?:(?:\s+(.+))?""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'|[^,\s]+""")
_Place = tuple[int | str, ...]
_Stack = list[tuple[float, int | str]]
"""Keys and indices by the column that they begin in; items half a column behind their dash."""


def _undashed(text: str, stack: _Stack) -> tuple[str, _Stack]:
    """A line with spaces for dashes, and the places of the list items that these begin."""
    while match := re.match(r"(\s*)-(?:\s+|$)", text):
        column = len(match[1]) + 0.5
        before = dict(it for it in stack if it[0] <= column)
        stack = list((before | {column: int(before.get(column, -1)) + 1}).items())
        text = " " * match.end() + text[match.end() :]
    return text, stack


def _values(cluster: ClusterText) -> Iterator[tuple[_Place, str, int]]:
    """Texts of YAML of mappings and lists: keys and indices to each, the text, its line."""
    stack: _Stack = []
    for number, line in cluster.lines():
        text, stack = _undashed(re.sub(r"(^|\s)#.*$", "", line).rstrip(), stack)
        if match := _KEY.fullmatch(text):
            column = len(match[1])
            stack = [*(it for it in stack if it[0] < column), (column, match[2])]
            text = match[3] or ""
        place = tuple(key for _, key in stack)
        text = text.strip()
        if text[:1] in tuple("{&*!|>") or len(place) < bool(text):
            cluster.refuse(number, "is more of YAML than mappings and lists of texts", "", text)
        parts = _QUOTED.findall(text[1:-1] if text.startswith("[") else text)
        yield from ((place, part.strip("\"'"), number) for part in parts)


def read_topograph(cluster: ClusterText) -> None:
    """Nodes of blocks below switches."""
    above: dict[str, str] = {}
    leaves, domains = defaultdict(str), defaultdict(str)
    listed: list[tuple[int | str, str, int]] = []
    for place, text, line in _values(cluster):
        match place:
            case ("switches", name, "switches", *_):
                above[text] = str(name)
            case ("blocks", block, "switch"):
                leaves[block] = text
            case ("blocks", block, "nodes", *_):
                listed.append((block, text, line))
            case ("blocks", block, "annotations", label) if str(label).endswith("/domain"):
                domains[block] = text
    for block, text, line in listed:
        leaf, domain = leaves[block], domains[block]
        if above and leaf not in above:
            cluster.refuse(line, "is below a switch that `switches` lacks", "list it", leaf)
        for host in _listed(cluster, line, text):
            cluster.servers.append(Server(name=host, line=line, leaf=leaf, domain=domain))
    _note_tiers(cluster, above)


_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(?:([KMGTP])(i?))?")


def items_of(value: object) -> list[Mapping[str, Any]]:
    """Objects of what `kubectl` prints: of a list, or one alone."""
    items = at(value, "items")
    return [it for it in _list([value] if items is None else items) if isinstance(it, dict)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(cluster: ClusterText, line: int, value: object, kind: str) -> dict[str, str]:
    """What an object says by field, as `names.toml` has it; what cannot be is refused."""
    texts = {}
    for field, known in names()[kind].items():
        said = [at(value, *keys) for keys in known["at"]]
        texts[field] = next((str(it) for it in said if it and not isinstance(it, dict)), "")
        if texts[field] and not re.fullmatch(known.get("is", ".*"), texts[field]):
            cluster.refuse(line, known["fact"], known["remedy"], texts[field])
            texts[field] = ""
    return texts


def _bytes(text: str) -> float | None:
    """A quantity of Kubernetes in bytes: `80Gi`."""
    match = _QUANTITY.fullmatch(text)
    power = " KMGTP".index(match[2] or " ") if match else 0
    return float(match[1]) * float(1024 if match[3] else 1000) ** power if match else None


def read_nodes(cluster: ClusterText, value: object) -> None:
    """Nodes that have accelerators, by their labels; those of a slice of TPUs by its node pool."""
    lines, nodes = cluster.lines_of("name"), items_of(value)
    chips: dict[tuple[str, str], list[Server]] = defaultdict(list)
    for node in nodes:
        line = lines.get(str(at(node, "metadata", "name")), 1)
        said = _texts(cluster, line, node, "nodes")
        if said["product"] or said["count"]:
            cluster.servers.append(_server(line, node, said))
        if said["shape"]:
            chips[said["slice"], said["shape"]].append(cluster.servers[-1])
    cluster.note(len(nodes) - len(cluster.servers), "node", "without accelerators")
    for (name, shape), members in chips.items():
        n_chips = sum(it.n_devices or 0 for it in members)
        if n_chips != math.prod(members[0].shape):
            fact = f"has nodes of {n_chips} chips, which is not {shape}"
            cluster.refuse(members[0].line, fact, "give the file all nodes of the pool", name)


def _server(line: int, node: Mapping[str, Any], said: Mapping[str, str]) -> Server:
    """A node by its texts."""
    conditions = _list(at(node, "status", "conditions"))
    ready = [at(it, "status") for it in conditions if at(it, "type") == "Ready"]
    is_cordoned = at(node, "spec", "unschedulable") is True
    state = "failed" if ready not in ([], ["True"]) else "reserved" if is_cordoned else ""
    return Server(
        name=said["name"],
        line=line,
        product=said["product"],
        n_devices=int(said["count"] or 0) or None,
        memory_bytes=float(said["memory"] or 0) * 2**20 or None,
        host_bytes=_bytes(said["host_memory"]),
        leaf=said["leaf"],
        domain=said["slice" if said["shape"] else "domain"],
        shape=tuple(map(int, filter(None, said["shape"].split("x")))),
        state=state,
        why={"failed": "not Ready", "reserved": "cordoned"}.get(state, ""),
    )


def read_slices(cluster: ClusterText, value: object) -> None:
    """Nodes by the whole devices of their ResourceSlices; one of two products is two."""
    lines = cluster.lines_of("nodeName")
    devices: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in items_of(value):
        node = str(at(item, "spec", "nodeName"))
        is_accelerator = "gpu" in str(at(item, "spec", "driver"))
        for device in _list(at(item, "spec", words("spec"))) if is_accelerator else ():
            said = _texts(cluster, lines.get(node, 1), device, "resourceslices")
            if said["kind"] in ("", "gpu"):  # no partition
                devices[node, said["product"]].append(said["memory"])
    for (node, name), memories in devices.items():
        memory = _bytes(memories[0])
        own = Server(name=node, line=lines.get(node, 1), product=name, memory_bytes=memory)
        cluster.servers.append(replace(own, n_devices=len(memories)))


def is_graph(value: object) -> bool:
    """Whether JSON is a graph of NetQ."""
    return bool(_list(value)) and all(at(it, "links") is not None for it in _list(value))


def read_graph(cluster: ClusterText, value: object) -> None:
    """Hosts and switches, and as many ports of a host as it has links."""
    lines = cluster.lines_of("name")
    vertices: dict[str, Vertex] = {}
    for it in (it for _, own in _members(value, "nodes", "compounded_nodes") for it in own):
        kind, name = str(at(it, "device_type")), str(at(it, "name"))
        vertices[str(at(it, "id"))] = Vertex(kind, name, lines.get(name, 1), [])
    ends: list[tuple[str, str]] = []
    for it, own in _members(value, "links", "compounded_links"):
        a, b = str(at(it, "src")), str(at(it, "target"))
        ends += [(a, b), (b, a)] * len(own)
    for end in sorted({a for a, _ in ends} - vertices.keys()):
        cluster.refuse(0, "is the end of a link and no node", "copy the whole answer", end)
    for a, b in () if cluster.problems else ends:
        vertices[a].links.append((b, 1.0))
    read_ports(cluster, vertices, [it for it in vertices.values() if it.kind != SWITCH])


def _members(value: object, key: str, inner: str) -> Iterator[tuple[object, list[object]]]:
    """Nodes or links of all graphs, each with what it is made of: itself where of nothing else."""
    for graph in _list(value):
        yield from ((it, _list(at(it, inner)) or [it]) for it in _list(at(graph, key)))
