"""Bandwidths, read off any graph of devices and links.

Bandwidth here is that of the widest path, alone on the fabric: traffic of others that
shares a link is not subtracted. Values are as the edges have them, without attainable
fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx as nx


def group_bytes_per_s(graph: nx.Graph[Any], devices: Sequence[str]) -> float:
    """Bandwidth of any set of devices: the largest b for which links of b or more connect it.

    One device has inf, devices without a path 0 [bytes/s]; see `bottleneck`.

    Raises:
        KeyError: no such device.
    """
    return bottleneck(graph, devices)[0]


def bottleneck(
    graph: nx.Graph[Any], devices: Sequence[str]
) -> tuple[float, tuple[str, str] | None]:
    """Bandwidth of a set of devices [bytes/s], and the link that it is of; None without any.

    Links may lead through switches and devices outside the set. It is the bottleneck of
    the maximum spanning tree, grown from one device (Prim) until it holds all of them:
    a link is taken only when no wider one leads on.

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
            if neighbour not in reached:
                entry = (-edge["bytes_per_s"], next(order), neighbour, (name, neighbour))
                heappush(frontier, entry)
    return (0.0, None) if missing else (narrowest, where)
