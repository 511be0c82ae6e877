"""Groups of devices whose links are listed one by one.

A group is as wide as the widest links that connect it. Links are added from the widest to the
narrowest; when a part of what they connect first holds as many devices as are wanted, no
narrower link could widen any group of that size. Of more devices than are wanted those count
that came together first; of two parts that are joined, those of the larger come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.specs.records.devices import LinkedFabric

if TYPE_CHECKING:
    import networkx as nx


def widest_group(fabric: LinkedFabric, n_devices: int) -> tuple[float, float] | None:
    """Bandwidth [bytes/s] and latency [s] of the widest group of a size; None if there is none.

    A device alone is as wide as the widest link; there are groups of powers of two.
    """
    import networkx as nx  # takes a tenth of a second, and few fabrics are listed

    links = sorted(fabric.links, key=lambda link: (-link.bytes_per_s, link.a, link.b))
    if n_devices == 1:
        return (links[0].bytes_per_s if links else float("inf")), 0.0
    if n_devices & (n_devices - 1):
        return None
    part_of: dict[str, list[str]] = {}
    tree: nx.Graph[str] = nx.Graph()
    is_device = set(fabric.devices)
    for link in links:
        parts = [part_of.setdefault(end, [end]) for end in (link.a, link.b)]
        large, small = sorted(parts, key=len, reverse=True)
        if large is small:
            continue
        large += small
        part_of.update(dict.fromkeys(small, large))
        tree.add_edge(link.a, link.b, latency_s=link.latency_s)
        together = [name for name in large if name in is_device]
        if len(together) >= n_devices:
            return link.bytes_per_s, _farthest_s(tree, together[:n_devices])
    return None


def _farthest_s(tree: nx.Graph[str], devices: list[str]) -> float:
    """Latency between the two devices that are farthest apart along the tree [s]."""
    import networkx as nx

    longest = 0.0
    for name in devices:
        waits = nx.single_source_dijkstra_path_length(tree, name, weight="latency_s")
        longest = max(longest, *(waits[other] for other in devices))
    return longest
