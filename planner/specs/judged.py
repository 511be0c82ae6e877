"""How far off the times of a runtime were on measurements that no constant of it was fitted to.

The figures are in `judged.csv`, which `python -m tests.papers.judged` makes of `tests/data`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

ModelKind = Literal["dense", "mixture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Predicted over measured, less one, of the rows of one runtime, device and kind of model.

    Args:
        runtime, device: their names.
        kind: `dense`, or `mixture` of experts.
        quantity: what was measured.
        n_rows: measurements.
        mean_error_fraction: mean of the absolute values [1].
        bias_fraction: plain mean: below zero, predictions are too fast for times [1].
        rows: what was measured, and under which circumstances.
        source: where the rows are from.
    """

    runtime: str
    device: str
    kind: ModelKind
    quantity: str
    n_rows: int
    mean_error_fraction: float
    bias_fraction: float
    rows: str
    source: str


@cache
def judgements() -> tuple[Judged, ...]:
    """All of them, in the order of the file."""
    return packaged_rows("judged.csv", Judged)


def quickness(device: str, kind: ModelKind) -> float:
    """Measured over predicted time of decode passes of rooflines on a device, on average [1].

    1 where none were measured, and where they are predicted too slow.
    """
    found = (it for it in judged_on("roofline", device, kind) if it.quantity == "TPOT")
    return max([1.0, *(1.0 / (1.0 + it.bias_fraction) for it in found)])


def judged_on(runtime: str, device: str, kind: ModelKind) -> tuple[Judged, ...]:
    """What a runtime was judged on; empty where nothing was measured on the device."""
    wanted = (runtime, device, kind)
    return tuple(one for one in judgements() if (one.runtime, one.device, one.kind) == wanted)


_Row = TypeVar("_Row")

_READ: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float}
"""What reads a cell, by the hint of its field; any other is text."""


def packaged_rows(file: str, record: type[_Row]) -> tuple[_Row, ...]:
    """All rows of a file beside the modules of `planner.specs`, in its order.

    Args:
        record: a dataclass whose fields are the columns.
    """
    text = files("planner.specs").joinpath(file).read_text(encoding="utf-8")
    read = {one.name: _READ.get(str(one.type), str) for one in fields(record)}  # type: ignore[arg-type]
    return tuple(
        record(**{name: of(row[name]) for name, of in read.items()})
        for row in csv.DictReader(text.splitlines())
    )
