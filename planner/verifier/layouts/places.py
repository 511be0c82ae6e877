"""Where replicas stand on a fabric, one by one, what all of them cost, and groups by their links.

Of devices whose links are listed one by one a group is as wide as the widest links that connect it.
Links are added from the widest to the narrowest; when a part of what they connect first holds as
many devices as are wanted, no narrower link could widen any group of that size. Of more devices
than are wanted those count that came together first; of two parts that are joined, those of the
larger come first.
"""

from __future__ import annotations

from itertools import chain, permutations, product
from math import prod
from typing import TYPE_CHECKING

from planner.specs.records.devices import Fabric, LinkedFabric, NodesFabric, TorusFabric
from planner.verifier.scalar.shapes import ScalarMesh

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


Place = frozenset[tuple[int, ...]]
"""Devices of one replica, each by its coordinates: of the torus, or node and number in it."""


def places(fabric: Fabric, mesh: ScalarMesh) -> list[Place]:
    """A place for every replica that the pool has room for; no two share a device.

    Each is built device by device, so that what is counted is what could be switched on.
    """
    if isinstance(fabric, TorusFabric):
        return _slices(fabric, mesh)
    if isinstance(fabric, NodesFabric):
        return _shares_of_nodes(fabric, mesh)
    return _linked(fabric, mesh)


def _slices(fabric: TorusFabric, mesh: ScalarMesh) -> list[Place]:
    """Boxes side by side from the corner on, laid in whichever way there are most of them."""
    best: list[Place] = []
    for box in sorted(set(permutations(mesh.axes))):
        corners = product(*(range(0, n - d + 1, d) for n, d in zip(fabric.shape, box, strict=True)))
        slices: list[Place] = [
            frozenset(
                (x + i, y + j, z + k) for i, j, k in product(*(range(length) for length in box))
            )
            for x, y, z in corners
        ]
        best = max(best, slices, key=len)
    return best


def _shares_of_nodes(fabric: NodesFabric, mesh: ScalarMesh) -> list[Place]:
    """Stages are groups of devices: of one node, or of several whole ones.

    Where a pipeline fits a node it takes its stages from one, since its stages talk inside.
    """
    n_inside = prod(n for n, tier in zip(mesh.axes, mesh.tiers, strict=True) if tier == 0)
    n_together = mesh.n_devices // n_inside
    groups: list[list[Place]] = []  # by the node, or the nodes, that they come from
    for first in range(0, fabric.n_nodes - n_together + 1, n_together):
        nodes = range(first, first + n_together)  # several only where a group fills each
        starts = range(0, fabric.n_devices_per_node - n_inside + 1, n_inside)
        groups.append([frozenset(product(nodes, range(at, at + n_inside))) for at in starts])
    n_stages = mesh.n_stages
    stays = n_together == 1 and n_stages * n_inside <= fabric.n_devices_per_node
    pools = groups if stays else [list(chain.from_iterable(groups))]
    return [
        frozenset().union(*pool[at : at + n_stages])
        for pool in pools
        for at in range(0, len(pool) - n_stages + 1, n_stages)
    ]


def _linked(fabric: LinkedFabric, mesh: ScalarMesh) -> list[Place]:
    """A single device anywhere; of more, only the one widest group was looked for."""
    n_devices = mesh.n_devices * mesh.n_stages
    if n_devices > 1:
        return [frozenset((i,) for i in range(n_devices))]
    return [frozenset({(i,)}) for i in range(len(fabric.devices))]


def fleet_usd_per_token(
    *,
    n_replicas: int,
    n_devices_each: int,
    usd_per_device_hour: float,
    request_s: float,
    n_output_tokens: int,
    demand_tokens_per_s: float | None,
) -> float:
    """Rent over the tokens that are paid for: what can be served, but never more than is asked.

    Args:
        request_s: device time of one request on its replica [s].
        demand_tokens_per_s: what is asked for; `None` is no end of it.
    """
    served = n_replicas * (n_output_tokens / request_s)
    if demand_tokens_per_s is not None and demand_tokens_per_s < served:
        served = demand_tokens_per_s
    rent_per_s = usd_per_device_hour * n_devices_each * n_replicas / 3600.0
    return rent_per_s / served
