"""Faults of devices and clusters that no single value shows: networks in two pieces.

Each check speaks only of values that are sound by themselves, by the fields of the record, so that
a file with a fault elsewhere is still checked, and a record that was altered as well.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from planner.quantities.units import show
from planner.specs.files.tables import is_count
from planner.specs.records.devices import Link, MeasuredCollectives, NodesFabric, TwoRegimes
from planner.specs.validation.hints import hints_of
from planner.specs.validation.problems import UNSOUND, Finding, did_you_mean, repeated

MAX_DEVICES = 1_000_000
FABRICS = ("torus", "nodes", "linked")

Said = Mapping[str, Any]
"""Values of a record that are sound, by field."""


def device_faults(said: Said) -> Iterator[Finding]:
    hbm, reserve = said.get("hbm_bytes") or math.inf, said.get("reserve_bytes") or 0.0
    if reserve >= hbm:
        yield Finding("reserve_bytes", "leaves nothing of the HBM", "reserve less")


def file_faults(said: Said) -> Iterator[Finding]:
    """Everything in a cluster's file that is wrong only together with something else."""
    given = [name for name in FABRICS if name in said]
    if len(given) != 1:
        fact = f"has {'no network' if not given else 'two networks'}"
        remedy = "describe one of [torus], [nodes] and [linked]"
        yield Finding("", fact, remedy, value=", ".join(given))
    if "link" in said and "linked" not in said:
        yield Finding("link", "joins no devices", "name the devices in [linked]")
    yield from cluster_faults(said)


def cluster_faults(said: Said) -> Iterator[Finding]:
    """What does not fit together in a network: a torus, nodes, or devices that are linked."""
    torus, nodes, linked = (said.get(name) for name in FABRICS)
    if torus:
        in_order = tuple(sorted(set(torus.slice_dims)))
        if tuple(torus.slice_dims) != in_order:
            remedy = f"write `[{', '.join(map(str, in_order))}]`"
            yield Finding("torus.slice_dims", "is not in ascending order", remedy)
        yield from _size_faults("torus.shape", torus.shape)
    if nodes:
        yield from _size_faults("nodes.n_nodes", (nodes.n_nodes, nodes.n_devices_per_node))
        yield from _pair_faults(nodes)
    yield from network_faults(said)
    if linked:
        devices, switches = linked.devices, getattr(linked, "switches", None)
        yield from _link_faults(devices, switches, said.get("link", ()))


def _size_faults(field: str, counts: Iterable[int]) -> Iterator[Finding]:
    """A pool of more devices than anybody has."""
    counts = list(counts)
    if all(map(is_count, counts)) and math.prod(counts) > MAX_DEVICES:
        yield Finding(field, f"is a pool of {math.prod(counts):,} devices", "describe one pod")


def _pair_faults(nodes: NodesFabric) -> Iterator[Finding]:
    pair, whole = nodes.scale_up_pair_bytes_per_s, nodes.scale_up_bytes_per_s
    if pair and whole and pair > whole:
        fact = f"is more than the device sends to all others, {show(whole, 'B/s')}"
        remedy = "write the link of one pair, one way"
        yield Finding("nodes.scale_up_pair_bytes_per_s", fact, remedy)


def _link_faults(
    devices: Sequence[str], switches: Sequence[str] | None, links: Sequence[Link]
) -> Iterator[Finding]:
    """Names twice, links that join nothing, and parts that no path joins.

    Args:
        switches: None where nobody lists them: they are the other ends of links.
    """
    yield from repeated([*devices, *(switches or ())], "linked.devices")
    ends = chain.from_iterable(map(attrgetter("a", "b"), links))
    known = dict.fromkeys([*devices, *(ends if switches is None else switches)])
    pairs: dict[frozenset[str], int] = {}
    for i, link in enumerate(links):
        for key, end in zip("ab", (link.a, link.b), strict=True):
            if end and end not in known:
                remedy = did_you_mean(end, known, otherwise="list it in `linked.devices`")
                fact = "is neither a device nor a switch"
                yield Finding(f"link[{i}].{key}", fact, remedy, value=end)
        if not all((link.a, link.b)):
            continue
        if link.a == link.b:
            yield Finding(f"link[{i}]", "joins a device to itself", "remove it", value=link.a)
        elif (first := pairs.setdefault(frozenset((link.a, link.b)), i)) != i:
            fact, remedy = f"joins the same two as link[{first}]", "give one link their bandwidth"
            yield Finding(f"link[{i}]", fact, remedy, value=f"{link.a}, {link.b}")
    yield from _disconnected(devices, pairs)


def _disconnected(devices: Sequence[str], pairs: Iterable[frozenset[str]]) -> Iterator[Finding]:
    """One fault if some two devices have no path between them, naming two of them."""
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
            yield Finding("link", fact, remedy, value="")
            return


NETWORKS = ("activation_network", "bulk_network")
ONLY_NODES = ("two-regime", "nccl")


def network_faults(said: Mapping[str, Any]) -> Iterator[Finding]:
    """Conventions that the network cannot have, and measurements that do not fit together."""
    for kind in ("torus", "nodes", "linked"):
        for name in NETWORKS if said.get(kind) else ():
            fault = _convention_fault(said[kind], kind, getattr(said[kind], name))
            if fault:
                yield Finding(f"{kind}.{name}", *fault)
    nodes: Any = said.get("nodes")
    for operation in hints_of(MeasuredCollectives) if nodes and nodes.scale_up_measured else ():
        fits = getattr(nodes.scale_up_measured, operation)
        yield from _regime_faults(fits, f"nodes.scale_up_measured.{operation}")


def _convention_fault(fabric: Any, kind: str, name: str) -> tuple[str, str] | None:  # noqa: ANN401
    """What is wrong with a convention on a network, and what to do about it.

    `flat` is of a torus: behind a switch no link is idle that another group could use. `two-regime`
    and `nccl` are of nodes, with what was measured in them or with protocols to choose from.
    """
    if name == "flat" and kind != "torus":
        return "counts the links of all axes of a torus, and there is none", "write `tree`"
    if name in ONLY_NODES and kind != "nodes":
        other = "`ring` or `axis`" if kind == "torus" else "`tree`"
        return "is of nodes behind switches, and there are none", f"write {other}"
    if name == "two-regime" and fabric.scale_up_measured is None:
        return "needs what was measured", "add [nodes.scale_up.measured], or write `tree`"
    if name == "nccl" and not fabric.protocols and fabric.protocols is not UNSOUND:
        return "needs protocols to choose from", "add [[nodes.protocol]], or write `tree`"
    return None


def _regime_faults(fits: TwoRegimes, field: str) -> Iterator[Finding]:
    """Sizes of groups in order, and one value of each column for each of them."""
    sizes = [*fits.n_devices]
    if sizes != sorted(set(sizes)) or min(sizes, default=2) < 2:
        fact, remedy = "are not groups of two or more in ascending order", "order the columns"
        yield Finding(f"{field}.n_devices", fact, remedy)
    for column in [name for name in hints_of(TwoRegimes) if name != "n_devices"]:
        n_values = len(getattr(fits, column))
        if n_values != len(sizes):
            fact = f"has {n_values} of {len(sizes)} values"
            yield Finding(f"{field}.{column}", fact, "write one for each of `n_devices`")
