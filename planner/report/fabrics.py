"""One fabric: its kinds of nodes, the leaves and the spine above them, and their sources."""

from __future__ import annotations

from planner.report.catalogue import Figures, assumed_text, figure_lines
from planner.report.lines import labelled, section
from planner.report.words import plural
from planner.specs.pools import GroupSpec, PoolSpec
from planner.units import show


def pool_text(pool: PoolSpec, width: int) -> str:
    """The pool, and of each kind of nodes its network and switches, each number with its source."""
    rent = sum(group.cluster.usd_per_hour * group.cluster.n_devices for group in pool.groups)
    head = [
        ("devices", f"{pool.n_devices} in {plural(len(pool.groups), 'kind')} of nodes"),
        ("rent", show(rent, "USD/h")),
    ]
    groups = [
        text
        for group in pool.groups
        for text in (
            section(f"nodes {group.name}", labelled(_nodes(group), width)),
            section(f"switches above nodes {group.name}", _switches(pool, group)),
        )
    ]
    return "\n\n".join(
        (
            f"{pool.name}: {pool.title}",
            section("pool", labelled(head, width)),
            *groups,
            f"`plan place --topology {pool.name}` places on it",
            assumed_text(pool.provenance),
        )
    )


def _nodes(group: GroupSpec) -> list[tuple[str, str]]:
    fabric, device = group.fabric, group.cluster.device
    inside = show(fabric.scale_up_bytes_per_s, "B/s")
    between = show(fabric.scale_out_bytes_per_s, "B/s")
    each = show(group.cluster.usd_per_hour, "USD/h")
    nodes = f"{plural(fabric.n_nodes, 'node')} of {fabric.n_devices_per_node} × {device.title}"
    return [
        ("nodes", f"{nodes}, {show(device.hbm_bytes, 'B')} and {each} each"),
        ("a device", f"{inside} in its node, {between} to its leaf"),
        ("more", f"`plan topologies {group.cluster.name}`"),
    ]


def _switches(pool: PoolSpec, group: GroupSpec) -> list[str]:
    leaves = f"{plural(group.n_leaves, 'leaf', 'leaves')} of {group.n_nodes_per_leaf} nodes"
    key = f"group.{group.name}"
    figures: Figures = [
        ("leaves", leaves, f"{key}.n_nodes_per_leaf"),
        ("rails", f"{group.n_rails} a leaf", f"{key}.n_rails"),
        ("spine", f"{group.oversubscription:g}:1", f"{key}.oversubscription"),
        ("  latency", show(group.spine_latency_s, "s"), f"{key}.spine_latency"),
    ]
    return figure_lines(figures, pool.provenance)
