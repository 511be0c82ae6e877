"""Faults that no single value shows: heads that do not divide, networks in two pieces.

Each check reads the raw table and speaks only where the values it needs are sound, so
that a file with a fault elsewhere is still checked in full.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from planner.errors import Problem
from planner.specs.schemas import DEFAULT_TOLERANCE
from planner.specs.tables import Table, literal
from planner.specs.values import did_you_mean
from planner.units import UnitError, parse

MAX_DEVICES = 1_000_000
FABRICS = ("torus", "nodes", "linked")


def device_problems(table: Table, shown: str) -> Iterator[Problem]:
    hbm, reserve = _at(table, "memory", "hbm"), _at(table, "memory", "reserve")
    try:
        too_large = parse(reserve, "B", allow_zero=True) >= parse(hbm, "B")
    except (UnitError, AttributeError):
        return
    if too_large:
        fact, remedy = f"leaves nothing of the {hbm} of HBM", "reserve less"
        yield Problem(where=shown, key="memory.reserve", value=reserve, fact=fact, remedy=remedy)


def model_problems(table: Table, shown: str) -> Iterator[Problem]:
    heads, kv_heads = _count(table, "n_heads"), _count(table, "n_kv_heads")
    served = _count(table, "n_heads_served")
    for key, n_heads in (("n_heads", heads), ("n_heads_served", served)):
        if n_heads and kv_heads and n_heads % kv_heads:
            fact = f"is not a multiple of n_kv_heads, {kv_heads}"
            remedy = "each key-value head serves as many query heads"
            yield Problem(
                where=shown, key=f"shape.{key}", value=str(n_heads), fact=fact, remedy=remedy
            )
    if heads and served and served < heads:
        fact, remedy = f"is fewer than n_heads, {heads}", "heads are padded, never dropped"
        yield Problem(
            where=shown, key="shape.n_heads_served", value=str(served), fact=fact, remedy=remedy
        )
    yield from _n_params_problems(table, shown)
    yield from _repeated(_at(table, "formats", "weights"), "formats.weights", shown)


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
    yield from _link_problems(table, shown)


def _slice_dims_problems(table: Table, shown: str) -> Iterator[Problem]:
    dims = _at(table, "torus", "slice_dims")
    if not isinstance(dims, list) or not all(isinstance(dim, int) for dim in dims):
        return
    in_order = sorted(set(dims))
    if dims != in_order:
        fact, remedy = "is not in ascending order", f"write `{literal(in_order)}`"
        yield Problem(
            where=shown, key="torus.slice_dims", value=literal(dims), fact=fact, remedy=remedy
        )


def _size_problems(table: Table, shown: str) -> Iterator[Problem]:
    shape = _at(table, "torus", "shape")
    nodes = [_at(table, "nodes", "n_nodes"), _at(table, "nodes", "n_devices_per_node")]
    for key, counts in (("torus.shape", shape), ("nodes.n_nodes", nodes)):
        if not isinstance(counts, list) or not all(map(_is_count, counts)):
            continue
        if math.prod(counts) > MAX_DEVICES:
            fact, remedy = f"is a pool of {math.prod(counts):,} devices", "describe one pod"
            yield Problem(where=shown, key=key, value=literal(counts), fact=fact, remedy=remedy)


def _n_params_problems(table: Table, shown: str) -> Iterator[Problem]:
    keys = ("n_layers", "d_model", "d_ff", "n_heads", "n_kv_heads", "d_head", "vocab_size")
    counts = [_count(table, key) for key in keys]
    n_ffn_matrices, tied = _count(table, "n_ffn_matrices"), _at(table, "shape", "tied_embeddings")
    published = _at(table, "check", "n_params")
    tolerance = _at(table, "check", "tolerance", default=DEFAULT_TOLERANCE)
    if not all(counts) or n_ffn_matrices not in (2, 3) or not isinstance(tied, bool):
        return
    if not _is_positive(published) or not _is_positive(tolerance):
        return
    L, E, F, H, K, D, V = counts
    layer = n_ffn_matrices * E * F + 2 * E * D * (H + K)
    counted = L * layer + V * E * (1 if tied else 2)
    if abs(counted - published) > tolerance * published:
        fact = f"the shape has {counted:.4g} parameters, {published:.4g} are published"
        remedy = f"mend the shape: they may differ by {tolerance:.1%}"
        yield Problem(
            where=shown, key="check.n_params", value=literal(published), fact=fact, remedy=remedy
        )


def _link_problems(table: Table, shown: str) -> Iterator[Problem]:
    devices, switches = _names(table, "devices"), _names(table, "switches")
    if not devices:
        return
    yield from _repeated([*devices, *switches], "linked.devices", shown)
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


def _repeated(items: object, key: str, shown: str) -> Iterator[Problem]:
    seen: set[str] = set()
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str) and item in seen:
            yield Problem(where=shown, key=key, value=item, fact="is given twice")
        if isinstance(item, str):
            seen.add(item)


def _at(table: Table, section: str, key: str, *, default: object = None) -> Any:  # noqa: ANN401 as TOML has it
    """A value, whether it stands alone or with its source."""
    inner = table.get(section)
    found = inner.get(key, default) if isinstance(inner, dict) else default
    return found.get("value", default) if isinstance(found, dict) else found


def _count(table: Table, key: str) -> int:
    """A number of the shape; 0 if it is missing or no positive whole number."""
    found = _at(table, "shape", key)
    return found if _is_count(found) else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10**9


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e30


def _names(table: Table, key: str) -> list[str]:
    inner = table.get("linked")
    found = inner.get(key) if isinstance(inner, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []
