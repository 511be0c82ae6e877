"""Hops, latencies and bandwidths, read off any graph of devices and links.

Bandwidth here is that of the widest path, alone on the fabric: traffic of others that
shares a link is not subtracted. Values are as the edges have them, without attainable
fractions.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from planner.topology.graph import device_names

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisReading:
    """One axis of a torus as its edges say it is.

    Args:
        n_devices: along the axis.
        closes: whether every line of devices is a ring.
        link_bytes_per_s: narrowest link, one direction [bytes/s]; inf without links.
        hop_s: slowest link [s]; 0 without links.
    """

    n_devices: int
    closes: bool
    link_bytes_per_s: float
    hop_s: float

    @property
    def ring_bytes_per_s(self) -> float:
        """What a device sends along the axis: both ways around a ring, one way on a line."""
        return self.link_bytes_per_s * (2 if self.closes else 1)


def hops(graph: nx.Graph[Any], a: str, b: str) -> int:
    """Fewest links to cross from one device to another; two if one switch joins them.

    Raises:
        networkx.NetworkXNoPath: the graph is not connected.
        networkx.NodeNotFound: no such device.
    """
    import networkx as nx

    return int(nx.shortest_path_length(graph, a, b))


def latency_s(graph: nx.Graph[Any], a: str, b: str) -> float:
    """Least latency from one device to another [s]; raises as `hops`."""
    import networkx as nx

    return float(nx.shortest_path_length(graph, a, b, weight="latency_s"))


def path_bytes_per_s(graph: nx.Graph[Any], a: str, b: str) -> float:
    """Bandwidth of the widest path between two devices, one way [bytes/s]."""
    return group_bytes_per_s(graph, (a, b))


def group_bytes_per_s(graph: nx.Graph[Any], devices: Sequence[str]) -> float:
    """Bandwidth of any set of devices: the largest b for which links of b or more connect it.

    One device has inf, devices without a path 0 [bytes/s]; see `bottleneck`.

    Raises:
        KeyError: no such device.
    """
    return bottleneck(graph, devices)[0]


def bottleneck(
    graph: nx.Graph[Any], devices: Sequence[str], *, within: Container[str] | None = None
) -> tuple[float, tuple[str, str] | None]:
    """Bandwidth of a set of devices [bytes/s], and the link that it is of; None without any.

    Links may lead through switches and devices outside the set. It is the bottleneck of
    the maximum spanning tree, grown from one device (Prim) until it holds all of them:
    a link is taken only when no wider one leads on.

    Args:
        within: what links may lead through; the whole graph where it is left out.

    Raises:
        KeyError: no such device.
    """
    unknown = sorted({name for name in devices if name not in graph})
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
            if neighbour not in reached and (within is None or neighbour in within):
                entry = (-edge["bytes_per_s"], next(order), neighbour, (name, neighbour))
                heappush(frontier, entry)
    return (0.0, None) if missing else (narrowest, where)


def group_diameter(graph: nx.Graph[Any], devices: Sequence[str]) -> int:
    """Links between the two devices of a set that are farthest apart.

    Raises:
        KeyError: a device is unknown, or no path leads to it.
    """
    import networkx as nx

    longest = 0
    for name in devices:
        n_links = nx.single_source_shortest_path_length(graph, name)
        longest = max(longest, *(n_links[other] for other in devices))
    return longest


def read_axis(graph: nx.Graph[Any], axis: int) -> AxisReading:
    """One axis of a torus, read off its edges."""
    import networkx as nx

    edges = [(a, b, edge) for a, b, edge in graph.edges(data=True) if edge.get("axis") == axis]
    if not edges:
        return AxisReading(n_devices=1, closes=False, link_bytes_per_s=inf, hop_s=0.0)
    lines: nx.Graph[Any] = nx.Graph((a, b) for a, b, _ in edges)
    return AxisReading(
        n_devices=len(nx.node_connected_component(lines, edges[0][0])),
        closes=all(lines.degree(name) == 2 for name in device_names(graph)),
        link_bytes_per_s=min(edge["bytes_per_s"] for _, _, edge in edges),
        hop_s=max(edge["latency_s"] for _, _, edge in edges),
    )
