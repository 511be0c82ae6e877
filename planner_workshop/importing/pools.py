"""Servers of a text as nodes of a topology: which device, how many, below which leaf.

A product of a text is a device that is known, or a file of the user's of its name; its usual
servers tell what the text does not, and a list of prices its rent.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain, starmap
from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.specs.files.finding import find, find_named
from planner.specs.files.ledger import Use
from planner.specs.files.places import Kind
from planner.specs.files.reading import load_device, read_named
from planner.specs.files.tables import Table, value_at
from planner.specs.files.texts import UnreadError, csv_of, read_text
from planner.specs.records.devices import DeviceSpec
from planner.specs.traffic.kinds import usual_servers
from planner.specs.validation.problems import Problems
from planner_workshop.importing.records import ClusterText, Server, names, natural, words

_PRICE = re.compile(r"\$?(?=.*[1-9].* / )(\d*\.?\d+)(?: ?(?:USD|\$)?/h)? / ([1-9]\d*(?:\.0+)?)")
_MAKERS = re.compile(r"^((NVIDIA|AMD|INSTINCT|INTEL)-)+")


def spelt(product: str) -> str:
    """A product without its maker, in capitals.

    >>> spelt("NVIDIA H100 80GB HBM3")
    'H100-80GB-HBM3'
    """
    return _MAKERS.sub("", re.sub(r"[^A-Z0-9]+", "-", product.upper()).strip("-"))


def own_name(product: str) -> str:
    """What a file of the user's of a product is called: `nvidia-h100-nvl`."""
    return re.sub(r"[^a-z0-9.]+", "-", product.lower()).strip("-")


def device_of(product: str) -> str:
    """The device of a product: of a file of its name, or one that is known; empty of others."""
    own = own_name(product)
    if own and find_named(Kind.DEVICE, own, asked_by="") is not None:
        return own
    for row in names()["device"]:
        if is_any(spelt(product), row["products"]):
            return str(row["device"])
    return ""


def known(device: str, key: str) -> Any:  # noqa: ANN401 as the row has it
    """What names.toml says of a device; None where it says nothing."""
    return next((row.get(key) for row in names()["device"] if row["device"] == device), None)


def usual(device: str, fabric: str) -> tuple[str, Table]:
    """The topology of a device's usual servers, or of its torus, by name; empty where none is.

    Args:
        fabric: `nodes` or `torus`.
    """
    name = usual_servers(device, fabric=fabric)
    if name is None:
        return "", {}
    table, _ = read_named(find(Kind.CLUSTER, name, asked_by=""), "cluster", Kind.CLUSTER)
    return name, table


def usual_size(device: str) -> int:
    """Devices of a usual node."""
    return int(value_at(usual(device, "nodes")[1], "nodes", "n_devices_per_node", default=1))


def price_of(path: str, device: str) -> Table:
    """The least rent of a device in a CSV, as the value of a topology.

    Columns are those of SkyPilot's catalogues, AcceleratorName, AcceleratorCount, Price of the
    machine [USD/h]; or device, count and price.

    Raises:
        SpecError: the list cannot be read, has cells that are no prices, or not the device.
    """
    try:
        text = ClusterText(shown=path, text=read_text(Path(path), use=Use(kind="prices")))
        heads, *rows = csv_of(text.text)
    except UnreadError as error:
        raise SpecError([error.problem(path)]) from None
    called = list(dict.fromkeys((device.upper(), *(known(device, "catalogue") or ()))))
    rents = list(_rents(text, heads, rows, called))
    if not rents and not text.problems:
        text.refuse(0, f"has no price of `{device}`", f"it is {' or '.join(called)} there")
    SpecError.raise_if_any(text.problems)
    usd, number, where = min(rents)
    note = f"the least of the list, {where}".removesuffix(", ")
    value = f"{usd:.6g} USD/h"
    return {"value": value, "date": "undated", "source": text.at(number), "note": note}


def _rents(
    text: ClusterText, heads: Sequence[str], rows: Sequence[Sequence[str]], called: Sequence[str]
) -> Iterator[tuple[float, int, str]]:
    """Rents of one device [USD/h], their lines, and of which machine where."""
    heads = [head.strip().lower().removeprefix("accelerator") for head in heads]
    for number, row in enumerate(rows, 2):
        cells = {
            "count": "1",
            **{head: cell for head, cell in zip(heads, row, strict=False) if cell},
        }
        name = spelt(cells.get("name", cells.get("device", "")))
        if "price" in cells and is_any(name, called):
            cell = f"{cells['price']} / {cells['count']}"
            rent = _PRICE.fullmatch(cell)
            where = ", ".join(cells[head] for head in ("instancetype", "region") if head in cells)
            if rent is None:
                remedy = "write `22.4` or `$22.4/h`, and `8`"
                text.refuse(number, "is no price of so many devices", remedy, cell)
            else:
                yield float(rent[1]) / float(rent[2]), number, where


def is_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


MOST_OFF = 0.08
"""Memory that a tool has in GiB and a device's file in GB differ by less [1]."""

_UNNAMED = "\0"
"""Opens the name of servers whose domain the text does not name: those below one leaf."""

