"""A pool of servers as a graph, and a graph in the state that a file says.

    vertex   node3/gpu5      device; `node`, `kind_of` (the group), `device` (its name)
             node3/switch    what joins the devices of a node
             leaf0/rail5     leaf switch; `leaf0` where a leaf has one
             spine           joins the leaves
    edge     scale-up        device to its node's switch
             scale-out       device to its leaf switch: its adapter
             spine           leaf switch to spine: all its links up together

Names begin with the group's where a pool has several: `h100/node3/gpu5`, `h100/leaf0/rail5`; beside
servers a torus is a graph of its own, whose devices begin with its name: `tpu/0,3,7`.

A state adds `state` to devices (`busy`, `failed`, `reserved`; none is free) and
`speed_fraction` to slow ones, narrows links, and takes those away that are down.
"""

from collections.abc import Iterable, Mapping

from planner.errors import Problem, SpecError
from planner.specs.files.ledger import remark
from planner.specs.files.naming import DeviceStates, resolve_state
from planner.specs.files.pools import GroupSpec, MixedPoolSpec, PoolSpec
from planner.specs.files.state import State
from planner.topology.graph import (
    DEVICE,
    SCALE_OUT,
    SCALE_UP,
    SPINE,
    SWITCH,
    Graph,
    build_graph,
    device_names,
    links_of,
    node_device,
    node_links,
    node_switch,
)

SPINE_SWITCH = "spine"


def pool_graph(pool: PoolSpec | MixedPoolSpec) -> Graph:
    """The graph of a pool; bandwidths are as on the datasheets, one direction.

    No link leads from servers to a torus, or from one torus to another.
    """
    import networkx as nx

    graph: Graph = nx.Graph(name=pool.name)
    graph.add_node(SPINE_SWITCH, kind=SWITCH)
    servers = pool.servers if isinstance(pool, MixedPoolSpec) else pool
    for group in servers.groups:
        prefix = group_prefix(servers, group)
        _add_leaves(graph, group, prefix)
        for node in range(group.fabric.n_nodes):
            _add_node(graph, group, prefix, node)
    for torus in pool.tori if isinstance(pool, MixedPoolSpec) else ():
        own = build_graph(torus)
        graph.update(nx.relabel_nodes(own, {name: f"{torus.name}/{name}" for name in own}))
    return graph


def group_prefix(pool: PoolSpec, group: GroupSpec) -> str:
    """What the names of a group's vertices begin with."""
    return f"{group.name}/" if len(pool.groups) > 1 else ""


def _leaf_switch(group: GroupSpec, prefix: str, leaf: int, rail: int) -> str:
    leaf_name = f"{prefix}leaf{leaf}"
    return f"{leaf_name}/rail{rail}" if group.n_rails > 1 else leaf_name


def _add_leaves(graph: Graph, group: GroupSpec, prefix: str) -> None:
    """Leaf switches with their links up: as wide as those down over the oversubscription."""
    fabric = group.fabric
    for leaf in range(group.n_leaves):
        n_nodes = min(group.n_nodes_per_leaf, fabric.n_nodes - leaf * group.n_nodes_per_leaf)
        for rail in range(group.n_rails):
            n_below = n_nodes * len(range(rail, fabric.n_devices_per_node, group.n_rails))
            switch = _leaf_switch(group, prefix, leaf, rail)
            graph.add_node(switch, kind=SWITCH, leaf=f"{prefix}leaf{leaf}")
            if n_below:
                graph.add_edge(
                    switch,
                    SPINE_SWITCH,
                    bytes_per_s=n_below * fabric.scale_out_bytes_per_s / group.oversubscription,
                    latency_s=group.spine_latency_s / 2,
                    tier=SPINE,
                    n_sharing=n_below,  # of devices whose adapters are down there are fewer
                )


def _add_node(graph: Graph, group: GroupSpec, prefix: str, node: int) -> None:
    fabric, leaf = group.fabric, node // group.n_nodes_per_leaf
    switch, device = prefix + node_switch(node), group.cluster.device
    inside, between = node_links(fabric)
    graph.add_node(switch, kind=SWITCH, node=node)
    for index in range(fabric.n_devices_per_node):
        name = prefix + node_device(node, index)
        known = {"kind_of": group.name, "device": device.name, "hbm_bytes": device.hbm_bytes}
        graph.add_node(name, kind=DEVICE, node=node, **known)
        graph.add_edge(name, switch, **inside)
        graph.add_edge(name, _leaf_switch(group, prefix, leaf, index % group.n_rails), **between)


def with_state(graph: Graph, state: State | None) -> Graph:
    """A copy of a graph in a state.

    Raises:
        SpecError: names that the graph does not have, and contradictions; all are listed.
    """
    changed = graph.copy()
    if state is None:
        return changed
    devices = device_names(graph)
    switches = [name for name in graph if graph.nodes[name].get("kind") != DEVICE]
    states = resolve_state(state, devices, switches, groups=_leaves(graph))
    for name, what in states.taken.items():
        changed.nodes[name]["state"] = what
    for name, fraction in states.speed_fraction.items():
        changed.nodes[name]["speed_fraction"] = fraction
    changes = _link_changes(graph, states)
    _remark_uplinks(graph, changes, states.shown)
    for (a, b), fraction in changes.items():
        if fraction <= 0:
            changed.remove_edge(a, b)
        else:
            changed.edges[a, b]["bytes_per_s"] *= fraction
    return changed


def _remark_uplinks(graph: Graph, changes: Iterable[tuple[str, str]], shown: str) -> None:
    """Links to a spine that joins no two leaves carry nothing."""
    narrowed = any(graph.edges[pair].get("tier") == SPINE for pair in changes)
    if narrowed and len(_leaves(graph)) == 1:
        fact = "to the spine have no effect: one leaf joins all devices"
        remark(Problem(where=shown, key="link", fact=fact))


def _leaves(graph: Graph) -> dict[str, list[str]]:
    """Devices of each leaf, by its name."""
    below: dict[str, list[str]] = {}
    for name in device_names(graph):
        for switch, _ in links_of(graph, name, SCALE_OUT):
            leaf = graph.nodes[switch].get("leaf")
            if leaf:
                below.setdefault(leaf, []).append(name)
    return below


def _link_changes(graph: Graph, states: DeviceStates) -> Mapping[tuple[str, str], float]:
    """Links and the fractions of their bandwidth that are left; of two words the last holds.

    Raises:
        SpecError: two named vertices have no link, or a vertex has none of the kind named.
    """
    problems: list[Problem] = []
    changes: dict[tuple[str, str], float] = {}
    for part, fractions, tier in (
        ("nic", states.nic_fraction, SCALE_OUT),
        ("scale_up", states.scale_up_fraction, SCALE_UP),
        ("uplink", states.uplink_fraction, SPINE),
    ):
        for name, fraction in fractions.items():
            links = [(name, other) for other, _ in links_of(graph, name, tier)]
            if not links:
                fact = f"has no link of the tier `{tier}`"
                problems.append(Problem(where=states.shown, key=part, value=name, fact=fact))
            changes |= dict.fromkeys(map(_ends, links), fraction)
    for a, b, fraction in states.between:
        if graph.has_edge(a, b):
            changes[_ends((a, b))] = fraction
        else:
            fact = f"has no link to `{b}`"
            problems.append(Problem(where=states.shown, key="between", value=a, fact=fact))
    SpecError.raise_if_any(problems)
    return changes


def _ends(link: tuple[str, str]) -> tuple[str, str]:
    """The ends of a link in one order, whichever was named first."""
    a, b = link
    return (a, b) if a <= b else (b, a)
