"""JSON: `kubectl get nodes`, ResourceSlices of DRA drivers, and NetQ's graph of a network."""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.tools.importing.links import SWITCH, Vertex, read_ports
from planner.tools.importing.records import ClusterText, Server, names, words

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(?:([KMGTP])(i?))?")


def items_of(value: object) -> list[Mapping[str, Any]]:
    """Objects of what `kubectl` prints: of a list, or one alone."""
    items = _at(value, "items")
    return [it for it in _list([value] if items is None else items) if isinstance(it, dict)]


def _at(value: object, *keys: str) -> Any:  # noqa: ANN401 as the text has it
    """What stands below keys, each in the former; None where nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(cluster: ClusterText, line: int, value: object, kind: str) -> dict[str, str]:
    """What an object says by field, as `names.toml` has it; what cannot be is refused."""
    texts = {}
    for field, known in names()[kind].items():
        said = [_at(value, *keys) for keys in known["at"]]
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
        line = lines.get(str(_at(node, "metadata", "name")), 1)
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
    conditions = _list(_at(node, "status", "conditions"))
    ready = [_at(it, "status") for it in conditions if _at(it, "type") == "Ready"]
    is_cordoned = _at(node, "spec", "unschedulable") is True
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
        node = str(_at(item, "spec", "nodeName"))
        is_accelerator = "gpu" in str(_at(item, "spec", "driver"))
        for device in _list(_at(item, "spec", words("spec"))) if is_accelerator else ():
            said = _texts(cluster, lines.get(node, 1), device, "resourceslices")
            if said["kind"] in ("", "gpu"):  # no partition
                devices[node, said["product"]].append(said["memory"])
    for (node, product), memories in devices.items():
        memory = _bytes(memories[0])
        own = Server(name=node, line=lines.get(node, 1), product=product, memory_bytes=memory)
        cluster.servers.append(replace(own, n_devices=len(memories)))


def is_graph(value: object) -> bool:
    """Whether JSON is a graph of NetQ."""
    return bool(_list(value)) and all(_at(it, "links") is not None for it in _list(value))


def read_graph(cluster: ClusterText, value: object) -> None:
    """Hosts and switches, and as many ports of a host as it has links."""
    lines = cluster.lines_of("name")
    vertices: dict[str, Vertex] = {}
    for it in (it for _, own in _members(value, "nodes", "compounded_nodes") for it in own):
        kind, name = str(_at(it, "device_type")), str(_at(it, "name"))
        vertices[str(_at(it, "id"))] = Vertex(kind, name, lines.get(name, 1), [])
    ends: list[tuple[str, str]] = []
    for it, own in _members(value, "links", "compounded_links"):
        a, b = str(_at(it, "src")), str(_at(it, "target"))
        ends += [(a, b), (b, a)] * len(own)
    for end in sorted({a for a, _ in ends} - vertices.keys()):
        cluster.refuse(0, "is the end of a link and no node", "copy the whole answer", end)
    for a, b in () if cluster.problems else ends:
        vertices[a].links.append((b, 1.0))
    read_ports(cluster, vertices, [it for it in vertices.values() if it.kind != SWITCH])


def _members(value: object, key: str, inner: str) -> Iterator[tuple[object, list[object]]]:
    """Nodes or links of all graphs, each with what it is made of: itself where of nothing else."""
    for graph in _list(value):
        yield from ((it, _list(_at(it, inner)) or [it]) for it in _list(_at(graph, key)))
