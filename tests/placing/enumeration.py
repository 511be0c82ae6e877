"""The joint optimum of tiny clusters by looking at every set of devices: no counts, no columns.

Every set of free devices of one kind is tried as a replica in every shape (t devices of a node,
over m nodes, p stages) that its devices can take. What its groups get is read off the paths of
the networkx graph; what the layout then reaches is the exhaustive solver's optimum of the layout
program on that one mesh. The best packing of disjoint sets is found by dynamic programming over
all subsets of the devices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import networkx as nx
import numpy as np

from planner.estimates.candidates import machine_of, table_of
from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.programs.blocks import Objective, joined
from planner.programs.deployment import Posing
from planner.solvers import solve
from planner.specs.ask.defaults import make_request
from planner.specs.ask.engine import PlanOptions
from planner.specs.ask.targets import SolverOptions, Targets
from planner.specs.files.pools import GroupSpec, PoolSpec
from planner.specs.files.reading import load_cluster, load_model
from planner.specs.options.counts import DEFAULT_BATCHES
from planner.specs.records.devices import ClusterSpec, Workload
from planner.topology.graph import device_names
from planner.topology.pools import pool_graph

BATCHES = (1, 8, 64)
PREFILL_BATCHES = DEFAULT_BATCHES
WORKLOAD = Workload(n_input_tokens=512, n_output_tokens=64)
GB = 1e9


def tiny_model():
    """Three layers of Llama 3 8B: some 3.4 GB in bf16, stages of 1, 2 or 3."""
    return replace(
        load_model("llama-3-8b"), n_layers=3, name="tiny", tied_embeddings=False, repository=""
    )


def tiny_cluster(name: str, n_nodes: int, per_node: int, *, hbm_gb: float = 4.0) -> ClusterSpec:
    """Servers whose devices hold little, so that replicas need two devices or more."""
    cluster = load_cluster(name)
    device = replace(cluster.device, hbm_bytes=hbm_gb * GB, reserve_bytes=0.0)
    fabric = replace(cluster.fabric, n_nodes=n_nodes, n_devices_per_node=per_node)
    return replace(cluster, device=device, fabric=fabric)


def random_pool(seed: int) -> tuple[PoolSpec, nx.Graph]:
    """Up to 12 devices: one kind or two, holed, slow, oversubscribed, with adapters down."""
    rng = np.random.default_rng(seed)
    groups, left = [], 12
    for name, base in (("h", "h100-nvl8-x1"), ("a", "a100-nvl8-x1"))[: 1 + int(rng.random() < 0.4)]:
        per_node = int(rng.choice([2, 3, 4, 4]))
        n_nodes = int(rng.integers(1, max(2, min(left, 8) // per_node + 1)))
        left -= n_nodes * per_node
        if left < 0:
            break
        groups.append(
            GroupSpec(
                name=name,
                cluster=tiny_cluster(base, n_nodes, per_node, hbm_gb=float(rng.choice([2.5, 4.0]))),
                n_nodes_per_leaf=int(rng.integers(1, 3)),
                oversubscription=float(rng.choice([1, 2, 4])),
                spine_latency_s=float(rng.choice([0.0, 2e-6])),
            )
        )
    pool = PoolSpec(name="tiny", title="tiny", groups=tuple(groups))
    graph = pool_graph(pool)
    names = device_names(graph)
    for name in names:
        luck = rng.random()
        if luck < 0.15:
            graph.nodes[name]["state"] = "busy"
        elif luck < 0.25:
            graph.nodes[name]["speed_fraction"] = 0.5
    for a, b, edge in list(graph.edges(data=True)):
        luck = rng.random()
        if edge["tier"] == "scale-out" and luck < 0.06:
            graph.remove_edge(a, b)
        elif edge["tier"] in ("scale-out", "spine") and luck < 0.12:
            edge["bytes_per_s"] *= 0.5
    return pool, graph


@dataclass(frozen=True)
class Reach:
    """What the groups of one shape on one set of devices get: the conditions of its layout."""

    kind: str
    shape: tuple[int, int, int]
    speed: float
    up: float
    across: float
    across_s: float
    handed: float
    handed_s: float


class Enumeration:
    """Sets of devices, what they reach, and their best packing."""

    def __init__(self, pool: PoolSpec, graph: nx.Graph, *, most_devices: int = 64) -> None:
        self.pool, self.graph, self.most = pool, graph, most_devices
        self.free = [n for n in device_names(graph) if "state" not in graph.nodes[n]]
        self.groups = {group.name: group for group in pool.groups}
        self.fair = graph.copy()
        for _, _, edge in self.fair.edges(data=True):
            edge["bytes_per_s"] /= edge.get("n_sharing", 1)
        self.node = {n: (graph.nodes[n]["kind_of"], graph.nodes[n]["node"]) for n in self.free}
        self.leaf = {
            n: (self.node[n][0], self.node[n][1] // self.groups[self.node[n][0]].n_nodes_per_leaf)
            for n in self.free
        }

    def best_of(self, mask: int, rate_of) -> float:
        """The best output of one replica on exactly these devices; 0 where none runs."""
        names = [name for i, name in enumerate(self.free) if mask >> i & 1]
        kinds = {self.node[name][0] for name in names}
        if len(kinds) != 1 or len(names) > self.most:
            return 0.0
        reaches = self._reaches(names, kinds.pop())
        return max((rate_of(self.groups[one.kind], one) for one in reaches), default=0.0)

    def _reaches(self, names: list[str], kind: str):
        group = self.groups[kind]
        fabric, n = group.fabric, len(names)
        sizes = {1, 2, 4, 8, fabric.n_devices_per_node}
        sizes = {size for size in sizes if size <= fabric.n_devices_per_node}
        speed = min(self.graph.nodes[name].get("speed_fraction", 1.0) for name in names)
        in_node = Counter(self.node[name] for name in names)
        in_leaf = Counter(self.leaf[name] for name in names)
        up, near_s = fabric.scale_up_bytes_per_s, fabric.scale_up_latency_s
        far_s = fabric.scale_out_latency_s
        over_s = far_s + group.spine_latency_s
        for t in sizes:
            for p in (1, 2, 3):
                m, rest = divmod(n, t * p)
                if rest or m == 0 or m & (m - 1):
                    continue
                shape = (t, m, p)
                if m == 1 and len(in_node) == 1 and n in sizes:
                    yield Reach(kind, shape, speed, up, 0.0, 0.0, up, near_s)
                if m * p == 1 or any(here % t for here in in_node.values()):
                    continue
                if len(in_leaf) == 1:
                    near = self._width(names, spine=False)
                    yield Reach(kind, shape, speed, up, near, far_s, near, far_s)
                    continue
                far = self._width(names, spine=True)
                yield Reach(kind, shape, speed, up, far, over_s, far, over_s)
                if m > 1 and p > 1 and not any(here % (t * m) for here in in_leaf.values()):
                    near = min(self._own(name) for name in names)
                    yield Reach(kind, shape, speed, up, near, far_s, far, over_s)

    def _own(self, name: str) -> float:
        edges = self.fair[name].values()
        return max((e["bytes_per_s"] for e in edges if e["tier"] == "scale-out"), default=0.0)

    def _width(self, names: list[str], *, spine: bool) -> float:
        """The narrowest of the widest paths between any two of the devices, through switches."""
        tiers = ("scale-out", "spine") if spine else ("scale-out",)
        paths: nx.Graph = nx.Graph()
        paths.add_nodes_from(names)
        switches = {n for n, at in self.fair.nodes(data=True) if at["kind"] == "switch"}
        paths.add_edges_from(
            (a, b, {"width": edge["bytes_per_s"]})
            for a, b, edge in self.fair.edges(data=True)
            if edge["tier"] in tiers and {a, b} <= switches | set(names)
        )
        tree = nx.maximum_spanning_tree(paths, weight="width")
        width = float("inf")
        for name in names[1:]:
            if not nx.has_path(tree, names[0], name):
                return 0.0
            path = nx.shortest_path(tree, names[0], name)
            width = min(width, *(tree.edges[pair]["width"] for pair in pairwise(path)))
        return width

    def most_output(self, rate_of, *, replicas: int | None = None) -> float:
        """The best total of disjoint sets; of exactly so many, where that is asked for."""
        n = len(self.free)
        value = {mask: self.best_of(mask, rate_of) for mask in range(1, 1 << n)}
        useful = {mask: rate for mask, rate in value.items() if rate > 0}
        by_lowest: dict[int, list[tuple[int, float]]] = {}
        for mask, rate in useful.items():
            by_lowest.setdefault((mask & -mask).bit_length() - 1, []).append((mask, rate))

        @cache
        def best(left: int, n_more: int | None) -> float:
            if n_more == 0:
                return 0.0
            if not left:
                return 0.0 if n_more is None else -np.inf
            lowest = (left & -left).bit_length() - 1
            found = best(left & ~(1 << lowest), n_more)
            for mask, rate in by_lowest.get(lowest, ()):
                if mask & left == mask:
                    rest = None if n_more is None else n_more - 1
                    found = max(found, rate + best(left & ~mask, rest))
            return found

        return best((1 << n) - 1, replicas)


_KNOWN: dict[object, float] = {}


def layout_output(group: GroupSpec, reach: Reach, targets: Targets) -> float:
    """Output of the best layout of one mesh, by the exhaustive solver; 0 without any."""
    cut = (reach.shape[1] > 1 and reach.across <= 0) or (reach.shape[2] > 1 and reach.handed <= 0)
    if cut:
        return 0.0
    key = (group.cluster.name, group.cluster.device.hbm_bytes, reach, targets)
    if key not in _KNOWN:
        _KNOWN[key] = _layout_output(group.cluster, reach, targets)
    return _KNOWN[key]


def _layout_output(cluster: ClusterSpec, reach: Reach, targets: Targets) -> float:
    t, m, p = reach.shape
    device = replace(
        cluster.device,
        peak_flop_per_s={k: v * reach.speed for k, v in cluster.device.peak_flop_per_s.items()},
        hbm_bytes_per_s=cluster.device.hbm_bytes_per_s * reach.speed,
    )
    inside = m == 1 and reach.across == 0.0
    fabric = replace(
        cluster.fabric,
        n_nodes=1 if inside else m * p,
        n_devices_per_node=t * p if inside else t,
        scale_out_bytes_per_s=reach.across or cluster.fabric.scale_out_bytes_per_s,
        scale_out_latency_s=reach.across_s,
    )
    here = replace(cluster, device=device, fabric=fabric)
    model = tiny_model()
    request = make_request(
        model,
        here,
        PlanOptions(
            workload=WORKLOAD,
            targets=targets,
            weights_formats=["bf16"],
            batches=BATCHES,
            prefill_batches=PREFILL_BATCHES,
            prefill=None,
            objective="throughput",
            options=SolverOptions(),
        ),
    )
    machine = machine_of(here, model)
    meshes = machine.meshes
    sizes = [
        int(np.prod([s for s, tier in zip(row, tiers, strict=True) if tier == 0]))
        for row, tiers in zip(meshes.axis_size.tolist(), meshes.axis_tier.tolist(), strict=True)
    ]
    rows = [
        i
        for i in range(len(meshes))
        if sizes[i] == t and meshes.n_stages[i] == p and meshes.n_devices[i] == t * m * p
    ]
    if not rows:
        return 0.0
    meshes = meshes.take(np.array(rows))
    if not inside and p > 1:
        out = np.full(len(rows), reach.handed * fabric.scale_out_fraction)
        hop = np.full(len(rows), reach.handed_s)
        meshes = replace(meshes, stage_bytes_per_s=out, stage_hop_s=hop)
    network = network_table(meshes, fabric)
    table = table_of(request, Machine(device=device, meshes=meshes, network=network))
    program = joined(
        list(Posing(table, request, Objective(objective="throughput")).blocks())
    ).program
    if not program.n_contexts:
        return 0.0
    best = solve(program, solver="exhaustive")
    return 0.0 if best.answer is None else 1e3 / best.objective
