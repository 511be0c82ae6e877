"""How far off times are beyond what errors of kernels explain, by runtime and kind of model.

The figures are in `model_errors.csv`, which `python -m tests.papers.sets.intervals --write` makes
of measurements that constants may be fitted to; how often intervals hold is counted on others.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from planner.specs.judged import ModelKind

Quantity = Literal["TPOT", "TTFT"]

QUANTITIES: tuple[Quantity, ...] = ("TPOT", "TTFT")

ANY = "any"
"""Whose figures a runtime has that was measured on too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelError:
    """Of one runtime, kind of model and quantity.

    Args:
        runtime: its name, or `any`.
        kind: `dense`, or `mixture` of experts.
        quantity: `TPOT` or `TTFT`.
        deviation_fraction: relative standard deviation, to be added to that of kernels in
            quadrature [1].
        n_rows: measurements that it is of.
        n_groups: models on devices among them.
        source: where they are from.
    """

    runtime: str
    kind: ModelKind
    quantity: Quantity
    deviation_fraction: float
    n_rows: int
    n_groups: int
    source: str


@cache
def model_errors() -> tuple[ModelError, ...]:
    """All of them, in the order of the file."""
    text = files("planner.specs").joinpath("model_errors.csv").read_text(encoding="utf-8")
    return tuple(_model_error(row) for row in csv.DictReader(text.splitlines()))


@cache
def model_error(runtime: str, kind: ModelKind, quantity: Quantity) -> float:
    """Relative standard deviation of a runtime's times beyond its kernels' [1]."""
    of = {
        one.runtime: one for one in model_errors() if (one.kind, one.quantity) == (kind, quantity)
    }
    return (of.get(runtime) or of[ANY]).deviation_fraction


def kernels_share(error: float, runtime: str, kind: ModelKind, quantity: Quantity) -> float:
    """What is left of a time's error without its model's, which deployments have in common [1]."""
    return math.sqrt(max(0.0, error**2 - model_error(runtime, kind, quantity) ** 2))


def _model_error(row: dict[str, str]) -> ModelError:
    kind: ModelKind = "mixture" if row["kind"] == "mixture" else "dense"
    return ModelError(
        runtime=row["runtime"],
        kind=kind,
        quantity="TTFT" if row["quantity"] == "TTFT" else "TPOT",
        deviation_fraction=float(row["deviation_fraction"]),
        n_rows=int(row["n_rows"]),
        n_groups=int(row["n_groups"]),
        source=row["source"],
    )
