"""Which devices share a fabric: the domains of a graph, from the innermost tier outwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.topology.graph import LINK, TIERS, device_names

if TYPE_CHECKING:
    import networkx as nx

Domain = tuple[str, ...]


def domains_by_tier(graph: nx.Graph[Any]) -> dict[str, tuple[Domain, ...]]:
    """For each tier of the graph, the devices that its links and all inner ones connect.

    Two nodes of eight: {"scale-up": two domains of 8, "scale-out": one of 16}. A link
    without a tier counts as `link`.
    """
    present = {edge.get("tier", LINK) for _, _, edge in graph.edges(data=True)}
    tiers = [tier for tier in TIERS if tier in present]
    return {tier: _domains(graph, set(tiers[: i + 1])) for i, tier in enumerate(tiers)}


def _domains(graph: nx.Graph[Any], tiers: set[str]) -> tuple[Domain, ...]:
    import networkx as nx

    inner: nx.Graph[Any] = nx.Graph()
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
