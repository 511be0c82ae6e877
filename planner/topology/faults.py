"""What is wrong with a graph that somebody brings: every fault at once, as `Problem`s."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from planner.errors import Problem
from planner.specs.files.state import STATES
from planner.specs.validation.arguments import value_problems
from planner.specs.validation.values import one_of
from planner.topology.graph import DEVICE, KINDS, TIERS, Graph, device_names

MOST_ALIKE = 3
"""Faults of one sort that are told one by one; the others are only counted."""

_OF_VERTICES: Mapping[str, Any] = {
    "kind": Annotated[str, one_of("kind", KINDS)],
    "hbm_bytes": float | None,
    "speed_fraction": float | None,
    "state": Annotated[str, one_of("state", STATES)] | None,
}
_OF_EDGES: Mapping[str, Any] = {
    "bytes_per_s": float,
    "latency_s": float,
    "tier": Annotated[str, one_of("tier", TIERS)] | None,
}
"""Types of attributes that are read."""

_REMEDIES = {
    "kind": "set " + " or ".join(f'kind="{kind}"' for kind in KINDS),
    "bytes_per_s": "write it in bytes/s, one direction",
    "latency_s": "write it in seconds",
}
"""For attributes that each vertex or link has."""


def validate_graph(graph: Graph, *, where: str = "graph") -> tuple[Problem, ...]:
    """Every fault of a graph of devices, switches and links; empty if it can be planned on.

    Args:
        graph: as described at the top of `planner.topology.graph`.
        where: how the user calls the graph; opens every message.
    """
    structure = list(_structure_faults(graph, where))
    if structure:  # what an edge is differs there, so nothing below would hold
        return tuple(structure)
    faults = [*_vertex_faults(graph, where), *_edge_faults(graph, where)]
    return (*_first_of_each_sort(faults), *_connection_faults(graph, where))


def _structure_faults(graph: Graph, where: str) -> Iterator[Problem]:
    if graph.is_directed():
        remedy = "write each link once; its bandwidth is that of either direction"
        yield Problem(where=where, fact="is directed", remedy=remedy)
    if graph.is_multigraph():
        remedy = "add up the bandwidths of parallel links into one"
        yield Problem(where=where, fact="may have several links between one pair", remedy=remedy)


def _vertex_faults(graph: Graph, where: str) -> Iterator[Problem]:
    for name, attributes in graph.nodes(data=True):
        key = f"vertex {name}"
        if not isinstance(name, str):
            fact, remedy = "is not named by a text", "name it by one: `networkx.relabel_nodes`"
            yield Problem(where=where, key=key, fact=fact, remedy=remedy)
        yield from _attribute_faults(attributes, _OF_VERTICES, where=where, key=key)


def _edge_faults(graph: Graph, where: str) -> Iterator[Problem]:
    for a, b, attributes in graph.edges(data=True):
        key = f"link {a} to {b}"
        if a == b:
            fact = "leads from a vertex to itself"
            yield Problem(where=where, key=key, fact=fact, remedy="remove it")
        else:
            yield from _attribute_faults(attributes, _OF_EDGES, where=where, key=key)


def _attribute_faults(
    attributes: Mapping[str, Any], known: Mapping[str, Any], *, where: str, key: str
) -> Iterator[Problem]:
    for name in [one for one in known if one in _REMEDIES and one not in attributes]:
        fact, remedy = f"has no `{name}`", _REMEDIES[name]
        yield Problem(where=where, key=key, fact=fact, remedy=remedy)
    said = {name: attributes[name] for name in known if name in attributes}
    for one in value_problems(said, known):
        remedy = one.remedy or _REMEDIES.get(one.where, "")
        yield replace(one, where=where, key=f"{key}: {one.where}", remedy=remedy)


def _connection_faults(graph: Graph, where: str) -> Iterator[Problem]:
    import networkx as nx

    if not device_names(graph):
        remedy = f'set kind="{DEVICE}" on the accelerators'
        yield Problem(where=where, fact="has no devices", remedy=remedy)
        return
    parts = [
        [name for name in part if graph.nodes[name].get("kind") == DEVICE]
        for part in nx.connected_components(graph)
    ]
    parts = sorted((sorted(part, key=str) for part in parts if part), key=lambda part: -len(part))
    if len(parts) > 1:
        fact = (
            f"falls apart into {len(parts)} parts: no path leads from "
            f"`{parts[0][0]}` to `{parts[1][0]}`"
        )
        yield Problem(where=where, fact=fact, remedy="link the parts, or plan on one of them")


def _first_of_each_sort(faults: list[Problem]) -> Iterator[Problem]:
    """The faults, those that are many of one sort only counted after the first few."""
    alike: dict[str, list[Problem]] = defaultdict(list)
    for fault in faults:
        alike[fault.fact].append(fault)
    for fact, same in alike.items():
        yield from same[: MOST_ALIKE - 1]
        n_more = len(same) - MOST_ALIKE
        for fault in same[MOST_ALIKE - 1 : MOST_ALIKE]:
            yield replace(fault, fact=f"{fact} (and {n_more} more)") if n_more else fault
