"""How far off times are beyond what errors of kernels explain, read from the table once more."""

import csv
import math
from functools import cache
from importlib.resources import files

from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineSpec


@cache
def _rows() -> dict[tuple[str, ...], dict[str, str]]:
    """Rows by runtime, device, kind of model and quantity."""
    text = (files("planner.specs") / "model_errors.csv").read_text(encoding="utf-8")
    names = ("runtime", "device", "kind", "quantity")
    return {tuple(row[it] for it in names): row for row in csv.DictReader(text.splitlines())}


def correlation(kind: str, quantity: str) -> float:
    """Of the errors of two engines that run a model on a device alike [1]."""
    return float(_rows()["any", "any", kind, quantity]["common_fraction"])


def deviation(runtime: str, kind: str, quantity: str) -> float:
    """Of a runtime's times; of any runtime's where nothing was measured on its own [1]."""
    rows, names = _rows(), (runtime, "any", kind, quantity)
    return float(rows[names if names in rows else ("any", *names[1:])]["deviation_fraction"])


def engine_deviation(engine: EngineSpec, kind: str, quantity: str) -> float:
    """Of an engine's times, by its calibration where it has one [1]."""
    if engine.calibration is not None:
        return {"TPOT": engine.calibration.tpot_error, "TTFT": engine.calibration.ttft_error}[
            quantity
        ]
    return deviation(engine.name, kind, quantity)


def roofline_deviation(device: DeviceSpec, kind: str, quantity: str) -> float | None:
    """Of a roofline; None of devices on which what they attain is assumed, all of it [1]."""
    assumed = {one.key for one in device.provenance if one.is_assumed}
    if {"attainable.compute_fraction", "attainable.hbm_fraction"} <= assumed:
        return None
    own = _rows().get(("roofline", device.name, kind, quantity))
    return float(own["deviation_fraction"]) if own else deviation("roofline", kind, quantity)


def deviations(share: float) -> float:
    """How many of them an interval is wide that holds a share of all cases.

    By Student's law of two degrees of freedom; one holds erf(1/√2) of them, as a normal one does.
    """
    confidence = math.erf(math.sqrt(0.5))
    return share / confidence * math.sqrt((1 - confidence * confidence) / (1 - share * share))
