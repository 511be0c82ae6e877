"""Predicted against measured time of kernels, one panel a family, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from planner.quantities.units import show
from planner.report.words import escape, percent

if TYPE_CHECKING:
    from planner.tools.calibration.calibrating import Calibration
    from planner.tools.calibration.fitting import Fitted

PANEL, GAP, LEFT, TOP = 230, 56, 52, 56
N_COLUMNS = 3
BAND = 1.25
MOST_POINTS = 600
"""Points of one panel: more of them are a blot and a large file."""


def fits_svg(answer: Calibration) -> str:
    """A log-log panel for each kernel: measured across, predicted upwards, a band of ±25 %."""
    n_rows = math.ceil(len(answer.fitted) / N_COLUMNS)
    n_columns = min(N_COLUMNS, len(answer.fitted))
    wide = LEFT + n_columns * (PANEL + GAP)
    high = TOP + n_rows * (PANEL + GAP + 24)
    title = f"{answer.device.title} under {answer.table.engine}: predicted against measured time"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" '
        'font-family="sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
    ]
    for place, fitted in enumerate(answer.fitted):
        row, column = divmod(place, N_COLUMNS)
        x, y = LEFT + column * (PANEL + GAP), TOP + row * (PANEL + GAP + 24)
        lines += _panel(fitted, x, y)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(fitted: Fitted, x: int, y: int) -> Iterator[str]:
    measured, predicted = fitted.table.measured_s, fitted.predicted_s
    low = math.log10(min(measured.min(), predicted.min())) - 0.1
    high = math.log10(max(measured.max(), predicted.max())) + 0.1

    def across(seconds: float) -> float:
        return x + PANEL * (math.log10(seconds) - low) / (high - low)

    def up(seconds: float) -> float:
        return y + PANEL * (1 - (math.log10(seconds) - low) / (high - low))

    first, last = 10**low, 10**high
    name = f"{fitted.table.family} {fitted.table.format}"
    errors = f"left out: {percent(fitted.outside.median)}, p90 {percent(fitted.outside.p90)}"
    yield f'<text x="{x}" y="{y - 18}" font-weight="bold">{escape(name)}</text>'
    yield f'<text x="{x}" y="{y - 5}" fill="#555">{escape(errors)}</text>'
    corners = (
        (first, first),
        (first, first * BAND),
        (last / BAND, last),
        (last, last),
        (last, last / BAND),
        (first * BAND, first),
    )
    outline = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in corners)
    yield f'<polygon points="{outline}" fill="#eee"/>'
    yield (
        f'<path d="M{across(first):.1f} {up(first):.1f}L{across(last):.1f} {up(last):.1f}" '
        'stroke="#999"/>'
    )
    yield f'<rect x="{x}" y="{y}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#333"/>'
    for power in range(math.ceil(low), math.floor(high) + 1):
        label = show(10.0**power, "s")
        at_x, at_y = across(10.0**power), up(10.0**power)
        yield f'<path d="M{at_x:.1f} {y + PANEL}v-5M{x} {at_y:.1f}h5" stroke="#333"/>'
        yield f'<text x="{at_x:.1f}" y="{y + PANEL + 14}" text-anchor="middle">{label}</text>'
        yield f'<text x="{x - 4}" y="{at_y + 4:.1f}" text-anchor="end">{label}</text>'
    step = max(1, math.ceil(len(measured) / MOST_POINTS))
    yield '<g fill="#1f6fb2" fill-opacity="0.45">'
    for seen, said in zip(measured[::step], predicted[::step], strict=True):
        yield f'<circle cx="{across(seen):.1f}" cy="{up(said):.1f}" r="2"/>'
    yield "</g>"
