"""How far off the times of a runtime were on measurements that no constant of it was fitted to.

The figures are in `judged.csv`, which `python -m tests.papers.judged` makes of `tests/data`.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

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
    text = files("planner.specs").joinpath("judged.csv").read_text(encoding="utf-8")
    return tuple(_judged(row) for row in csv.DictReader(text.splitlines()))


def judged_on(runtime: str, device: str, kind: ModelKind) -> tuple[Judged, ...]:
    """What a runtime was judged on; empty where nothing was measured on the device."""
    wanted = (runtime, device, kind)
    return tuple(one for one in judgements() if (one.runtime, one.device, one.kind) == wanted)


def _judged(row: dict[str, str]) -> Judged:
    kind: ModelKind = "mixture" if row["kind"] == "mixture" else "dense"
    return Judged(
        runtime=row["runtime"],
        device=row["device"],
        kind=kind,
        quantity=row["quantity"],
        n_rows=int(row["n_rows"]),
        mean_error_fraction=float(row["mean_error_fraction"]),
        bias_fraction=float(row["bias_fraction"]),
        rows=row["rows"],
        source=row["source"],
    )
