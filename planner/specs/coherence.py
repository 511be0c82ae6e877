"""Faults of devices and clusters that no single value shows: networks in two pieces.

Each check reads the raw table and speaks only where the values it needs are sound, so
that a file with a fault elsewhere is still checked in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from planner.errors import Problem
from planner.specs.network_coherence import network_problems
from planner.specs.tables import Table, is_count, literal, value_at
from planner.specs.values import did_you_mean
from planner.units import UnitError, parse

MAX_DEVICES = 1_000_000
FABRICS = ("torus", "nodes", "linked")


def device_problems(table: Table, shown: str) -> Iterator[Problem]:
    hbm, reserve = value_at(table, "memory", "hbm"), value_at(table, "memory", "reserve")
    try:
        too_large = parse(reserve, "B", allow_zero=True) >= parse(hbm, "B")
    except (UnitError, AttributeError):
        return
    if too_large:
        fact, remedy = f"leaves nothing of the {hbm} of HBM", "reserve less"
        yield Problem(where=shown, key="memory.reserve", value=reserve, fact=fact, remedy=remedy)


def cluster_problems(table: Table, shown: str) -> Iterator[Problem]:
    given = [name for name in FABRICS if name in table]
    if len(given) != 1:
        fact = f"has {'no network' if not given else 'two networks'}"
        remedy = "describe one of [torus], [nodes] and [linked]"
        yield Problem(where=shown, value=", ".join(given), fact=fact, remedy=remedy)
    if "link" in table and "linked" not in table:
        remedy = "name the devices in [linked]"
        yield Problem(where=shown, key="link", fact="joins no devices", remedy=remedy)
    yield from _slice_dims_problems(table, shown)
    yield from _size_problems(table, shown)
    yield from _pair_problems(table, shown)
    yield from network_problems(table, shown)
    yield from _link_problems(table, shown)


def _slice_dims_problems(table: Table, shown: str) -> Iterator[Problem]:
    dims = value_at(table, "torus", "slice_dims")
    if not isinstance(dims, list) or not all(isinstance(dim, int) for dim in dims):
        return
    in_order = sorted(set(dims))
    if dims != in_order:
        fact, remedy = "is not in ascending order", f"write `{literal(in_order)}`"
        yield Problem(
            where=shown, key="torus.slice_dims", value=literal(dims), fact=fact, remedy=remedy
        )


def _size_problems(table: Table, shown: str) -> Iterator[Problem]:
    shape = value_at(table, "torus", "shape")
    nodes = [value_at(table, "nodes", "n_nodes"), value_at(table, "nodes", "n_devices_per_node")]
    for key, counts in (("torus.shape", shape), ("nodes.n_nodes", nodes)):
        if not isinstance(counts, list) or not all(map(is_count, counts)):
            continue
        if math.prod(counts) > MAX_DEVICES:
            fact, remedy = f"is a pool of {math.prod(counts):,} devices", "describe one pod"
            yield Problem(where=shown, key=key, value=literal(counts), fact=fact, remedy=remedy)


def _pair_problems(table: Table, shown: str) -> Iterator[Problem]:
    nodes = table.get("nodes")
    inside = nodes if isinstance(nodes, dict) else {}
    pair, all_of_it = (value_at(inside, "scale_up", key) for key in ("pair_bandwidth", "bandwidth"))
    try:
        too_wide = parse(pair, "B/s") > parse(all_of_it, "B/s")
    except (UnitError, AttributeError, TypeError):
        return
    if too_wide:
        fact = f"is more than the device sends to all others, {all_of_it}"
        remedy = "write the link of one pair, one way"
        key = "nodes.scale_up.pair_bandwidth"
        yield Problem(where=shown, key=key, value=pair, fact=fact, remedy=remedy)


def _link_problems(table: Table, shown: str) -> Iterator[Problem]:
    devices, switches = _names(table, "devices"), _names(table, "switches")
    if not devices:
        return
    yield from repeated([*devices, *switches], "linked.devices", shown)
    known = dict.fromkeys([*devices, *switches])
    entries = table.get("link", [])
    pairs: dict[frozenset[str], int] = {}
    for i, entry in enumerate(entries if isinstance(entries, list) else []):
        ends = (entry.get("a"), entry.get("b")) if isinstance(entry, dict) else (None, None)
        for key, end in zip("ab", ends, strict=True):
            if isinstance(end, str) and end not in known:
                remedy = did_you_mean(end, known, otherwise="list it in `linked.devices`")
                fact = "is neither a device nor a switch"
                yield Problem(
                    where=shown, key=f"link[{i}].{key}", value=end, fact=fact, remedy=remedy
                )
        a, b = ends
        if not isinstance(a, str) or not isinstance(b, str):
            continue
        if a == b:
            fact = "joins a device to itself"
            yield Problem(where=shown, key=f"link[{i}]", value=a, fact=fact, remedy="remove it")
        elif (first := pairs.setdefault(frozenset((a, b)), i)) != i:
            fact, remedy = f"joins the same two as link[{first}]", "give one link their bandwidth"
            yield Problem(
                where=shown, key=f"link[{i}]", value=f"{a}, {b}", fact=fact, remedy=remedy
            )
    yield from _disconnected(devices, pairs, shown)


def _disconnected(
    devices: list[str], pairs: Iterable[frozenset[str]], shown: str
) -> Iterator[Problem]:
    """One problem if some two devices have no path between them, naming two of them."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while (up := parent.get(name, name)) != name:
            parent[name] = parent.get(up, up)  # halves the path for the next to come
            name = up
        return name

    for pair in pairs:
        a, b = sorted(pair)
        parent[root(a)] = root(b)
    for device in devices:
        if root(device) != root(devices[0]):
            fact = f"no path joins `{devices[0]}` and `{device}`"
            remedy = "add a [[link]] between the parts, or plan on each by itself"
            yield Problem(where=shown, key="link", fact=fact, remedy=remedy)
            return


def repeated(items: object, key: str, shown: str) -> Iterator[Problem]:
    """One problem for each item of a list that was in it before."""
    seen: set[str] = set()
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str) and item in seen:
            yield Problem(where=shown, key=key, value=item, fact="is given twice")
        if isinstance(item, str):
            seen.add(item)


def _names(table: Table, key: str) -> list[str]:
    inner = table.get("linked")
    found = inner.get(key) if isinstance(inner, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
