"""How far off the times of a runtime were on measurements that no constant of it was fitted to.

The figures are in `judged.csv`, which `python -m tests.papers.judged` makes of `tests/data`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from planner.specs.packaged_rows import packaged_rows

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
