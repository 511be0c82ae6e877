"""How far predictions are off: bias, mean and median of |predicted / measured − 1|."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Of some rows [1]; positive where what is predicted is longer than what was measured."""

    bias: float
    mean: float
    median: float
    n_rows: int


def deviation(predicted: Sequence[float], measured: Sequence[float]) -> Deviation:
    """Of pairs; those that were not measured, NaN, are left out."""
    off = np.asarray(predicted) / np.asarray(measured) - 1.0
    off = off[np.isfinite(off)]
    return Deviation(
        bias=float(off.mean()),
        mean=float(np.abs(off).mean()),
        median=float(np.median(np.abs(off))),
        n_rows=off.size,
    )


def table(found: Mapping[str, Deviation], beside: Mapping[str, str] | None = None) -> Iterator[str]:
    """Lines of deviations by name, in per cent, with remarks beside."""
    yield f"  {'':34} {'bias':>7} {'mean':>6} {'median':>6}   rows"
    for name, one in found.items():
        remark = (beside or {}).get(name, "")
        figures = f"{100 * one.bias:+7.1f} {100 * one.mean:6.1f} {100 * one.median:6.1f}"
        yield f"  {name:34} {figures}   {one.n_rows:4}   {remark}".rstrip()
