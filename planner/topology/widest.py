"""The widest groups of a fabric whose links are listed one by one; widths of paths in any graph.

A group of devices is as wide as the largest b for which links of b or more connect it,
through switches and other devices if need be. Adding links from the widest to the
narrowest, and joining what they connect, meets the widest group of n devices when a
component first holds n: no link that is left could widen it. This is Kruskal's
construction of the maximum spanning tree.

Widths are of paths, not of flows: links that several pairs share are not divided.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf

from planner.specs.records.devices import Link, LinkedFabric
from planner.topology.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class WidestGroup:
    """Devices connected by wide links.

    Args:
        devices: names; when a component holds more than are wanted, those that joined first.
        bytes_per_s: bottleneck of the group, one way [bytes/s]; inf for one device.
        latency_s: between the two devices farthest apart along the spanning tree [s].
    """

    devices: tuple[str, ...]
    bytes_per_s: float
    latency_s: float


@dataclass(slots=True, kw_only=True)
class _Component:
    """Vertices that the links so far connect, and the tree that does it."""

    devices: list[str]
    members: list[str]
    tree: dict[str, list[tuple[str, float]]] = field(default_factory=dict)


def widest_groups(fabric: LinkedFabric) -> tuple[WidestGroup, ...]:
    """The widest group of 1, 2, 4, 8, … devices, as far as the links connect so many.

    One device alone is as wide as its widest link (inf without any), so that every
    width of the result is that of links that exist.
    """
    links = sorted(fabric.links, key=lambda link: (-link.bytes_per_s, link.a, link.b))
    widest = max((link.bytes_per_s for link in links), default=float("inf"))
    groups = [WidestGroup(devices=fabric.devices[:1], bytes_per_s=widest, latency_s=0.0)]
    n_wanted = 2
    components = _singletons(fabric)
    for link in links:
        joined = _join(components, link)
        while joined is not None and len(joined.devices) >= n_wanted:
            groups.append(_group(joined, n_wanted, link.bytes_per_s))
            n_wanted *= 2
    return tuple(groups)


def _singletons(fabric: LinkedFabric) -> dict[str, _Component]:
    is_device = set(fabric.devices)
    ends = (end for link in fabric.links for end in (link.a, link.b))
    return {
        name: _Component(devices=[name] if name in is_device else [], members=[name])
        for name in dict.fromkeys((*fabric.devices, *ends))
    }


def _join(components: dict[str, _Component], link: Link) -> _Component | None:
    """Join the two ends of a link; None if they are joined already."""
    kept, other = components[link.a], components[link.b]
    if kept is other:
        return None
    # The larger is kept: each vertex then moves at most log n times, and the devices
    # that were joined by the widest links come first.
    if len(other.members) > len(kept.members):
        kept, other = other, kept
    kept.devices += other.devices
    kept.members += other.members
    kept.tree |= other.tree
    kept.tree.setdefault(link.a, []).append((link.b, link.latency_s))
    kept.tree.setdefault(link.b, []).append((link.a, link.latency_s))
    for name in other.members:
        components[name] = kept
    return kept


def _group(component: _Component, n_devices: int, bytes_per_s: float) -> WidestGroup:
    devices = component.devices[:n_devices]
    # In a tree the vertex farthest from any one is an end of the longest path.
    one_end, _ = _farthest(component, devices[0], devices)
    _, latency_s = _farthest(component, one_end, devices)
    return WidestGroup(devices=tuple(devices), bytes_per_s=bytes_per_s, latency_s=latency_s)


def _farthest(component: _Component, start: str, among: Iterable[str]) -> tuple[str, float]:
    distance_s = {start: 0.0}
    queue = [start]
    for vertex in queue:
        for neighbour, latency_s in component.tree.get(vertex, ()):
            if neighbour not in distance_s:
                distance_s[neighbour] = distance_s[vertex] + latency_s
                queue.append(neighbour)
    return max(((name, distance_s[name]) for name in among), key=lambda item: item[1])


def group_bytes_per_s(graph: Graph, devices: Sequence[str]) -> float:
    """Bandwidth of any set of devices: the largest b for which links of b or more connect it.

    Bandwidth here is that of the widest path, alone on the fabric: traffic of others that shares a
    link is not subtracted. Values are as the edges have them, without attainable fractions.

    One device has inf, devices without a path 0 [bytes/s]; see `bottleneck`.

    Raises:
        KeyError: no such device.
    """
    return bottleneck(graph, devices)[0]


def bottleneck(graph: Graph, devices: Sequence[str]) -> tuple[float, tuple[str, str] | None]:
    """Bandwidth of a set of devices [bytes/s], and the link that it is of; None without any.

    Links may lead through switches and devices outside the set. It is the bottleneck of
    the maximum spanning tree, grown from one device (Prim) until it holds all of them:
    a link is taken only when no wider one leads on.

    Raises:
        KeyError: no such device.
    """
    unknown = sorted({*devices} - graph.nodes)
    if unknown:
        raise KeyError(f"not in the graph: {', '.join(unknown)}")
    missing, reached = set(devices), set[str]()
    order = count()  # so that the heap never compares names
    first: tuple[str, str] | None = None
    frontier = [(-inf, next(order), name, first) for name in devices[:1]]
    narrowest, where = inf, first
    while missing and frontier:
        negated, _, name, link = heappop(frontier)
        if name in reached:
            continue
        if -negated < narrowest:
            narrowest, where = -negated, link
        reached.add(name)
        missing.discard(name)
        for neighbour, edge in graph[name].items():
            if neighbour not in reached:
                entry = (-edge["bytes_per_s"], next(order), neighbour, (name, neighbour))
                heappush(frontier, entry)
    return (0.0, None) if missing else (narrowest, where)
