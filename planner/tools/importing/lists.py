"""Lists of hosts below switches or in blocks: Slurm's topology.conf, and models of Topograph."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from planner.tools.importing.records import ClusterText, Server

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
