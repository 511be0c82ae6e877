"""Values of a user's file that something else overrules, and what wins: remarks, not faults.

What times an answer decides which values count. Layouts read a cluster by its conventions; an
engine has kernels, and shares of memory, of its own; the economics cost model knows datasheets
only. A file that ships is known to be so; of a file of the user's it is said.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from planner.errors import Problem
from planner.specs.files.file_layouts import ModelFile
from planner.specs.files.ledger import ECONOMICS, ENGINES, LAYOUTS, remark
from planner.specs.records.devices import ClusterSpec, NodesFabric, TorusFabric, TwoRegimes

_LINKS = ("bandwidth", "latency", "attainable_fraction")
_NETWORKS = ("activation_network", "bulk_network")
_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Overruled(NamedTuple):
    """Keys without effect where something times an answer, and why."""

    timing: str
    keys: tuple[str, ...]
    fact: str


_OF_DEVICES = (
    Overruled(
        ENGINES,
        ("attainable", "memory.reserve"),
        "have no effect under an engine: constants of its kernels and its share of memory win",
    ),
    Overruled(
        ECONOMICS,
        ("attainable.layer_overhead", "attainable.roofline_exponent"),
        "have no effect by `--engine erdil2025`: it has launches and a roofline of its own",
    ),
)


def remark_device(shown: str) -> None:
    """Remark what of a device's file has no effect."""
    _remark(_OF_DEVICES, shown)


def remark_cluster(cluster: ClusterSpec, shown: str, *, like: str = "") -> None:
    """Remark what of a cluster's file has no effect.

    Args:
        like: the topology that it has its assumed values from, of which nothing is said.
    """
    said = [one.key for one in cluster.provenance if not (like and one.is_assumed)]
    rows: Iterable[Overruled] = ()
    if isinstance(cluster.fabric, NodesFabric):
        rows = _of_nodes(cluster.fabric)
    elif isinstance(cluster.fabric, TorusFabric):
        rows = _OF_TORI
    for row in rows:
        own = [
            key
            for key in row.keys
            if not like or any(f"{it}.".startswith(f"{key}.") for it in said)
        ]
        _remark((row._replace(keys=tuple(own)),), shown)


def remark_model(file: ModelFile, shown: str) -> None:
    """Remark what of a model's file has no effect."""
    moe = file.moe
    if moe and not moe.n_dense_layers:
        fact = "has no effect: every layer has experts, of `moe.d_expert`"
        remark(Problem(where=shown, key="shape.d_ff", fact=fact))
    _remark(
        (
            Overruled(
                ENGINES,
                ("shape.n_heads_served",) if file.n_heads_served else (),
                "has no effect under an engine: heads are divided as published",
            ),
        ),
        shown,
    )


_OF_TORI = (
    Overruled(
        ENGINES,
        tuple(f"torus.{k}" for k in ("wrap_multiple", "wraps_each_axis", "slice_dims", *_NETWORKS)),
        "have no effect under an engine: to it all chips are one node",
    ),
)


def _of_nodes(fabric: NodesFabric) -> Iterator[Overruled]:
    conventions = {fabric.activation_network, fabric.bulk_network}
    links = tuple(f"nodes.scale_up.{key}" for key in _LINKS)
    measured = fabric.scale_up_measured
    between_stages = "[nodes.scale_up.measured] wins; they time what stages hand over"
    if conventions == {"two-regime"}:
        yield Overruled(LAYOUTS, links, f"time no collectives: {between_stages}")
    elif measured and "two-regime" not in conventions:
        fact = "has no effect on layouts: no network of [nodes] is `two-regime`"
        yield Overruled(LAYOUTS, ("nodes.scale_up.measured",), fact)
    if fabric.protocols and "nccl" not in conventions:
        fact = "has no effect: no network of [nodes] is `nccl`"
        yield Overruled(LAYOUTS, ("nodes.protocol",), fact)
    if conventions == {"nccl"}:
        keys = ("nodes.scale_up.latency", "nodes.scale_out.latency")
        yield Overruled(LAYOUTS, keys, "have no effect: hops of [[nodes.protocol]] win")
    yield from _of_nodes_elsewhere(fabric)
    if measured:
        yield Overruled(ENGINES, links, f"time no collectives: {between_stages}")
        yield Overruled(
            ENGINES,
            ("nodes.scale_up.measured.all_to_all",),
            "has no effect under an engine: its kernels that dispatch and combine win",
        )
        yield from _beyond_a_node(fabric)


def _of_nodes_elsewhere(fabric: NodesFabric) -> Iterator[Overruled]:
    """What engines and the economics cost model read nothing of."""
    pair = fabric.scale_up_pair_bytes_per_s is not None
    more = ("scale_up.pair_bandwidth",) * pair + ("protocol",) * bool(fabric.protocols)
    fact = "have no effect under an engine: links, or measured collectives, time its messages"
    yield Overruled(ENGINES, tuple(f"nodes.{key}" for key in (*_NETWORKS, *more)), fact)
    tiers = [f"{tier}.{key}" for tier in ("scale_up", "scale_out") for key in _LINKS[1:]]
    tables = ("scale_up.measured",) * (fabric.scale_up_measured is not None)
    fact = "have no effect by `--engine erdil2025`: it knows bandwidths of datasheets"
    yield Overruled(
        ECONOMICS, tuple(f"nodes.{key}" for key in (*_NETWORKS, *tiers, *more, *tables)), fact
    )


def _beyond_a_node(fabric: NodesFabric) -> Iterator[Overruled]:
    """Measured groups that no node holds, nor any that lies between two of them."""
    for name in _COLLECTIVES:
        fits: TwoRegimes = getattr(fabric.scale_up_measured, name)
        below = (0, *fits.n_devices[:-1])
        beyond = [
            n
            for n, smaller in zip(fits.n_devices, below, strict=True)
            if smaller >= fabric.n_devices_per_node
        ]
        if beyond:
            sizes = ", ".join(map(str, beyond))
            fact = f"groups of {sizes} have no effect: a node has {fabric.n_devices_per_node}"
            for timing in (LAYOUTS, ENGINES):
                yield Overruled(timing, (f"nodes.scale_up.measured.{name}",), fact)


def _remark(overruled: Iterator[Overruled] | tuple[Overruled, ...], shown: str) -> None:
    for one in overruled:
        if one.keys:
            remark(Problem(where=shown, key=", ".join(one.keys), fact=one.fact), timing=one.timing)
