"""Larger pools for a demand that one does not serve."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from planner.errors import RequestError
from planner.specs.ledger import recording
from planner.specs.reading import load_cluster
from planner.specs.records import ClusterSpec, NodesFabric

MORE_NODES = 4
"""How many sizes of a pool of nodes are tried, from as many devices as one layout takes."""


def larger_pools(
    cluster: ClusterSpec, *, demand_tokens_per_s: float, served_tokens_per_s: float
) -> Iterator[ClusterSpec]:
    """Pools of more such nodes, in proportion to the demand, by the names that patterns give."""
    fabric, name = cluster.fabric, cluster.name
    if not isinstance(fabric, NodesFabric) or not name.endswith(f"-x{fabric.n_nodes}"):
        return
    family = name.removesuffix(f"x{fabric.n_nodes}")
    n_nodes = math.ceil(fabric.n_nodes * demand_tokens_per_s / served_tokens_per_s * (1 - 1e-9))
    for n in range(max(n_nodes, fabric.n_nodes + 1), n_nodes + MORE_NODES):
        try:
            with recording():  # looked at, not used
                larger = load_cluster(f"{family}x{n}")
        except RequestError:  # a name of the user's own, or more nodes than the pattern allows
            return
        if larger.device.name == cluster.device.name:
            yield replace(larger, usd_per_hour=cluster.usd_per_hour)
