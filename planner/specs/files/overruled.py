"""Values of a user's file that something else overrules, and what wins: remarks, not faults.

What times an answer decides which values count. Layouts read a cluster by its conventions; an
engine has kernels, and shares of memory, of its own; the economics cost model knows datasheets
only. A file that ships is known to be so; of a file of the user's it is said.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.specs.files.file_layouts import ModelFile
from planner.specs.files.ledger import ENGINES, LAYOUTS, remark
from planner.specs.records.devices import ClusterSpec, NodesFabric, TorusFabric, TwoRegimes

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Overruled(NamedTuple):
    """Keys without effect where something times an answer, and why."""

    timing: str
    keys: tuple[str, ...]
    fact: str


@cache
def _table() -> dict[str, list[dict[str, Any]]]:
    """Rows of `overruled.toml`, by what they are of."""
    return packaged_table("specs/validation/overruled.toml")


def remark_device(shown: str) -> None:
    """Remark what of a device's file has no effect."""
    _remark(_rows("device"), shown)


def remark_cluster(cluster: ClusterSpec, shown: str, *, like: str = "") -> None:
    """Remark what of a cluster's file has no effect.

    Args:
        like: the topology that it has its assumed values from, of which nothing is said.
    """
    said = [one.key for one in cluster.provenance if not one.is_assumed]
    rows: Iterable[Overruled] = ()
    if isinstance(cluster.fabric, NodesFabric):
        rows = _of_nodes(cluster.fabric)
    elif isinstance(cluster.fabric, TorusFabric):
        rows = _rows("torus")

    def is_own(key: str) -> bool:
        return not like or any(f"{it}.".startswith(f"{key}.") for it in said)

    _remark((row._replace(keys=tuple(filter(is_own, row.keys))) for row in rows), shown)


def remark_model(file: ModelFile, shown: str) -> None:
    """Remark what of a model's file has no effect."""
    moe = file.moe
    if moe and not moe.n_dense_layers:
        fact = "has no effect: every layer has experts, of `moe.d_expert`"
        remark(Problem(where=shown, key="shape.d_ff", fact=fact))
    _remark(_rows("model") if file.n_heads_served else (), shown)


def _rows(of: str, holds: Collection[str] = ()) -> Iterator[Overruled]:
    """Rows of a kind of file.

    Args:
        holds: words that hold, of `when` and `also`.
    """
    for row in _table()[of]:
        if all(
            (word in holds) if word[0] != "!" else (word[1:] not in holds)
            for word in row.get("when", "").split()
        ):
            also = (key for word, key in row.get("also", {}).items() if word in holds)
            yield Overruled(row["timing"], (*row["keys"], *also), row["fact"])


def _of_nodes(fabric: NodesFabric) -> Iterator[Overruled]:
    conventions = {fabric.activation_network, fabric.bulk_network}
    parts = {
        "measured": fabric.scale_up_measured,
        "protocols": fabric.protocols or None,
        "pair": fabric.scale_up_pair_bytes_per_s,
    }
    holds = conventions | {word for word, part in parts.items() if part is not None}
    yield from _rows("nodes", holds | {f"only-{n}" for n in conventions if len(conventions) == 1})
    yield from _beyond_a_node(fabric) if fabric.scale_up_measured else ()


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


def _remark(overruled: Iterable[Overruled], shown: str) -> None:
    for one in overruled:
        if one.keys:
            remark(Problem(where=shown, key=", ".join(one.keys), fact=one.fact), timing=one.timing)
