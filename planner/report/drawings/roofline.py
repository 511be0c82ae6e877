"""The roofline of a pass, and its time line.

Arithmetic intensity across, attained FLOP a second upwards, both logarithmic. Each operation is
a circle whose area is its share of the pass; the roofs are the device's memory bandwidth and the
peaks of its number formats. Messages and small kernels, which have no FLOP, are on the line only.
"""

import math
from collections.abc import Iterable, Sequence

from planner.quantities.units import show
from planner.report.drawings.axes import END, Axis, Frame
from planner.report.words import BOUND_WORDS, escape, percent
from planner.results.predictions import OperationLine, PassLine, Prediction

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 880, 440, 120, 48, 18, 28
_COLOURS = {
    "compute": "c1", "memory": "c0", "network": "c3", "latency": "c4", "idle": "c4",
}  # fmt: skip


def pass_drawing(prediction: Prediction, line: PassLine) -> str:
    """Operations under the roofs, and the pass as a bar of them."""
    words = ("compute", "memory", "network", "latency")
    marks = " ".join(f'<span class="{_COLOURS[w]}">●</span> {w}-bound' for w in words)
    key = f'<p class="faint">{marks}; an area is a share of the pass</p>'
    return "\n".join([key, _roofline(prediction, line), _timeline(line)])


def _axis(values: Sequence[float], start: float, end: float) -> Axis:
    """Whole decades, those of the values and a little more."""
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(1.15 * max(values))))
    return Axis(low=10.0**low, high=10.0**high, start=start, end=end, is_log=True)


def _decades(axis: Axis) -> list[float]:
    return [10.0**n for n in range(round(math.log10(axis.low)), round(math.log10(axis.high)) + 1)]


def _roofline(prediction: Prediction, work: PassLine) -> str:
    lines = [line for line in work.operations if line.flop > 0 and line.flop_per_byte > 0]
    if not lines:
        return ""
    bandwidth, peaks = prediction.hbm_bytes_per_s, list(prediction.peak_flop_per_s.values())
    across = [line.flop_per_byte for line in lines] + [peak / bandwidth for peak in peaks]
    rates = [line.flop / line.run_s for line in lines] + peaks
    x = _axis(across, _LEFT, _WIDTH - _RIGHT)
    y = _axis(rates, _HEIGHT - _BOTTOM, _TOP)
    frame = Frame(
        left=x.start,
        right=x.end,
        top=y.end,
        bottom=y.start,
        xs=[(x.at(n), f"{n:g}") for n in _decades(x)],
        ys=[(y.at(n), show(n, "FLOP/s")) for n in _decades(y)],
        title="FLOP per byte of memory",
    )
    parts = [
        f'<svg class="chart" role="img" aria-label="operations of the {escape(work.name)} pass '
        f'under the roofs of the device" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        *frame.drawn(),
        *_circles(work, lines, x, y),
        *_roofs(prediction, x, y),
        "</svg>",
    ]
    return "\n".join(parts)


def _roofs(prediction: Prediction, x: Axis, y: Axis) -> Iterable[str]:
    """The slope of the memory, and the level of each peak that some operation has."""
    bandwidth = prediction.hbm_bytes_per_s
    levels: dict[float, list[str]] = {}
    for name, peak in prediction.peak_flop_per_s.items():
        levels.setdefault(peak, []).append(name)
    highest = max(levels)
    start = max(x.low, y.low / bandwidth)
    yield (
        f'<path class="frame" d="M{x.at(start):.1f} {y.at(start * bandwidth):.1f}'
        f'L{x.at(highest / bandwidth):.1f} {y.at(highest):.1f}"/>'
    )
    at = math.sqrt(start * highest / bandwidth)
    yield f'<text x="{x.at(at) - 8:.1f}" y="{y.at(at * bandwidth) - 8:.1f}" {END}>'
    yield f"{show(bandwidth, 'B/s')}</text>"
    for peak, names in levels.items():
        beside = -5.0 if peak == highest else 15.0  # the slope passes above lower peaks
        ridge, level = x.at(peak / bandwidth), y.at(peak)
        yield f'<path class="frame" d="M{ridge:.1f} {level:.1f}H{_WIDTH - _RIGHT}"/>'
        words = f"{', '.join(names)}: {show(peak, 'FLOP/s')}, ridge {peak / bandwidth:.4g}"
        yield f'<text x="{_WIDTH - _RIGHT}" y="{level + beside:.1f}" {END}>'
        yield f"{escape(words)}</text>"


def _circles(work: PassLine, lines: Sequence[OperationLine], x: Axis, y: Axis) -> Iterable[str]:
    whole = sum(work.spent_s(line) for line in work.operations)
    labels: list[tuple[float, float, float]] = []
    for line in sorted(lines, key=lambda x: -x.total_s):
        share = work.spent_s(line) / whole
        rate = line.flop / line.run_s
        radius = 2.5 + 34.0 * math.sqrt(share)
        cx, cy = x.at(line.flop_per_byte), y.at(rate)
        words = (
            f"{line.layer}: {line.name}\n{show(work.spent_s(line), 's')}, {percent(share)}\n"
            f"{line.flop_per_byte:.3g} FLOP/B, {show(rate, 'FLOP/s')}, "
            f"{percent(line.mfu_fraction)} of the peak\n{BOUND_WORDS[line.bound]}-bound"
        )
        yield (
            f'<circle class="area {_COLOURS[line.bound]}" cx="{cx:.1f}" cy="{cy:.1f}" '
            f'r="{radius:.1f}"><title>{escape(words)}</title></circle>'
        )
        label = (cx + radius + 3, cy + 4, 6.5 * len(line.name))
        if share > 0.03 and _is_free(label, labels):
            labels.append(label)
            yield f'<text class="minor" x="{label[0]:.1f}" y="{label[1]:.1f}">'
            yield f"{escape(line.name)}</text>"


def _is_free(
    label: tuple[float, float, float], others: Sequence[tuple[float, float, float]]
) -> bool:
    """Whether a text from x, y of some width is inside the drawing and clear of the others."""
    x, y, wide = label
    inside = x + wide < _WIDTH
    return inside and all(
        abs(y - other[1]) > 13 or x > other[0] + other[2] or other[0] > x + wide for other in others
    )


def _timeline(work: PassLine) -> str:
    """The pass as a bar of its operations, messages and host time included."""
    pieces = [
        (f"{line.layer}: {line.name}", work.spent_s(line), _COLOURS[line.bound])
        for line in work.operations
    ]
    if work.host_s:
        pieces.append(("host", work.host_s, "other"))
    whole = sum(size for _, size, _ in pieces)
    label = f'role="img" aria-label="time of the {escape(work.name)} pass by operation"'
    at, parts = 0.0, [f'<svg class="chart" viewBox="0 0 {_WIDTH} 34" {label}>']
    for name, size, colour in pieces:
        wide = size / whole * _WIDTH
        words = escape(f"{name}: {show(size, 's')}, {percent(size / whole)}")
        parts.append(
            f'<rect class="box {colour}" x="{at:.2f}" y="4" width="{wide:.2f}" height="26">'
            f"<title>{words}</title></rect>"
        )
        at += wide
    return "\n".join([*parts, "</svg>"])
