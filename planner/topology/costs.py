"""Costs of groups that somebody brings, in place of those read off the graph.

A callable is given the names of devices, and answers the bandwidth that one of them has to all
the others, one way as attained [bytes/s], and the latency of a message [s]. A table gives the
same by the name of a node or a leaf, and under `pool` for all of it; what it does not name is as
the graph has it.

The callable is asked of the free devices of each node, of each leaf, and of all; a group of
some of them is counted to be no slower than that, and is asked about by itself at the end.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real

from planner.errors import Problem, RequestError
from planner.topology.inventory import Inventory, Node

GroupCosts = Callable[[tuple[str, ...]], tuple[float, float]]
CostTable = Mapping[str, tuple[float, float]]
POOL_KEY = "pool"

_Domain = tuple[str, tuple[str, ...]]


def recosted(inventory: Inventory, costs: GroupCosts | CostTable) -> Inventory:
    """The inventory with bandwidths and latencies by the given costs.

    Raises:
        RequestError: a table names no node or leaf, or a cost is not a positive bandwidth and a
            latency.
    """
    problems = list(_problems(inventory, costs))
    RequestError.raise_if_any(problems)
    costs_found = {key: _cost(costs, key, names) for key, names in _domains(inventory)}
    for key, cost in costs_found.items():
        if cost is not None and not is_cost(cost):
            fact = "is not a positive bandwidth and a latency"
            problems.append(Problem(where="group_costs", key=key, value=str(cost), fact=fact))
    RequestError.raise_if_any(problems)
    return _applied(inventory, {key: cost for key, cost in costs_found.items() if cost is not None})


def is_cost(cost: object) -> bool:
    """Whether it is a bandwidth above zero and a latency, both finite but for the bandwidth."""
    if not isinstance(cost, tuple | list) or len(cost) != 2:
        return False
    numbers = all(isinstance(one, Real) and not isinstance(one, bool) for one in cost)
    return numbers and cost[0] > 0 and 0 <= cost[1] < math.inf


def _problems(inventory: Inventory, costs: GroupCosts | CostTable) -> Iterator[Problem]:
    if callable(costs):
        return
    known = [key for key, _ in _domains(inventory)]
    for key in costs:
        if key not in known:
            remedy = f"name a node or a leaf, like `{known[0]}`, or `{POOL_KEY}`"
            fact = "is neither a node nor a leaf"
            yield Problem(where="group_costs", key=key, fact=fact, remedy=remedy)


def _domains(inventory: Inventory) -> Iterator[_Domain]:
    """Nodes, leaves and the pool, each with its free devices."""
    everything: list[str] = []
    of_leaf: dict[int, list[str]] = {}
    for node in inventory.nodes:
        names = [name for name, _ in node.free]
        everything += names
        of_leaf.setdefault(node.leaf, []).extend(names)
        yield node.name, tuple(names)
    for leaf, names in of_leaf.items():
        yield inventory.leaf_names[leaf], tuple(names)
    yield POOL_KEY, tuple(everything)


def _cost(
    costs: GroupCosts | CostTable, key: str, names: Sequence[str]
) -> tuple[float, float] | None:
    if not callable(costs):
        return costs.get(key)
    return costs(tuple(names)) if len(names) > 1 else None


def _applied(inventory: Inventory, costs: Mapping[str, tuple[float, float]]) -> Inventory:
    if not costs:
        return inventory
    old = (inventory.scale_up_s, inventory.scale_out_s, inventory.spine_s)
    # its own latencies, not the slower of both
    new = [dict.fromkeys(one, 0.0) for one in old]

    def changed(node: Node) -> Node:
        leaf = inventory.leaf_names[node.leaf]
        keys = (node.name, leaf, POOL_KEY)
        for latency, key in zip(new, keys, strict=True):
            if key in costs:
                latency[node.kind] = max(latency.get(node.kind, 0.0), costs[key][1])
        up, nic, out = (costs[key][0] if key in costs else None for key in keys)
        return replace(
            node,
            free=tuple(
                (
                    name,
                    replace(
                        ability,
                        scale_up_bytes_per_s=up or ability.scale_up_bytes_per_s,
                        nic_bytes_per_s=nic or ability.nic_bytes_per_s,
                        spine_bytes_per_s=out or ability.spine_bytes_per_s,
                    ),
                )
                for name, ability in node.free
            ),
        )

    nodes = tuple(map(changed, inventory.nodes))
    near, far, spine = (
        {kind: value or before[kind] for kind, value in after.items()}
        for after, before in zip(new, old, strict=True)
    )
    return replace(inventory, nodes=nodes, scale_up_s=near, scale_out_s=far, spine_s=spine)
