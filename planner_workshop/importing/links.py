"""Links of a server, of `nvidia-smi topo -m`, and of InfiniBand, of `ibnetdiscover`."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from itertools import combinations, takewhile
from typing import NamedTuple

from planner.report.words import plural
from planner_workshop.importing.records import (
    ClusterText,
    Read,
    Server,
    most_common,
    names,
    natural,
)

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PRODUCT = re.compile(r"^GPU \d+: (.+?) \(UUID", re.M)
_CELL = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS")
NEAREST = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""What joins two devices other than NVLink, the nearest first."""

Cells = Mapping[tuple[str, str], str]
_Words = tuple[int, list[str]]
"""A line, by its number."""


def read_matrix(cluster: ClusterText) -> None:
    """The server of a matrix, with whatever stands around it; `nvidia-smi -L` names its product."""
    lines = [(number, _ANSI.sub("", line).split() or [""]) for number, line in cluster.lines()]
    header, head = next(it for it in lines if it[1][0] == "GPU0")
    columns = list(takewhile(lambda word: word not in ("CPU", "NUMA"), head))
    cells = _cells(cluster, columns, lines[header:])
    if cluster.problems:
        return
    devices = list(filter(re.compile("GPU").match, columns))
    cluster.n_links = [[int(cells[a, b].partition("NV")[2] or 0) for b in devices] for a in devices]
    cluster.links_line = header + 1
    joined = Counter(cells[pair] for pair in combinations(devices, 2))
    for word in NEAREST:
        cluster.note(joined[word], "pair", f"of devices joined by {word}, not NVLink")
    _read_ports(cluster, header, devices, cells)
    product = "".join(_PRODUCT.findall(cluster.text)[:1])
    cluster.servers.append(Server(name="", line=header, n_devices=len(devices), product=product))


def _cells(cluster: ClusterText, columns: Sequence[str], lines: Sequence[_Words]) -> Cells:
    """Cells by row and column; what is wrong with them is refused."""
    cells: dict[tuple[str, str], str] = {}
    rows = {words[0]: (number, words[1:]) for number, words in reversed(lines)}
    for name in columns:
        number, row = rows.get(name, (0, []))
        if len(row) < len(columns):
            fact = f"has {len(row)} of {len(columns)} cells in row `{name}`"
            cluster.refuse(number, fact, "copy the whole matrix")
        cells |= {(name, other): cell for other, cell in zip(columns, row, strict=False)}
        for cell in {cell for cell in row[: len(columns)] if not _CELL.fullmatch(cell)}:
            cluster.refuse(
                number, "joins no two devices", f"there is NV#, {', '.join(NEAREST)}", cell
            )
    return cells


def _read_ports(cluster: ClusterText, line: int, devices: Sequence[str], cells: Cells) -> None:
    """Adapters that devices send by: those below their own bridges, or else as near as any."""
    far: dict[str, int] = {}
    for (name, device), cell in cells.items():
        if device in devices and name not in devices and cell in NEAREST:
            far[name] = min(NEAREST.index(cell), far.get(name, len(NEAREST)))
    nearest = max(NEAREST.index("PXB"), min(far.values(), default=0))
    n_ports = sum(rank <= nearest for rank in far.values())
    if n_ports:
        cluster.network["n_ports"] = Read(n_ports, line)
    cluster.note(len(far) - n_ports, "adapter", "far from every device: taken for storage's")


_ENTRY = re.compile(r'(Switch|Ca)\s+\d+\s+"([^"]+)"\s*(?:#\s*"([^"]*)".*)?')
_PORT = re.compile(r'\[\d+\](?:\(\w+\))?\s+"([^"]+)"\[\d+\](?:\(\w+\))?\s*#.*?(\d+)x(\w+)\s*')
_OTHER = re.compile(r"((vendid|devid|sysimgguid|switchguid|caguid|rtguid|Rt\b|DR path).*|#.*|\s*)")
_BITS = 8e-9


SWITCH = "switch"


class Vertex(NamedTuple):
    """A switch, or an adapter of a host, and its links: the other end, bytes/s one way."""

    kind: str
    name: str
    line: int
    links: list[tuple[str, float]]


def _is_any(name: str, kind: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in names()["adapters"][kind])


