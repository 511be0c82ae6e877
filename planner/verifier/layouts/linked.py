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
    ends = dict.fromkeys((*fabric.devices, *(end for li in links for end in (li.a, li.b))))
    part_of = {name: [name] for name in ends}
    tree: nx.Graph[str] = nx.Graph()
    is_device = set(fabric.devices)
    for link in links:
        one, other = part_of[link.a], part_of[link.b]
        if one is other:
            continue
        if len(other) > len(one):
            one, other = other, one
        one += other
        part_of.update(dict.fromkeys(other, one))
        tree.add_edge(link.a, link.b, latency_s=link.latency_s)
        together = [name for name in one if name in is_device]
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
