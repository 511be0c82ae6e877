"""How far off times are beyond what errors of kernels explain, by runtime and kind of model.

The figures are in `model_errors.csv`, which `python -m research.sets.intervals --write` makes
of measurements that constants may be fitted to; how often intervals hold is counted on others.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from planner.specs.records.devices import DeviceSpec
from planner.specs.records.kernels import EngineSpec
from planner.specs.records.runtimes import ROOFLINE, ModelKind, packaged_rows
from planner.specs.region import Outside, further_deviation

Quantity = Literal["TPOT", "TTFT"]

QUANTITIES: tuple[Quantity, ...] = ("TPOT", "TTFT")

ANY = "any"
"""Whose figures a runtime, or a device, has that was measured on too little."""

ATTAINABLE = ("attainable.compute_fraction", "attainable.hbm_fraction")
"""What a roofline takes of a device beside its datasheet; overheads are its layers'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelError:
    """Of one runtime, device, kind of model and quantity.

    Args:
        runtime: its name, or `any`.
        device: its name, or `any` of those that the runtime was measured on.
        kind: `dense`, or `mixture` of experts.
        quantity: `TPOT` or `TTFT`.
        deviation_fraction: relative standard deviation, to be added to that of kernels in
            quadrature [1].
        n_rows: measurements that it is of.
        n_groups: models on devices among them.
        source: where they are from.
        common_fraction: of any runtime, the correlation of the errors of two engines that run a
            model on a device alike; 0 where no such pairs were measured [1].
    """

    runtime: str
    device: str
    kind: ModelKind
    quantity: Quantity
    deviation_fraction: float
    n_rows: int
    n_groups: int
    source: str
    common_fraction: float = 0.0


@cache
def model_errors() -> tuple[ModelError, ...]:
    """All of them, in the order of the file."""
    return packaged_rows("model_errors.csv", ModelError)


@cache
def model_error(runtime: str, kind: ModelKind, quantity: Quantity) -> float:
    """Relative standard deviation of a runtime's times beyond its kernels' [1]."""
    of = _of(kind, quantity)
    return (of.get((runtime, ANY)) or of[ANY, ANY]).deviation_fraction


def engine_error(engine: EngineSpec, kind: ModelKind, quantity: Quantity) -> float:
    """Relative standard deviation of an engine's times beyond its kernels' [1].

    Of a calibrated engine it is its calibration's.
    """
    own = engine.calibration
    if own is None:
        return model_error(engine.name, kind, quantity)
    return own.tpot_error if quantity == "TPOT" else own.ttft_error


def common_error(kind: ModelKind, quantity: Quantity) -> float:
    """The correlation of errors of two engines that run a model on a device alike [1]."""
    return _of(kind, quantity)[ANY, ANY].common_fraction


def roofline_error(device: DeviceSpec, kind: ModelKind, quantity: Quantity) -> float | None:
    """The same of one roofline a layer, which no error of kernels comes on top of [1].

    None on devices of which nobody says what they attain: whatever is measured on others says
    nothing of them.
    """
    if why_unmeasured(device):
        return None
    of = _of(kind, quantity)
    return (of.get((ROOFLINE.name, device.name)) or of[ROOFLINE.name, ANY]).deviation_fraction


def why_unmeasured(device: DeviceSpec) -> str:
    """Why no error of a roofline is known of a device; empty where one is."""
    guessed = [one for one in device.provenance if one.key in ATTAINABLE and one.is_assumed]
    return f"nobody measured what {device.name} attains" if len(guessed) == len(ATTAINABLE) else ""


def _of(kind: ModelKind, quantity: Quantity) -> dict[tuple[str, str], ModelError]:
    """By runtime and device."""
    some = (one for one in model_errors() if (one.kind, one.quantity) == (kind, quantity))
    return {(one.runtime, one.device): one for one in some}


def kernels_share(error: float, of_model: float, outside: Iterable[Outside] = ()) -> float:
    """What is left of a time's error without its model's, which deployments have in common [1].

    Nor with what it errs more by outside the measured region, which is planned for.

    Args:
        of_model: what `engine_error` says of the time.
    """
    common = math.hypot(of_model, further_deviation(outside))
    return math.sqrt(max(0.0, error**2 - common**2))