Node = tuple[Server, ...]
"""A node of a topology: a server, or all that one NVLink fabric joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """Like nodes.

    Args:
        device: a name or a path; `spec` is the name of the device itself.
        leaves: nodes below each leaf, the largest first; one for a slice of a torus.
        is_counted: the text says how many devices a node has.
    """

    device: str
    spec: str
    leaves: Sequence[Sequence[Node]]
    is_counted: bool

    @property
    def nodes(self) -> list[Node]:
        return [node for leaf in self.leaves for node in leaf]

    @property
    def first(self) -> Server:
        return self.leaves[0][0][0]

    @property
    def n_devices(self) -> int:
        """Devices of a node."""
        return n_devices(self.leaves[0][0])

    @property
    def label(self) -> str:
        """What its file is called."""
        return self.first.domain if self.first.shape else Path(self.device).stem


def n_devices(node: Node) -> int:
    return sum(it.n_devices or 0 for it in node)


def kinds_of(cluster: ClusterText, device: str | None) -> list[NodeKind]:
    """The nodes of a cluster by device and size; slices of tori one by one.

    Args:
        device: of servers whose product the text does not say, or nobody here knows.

    Raises:
        SpecError: products that nobody knows, memory or links of another device, no usual servers
            that would tell rates; all are listed.
    """
    by_device: dict[str, list[Server]] = defaultdict(list)
    for server in cluster.servers:
        name = device_of(server.product) or device or ""
        by_device[name or f"? {server.product}"].append(server)
    if device is not None and all(device_of(it.product) for it in cluster.servers):
        cluster.refuse(0, words("has_no_effect"), "leave it out")
    for name, servers in by_device.items():
        (_refuse if name.startswith("?") else _check)(cluster, name, servers)
    SpecError.raise_if_any(cluster.problems)
    return list(chain.from_iterable(starmap(_kinds, by_device.items())))


def _refuse(cluster: ClusterText, device: str, servers: Sequence[Server]) -> None:
    """Servers of devices that nobody names, or knows."""
    product, line = servers[0].product, servers[0].line
    if product:
        remedy = words("describe_or_name", own_name(product))
        cluster.refuse(line, "is no device that is known here", remedy, product)
    else:
        cluster.refuse(0, "does not say of which device it is", words("name"))


def _check(cluster: ClusterText, device: str, servers: Sequence[Server]) -> None:
    """What keeps servers from being of a device."""
    spec = Problems(problems=cluster.problems).collect(lambda: load_device(device))
    if spec is not None:
        _check_links(cluster, spec.name)
        _check_device(cluster, spec, servers)


def _check_device(cluster: ClusterText, spec: DeviceSpec, servers: Sequence[Server]) -> None:
    """That something tells how fast its links are, and that it has the memory that a tool saw."""
    first = servers[0]
    if not usual(spec.name, "torus" if first.shape else "nodes")[0]:
        fact = "is in no topology, which would tell its links"
        cluster.refuse(first.line, fact, words("describe_servers"), spec.name)
    for memory in dict.fromkeys(it.memory_bytes for it in servers):
        if memory and abs(memory / spec.hbm_bytes - 1) > MOST_OFF:
            fact = f"has {memory:.3g} B of memory, and `{spec.name}` {spec.hbm_bytes:.3g} B"
            remedy = words("describe", own_name(first.product))
            cluster.refuse(first.line, fact, remedy, first.product)


def _check_links(cluster: ClusterText, device: str) -> None:
    """That devices have as many NVLinks as a matrix shows, and some where they have any."""
    n_links, n_shown = known(device, "n_links"), [max(row) for row in cluster.n_links]
    if n_links and len(n_shown) > 1 and not 0 < min(n_shown) <= max(n_shown) <= n_links:
        n_own = max(n_shown) if min(n_shown) else "no"
        fact = f"shows {n_own} NVLinks of a device, and `{device}` has {n_links}"
        cluster.refuse(cluster.links_line, fact, words("name_another"))


def _kinds(device: str, servers: Sequence[Server]) -> Iterator[NodeKind]:
    spec = load_device(device).name
    by_size: dict[tuple[int, str], list[Node]] = defaultdict(list)
    for node in _nodes(spec, sorted(servers, key=lambda it: natural(it.name))):
        by_size[n_devices(node), node[0].domain if node[0].shape else ""].append(node)
    is_told = all(it.n_devices is not None for it in servers)
    for members in by_size.values():
        by_leaf: dict[str, list[Node]] = defaultdict(list)
        for node in members:
            by_leaf[node[0].leaf].append(node)
        leaves = sorted(by_leaf.items(), key=lambda item: (-len(item[1]), natural(item[0])))
        is_counted = is_told and all(len(node) == 1 or node[0].domain for node in members)
        yield NodeKind(
            device=device, spec=spec, leaves=[it for _, it in leaves], is_counted=is_counted
        )


def _nodes(device: str, servers: Sequence[Server]) -> Iterator[Node]:
    """Servers by themselves, or joined: by the domain that the text names, or to usual nodes."""
    size, each = usual_size(device), known(device, "n_devices_per_server")
    counted = [replace(it, n_devices=it.n_devices or each or size) for it in servers]
    if each is None and not servers[0].shape:  # blocks of such servers are leaves, if none is named
        yield from ((replace(it, leaf=it.leaf or it.domain),) for it in counted)
        return
    yield from _joined(counted, size)


def _joined(servers: Sequence[Server], size: int) -> Iterator[Node]:
    """Servers of one domain, and those below one leaf as many as a usual node has devices."""
    joined: dict[str, list[Server]] = defaultdict(list)
    for it in servers:
        joined[it.domain or f"{_UNNAMED}{it.leaf}"].append(it)
    for domain, members in joined.items():
        usually = size // (members[0].n_devices or size)
        step = max(1, usually) if domain.startswith(_UNNAMED) else len(members)
        yield from (tuple(members[i : i + step]) for i in range(0, len(members), step))
