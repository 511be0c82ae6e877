"""What devices of a site can do from where they stand: nodes, leaves, bandwidths, latencies.

A node is what links inside it connect, a leaf what links to leaf switches connect besides.
Bandwidths are fair shares, one way: of a link that n devices send through, each has an n-th.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

from planner.specs.ask.placement import GroupCost
from planner.specs.files.state import FAILED, FREE
from planner.verifier.placing.parts import Forest, Widths
from planner.verifier.placing.sites import DEVICE, INNER, SCALE_OUT, SPINE, SWITCH, Edge, Site

POOL = "pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sort of devices: the group of a pool they are of, what they are, and their memory."""

    group: str
    device: str
    hbm_bytes: float

    @property
    def name(self) -> str:
        return self.group or self.device


class Ability(NamedTuple):
    """What a device sends at most [bytes/s]: in its node, in its leaf, to other leaves."""

    scale_up: float
    nic: float
    spine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Devices of one kind that links inside a node connect.

    Args:
        name: what the names of its devices begin with.
        leaf: number of its leaf.
    """

    name: str
    kind: Kind
    leaf: int
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """From device to device of a node, of a leaf, of two leaves; the slowest of a kind [s]."""

    near: float
    far: float
    spine: float


class SiteIndex:
    """A site that is no torus, read once.

    Args:
        site: in its state.
        costs: of nodes, leaves and the pool, in place of what the links say.
    """

    def __init__(self, site: Site, costs: Mapping[str, GroupCost] | None = None) -> None:
        self.site, self._costs = site, costs or {}
        self._devices = site.devices
        tiers = {edge.tier for _, _, edge in site.edges()}
        inner = [edge for edge in INNER if edge in tiers]
        self._node_of = self._parts(set(inner))
        self._leaf_of = self._parts({*inner, SCALE_OUT})
        self._mates: dict[int, list[str]] = {}
        self._rails: dict[int, set[str]] = {}
        self._n_below: dict[str, int] = {}
        for name in self._devices:
            self._mates.setdefault(self._node_of[name], []).append(name)
            rails = self._rails.setdefault(self._leaf_of[name], set())
            for switch, _ in site.up(name, SCALE_OUT):
                rails.add(switch)
                self._n_below[switch] = self._n_below.get(switch, 0) + 1

    def _parts(self, tiers: set[str]) -> dict[str, int]:
        """Number of the part of each device that links of the tiers connect, in order."""
        forest = Forest(self.site.vertices)
        for a, b, edge in self.site.edges():
            if edge.tier in tiers:
                forest.join(a, b)
        numbers: dict[str, int] = {}
        return {name: numbers.setdefault(forest.root(name), len(numbers)) for name in self._devices}

    def kind_of(self, name: str) -> Kind:
        at = self.site.vertices[name]
        return Kind(group=at.group, device=at.device, hbm_bytes=at.hbm_bytes)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """In the order of their first devices; devices of several kinds are several nodes."""
        members: dict[tuple[int, Kind], list[str]] = {}
        for name in self._devices:
            members.setdefault((self._node_of[name], self.kind_of(name)), []).append(name)
        ordered = sorted(members.items(), key=lambda item: item[0][0])
        return tuple(
            Node(
                name=_common_parent(names),
                kind=kind,
                leaf=self._leaf_of[names[0]],
                devices=tuple(names),
            )
            for (_, kind), names in ordered
        )

    @cached_property
    def home(self) -> dict[str, Node]:
        return {name: node for node in self.nodes for name in node.devices}

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(node.kind for node in self.nodes))

    @cached_property
    def leaf_names(self) -> dict[int, str]:
        """Of each leaf: that of its first switch, or its first device where there is none."""
        names: dict[int, str] = {}
        first: dict[int, str] = {}
        for name in self._devices:
            leaf = self._leaf_of[name]
            first.setdefault(leaf, name)
            for switch, _ in self.site.up(name, SCALE_OUT):
                names.setdefault(leaf, self.site.vertices[switch].leaf or switch)
        return {leaf: names.get(leaf, name) for leaf, name in first.items()}

    def shown_leaf(self, name: str) -> str:
        """The leaf of a device as answers have it; empty of a device that is on none."""
        leaf = self.leaf_names[self._leaf_of[name]]
        at = self.site.vertices.get(leaf)
        return "" if at is not None and at.kind == DEVICE else leaf

    def is_free(self, name: str) -> bool:
        return self.site.vertices[name].state == FREE

    def latencies(self, kind: Kind) -> Latencies:
        """Twice the way up to a switch; a link between two devices is the whole way."""
        near = far = spine = 0.0
        for name in self.devices_of(kind):
            for other, edge in self.site.links[name].items():
                wait = edge.latency_s
                if edge.tier in INNER:
                    is_switch = self.site.vertices[other].kind != DEVICE
                    near = max(near, 2 * wait if is_switch else wait)
                elif edge.tier == SCALE_OUT:
                    above = [up.latency_s for _, up in self.site.up(other, SPINE)]
                    far = max(far, 2 * wait)
                    spine = max(spine, 2 * (wait + max(above, default=0.0)))
        waits = [near, far, spine]
        keys = self._keys(self.nodes_of(kind))
        for i, names in enumerate(zip(*keys, strict=True)):
            said = [self._costs[key].latency_s for key in {*names} & self._costs.keys()]
            waits[i] = max(said, default=0.0) or waits[i]
        return Latencies(near=waits[0], far=waits[1], spine=waits[2])

    def nodes_of(self, kind: Kind) -> list[Node]:
        return [node for node in self.nodes if node.kind == kind]

    def devices_of(self, kind: Kind) -> list[str]:
        return [name for node in self.nodes_of(kind) for name in node.devices]

    def _keys(self, nodes: Iterable[Node]) -> list[tuple[str, str, str]]:
        """What a table of costs calls each node, its leaf and the pool."""
        return [(node.name, self.leaf_names[node.leaf], POOL) for node in nodes]

    def ability(self, name: str) -> Ability:
        """What a free device sends at most, by the costs of its node, leaf and pool if given."""
        node = self.home[name]
        ((near, far, whole),) = self._keys([node])
        nic = sum(edge.bytes_per_s for _, edge in self.site.up(name, SCALE_OUT))
        spine = min(nic, sum(
            min(edge.bytes_per_s, self._share_above(switch))
            for switch, edge in self.site.up(name, SCALE_OUT)
        ))  # fmt: skip
        meets = self._meets_rails(node)
        return Ability(
            scale_up=self._said(near, self._scale_up(name)),
            nic=self._said(far, nic if meets else min(nic, spine)),
            spine=self._said(whole, spine),
        )

    def _said(self, key: str, read: float) -> float:
        return self._costs[key].bytes_per_s if key in self._costs else read

    def _share_above(self, switch: str) -> float:
        """A device's share of the links from its leaf switch towards the core."""
        n_below = self._n_below.get(switch, 1)
        return sum(
            edge.bytes_per_s / (edge.n_sharing or n_below)
            for _, edge in self.site.up(switch, SPINE)
        )

    def _scale_up(self, name: str) -> float:
        """To the switch of its node; without one, the bottleneck of the node's own links."""
        mates = self._mates[self._node_of[name]]
        if len(mates) == 1:
            return inf
        widths = [self._to_switch(mate) for mate in mates]
        if all(width is not None for width in widths):
            return self._to_switch(name) or 0.0
        return self._whole_widths.of(tuple(mates)).bytes_per_s

    @cached_property
    def _whole_widths(self) -> Widths:
        """Of links as wide as they are, whoever shares them."""
        return Widths(self.site.vertices, self.site.edges())

    def _to_switch(self, name: str) -> float | None:
        own = [
            edge.bytes_per_s
            for other, edge in self.site.links[name].items()
            if edge.tier in INNER and self.site.vertices[other].kind == SWITCH
        ]
        return max(own, default=None)

    def _meets_rails(self, node: Node) -> bool:
        """Whether a node surely has a rail in common with any other such node of its leaf.

        A failed device forwards nothing from rail to rail; with adapters on more than half of
        the rails two nodes meet.
        """
        rails = self._rails[node.leaf]
        if len(rails) <= 1:
            return True
        mates = self._mates[self._node_of[node.devices[0]]]
        works = [name for name in mates if self.site.vertices[name].state != FAILED]
        adapters = [one for name in works for one in self.site.up(name, SCALE_OUT)]
        widest_one = max((edge.bytes_per_s for _, edge in adapters), default=0.0)
        reached = {switch for switch, edge in adapters if edge.bytes_per_s >= widest_one}
        return 2 * len(reached) > len(rails)

    def fair_edges(self) -> list[tuple[str, str, Edge]]:
        """Links as wide as one device's share; none of failed devices, which forward nothing."""
        edges = []
        failed = {name for name, at in self.site.vertices.items() if at.state == FAILED}
        for a, b, edge in self.site.edges():
            if a in failed or b in failed:
                continue
            if edge.tier == SPINE:
                most = max(len(self.site.up(end, SCALE_OUT)) for end in (a, b))
                n_sharing = edge.n_sharing or most
                share = edge.bytes_per_s / max(1, n_sharing)
                edge = Edge(bytes_per_s=share, latency_s=edge.latency_s, tier=SPINE)
            edges.append((a, b, edge))
        return edges

    def own_link(self, name: str) -> tuple[float, tuple[str, str]] | None:
        """What a device's own adapters carry together, and the first of them."""
        adapters = self.site.up(name, SCALE_OUT)
        if not adapters:
            return None
        return sum(edge.bytes_per_s for _, edge in adapters), (name, adapters[0][0])


def _common_parent(names: list[str]) -> str:
    """What names of devices begin with, up to a `/`; the first of them if that differs."""
    parents = {name.rpartition("/")[0] for name in names}
    return (parents.pop() if len(parents) == 1 else "") or names[0]
