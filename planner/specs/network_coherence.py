"""Faults of the conventions by which collectives are costed, and of what these read.

flat         a torus only: behind a switch no link is idle that another group could use
two-regime   nodes only, with `[nodes.scale_up.measured]`
nccl         nodes only, with at least one `[[nodes.protocol]]`
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.errors import Problem
from planner.specs.tables import Table, is_count, literal, value_at

NETWORK_KEYS = ("activation_network", "bulk_network")
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
COLUMNS = ("short_latency", "short_bandwidth", "long_latency", "long_bandwidth")
ONLY_NODES = ("two-regime", "nccl")


def network_problems(table: Table, shown: str) -> Iterator[Problem]:
    """Conventions that the network cannot have, and measurements that do not fit together."""
    yield from _convention_problems(table, shown)
    for operation in OPERATIONS:
        yield from _regime_problems(table, shown, operation)


def _convention_problems(table: Table, shown: str) -> Iterator[Problem]:
    for fabric in ("torus", "nodes", "linked"):
        for key in NETWORK_KEYS:
            name = value_at(table, fabric, key)
            fault = _convention_fault(table, fabric, name)
            if isinstance(name, str) and fault:
                fact, remedy = fault
                yield Problem(
                    where=shown, key=f"{fabric}.{key}", value=name, fact=fact, remedy=remedy
                )


def _convention_fault(table: Table, fabric: str, name: object) -> tuple[str, str] | None:
    """What is wrong with a convention on a network, and what to do about it."""
    if name == "flat" and fabric != "torus":
        return "counts the links of all axes of a torus, and there is none", "write `tree`"
    if name in ONLY_NODES and fabric != "nodes":
        other = "`ring` or `axis`" if fabric == "torus" else "`tree`"
        return "is of nodes behind switches, and there are none", f"write {other}"
    if name == "two-regime" and not isinstance(_inside(table).get("measured"), dict):
        return "needs what was measured", "add [nodes.scale_up.measured], or write `tree`"
    if name == "nccl" and not _table(table, "nodes").get("protocol"):
        return "needs protocols to choose from", "add [[nodes.protocol]], or write `tree`"
    return None


def _regime_problems(table: Table, shown: str, operation: str) -> Iterator[Problem]:
    """Sizes of groups in order, and one value of each column for each of them."""
    fits = _table(_table(_inside(table), "measured"), operation)
    sizes = value_at({"fits": fits}, "fits", "n_devices")
    if not isinstance(sizes, list) or not all(map(is_count, sizes)):
        return
    where = f"nodes.scale_up.measured.{operation}"
    if sizes != sorted(set(sizes)) or min(sizes, default=2) < 2:
        fact, remedy = "are not groups of two or more in ascending order", "order the columns"
        key = f"{where}.n_devices"
        yield Problem(where=shown, key=key, value=literal(sizes), fact=fact, remedy=remedy)
    for column in COLUMNS:
        values = value_at({"fits": fits}, "fits", column)
        if isinstance(values, list) and len(values) != len(sizes):
            fact = f"has {len(values)} values for {len(sizes)} sizes of groups"
            remedy = "write one for each of `n_devices`"
            key = f"{where}.{column}"
            yield Problem(where=shown, key=key, value=literal(values), fact=fact, remedy=remedy)


def _inside(table: Table) -> Table:
    return _table(_table(table, "nodes"), "scale_up")


def _table(table: Table, key: str) -> Table:
    inner = table.get(key)
    return inner if isinstance(inner, dict) else {}
