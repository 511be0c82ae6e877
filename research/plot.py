"""Predicted against measured time, as an SVG of a few kilobytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

WIDTH, HEIGHT = 640, 560
LEFT, TOP, SIDE_X, SIDE_Y = 70, 24, 400, 400
LOW_MS, HIGH_MS = 10.0, 200_000.0
TICKS = ((100, "0.1 s"), (1_000, "1 s"), (10_000, "10 s"), (100_000, "100 s"))
BAND = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one colour; hollow ones are those that constants are fitted on."""

    label: str
    colour: str
    points_ms: Sequence[tuple[float, float]]
    is_hollow: bool = False


def scatter(series: Sequence[Series]) -> str:
    """A log-log scatter plot with the diagonal and a band of ±25 %."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + SIDE_Y + 56}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Predicted against measured time of a pass or a request</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *_band(),
        *_axes(),
        *(line for one in series for line in _points(one)),
        *_legend(series),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _x(time_ms: float) -> float:
    return LEFT + SIDE_X * log10(time_ms / LOW_MS) / log10(HIGH_MS / LOW_MS)


def _y(time_ms: float) -> float:
    return TOP + SIDE_Y * (1 - log10(time_ms / LOW_MS) / log10(HIGH_MS / LOW_MS))


def _band() -> list[str]:
    low, high = LOW_MS, HIGH_MS
    corners = (
        (low, low),
        (low, low * BAND),
        (high / BAND, high),
        (high, high),
        (high, high / BAND),
        (low * BAND, low),
    )
    outline = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in corners)
    diagonal = f'x1="{_x(low):.1f}" y1="{_y(low):.1f}" x2="{_x(high):.1f}" y2="{_y(high):.1f}"'
    return [f'<polygon points="{outline}" fill="#eee"/>', f'<line {diagonal} stroke="#999"/>']


def _axes() -> list[str]:
    right, bottom = LEFT + SIDE_X, TOP + SIDE_Y
    lines = [
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE_X}" height="{SIDE_Y}" fill="none" stroke="#333"/>'
    ]
    for time_ms, label in TICKS:
        x, y = _x(time_ms), _y(time_ms)
        lines += [
            f'<path d="M{x:.1f} {bottom}v-5M{LEFT} {y:.1f}h5" stroke="#333"/>',
            f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>',
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>',
        ]
    middle = (LEFT + right) / 2
    centre = (TOP + bottom) / 2
    return [
        *lines,
        f'<text x="{middle:.0f}" y="{bottom + 42}" text-anchor="middle">measured</text>',
        f'<text x="18" y="{centre:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 18 {centre:.0f})">predicted</text>',
    ]


def _points(series: Series) -> list[str]:
    circles = [
        f'<circle cx="{_x(measured):.1f}" cy="{_y(predicted):.1f}" r="3"/>'
        for measured, predicted in series.points_ms
    ]
    return [f"<g {_paint(series)}>", *circles, "</g>"]


def _legend(series: Sequence[Series]) -> list[str]:
    x, lines = LEFT + SIDE_X + 18, []
    for i, one in enumerate(series):
        y = TOP + 12 + 20 * i
        lines += [
            f'<circle cx="{x}" cy="{y}" r="4" {_paint(one)}/>',
            f'<text x="{x + 10}" y="{y + 4}">{one.label}</text>',
        ]
    y = TOP + 12 + 20 * len(series)
    return [
        *lines,
        f'<rect x="{x - 5}" y="{y - 5}" width="10" height="10" fill="#ddd"/>',
        f'<text x="{x + 10}" y="{y + 4}">within 25 %</text>',
    ]


def _paint(series: Series) -> str:
    if series.is_hollow:
        return f'fill="#fff" stroke="{series.colour}" stroke-width="1.5"'
    return f'fill="{series.colour}" fill-opacity="0.6"'
