"""Faults of the conventions by which collectives are costed, and of what these read.

flat         a torus only: behind a switch no link is idle that another group could use
two-regime   nodes only, with `[nodes.scale_up.measured]`
nccl         nodes only, with at least one `[[nodes.protocol]]`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.specs.records import MeasuredCollectives, TwoRegimes
from planner.specs.validation.hints import hints_of
from planner.specs.validation.problems import UNSOUND, Finding

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
    """What is wrong with a convention on a network, and what to do about it."""
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
            fact, remedy = (
                f"has {n_values} of {len(sizes)} values",
                "write one for each of `n_devices`",
            )
            yield Finding(f"{field}.{column}", fact, remedy)
