"""The judge of a placement: it reads the graph, the devices and the layouts, and no counts.

* every device is one of the graph, is free, and has one rank;
* every group's bandwidth, read off the paths of the graph, is what its estimate counts on, and
  every member's own links and speed are;
* every recipe is recounted by the referee, and demands and totals by plain sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from planner.describe import describe
from planner.errors import SolverError
from planner.placement_results import Channel
from planner.placing.clusters import LEAF, NODE, POOL, STAGE
from planner.placing.columns import Way
from planner.placing.decoding import Located
from planner.results import Deployment
from planner.specs.state import FAILED, FREE
from planner.topology.costs import GroupCosts
from planner.topology.graph import SCALE_OUT, SPINE, device_names
from planner.topology.inventory import INNER
from planner.topology.paths import bottleneck
from planner.verdict import referee_verdict

if TYPE_CHECKING:
    import networkx as nx

SLACK = 1e-9


def deployment_of(way: Way) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment of a way, and the checks that the referee's recount of it passed.

    Raises:
        SolverError: the referee disagrees.
    """
    it = way.evaluated
    deployment = describe(it.table, it.posed, it.request, way.assignment)
    verified = referee_verdict(it.table, it.posed, it.request, way.assignment, deployment)
    return deployment, verified[1:]


def check_devices(graph: nx.Graph[Any], located: Sequence[Located]) -> None:
    """Every rank on a free device of its own.

    Raises:
        SolverError: a device is unknown, taken, or has two ranks.
    """
    known, seen = set(device_names(graph)), set[str]()
    for one in located:
        names = [name for stage in one.grid for row in stage for name in row]
        if len(names) != one.way.n_devices:
            raise SolverError(f"{len(names)} devices for {one.way.n_devices} ranks")
        for name in names:
            if name not in known:
                raise SolverError(f"a rank is placed on `{name}`, which is no device")
            if graph.nodes[name].get("state", FREE) != FREE:
                raise SolverError(f"a rank is placed on `{name}`, which is not free")
            if name in seen:
                raise SolverError(f"two ranks are placed on `{name}`")
            seen.add(name)
            speed = graph.nodes[name].get("speed_fraction", 1.0)
            if speed < one.way.need.speed_fraction:
                raise SolverError(f"`{name}` is slower than its replica counts on")


class Judge:
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

    def channels(self, one: Located) -> tuple[Channel, ...]:
        """The channels of a replica.

        Raises:
            SolverError: a group has less than its estimate counts on.
        """
        inside, across, between = _groups(one)
        way, need = one.way, one.way.need
        near, nic, spine = (
            need.scale_up_bytes_per_s,
            need.nic_bytes_per_s,
            need.spine_bytes_per_s,
        )
        far = {NODE: (near, near), LEAF: (nic, nic), STAGE: (nic, spine), POOL: (spine, spine)}
        wide, handed = far[way.span]
        counted = (("inside", inside, near), ("across", across, wide), ("stages", between, handed))
        part = self._part(one)
        return tuple(
            self._channel(part, axis, groups, rate) for axis, groups, rate in counted if groups
        )

    def _channel(
        self, part: set[str], axis: str, groups: list[tuple[str, ...]], counted: float
    ) -> Channel:
        read = [(*self._width(part, group, axis), group) for group in groups]
        width, link, group = min(read, key=lambda one: one[0])
        if width < counted * (1 - SLACK):
            raise SolverError(
                f"the group of `{group[0]}` has {width!r} bytes/s, not the {counted!r} counted on"
            )
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
        self, part: set[str], group: tuple[str, ...], axis: str
    ) -> tuple[float, tuple[str, str] | None]:
        """Bandwidth of a group: of its paths, and of each member's own links."""
        if self._costs is not None:
            return self._costs(group)[0], None
        width, link = bottleneck(self._shares, group, within=part)
        if width == 0.0:  # where switches are nested deeper, paths lead further out
            width, link = bottleneck(self._shares, group)
        # no way around a member's own adapter: others' may be somebody else's
        if axis != "inside" and len({self._node(name) for name in group}) > 1:
            for name in group:
                own, its_link = self._own(name)
                if own < width:
                    width, link = own, its_link
        return width, link

    def _node(self, name: str) -> object:
        """The switch, or the neighbours, that a device shares its node with."""
        inner = [o for o, e in self._graph[name].items() if e.get("tier", "link") in INNER]
        return min(map(str, inner), default=name)

    def _own(self, name: str) -> tuple[float, tuple[str, str] | None]:
        adapters = [
            (float(edge["bytes_per_s"]), (name, str(other)))
            for other, edge in self._graph[name].items()
            if edge.get("tier") == SCALE_OUT
        ]
        if not adapters:
            return float("inf"), None
        return sum(width for width, _ in adapters), adapters[0][1]

    def _part(self, one: Located) -> set[str]:
        """How far a replica's traffic can go in the graph: its nodes, and all switches above."""
        nodes = {name for part in one.parts for name in part.devices}
        beside = {other for name in nodes for other in self._shares[name]}
        above = {other for name in beside for other in self._shares[name]}
        top = (
            {other for name in above for other in self._shares[name]}
            if one.way.span == POOL
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


def _groups(one: Located) -> Iterator[list[tuple[str, ...]]]:
    """Groups of more than one device: inside nodes, across nodes, and pairs of stages."""
    grid, way = one.grid, one.way
    yield [tuple(row) for stage in grid for row in stage] if way.n_inside > 1 else []
    across = way.n_across > 1
    yield [tuple(c) for stage in grid for c in zip(*stage, strict=True)] if across else []
    yield [
        (name, other)
        for here, there in pairwise(grid)
        for row, other_row in zip(here, there, strict=True)
        for name, other in zip(row, other_row, strict=True)
    ]
