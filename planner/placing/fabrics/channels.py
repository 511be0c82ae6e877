"""The channels of a replica on a graph: its groups, and the narrowest link that each uses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.placing.fabrics.locating import LocatedOnNodes
from planner.placing.fabrics.patterns import LEAF, NODE, POOL, STAGE
from planner.results.placements import Channel
from planner.specs.runtimes import ROOFLINE
from planner.specs.state import FAILED
from planner.topology.costs import GroupCosts
from planner.topology.graph import SCALE_OUT, SPINE
from planner.topology.paths import bottleneck

if TYPE_CHECKING:
    import networkx as nx


_Where = tuple[set[str], dict[str, str]]
"""How far a replica's traffic goes in the graph, and the node of each of its devices."""


class Channels:
    """Reads the channels of replicas off a graph.

    Args:
        graph: in its state.
        costs: of groups, in place of the graph's own; None for those.
    """

    def __init__(self, graph: nx.Graph[Any], costs: GroupCosts | None) -> None:
        self._graph, self._costs = graph, costs
        self._shares = _fair_shares(graph)
        failed = [n for n, at in graph.nodes(data=True) if at.get("state") == FAILED]
        self._shares.remove_nodes_from(failed)  # they forward nothing

    def of(self, one: LocatedOnNodes) -> tuple[Channel, ...]:
        """The channels of a replica, by axis."""
        need = one.configuration.pattern.need
        near, nic, spine = (
            need.scale_up_bytes_per_s,
            need.nic_bytes_per_s,
            need.spine_bytes_per_s,
        )
        far = {NODE: (near, near), LEAF: (nic, nic), STAGE: (nic, spine), POOL: (spine, spine)}
        wide, handed = far[one.configuration.pattern.span]
        part = self._part(one)
        home = {name: part.node.name for part in one.parts for name in part.devices}
        channels = []
        for axis, groups in _groups(one):
            is_near = not any(one.parts_of(group) > 1 for group in groups)
            counted = near if is_near else handed if axis == "stages" else wide
            channels.append(self._channel((part, home), axis, groups, counted))
        return tuple(channels)

    def _channel(
        self, where: _Where, axis: str, groups: list[tuple[str, ...]], counted: float
    ) -> Channel:
        read = [(*self._width(where, group, axis), group) for group in groups]
        width, link, group = min(read, key=lambda one: one[0])
        return Channel(
            axis=axis,
            n_groups=len(groups),
            n_devices=len(group),
            devices=group,
            link=link or (group[0], group[-1]),
            bytes_per_s=width,
            counted_bytes_per_s=counted,
        )

    def _width(
        self, where: _Where, group: tuple[str, ...], axis: str
    ) -> tuple[float, tuple[str, str] | None]:
        """Bandwidth of a group: of its paths, and of each member's own links."""
        part, home = where
        if self._costs is not None:
            return self._costs(group)[0], None
        width, link = bottleneck(self._shares, group, within=part)
        if width == 0.0:  # where switches are nested deeper, paths lead further out
            width, link = bottleneck(self._shares, group)
        # no way around a member's own adapter: others' may be somebody else's
        if axis != "inside" and len({home[name] for name in group}) > 1:
            for name in group:
                own, its_link = self._own(name)
                if own < width:
                    width, link = own, its_link
        return width, link

    def _own(self, name: str) -> tuple[float, tuple[str, str] | None]:
        adapters = [
            (float(edge["bytes_per_s"]), (name, str(other)))
            for other, edge in self._graph[name].items()
            if edge.get("tier") == SCALE_OUT
        ]
        if not adapters:
            return float("inf"), None
        return sum(width for width, _ in adapters), adapters[0][1]

    def _part(self, one: LocatedOnNodes) -> set[str]:
        """How far a replica's traffic can go in the graph: its nodes, and all switches above."""
        nodes = {name for part in one.parts for name in part.devices}
        beside = {other for name in nodes for other in self._shares[name]}
        above = {other for name in beside for other in self._shares[name]}
        top = (
            {other for name in above for other in self._shares[name]}
            if one.configuration.pattern.span == POOL
            else ()
        )
        return {*nodes, *beside, *above, *top}


def _fair_shares(graph: nx.Graph[Any]) -> nx.Graph[Any]:
    """The graph with every shared link as wide as one device's share of it."""
    shares = graph.copy()
    for a, b, edge in shares.edges(data=True):
        if edge.get("tier") == SPINE:
            n_sharing = edge.get("n_sharing") or max(_n_adapters(graph, a), _n_adapters(graph, b))
            edge["bytes_per_s"] /= max(1, n_sharing)
    return shares


def _n_adapters(graph: nx.Graph[Any], name: str) -> int:
    return sum(edge.get("tier") == SCALE_OUT for edge in graph[name].values())


def _groups(one: LocatedOnNodes) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Groups of more than one device, by axis.

    Layouts send within rows, from each device to its like in other rows, and from stage to stage;
    engines within a tensor-parallel row, within a whole stage, and from stage to stage. Of the
    pairs of stages those are told that are in two parts, where there are such.
    """
    grid, pattern = one.grid, one.configuration.pattern
    is_layout = one.configuration.engine == ROOFLINE.name
    if pattern.n_inside > 1:
        yield "inside" if is_layout else "tensor", [row for stage in grid for row in stage]
    if pattern.n_across > 1 and is_layout:
        yield "across", [tuple(c) for stage in grid for c in zip(*stage, strict=True)]
    elif pattern.n_across > 1:
        yield "stage", [tuple(name for row in stage for name in row) for stage in grid]
    pairs: list[tuple[str, ...]] = [
        (name, other)
        for here, there in pairwise(grid)
        for row, other_row in zip(here, there, strict=True)
        for name, other in zip(row, other_row, strict=True)
    ]
    if pairs:
        yield "stages", [pair for pair in pairs if one.parts_of(pair) > 1] or pairs
