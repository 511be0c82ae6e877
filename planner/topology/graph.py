"""The cluster as a networkx graph: devices, switches, and the links between them.

    vertex   kind         "device" or "switch"
             coordinate   (x, y, z), devices of a torus
             node         index of the node, devices of a nodes fabric
    edge     bytes_per_s  bandwidth of one direction, as on the datasheet [bytes/s]
             latency_s    of crossing the link [s]
             tier         "ici", "scale-up", "link", "scale-out" or "spine"
             axis         0, 1 or 2, links of a torus

Devices are named `0,3,7` on a torus, `node3/gpu5` on nodes, and as the file lists them
otherwise. Attainable fractions are no part of the graph.

Graphs that people bring need `kind`, `bytes_per_s` and `latency_s`; `validate_graph`
says what is wrong with one.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from planner.specs.records.devices import (
    ClusterSpec,
    DeviceSpec,
    LinkedFabric,
    NodesFabric,
    TorusFabric,
)
from planner.specs.records.graphs import GraphEdge, GraphSpec, GraphVertex
from planner.topology.slices import slice_wraps, torus_device

if TYPE_CHECKING:
    import networkx as nx

    Graph = nx.Graph[Any]
else:
    Graph = Any  # networkx is imported by what makes a graph, when it does

DEVICE, SWITCH = "device", "switch"
KINDS = (DEVICE, SWITCH)

SCALE_UP, ICI, LINK, SCALE_OUT, SPINE = "scale-up", "ici", "link", "scale-out", "spine"
TIERS = (SCALE_UP, ICI, LINK, SCALE_OUT, SPINE)
"""Tiers of links, the innermost first."""

SCALE_OUT_SWITCH = "scale-out"


def build_graph(cluster: ClusterSpec) -> Graph:
    """The graph of a cluster; a pod of a torus is a torus itself.

    A torus has edges around the back only along the axes that close
    (`planner.topology.slices.axis_wraps`). A switched fabric is a star: latency is
    given from device to device, so each of the two links has half of it.
    """
    import networkx as nx

    fabric = cluster.fabric
    graph: Graph = nx.Graph(name=cluster.name)
    if isinstance(fabric, TorusFabric):
        _add_torus(graph, fabric)
    elif isinstance(fabric, NodesFabric):
        _add_nodes(graph, fabric)
    else:
        _add_links(graph, fabric)
    return graph


def spec_of(graph: Graph, devices: Mapping[str, DeviceSpec]) -> GraphSpec:
    """A graph that somebody brought as a record, with the records of its devices."""
    vertices, edges = dict(graph.nodes(data=True)), graph.edges(data=True)
    used = {at.get("device") for at in vertices.values()}
    return GraphSpec(
        name=str(graph.graph.get("name", "") or "graph"),
        vertices=tuple(
            GraphVertex(name=str(name), kind=at["kind"], **_said(at, _VERTEX_ATTRIBUTES))
            for name, at in vertices.items()
        ),
        edges=tuple(
            GraphEdge(
                a=str(a),
                b=str(b),
                bytes_per_s=float(at["bytes_per_s"]),
                latency_s=float(at["latency_s"]),
                **_said(at, _EDGE_ATTRIBUTES),
            )
            for a, b, at in edges
        ),
        devices={name: device for name, device in devices.items() if name in used},
    )


def graph_of(spec: GraphSpec) -> Graph:
    """The graph of such a record."""
    import networkx as nx

    graph: Graph = nx.Graph(name=spec.name)
    for vertex in spec.vertices:
        graph.add_node(vertex.name, **_known_fields(vertex, "kind", *_VERTEX_ATTRIBUTES))
    for edge in spec.edges:
        known = _known_fields(edge, "bytes_per_s", "latency_s", *_EDGE_ATTRIBUTES)
        graph.add_edge(edge.a, edge.b, **known)
    return graph


def _known_fields(record: GraphVertex | GraphEdge, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}


_VERTEX_ATTRIBUTES: Mapping[str, type] = {
    "device": str,
    "kind_of": str,
    "leaf": str,
    "hbm_bytes": float,
    "speed_fraction": float,
    "state": str,
}
_EDGE_ATTRIBUTES: Mapping[str, type] = {"tier": str, "n_sharing": int}
"""What else is read of a graph, and as what."""


def _said(at: Mapping[str, Any], attributes: Mapping[str, type]) -> dict[str, Any]:
    return {key: read(at[key]) for key, read in attributes.items() if at.get(key) is not None}


def device_names(graph: Graph) -> tuple[str, ...]:
    """The devices of a graph, in the order in which they were added."""
    return tuple(
        name for name, attributes in graph.nodes(data=True) if attributes.get("kind") == DEVICE
    )


def links_of(graph: Graph, name: str, tier: str) -> list[tuple[str, dict[str, Any]]]:
    """What links of one tier join to a vertex, each with the attributes of its link."""
    return [(other, edge) for other, edge in graph[name].items() if edge.get("tier") == tier]


def parent_of(names: Sequence[str]) -> str:
    """What names begin with, up to a `/`; the first of them where that differs."""
    parents = {str(name).rpartition("/")[0] for name in names}
    return (parents.pop() if len(parents) == 1 else "") or str(names[0])


def leaf_name(graph: Graph, devices: Sequence[str]) -> str:
    """That of the first switch that devices of a leaf lead to, or the first device without any."""
    for name in devices:
        for switch, _ in links_of(graph, name, SCALE_OUT):
            return str(graph.nodes[switch].get("leaf", switch))
    return str(devices[0])


def _add_torus(graph: Graph, fabric: TorusFabric) -> None:
    """Each device, linked to the next along every axis; the last to the first where it closes."""
    closed = slice_wraps(fabric, fabric.shape)
    coordinates = list(product(*map(range, fabric.shape)))
    for coordinate in coordinates:
        graph.add_node(torus_device(*coordinate), kind=DEVICE, coordinate=coordinate)
    for coordinate in coordinates:
        for axis, n_along in enumerate(fabric.shape):
            last = coordinate[axis] == n_along - 1
            if last and not closed[axis]:
                continue
            neighbour = list(coordinate)
            neighbour[axis] = 0 if last else coordinate[axis] + 1
            link = _link(fabric.link_bytes_per_s, fabric.hop_s, ICI)
            graph.add_edge(torus_device(*coordinate), torus_device(*neighbour), **link, axis=axis)


def _add_nodes(graph: Graph, fabric: NodesFabric) -> None:
    graph.add_node(SCALE_OUT_SWITCH, kind=SWITCH)
    inside, between = node_links(fabric)
    for node in range(fabric.n_nodes):
        graph.add_node(node_switch(node), kind=SWITCH, node=node)
        for index in range(fabric.n_devices_per_node):
            device = node_device(node, index)
            graph.add_node(device, kind=DEVICE, node=node)
            graph.add_edge(device, node_switch(node), **inside)
            graph.add_edge(device, SCALE_OUT_SWITCH, **between)


def node_links(fabric: NodesFabric) -> tuple[dict[str, Any], dict[str, Any]]:
    """The links of a device to the switch of its node, and to one that joins nodes."""
    inside = _link(fabric.scale_up_bytes_per_s, fabric.scale_up_latency_s / 2, SCALE_UP)
    return inside, _link(fabric.scale_out_bytes_per_s, fabric.scale_out_latency_s / 2, SCALE_OUT)


def node_device(node: int, index: int) -> str:
    """The name of one device of one node: `node3/gpu5`."""
    return f"node{node}/gpu{index}"


def node_switch(node: int) -> str:
    """The name of the scale-up switch of one node: `node3/switch`."""
    return f"node{node}/switch"


def _add_links(graph: Graph, fabric: LinkedFabric) -> None:
    """The devices, then as switches whatever else the links name."""
    graph.add_nodes_from(fabric.devices, kind=DEVICE)
    ends = dict.fromkeys(end for link in fabric.links for end in (link.a, link.b))
    graph.add_nodes_from([name for name in ends if name not in graph], kind=SWITCH)
    # Of several links between one pair the widest is added last, and stays.
    for link in sorted(fabric.links, key=lambda link: link.bytes_per_s):
        graph.add_edge(link.a, link.b, **_link(link.bytes_per_s, link.latency_s, LINK))


def _link(bytes_per_s: float, latency_s: float, tier: str) -> dict[str, Any]:
    return {"bytes_per_s": bytes_per_s, "latency_s": latency_s, "tier": tier}
