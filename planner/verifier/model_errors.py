"""How far off times are beyond what errors of kernels explain, read from the table once more."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib.resources import files

from planner.specs.records import DeviceSpec


@cache
def _deviations() -> dict[tuple[str, str, str, str], float]:
    """Relative standard deviations by runtime, device, kind of model and quantity [1]."""
    text = (files("planner.specs") / "model_errors.csv").read_text(encoding="utf-8")
    names = ("runtime", "device", "kind", "quantity")
    return {
        tuple(row[name] for name in names): float(row["deviation_fraction"])  # type: ignore[misc]
        for row in csv.DictReader(text.splitlines())
    }


def deviation(runtime: str, kind: str, quantity: str) -> float:
    """Of a runtime's times; of any runtime's where nothing was measured on its own [1]."""
    of = _deviations()
    own = of.get((runtime, "any", kind, quantity))
    return of["any", "any", kind, quantity] if own is None else own


def roofline_deviation(device: DeviceSpec, kind: str, quantity: str) -> float | None:
    """Of a roofline; None of devices on which what they attain is assumed, all of it [1]."""
    assumed = {one.key for one in device.provenance if one.is_assumed}
    if {"attainable.compute_fraction", "attainable.hbm_fraction"} <= assumed:
        return None
    own = _deviations().get(("roofline", device.name, kind, quantity))
    return deviation("roofline", kind, quantity) if own is None else own


def deviations(share: float) -> float:
    """How many of them an interval is wide that holds a share of all cases.

    By Student's law of two degrees of freedom; one holds erf(1/√2) of them, as a normal one does.
    """
    one = math.erf(math.sqrt(0.5))
    return share / one * math.sqrt((1 - one * one) / (1 - share * share))
