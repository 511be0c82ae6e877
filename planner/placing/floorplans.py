"""The floor plan of a cluster as it is: leaves, nodes and devices of a fabric, cells of a torus."""

from planner.placing.fabrics.site import graph_in
from planner.results.floorplans import Box, FloorPlan, Spot
from planner.specs.files.pools import MixedPoolSpec, PoolSpec, SiteSpec
from planner.specs.files.state import FREE, State
from planner.specs.records.devices import ClusterSpec, TorusFabric
from planner.specs.records.graphs import GraphSpec
from planner.topology.graph import (
    ICI,
    LINK,
    SCALE_OUT,
    SCALE_UP,
    Graph,
    device_names,
    leaf_name,
    parent_of,
)
from planner.topology.packing import domains_by_tier
from planner.topology.pools import with_state


def floorplan_of(cluster: SiteSpec | Graph, state: State | None) -> FloorPlan:
    """What there is to draw of a cluster.

    Raises:
        SpecError: the state does not fit the cluster.
    """
    if isinstance(cluster, ClusterSpec | PoolSpec | MixedPoolSpec | GraphSpec):
        before = graph_in(cluster, None)
        title = cluster.name if isinstance(cluster, GraphSpec) else cluster.title
    else:
        before, title = cluster, str(cluster.graph.get("name", "") or "graph")
    graph = with_state(before, state)
    if isinstance(cluster, ClusterSpec) and isinstance(cluster.fabric, TorusFabric):
        return FloorPlan(
            title=title,
            pool=cluster.fabric.shape,
            cube=cluster.fabric.wrap_multiple,
            spots=tuple(_spot(graph, name) for name in device_names(graph)),
            lines=_links(before, graph),
        )
    return FloorPlan(title=title, leaves=_leaves(before, graph), lines=_links(before, graph))


def _spot(graph: Graph, name: str) -> Spot:
    at = graph.nodes[name]
    return Spot(
        name=name,
        state=str(at.get("state", FREE)),
        speed_fraction=float(at.get("speed_fraction", 1.0)),
    )


def _leaves(before: Graph, graph: Graph) -> tuple[Box, ...]:
    """Boxes as the links were before some failed: what broke is still drawn in its place."""
    tiers = domains_by_tier(before)
    alone = tuple((name,) for name in device_names(before))
    inner = [tiers[tier] for tier in (SCALE_UP, ICI, LINK) if tier in tiers]
    nodes = inner[-1] if inner else alone
    leaves = tiers.get(SCALE_OUT, (device_names(before),))
    of_leaf = {name: i for i, leaf in enumerate(leaves) for name in leaf}
    boxes: list[list[Box]] = [[] for _ in leaves]
    for node in nodes:
        spots = tuple(_spot(graph, name) for name in node)
        boxes[of_leaf[node[0]]].append(Box(name=parent_of(node), spots=spots))
    return tuple(
        Box(name=leaf_name(before, leaf), boxes=tuple(inside))
        for leaf, inside in zip(leaves, boxes, strict=True)
    )


def _links(before: Graph, after: Graph) -> tuple[str, ...]:
    """Links that are down or have less than they had."""
    told = []
    for a, b, edge in before.edges(data=True):
        left = after.get_edge_data(a, b)
        if left is None:
            told.append(f"{a} – {b} down")
        elif left["bytes_per_s"] < edge["bytes_per_s"]:
            share = left["bytes_per_s"] / edge["bytes_per_s"]
            told.append(f"{a} – {b} at {100 * share:.3g} %")
    return tuple(told)
