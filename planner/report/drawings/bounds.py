"""Incumbent and bound of a solver over time: two stairs that meet where the proof is whole."""

from collections.abc import Sequence
from math import isfinite

from planner.quantities.units import show
from planner.report.drawings.axes import Axis, Frame
from planner.specs.records.solving import Progress

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 880, 110, 856, 18, 252
_KEY = '<span class="c0">●</span> best answer, <span class="c1">●</span> bound'
_LABEL = 'role="img" aria-label="bound and incumbent over time"'


def events_drawing(events: Sequence[Progress]) -> str:
    """Both over time, from where each is known; nothing where nothing changes."""
    curves = [_known(events, name) for name in ("incumbent", "bound")]
    values = sorted(value for points in curves for _, value in points)
    if not values or values[0] == values[-1] or not events[-1].elapsed_s:
        return ""
    spare = 0.06 * (values[-1] - values[0])
    low, high = values[0] - spare, values[-1] + spare
    y = Axis(low=low, high=high, start=_BOTTOM, end=_TOP, is_log=False)
    x = Axis(low=0.0, high=events[-1].elapsed_s, start=_LEFT, end=_RIGHT, is_log=False)
    frame = Frame(
        left=_LEFT,
        right=_RIGHT,
        top=_TOP,
        bottom=_BOTTOM,
        xs=[(x.at(n), show(n, "s")) for n in x.ticks(6)],
        ys=[(y.at(n), f"{n:.6g}") for n in y.ticks(6)],
        title="time of the solver",
    )
    parts = [f'<svg class="chart" viewBox="0 0 {_WIDTH} 300" {_LABEL}>', *frame.drawn()]
    for i, points in enumerate(curves):
        places = [(f"{x.at(at):.1f}", f"{y.at(value):.1f}") for at, value in points]
        parts.append(f'<path class="line c{i}" d="{_stairs(places)}"/>')
    return "\n".join([*parts, "</svg>", f'<p class="faint">{_KEY}</p>'])


def _stairs(places: Sequence[tuple[str, str]]) -> str:
    start = f"M{' '.join(places[0])}" if places else ""
    return start + "".join(f"H{at}V{value}" for at, value in places)


def _known(events: Sequence[Progress], name: str) -> list[tuple[float, float]]:
    pairs = ((event.elapsed_s, getattr(event, name)) for event in events)
    return [(at, value) for at, value in pairs if isfinite(value)]