def read_discovered(cluster: ClusterText) -> None:
    """Hosts of the adapters of InfiniBand; what sums up inside a switch is none of these."""
    vertices = _vertices(cluster)
    ports = [it for it in vertices.values() if it.kind != SWITCH and it.links]
    ports = [it for it in ports if not _is_any(it.name, "inside_switches")]
    read_ports(cluster, vertices, [] if cluster.problems else ports)
    for usual in cluster.servers[:1]:
        rate = min(link[1] for port in ports for link in port.links)
        cluster.network["port_bytes_per_s"] = Read(rate, usual.line + 1)


def read_ports(
    cluster: ClusterText, vertices: Mapping[str, Vertex], adapters: Sequence[Vertex]
) -> None:
    """Hosts below leaf switches; leaves that the same hosts are below are rails of one set.

    Args:
        adapters: of hosts; the first word of a name is that of the host.
    """
    ports = [it._replace(links=[link]) for it in adapters for link in it.links]
    hosts: dict[str, list[Vertex]] = defaultdict(list)
    for port in ports:
        host = port.name.partition(" ")[0]
        hosts["" if _is_any(host, "nameless") else host].append(port)
    cluster.note(len(hosts.pop("", [])), "adapter", "that name no host")
    if not hosts:
        return
    sets = _sets(hosts.values())
    for host in sorted(hosts, key=natural):
        first = hosts[host][0]
        leaf = vertices[sets[first.links[0][0]]].name.partition(":")[0]
        cluster.servers.append(Server(name=host, line=first.line, leaf=leaf))
    n_ports = most_common([len(own) for own in hosts.values()])
    cluster.network["n_ports"] = Read(n_ports, cluster.servers[0].line)
    n_other = sum(len(own) != n_ports for own in hosts.values())
    cluster.note(n_other, "host", f"with other than {n_ports} adapters")
    _read_leaves(cluster, vertices, sets, sum(port.links[0][1] for port in ports))


def _read_leaves(
    cluster: ClusterText, vertices: Mapping[str, Vertex], sets: Mapping[str, str], down: float
) -> None:
    """Rails of a leaf, and by how much its links down are more than those up."""
    line = min(vertices[leaf].line for leaf in sets)
    n_rails = most_common(list(Counter(sets.values()).values()))
    cluster.network["n_rails"] = Read(n_rails, line)
    links = [link for leaf in sets for link in vertices[leaf].links]
    up = sum(rate for end, rate in links if vertices[end].kind == SWITCH)
    if up:
        cluster.network["oversubscription"] = Read(max(1.0, round(down / up, 2)), line)


def _sets(hosts: Iterable[Sequence[Vertex]]) -> Mapping[str, str]:
    """Leaves that hosts join, by the first of them."""
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    for own in hosts:
        leaves = [port.links[0][0] for port in own]
        graph.add_edges_from((leaves[0], leaf) for leaf in leaves)
    return {leaf: min(part) for part in nx.connected_components(graph) for leaf in part}


def _vertices(cluster: ClusterText) -> dict[str, Vertex]:
    vertices: dict[str, Vertex] = {}
    lanes = names()["lanes"]
    links: list[tuple[str, float]] = []
    ends: dict[str, int] = {}
    rates: dict[str, int] = {}
    for number, line in cluster.lines():
        if match := _ENTRY.fullmatch(line):
            links = []
            vertices[match[2]] = Vertex(match[1].lower(), match[3] or "", number, links)
        elif match := _PORT.fullmatch(line):
            links.append((match[1], int(match[2]) * lanes.get(match[3], math.nan) / _BITS))
            ends.setdefault(match[1], number)
            rates.setdefault(match[3], number)
        elif not _OTHER.fullmatch(line):
            cluster.refuse(number, "is no line of `ibnetdiscover`", "", line.strip())
    for rate in sorted(rates.keys() - lanes.keys()):
        cluster.refuse(rates[rate], "is no known rate", f"there is {', '.join(lanes)}", rate)
    missing = [end for end in ends if end not in vertices]
    for end in missing[:1]:
        fact = f"is listed nowhere, as {plural(len(missing) - 1, 'other end')} of links"
        cluster.refuse(ends[end], fact, "copy the whole output", end)
    return vertices
