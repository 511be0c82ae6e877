"""How many copies of a mesh the pool has room for, all of them at once and none on another's.

torus    one orientation of the slice, laid side by side from a corner of the pool. Mixed
         orientations might fit more; they are not counted, so the count is never too large.
nodes    stages are groups in one node, or of whole nodes. A pipeline that fits a node stays
         in it; a longer one takes groups wherever there are some, since between nodes
         nothing is slower than what its estimate counts.
links    the widest group of its size, once; a group of one device, on every device.
"""

from math import prod

import numpy as np

from planner.specs.records.devices import ClusterSpec, NodesFabric, TorusFabric
from planner.topology.graph import LINK, TIERS, Graph, device_names
from planner.topology.meshes import IntArray, MeshTable
from planner.topology.slices import orientations


def n_places(cluster: ClusterSpec, meshes: MeshTable) -> IntArray:
    """Copies of each mesh that the pool holds side by side, int[M]; none is 0."""
    fabric = cluster.fabric
    if isinstance(fabric, NodesFabric):
        return _in_nodes(fabric, meshes)
    if isinstance(fabric, TorusFabric):
        counts = [_in_torus(fabric, (int(x), int(y), int(z))) for x, y, z in meshes.axis_size]
        return np.array(counts, dtype=np.int64)
    return np.where(meshes.n_devices == 1, fabric.n_devices, 1).astype(np.int64)


def _in_torus(fabric: TorusFabric, shape: tuple[int, int, int]) -> int:
    """The best of the grids of one orientation; a grid keeps the alignment of slices."""
    ways = orientations(fabric, (min(shape), sorted(shape)[1], max(shape)))
    return max(prod(p // d for p, d in zip(fabric.shape, way, strict=True)) for way in ways)


def _in_nodes(fabric: NodesFabric, meshes: MeshTable) -> IntArray:
    n_nodes, n_stages = meshes.n_across, meshes.n_stages
    groups_of_node = fabric.n_devices_per_node // meshes.n_inside
    of_node = groups_of_node // n_stages  # pipelines that fit one node
    in_one = fabric.n_nodes * of_node
    across = fabric.n_nodes * groups_of_node // n_stages
    of_whole_nodes = fabric.n_nodes // (n_nodes * n_stages)
    inside = np.where(of_node > 0, in_one, across)
    return np.asarray(np.where(n_nodes == 1, inside, of_whole_nodes))


def n_node_places(n_devices: int, n_per_node: int, sizes: IntArray) -> IntArray:
    """Groups of each size that so many devices hold, node after node, int[K].

    A group that fits a node stays in it; a larger one begins with a node of its own. One that
    the devices are enough for has a place whatever the nodes are.
    """
    whole, left = divmod(n_devices, n_per_node)
    inside = whole * (n_per_node // sizes) + left // sizes
    across = whole // -(-sizes // n_per_node)
    places = np.where(sizes <= n_per_node, inside, across)
    return np.asarray(np.maximum(places, sizes <= n_devices), dtype=np.int64)


Domain = tuple[str, ...]


def domains_by_tier(graph: Graph) -> dict[str, tuple[Domain, ...]]:
    """For each tier of the graph, the devices that its links and all inner ones connect.

    Two nodes of eight: {"scale-up": two domains of 8, "scale-out": one of 16}. A link
    without a tier counts as `link`.
    """
    present = {edge.get("tier", LINK) for _, _, edge in graph.edges(data=True)}
    tiers = [tier for tier in TIERS if tier in present]
    return {tier: _domains(graph, set(tiers[: i + 1])) for i, tier in enumerate(tiers)}


def _domains(graph: Graph, tiers: set[str]) -> tuple[Domain, ...]:
    import networkx as nx

    inner: Graph = nx.Graph()
    inner.add_nodes_from(graph)
    inner.add_edges_from(
        (a, b) for a, b, edge in graph.edges(data=True) if edge.get("tier", LINK) in tiers
    )
    domain_of = {
        name: index for index, part in enumerate(nx.connected_components(inner)) for name in part
    }
    members: dict[int, list[str]] = {}
    for name in device_names(graph):
        members.setdefault(domain_of[name], []).append(name)
    return tuple(tuple(names) for names in members.values())
