"""Hops, latencies and axes of a torus, read off any graph of devices and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import networkx as nx

from planner.topology.graph import device_names
from planner.topology.packing import domains_by_tier
from planner.topology.widest import group_bytes_per_s


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
    return int(nx.shortest_path_length(graph, a, b))


def latency_s(graph: nx.Graph[Any], a: str, b: str) -> float:
    """Least latency from one device to another [s]; raises as `hops`."""
    return float(nx.shortest_path_length(graph, a, b, weight="latency_s"))


def path_bytes_per_s(graph: nx.Graph[Any], a: str, b: str) -> float:
    """Bandwidth of the widest path between two devices, one way [bytes/s]."""
    return group_bytes_per_s(graph, (a, b))


def group_diameter(graph: nx.Graph[Any], devices: Sequence[str]) -> int:
    """Links between the two devices of a set that are farthest apart.

    Raises:
        KeyError: a device is unknown, or no path leads to it.
    """
    longest = 0
    for name in devices:
        n_links = nx.single_source_shortest_path_length(graph, name)
        longest = max(longest, *(n_links[other] for other in devices))
    return longest


def read_axis(graph: nx.Graph[Any], axis: int) -> AxisReading:
    """One axis of a torus, read off its edges."""
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


def scale_up_domains(graph: nx.Graph[Any]) -> tuple[tuple[str, ...], ...]:
    """Devices that the links of the innermost tier connect: NVLink nodes, or a whole torus.

    Domains and the devices in them are in the order of the graph. A device that no such
    link touches is a domain of its own.
    """
    return next(
        iter(domains_by_tier(graph).values()), tuple((name,) for name in device_names(graph))
    )
