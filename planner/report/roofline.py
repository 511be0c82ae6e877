"""The roofline of a prediction as one page of HTML that needs nothing else.

Arithmetic intensity across, attained FLOP a second upwards, both logarithmic. Each operation is
a circle whose area is its share of the pass; the roofs are the device's memory bandwidth and the
peaks of its number formats. Messages and small kernels, which have no FLOP, stand in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from planner.report.lines import percent
from planner.report.markup import escape
from planner.report.prediction import BOUND_WORDS, between, prediction_line
from planner.results.predictions import OperationLine, PassLine, Prediction
from planner.units import show

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 880, 440, 88, 48, 18, 16
_COLOURS = {
    "compute": "c1", "memory": "c0", "network": "c3", "latency": "c4", "idle": "c4",
}  # fmt: skip

_STYLE = """\
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--faint:#6a737d;--rule:#e3e6ea;
--c0:#0072b2;--c1:#d55e00;--c3:#b0508a;--c4:#a87400;--host:#8a929b}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e8eb;--faint:#98a1ab;
--rule:#2b3036;--c0:#56b4e9;--c1:#ff8a3d;--c3:#e79bc6;--c4:#e6b422;--host:#737b84}}
body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.2rem;margin:0 0 .5rem}h2{font-size:1.05rem;margin:2rem 0 .4rem}
p{margin:.3rem 0}.faint{color:var(--faint);fill:var(--faint)}
svg{display:block;width:100%;height:auto;fill:var(--ink);font-size:12px}
.grid path{stroke:var(--rule)}.roof{fill:none;stroke:var(--ink);stroke-width:1.5}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c3{color:var(--c3)}.c4{color:var(--c4)}
.host{color:var(--host)}
circle{fill:currentColor;fill-opacity:.55;stroke:currentColor}
circle:hover{fill-opacity:1;stroke:var(--ink);stroke-width:2}
rect.part{fill:currentColor;stroke:var(--page)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
td,th{padding:.15rem .6rem .15rem 0;text-align:right;border-bottom:1px solid var(--rule);
white-space:nowrap}td:first-child,th:first-child,td.word,th.word{text-align:left}
.scroll{overflow-x:auto}"""


def roofline_page(prediction: Prediction) -> str:
    """The whole page."""
    title = escape(f"{prediction.model} on {prediction.n_devices} × {prediction.device}")
    body: list[str] = [f"<h1>{escape(prediction_line(prediction))}</h1>", *_legend()]
    for one in prediction.passes:
        body += [
            f"<h2>{escape(one.name)} pass: {escape(between(one.total_s))}</h2>",
            f'<p class="faint">{percent(one.mfu_fraction)} MFU, {percent(one.hbm_fraction)} of '
            "memory bandwidth; a circle's area is its share of the pass</p>",
            _roofline(prediction, one),
            _timeline(one),
            *_table(one),
        ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{title}</title>",
            f"<style>\n{_STYLE}\n</style></head><body>",
            *body,
            "</body></html>",
            "",
        ]
    )


def _legend() -> Iterable[str]:
    words = ("compute", "memory", "network", "latency")
    marks = " ".join(f'<span class="{_COLOURS[w]}">●</span> {w}-bound' for w in words)
    yield f"<p>{marks}</p>"


class _Axes:
    """Logarithmic axes around the operations, the ridges, and a little more."""

    def __init__(self, prediction: Prediction, lines: Sequence[OperationLine]) -> None:
        bandwidth = prediction.hbm_bytes_per_s
        peaks = list(prediction.peak_flop_per_s.values())
        across = [line.flop_per_byte for line in lines] + [p / bandwidth for p in peaks]
        rates = [line.flop / line.run_s for line in lines] + peaks
        self.x0, self.x1 = _decades(across)
        self.y0, self.y1 = _decades(rates)

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.x0) / (self.x1 - self.x0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.y0) / (self.y1 - self.y0)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(1.15 * max(values))))


def _roofline(prediction: Prediction, one: PassLine) -> str:
    lines = [line for line in one.operations if line.flop > 0 and line.flop_per_byte > 0]
    if not lines:
        return ""
    axes = _Axes(prediction, lines)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        *_grid(axes),
        *_roofs(prediction, axes, {line.format for line in lines}),
        *_circles(one, lines, axes),
        "</svg>",
    ]
    return "\n".join(parts)


def _grid(axes: _Axes) -> Iterable[str]:
    yield '<g class="grid">'
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for power in range(axes.x0, axes.x1 + 1):
        x = axes.x(10.0**power)
        yield f'<path d="M{x:.1f} {_TOP}V{bottom}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">'
        yield f"{10.0**power:g}</text>"
    for power in range(axes.y0, axes.y1 + 1):
        y = axes.y(10.0**power)
        yield f'<path d="M{_LEFT} {y:.1f}H{right}"/>'
        yield f'<text class="faint" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
        yield f"{show(10.0**power, 'FLOP/s')}</text>"
    yield "</g>"
    middle = (_LEFT + right) / 2
    words = "FLOP per byte of memory"
    yield f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{words}</text>'


def _roofs(prediction: Prediction, axes: _Axes, used: set[str]) -> Iterable[str]:
    """The slope of the memory, and the level of each peak that some operation has."""
    bandwidth = prediction.hbm_bytes_per_s
    levels: dict[float, list[str]] = {}
    for name, peak in prediction.peak_flop_per_s.items():
        levels.setdefault(peak, []).append(name)
    highest = max(levels)
    start = max(10.0**axes.x0, 10.0**axes.y0 / bandwidth)
    yield (
        f'<path class="roof" d="M{axes.x(start):.1f} {axes.y(start * bandwidth):.1f}'
        f'L{axes.x(highest / bandwidth):.1f} {axes.y(highest):.1f}"/>'
    )
    at = math.sqrt(start * highest / bandwidth)
    yield f'<text x="{axes.x(at) - 8:.1f}" y="{axes.y(at * bandwidth) - 8:.1f}" text-anchor="end">'
    yield f"{show(bandwidth, 'B/s')}</text>"
    for peak, names in levels.items():
        beside = -5.0 if peak == highest else 15.0  # the slope passes above lower peaks
        ridge, y = axes.x(peak / bandwidth), axes.y(peak)
        yield f'<path class="roof" d="M{ridge:.1f} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        words = f"{', '.join(names)}: {show(peak, 'FLOP/s')}, ridge {peak / bandwidth:.4g}"
        yield f'<text x="{_WIDTH - _RIGHT}" y="{y + beside:.1f}" text-anchor="end">'
        yield f"{escape(words)}</text>"


def _circles(one: PassLine, lines: Sequence[OperationLine], axes: _Axes) -> Iterable[str]:
    whole = sum(_spent(one, line) for line in one.operations)
    labels: list[tuple[float, float, float]] = []
    for line in sorted(lines, key=lambda x: -x.total_s):
        share = _spent(one, line) / whole
        rate = line.flop / line.run_s
        radius = 2.5 + 34.0 * math.sqrt(share)
        x, y = axes.x(line.flop_per_byte), axes.y(rate)
        words = (
            f"{line.layer}: {line.name}\n{show(_spent(one, line), 's')}, {percent(share)}\n"
            f"{line.flop_per_byte:.3g} FLOP/B, {show(rate, 'FLOP/s')}, "
            f"{percent(line.mfu_fraction)} of the peak\n{BOUND_WORDS[line.bound]}-bound"
        )
        yield (
            f'<circle class="{_COLOURS[line.bound]}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(words)}</title></circle>"
        )
        label = (x + radius + 3, y + 4, 6.5 * len(line.name))
        if share > 0.03 and _is_free(label, labels):
            labels.append(label)
            yield f'<text x="{label[0]:.1f}" y="{label[1]:.1f}">{escape(line.name)}</text>'


def _is_free(
    label: tuple[float, float, float], others: Sequence[tuple[float, float, float]]
) -> bool:
    """Whether a text from x, y of some width is inside the drawing and clear of the others."""
    x, y, wide = label
    inside = x + wide < _WIDTH
    return inside and all(
        abs(y - other[1]) > 13 or x > other[0] + other[2] or other[0] > x + wide for other in others
    )


def _timeline(one: PassLine) -> str:
    """The pass as a bar of its operations, messages and host time included."""
    pieces = [
        (f"{line.layer}: {line.name}", _spent(one, line), _COLOURS[line.bound])
        for line in one.operations
    ]
    if one.host_s:
        pieces.append(("host", one.host_s, "host"))
    whole = sum(size for _, size, _ in pieces)
    at, parts = 0.0, [f'<svg viewBox="0 0 {_WIDTH} 34" role="img">']
    for name, size, colour in pieces:
        wide = size / whole * _WIDTH
        words = escape(f"{name}: {show(size, 's')}, {percent(size / whole)}")
        parts.append(
            f'<rect class="part {colour}" x="{at:.2f}" y="4" width="{wide:.2f}" height="26">'
            f"<title>{words}</title></rect>"
        )
        at += wide
    return "\n".join([*parts, "</svg>"])


_HEADS = ("", "time", "runs", "one", "FLOP", "bytes", "sent", "FLOP/B", "bound", "peak", "HBM")


def _table(one: PassLine) -> Iterable[str]:
    yield '<div class="scroll"><table><tr>'
    yield "".join(f"<th>{head}</th>" for head in _HEADS) + "</tr>"
    for line in sorted(one.operations, key=lambda x: -_spent(one, x)):
        cells = (
            f"{line.layer}: {line.name}",
            show(_spent(one, line), "s"),
            f"{_spent(one, line) / line.run_s:.0f}",
            show(line.run_s, "s"),
            show(line.flop, "FLOP") if line.flop else "",
            show(line.hbm_bytes, "B") if line.hbm_bytes else "",
            show(line.sent_bytes, "B") if line.sent_bytes else "",
            f"{line.flop_per_byte:.3g}" if line.flop_per_byte else "",
            BOUND_WORDS[line.bound],
            percent(line.mfu_fraction) if line.flop else "",
            percent(line.hbm_fraction) if line.hbm_bytes else "",
        )
        yield "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    yield "</table></div>"


def _spent(one: PassLine, line: OperationLine) -> float:
    """Time of all runs of a pass: of every micro-batch inside layers."""
    return line.total_s * (1.0 if line.layer == "model" else one.n_microbatches)
