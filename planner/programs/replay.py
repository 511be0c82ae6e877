"""A placement replayed: the most tokens a second that flow through it, by networkx.

It shares nothing with what found the placement but the pool: no classes, no regions, no stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor

import networkx as nx

from planner.programs.machines import Held, Pool

UNITS = 10**6
"""Whole numbers a token/s: a maximum flow of integers ends and is exact."""


def replayed_rate(pool: Pool, placement: Sequence[Held]) -> float:
    """Tokens/s that the placement serves: the maximum flow, rounded down to 1e-6.

    A machine is an edge of its rate. Tokens go from one that holds up to layer e to one whose
    layers begin at e + 1, or are past it if machines may be entered within.
    """
    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_nodes_from(("out of the coordinator", "into the coordinator"))
    for tail, head, rate in _edges(pool, placement):
        graph.add_edge(tail, head, capacity=floor(min(rate, 1e12) * UNITS))
    value = nx.maximum_flow_value(
        graph,
        "out of the coordinator",
        "into the coordinator",
        flow_func=nx.algorithms.flow.preflow_push,
    )
    return int(value) / UNITS


def _edges(pool: Pool, placement: Sequence[Held]) -> Iterator[tuple[object, object, float]]:
    holders: dict[int, list[int]] = {}
    for held in placement:
        span = held.n_layers if pool.enters_within else 1
        for layer in range(held.first, held.first + span):
            holders.setdefault(layer, []).append(held.machine)
    for held in placement:
        machine, end = held.machine, held.first + held.n_layers
        yield (machine, "in"), (machine, "out"), pool.rate(machine, held.n_layers)
        if held.first == 0:
            yield "out of the coordinator", (machine, "in"), float(pool.from_coordinator[machine])
        if end == pool.n_layers:
            yield (machine, "out"), "into the coordinator", float(pool.to_coordinator[machine])
        for other in holders.get(end, []):  # who can serve the layer that comes next
            rate = float(pool.links[machine, other])
            if other != machine and rate > 0:
                yield (machine, "out"), (other, "in"), rate
