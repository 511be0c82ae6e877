"""Nodes of one server: engines start equal shares of a deployment on each."""

from __future__ import annotations

import math


def n_nodes_of(n_parts: int, size: int, n_per_node: int) -> int:
    """The fewest nodes with equal whole shares of `n_parts` parts of `size` devices.

    A part that is larger than a node spans whole nodes.

    >>> n_nodes_of(2, 4, 8), n_nodes_of(3, 4, 8), n_nodes_of(9, 2, 8), n_nodes_of(1, 16, 8)
    (1, 3, 3, 2)
    """
    if size > n_per_node:
        return n_parts * n_nodes_of(size, 1, n_per_node)
    shares = (n for n in range(1, n_parts + 1) if n_parts % n == 0)
    return next(n for n in shares if n_parts // n * size <= n_per_node)


def spread_remark(n_nodes: int, n_devices: int, n_per_node: int) -> tuple[str, ...]:
    """Said where equal shares take more nodes than the plan, which fills one after the other."""
    least = math.ceil(n_devices / n_per_node)
    if n_nodes == least:
        return ()
    each = n_devices // n_nodes
    return (
        f"the engine starts as many devices on every node: {each} on each of {n_nodes}, where the "
        f"plan fills {least} of {n_per_node}",
    )
