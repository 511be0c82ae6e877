"""What is free of a graph: nodes, leaves, and what each free device can do from where it is.

Read off any graph (`planner.topology.graph` says what its vertices and edges carry), in
whatever state it is:

    node     devices that links of the tiers `scale-up`, `ici` and `link` connect
    leaf     nodes that links of the tier `scale-out` connect as well
    spine    everything beyond

Bandwidths are fair shares, one way: of a link that n devices send through, each has an n-th,
whatever the others do. So a placement does not depend on what else runs; where others are
idle, groups may be faster than what is counted here.

    scale_up    to the other devices of its node: its own link to a switch; where there is no
                switch, the bottleneck of the paths between the node's devices
    nic         to the other nodes of its leaf; 0 if its adapter is down
    spine       to other leaves: its share of its leaf switch's links up, at most the nic
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from planner.specs.files.state import FAILED, FREE
from planner.topology.graph import (
    DEVICE,
    ICI,
    LINK,
    SCALE_OUT,
    SCALE_UP,
    SPINE,
    SWITCH,
    Graph,
    device_names,
    leaf_name,
    links_of,
    parent_of,
)
from planner.topology.packing import domains_by_tier
from planner.topology.widest import group_bytes_per_s

INNER = (SCALE_UP, ICI, LINK)
"""Tiers of links inside a node."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Ability:
    """What a free device can do, each at most nominal; devices of one ability are alike.

    Args:
        speed_fraction: of its nominal speed, of computing and of memory.
        scale_up_bytes_per_s, nic_bytes_per_s, spine_bytes_per_s: fair shares, one way.
    """

    speed_fraction: float
    scale_up_bytes_per_s: float
    nic_bytes_per_s: float
    spine_bytes_per_s: float

    def meets(self, need: Ability) -> bool:
        """Whether it is no worse in anything."""
        return (
            self.speed_fraction >= need.speed_fraction
            and self.scale_up_bytes_per_s >= need.scale_up_bytes_per_s
            and self.nic_bytes_per_s >= need.nic_bytes_per_s
            and self.spine_bytes_per_s >= need.spine_bytes_per_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sort of devices: replicas are of one.

    Args:
        group: the group of a pool they are of, or "".
        device: name of the device.
        hbm_bytes: memory of one.
    """

    group: str
    device: str
    hbm_bytes: float

    @property
    def name(self) -> str:
        return self.group or self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node and its free devices.

    Args:
        name: as the user knows it: what the names of its devices begin with.
        kind: of its devices; a node of several kinds is several nodes.
        leaf: number of its leaf.
        n_devices: of this kind, free or not.
        free: names of free devices, with their abilities.
    """

    name: str
    kind: Kind
    leaf: int
    n_devices: int
    free: tuple[tuple[str, Ability], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Free devices of a graph by node; nodes and devices in the order of the graph.

    Args:
        leaf_names: by number.
        n_devices: of all kinds, free or not.
        scale_up_s, scale_out_s, spine_s: latency from device to device of a node, of a leaf, of
            two leaves, by kind; the slowest.
    """

    nodes: tuple[Node, ...]
    leaf_names: tuple[str, ...]
    n_devices: int
    scale_up_s: dict[Kind, float]
    scale_out_s: dict[Kind, float]
    spine_s: dict[Kind, float]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(dict.fromkeys(node.kind for node in self.nodes))

    @property
    def n_free(self) -> int:
        return sum(len(node.free) for node in self.nodes)

    def nodes_of(self, kind: Kind) -> list[Node]:
        return [node for node in self.nodes if node.kind == kind]

    def abilities(self, kind: Kind) -> list[Ability]:
        """What the free devices of a kind can do."""
        return [ability for node in self.nodes_of(kind) for _, ability in node.free]


def inventory(graph: Graph) -> Inventory:
    """The free devices of a graph; devices without a `state`, or whose state is `free`."""
    return _Reader(graph).read()


class _Reader:
    """Reads abilities off the edges, once for each switch."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        tiers = domains_by_tier(graph)
        devices = device_names(graph)
        alone = tuple((name,) for name in devices)
        inner = [tiers[tier] for tier in INNER if tier in tiers]
        self._node_domains = inner[-1] if inner else alone
        leaves = tiers.get(SCALE_OUT, self._node_domains)
        self._leaf_of = {name: i for i, leaf in enumerate(leaves) for name in leaf}
        self._leaves = leaves
        self._n_below = self._devices_below()
        self._shares: dict[str, float] = {}
        self._slowest_up: dict[str, float] = {}
        rails = [{switch for name in leaf for switch, _ in self._adapters(name)} for leaf in leaves]
        self._n_rails = list(map(len, rails))

    def read(self) -> Inventory:
        nodes: list[Node] = []
        for domain in self._node_domains:
            by_kind: dict[Kind, list[str]] = defaultdict(list)
            for name in domain:
                by_kind[self._kind(name)].append(name)
            up, meets_rails = self._scale_up(domain), self._meets_rails(domain)
            for kind, names in by_kind.items():
                nodes.append(self._node(kind, names, up, meets_rails=meets_rails))
        kinds = {node.kind for node in nodes}
        latencies = {kind: self._latencies(kind) for kind in kinds}
        return Inventory(
            nodes=tuple(nodes),
            leaf_names=tuple(leaf_name(self._graph, leaf) for leaf in self._leaves),
            n_devices=len(self._leaf_of),
            scale_up_s={kind: one[0] for kind, one in latencies.items()},
            scale_out_s={kind: one[1] for kind, one in latencies.items()},
            spine_s={kind: one[2] for kind, one in latencies.items()},
        )

    def _kind(self, name: str) -> Kind:
        at = self._graph.nodes[name]
        return Kind(
            group=str(at.get("kind_of", "")),
            device=str(at.get("device", "")),
            hbm_bytes=float(at.get("hbm_bytes", 0.0)),
        )

    def _node(
        self, kind: Kind, names: list[str], up: dict[str, float], *, meets_rails: bool
    ) -> Node:
        free = [n for n in names if self._graph.nodes[n].get("state", FREE) == FREE]
        return Node(
            name=parent_of(names),
            kind=kind,
            leaf=self._leaf_of[names[0]],
            n_devices=len(names),
            free=tuple(
                (name, self._ability(name, up[name], meets_rails=meets_rails)) for name in free
            ),
        )

    def _ability(self, name: str, scale_up: float, *, meets_rails: bool) -> Ability:
        nic = sum(share for _, share in self._adapters(name))
        spine = sum(
            min(share, self._share_of_uplinks(switch)) for switch, share in self._adapters(name)
        )
        return Ability(
            speed_fraction=float(self._graph.nodes[name].get("speed_fraction", 1.0)),
            scale_up_bytes_per_s=scale_up,
            nic_bytes_per_s=nic if meets_rails else min(nic, spine),
            spine_bytes_per_s=min(nic, spine),
        )

    def _meets_rails(self, domain: tuple[str, ...]) -> bool:
        """Whether a node surely shares a rail with any other such node of its leaf.

        From rail to rail of a leaf the way leads through a device of a node that is on both, and
        a failed one forwards nothing. Two nodes with working adapters on more than half of the
        rails have one in common; others may have only the spine.
        """
        n_rails = self._n_rails[self._leaf_of[domain[0]]]
        if n_rails <= 1:
            return True
        works = [n for n in domain if self._graph.nodes[n].get("state", FREE) != FAILED]
        widest = max((width for n in works for _, width in self._adapters(n)), default=0.0)
        reached = {rail for n in works for rail, width in self._adapters(n) if width >= widest}
        return 2 * len(reached) > n_rails

    def _adapters(self, name: str) -> list[tuple[str, float]]:
        """Switches that the device's own adapters lead to, each with its bandwidth."""
        links = links_of(self._graph, name, SCALE_OUT)
        return [(switch, float(edge["bytes_per_s"])) for switch, edge in links]

    def _devices_below(self) -> Counter[str]:
        """Devices whose adapters lead to each switch, whether or not they are up."""
        return Counter(switch for name in self._leaf_of for switch, _ in self._adapters(name))

    def _share_of_uplinks(self, switch: str) -> float:
        """A device's share of the links that lead from its leaf switch towards the core."""
        if switch not in self._shares:
            n_below = self._n_below[switch]
            self._shares[switch] = sum(
                float(edge["bytes_per_s"]) / int(edge.get("n_sharing", n_below))
                for _, edge in links_of(self._graph, switch, SPINE)
            )
        return self._shares[switch]

    def _hop_above(self, switch: str) -> float:
        """The slowest of a leaf switch's links towards the core [s]."""
        if switch not in self._slowest_up:
            up = links_of(self._graph, switch, SPINE)
            hops = (float(edge["latency_s"]) for _, edge in up)
            self._slowest_up[switch] = max(hops, default=0.0)
        return self._slowest_up[switch]

    def _scale_up(self, domain: tuple[str, ...]) -> dict[str, float]:
        """What each device of a node sends inside it; inf where it is alone."""
        if len(domain) == 1:
            return {domain[0]: float("inf")}
        own: dict[str, float] = {}
        for name in domain:
            to_switch = [
                float(edge["bytes_per_s"])
                for other, edge in self._graph[name].items()
                if edge.get("tier", LINK) in INNER and self._graph.nodes[other]["kind"] == SWITCH
            ]
            if not to_switch:
                break
            own[name] = max(to_switch)
        if len(own) == len(domain):
            return own
        bottleneck = group_bytes_per_s(self._graph, domain)
        return dict.fromkeys(domain, bottleneck)

    def _latencies(self, kind: Kind) -> tuple[float, float, float]:
        """From device to device of a node, of a leaf, and of two leaves: twice the way up."""
        near = far = spine = 0.0
        for name in self._leaf_of:
            if self._kind(name) != kind:
                continue
            for other, edge in self._graph[name].items():
                tier = edge.get("tier", LINK)
                hop = float(edge["latency_s"])
                if tier in INNER:
                    between = self._graph.nodes[other].get("kind") != DEVICE
                    near = max(near, hop * (2 if between else 1))
                elif tier == SCALE_OUT:
                    far = max(far, 2 * hop)
                    spine = max(spine, 2 * (hop + self._hop_above(other)))
        return near, far, spine
