"""Predicted against measured time, as an SVG of a few kilobytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

WIDTH, HEIGHT = 640, 560
LEFT, TOP, SIDE_X, SIDE_Y = 70, 24, 400, 400
HIGH_MS = 200_000.0
TICKS = {1: "1 ms", 10: "10 ms", 100: "0.1 s", 1_000: "1 s", 10_000: "10 s", 100_000: "100 s"}
BAND = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one colour; hollow ones are those that constants are fitted on."""

    label: str
    colour: str
    points_ms: Sequence[tuple[float, float]]
    is_hollow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Both axes, of logarithms of times [ms]."""

    low_ms: float

    def share(self, time_ms: float) -> float:
        return log10(time_ms / self.low_ms) / log10(HIGH_MS / self.low_ms)

    def x(self, time_ms: float) -> float:
        return LEFT + SIDE_X * self.share(time_ms)

    def y(self, time_ms: float) -> float:
        return TOP + SIDE_Y * (1 - self.share(time_ms))


def scatter(series: Sequence[Series], *, low_ms: float = 10.0) -> str:
    """A log-log scatter plot with the diagonal and a band of ±25 %.

    Args:
        low_ms: where axes begin.
    """
    axis = Axis(low_ms=low_ms)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + SIDE_Y + 56}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Predicted against measured time of a pass or a request</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *_band(axis),
        *_axes(axis),
        *(line for one in series for line in _points(one, axis)),
        *_legend(series),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _band(axis: Axis) -> list[str]:
    low, high = axis.low_ms, HIGH_MS
    corners = (
        (low, low),
        (low, low * BAND),
        (high / BAND, high),
        (high, high),
        (high, high / BAND),
        (low * BAND, low),
    )
    outline = " ".join(f"{axis.x(x):.1f},{axis.y(y):.1f}" for x, y in corners)
    ends = zip("12", (low, high), strict=True)
    diagonal = " ".join(f'x{i}="{axis.x(at):.1f}" y{i}="{axis.y(at):.1f}"' for i, at in ends)
    return [f'<polygon points="{outline}" fill="#eee"/>', f'<line {diagonal} stroke="#999"/>']


def _axes(axis: Axis) -> list[str]:
    right, bottom = LEFT + SIDE_X, TOP + SIDE_Y
    lines = [
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE_X}" height="{SIDE_Y}" fill="none" stroke="#333"/>'
    ]
    for time_ms, label in TICKS.items():
        if time_ms <= axis.low_ms:
            continue
        x, y = axis.x(time_ms), axis.y(time_ms)
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


def _points(series: Series, axis: Axis) -> list[str]:
    circles = [
        f'<circle cx="{axis.x(measured):.1f}" cy="{axis.y(predicted):.1f}" r="3"/>'
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
