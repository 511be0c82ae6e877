"""Incumbent and bound of a solver over time: two stairs that meet where the proof is whole."""

from collections.abc import Sequence
from math import isfinite

from planner.quantities.units import show
from planner.report.drawings.axes import Axis, Frame
from planner.specs.records.solving import BoundEvent

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 880, 110, 856, 18, 252


def events_drawing(events: Sequence[BoundEvent]) -> str:
    """Both over time, from where each is known; nothing where nothing changes."""
    curves = [_known(events, name) for name in ("incumbent", "bound")]
    values = sorted(value for points in curves for _, value in points)
    if not values or values[0] == values[-1] or not events[-1].elapsed_s:
        return ""
    spare = 0.06 * (values[-1] - values[0])
    low, high = values[0] - spare, values[-1] + spare
    y = Axis(low=low, high=high, start=_BOTTOM, end=_TOP, is_log=False)
    x = Axis(low=0.0, high=events[-1].elapsed_s, start=_LEFT, end=_RIGHT, is_log=False)
    label = 'role="img" aria-label="bound and incumbent over time"'
    parts = [f'<svg class="chart" viewBox="0 0 {_WIDTH} 300" {label}>', *_frame(x, y).drawn()]
    for i, points in enumerate(curves):
        places = [(f"{x.at(at):.1f}", f"{y.at(value):.1f}") for at, value in points]
        stairs = "".join(f"H{at}V{value}" for at, value in places)
        parts.append(f'<path class="line c{i}" d="{_start(places)}{stairs}"/>')
    key = '<span class="c0">●</span> best answer, <span class="c1">●</span> bound'
    return "\n".join([*parts, "</svg>", f'<p class="faint">{key}</p>'])


def _frame(x: Axis, y: Axis) -> Frame:
    return Frame(
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        xs=[(x.at(n), show(n, "s")) for n in x.ticks(6)],
        ys=[(y.at(n), f"{n:.6g}") for n in y.ticks(6)],
        title="time of the solver",
    )


def _start(places: Sequence[tuple[str, str]]) -> str:
    """Where a curve begins; nowhere without a place."""
    return f"M{' '.join(places[0])}" if places else ""


def _known(events: Sequence[BoundEvent], name: str) -> list[tuple[float, float]]:
    pairs = ((event.elapsed_s, getattr(event, name)) for event in events)
    return [(at, value) for at, value in pairs if isfinite(value)]
