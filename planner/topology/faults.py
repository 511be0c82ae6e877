"""What is wrong with a graph that somebody brings: every fault at once, as `Problem`s."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from planner.errors import Problem
from planner.topology.graph import DEVICE, KINDS, TIERS, device_names

if TYPE_CHECKING:
    import networkx as nx

MOST_ALIKE = 3
"""Faults of one sort that are told one by one; the others are only counted."""

_UNITS = {"bytes_per_s": "bytes/s, one direction", "latency_s": "seconds"}


def validate_graph(graph: nx.Graph[Any], *, where: str = "graph") -> tuple[Problem, ...]:
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


def _structure_faults(graph: nx.Graph[Any], where: str) -> Iterator[Problem]:
    if graph.is_directed():
        remedy = "write each link once; its bandwidth is that of either direction"
        yield Problem(where=where, fact="is directed", remedy=remedy)
    if graph.is_multigraph():
        remedy = "add up the bandwidths of parallel links into one"
        yield Problem(where=where, fact="may have several links between one pair", remedy=remedy)


def _vertex_faults(graph: nx.Graph[Any], where: str) -> Iterator[Problem]:
    choice = " or ".join(f'kind="{kind}"' for kind in KINDS)
    for name, attributes in graph.nodes(data=True):
        kind = attributes.get("kind")
        key = f"vertex {name}"
        if not isinstance(name, str):
            fact, remedy = "is not named by a text", "name it by one: `networkx.relabel_nodes`"
            yield Problem(where=where, key=key, fact=fact, remedy=remedy)
        if kind is None:
            yield Problem(where=where, key=key, fact="has no `kind`", remedy=f"set {choice}")
        elif kind not in KINDS:
            yield Problem(
                where=where, key=key, value=str(kind), fact="is no kind", remedy=f"set {choice}"
            )


def _edge_faults(graph: nx.Graph[Any], where: str) -> Iterator[Problem]:
    for a, b, attributes in graph.edges(data=True):
        key = f"link {a} to {b}"
        if a == b:
            fact = "leads from a vertex to itself"
            yield Problem(where=where, key=key, fact=fact, remedy="remove it")
            continue
        for attribute in _UNITS:
            yield from _quantity_faults(attributes, attribute, where=where, key=key)
        tier = attributes.get("tier")
        if tier is not None and tier not in TIERS:
            remedy = f"one of {', '.join(TIERS)}"
            yield Problem(where=where, key=key, value=str(tier), fact="is no tier", remedy=remedy)


def _quantity_faults(
    attributes: dict[str, Any], attribute: str, *, where: str, key: str
) -> Iterator[Problem]:
    fact = _quantity_fault(attributes, attribute)
    if fact:
        shown = str(attributes[attribute]) if attribute in attributes else ""
        remedy = f"write it in {_UNITS[attribute]}"
        yield Problem(where=where, key=key, value=shown, fact=fact, remedy=remedy)


def _quantity_fault(attributes: dict[str, Any], attribute: str) -> str:
    """What is wrong with one number of a link, empty if nothing is."""
    if attribute not in attributes:
        return f"has no `{attribute}`"
    value = attributes[attribute]
    if isinstance(value, bool) or not isinstance(value, Real):
        return f"`{attribute}` is not a number"
    if not math.isfinite(value):
        return f"`{attribute}` is not finite"
    if value < 0:
        return f"`{attribute}` is negative"
    if value == 0 and attribute == "bytes_per_s":
        return f"`{attribute}` is zero"
    return ""


def _connection_faults(graph: nx.Graph[Any], where: str) -> Iterator[Problem]:
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
