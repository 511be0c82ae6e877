"""What a class waits for, and the least rent over traffic, as drawings in SVG.

Shares of requests are drawn by their nines: as far from 90 % to 99 % as from 99 % to 99.9 %. A
target is a ring, by which the curve has to be to its left or below; beyond it there is a veil.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.quantities.units import show
from planner.report.answers.fleet_words import finite, rate
from planner.report.drawings.axes import END, Axis, Frame, axis, tick_text
from planner.report.words import escape, percent, plural
from planner.results.arrivals import Percentile
from planner.results.fleets import CURVE, FleetStaircase, ServedClass, Step
from planner.specs.traffic.percentiles import TPOT, TTFT

WIDTH, HEIGHT = 960, 300
N_COLOURS = 7
HALF = WIDTH / 2
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 34, 46
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
DOT = '<circle r="2.6"/>'
LOG_FROM = 8.0
"""Traffic that grows by more is drawn by its logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One curve of a class, with its targets.

    Args:
        quantity: `ttft` or `tpot`.
        title: of the quantity.
        points: seconds and the share of requests that wait no longer, ascending.
        targets: of the quantity.
        x: seconds, on pixels.
    """

    quantity: str
    title: str
    points: Sequence[tuple[float, float]]
    targets: Sequence[Percentile]
    x: Axis


def waits(outcome: ServedClass, name: str, colour: int) -> str:
    """TTFT and TPOT of a class, beside each other; ids begin with the name.

    Empty of a class of which nothing is served.
    """
    curves = zip(
        (TTFT, TPOT),
        ("time to the first token", "time per output token"),
        outcome.curve_s,
        strict=True,
    )
    panels = (_panel(outcome, quantity, title, curve_s) for quantity, title, curve_s in curves)
    drawn = (
        _drawn(it, outcome.name, f"{name}-{it.quantity}", colour) for it in panels if it is not None
    )
    return "".join(drawn)


def _drawn(panel: Panel, of: str, name: str, colour: int) -> str:
    return "\n".join(
        [
            f'<svg class="chart half" id="{name}" xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{escape(panel.title)} of {escape(of)}, as simulated" '
            f'viewBox="0 0 {HALF} {HEIGHT}" font-size="12">',
            f'<defs><g id="{name}-dot">{DOT}</g></defs>',
            *_frame(panel),
            *_targets(panel),
            *_curve(panel, name, colour),
            "</svg>",
        ]
    )


def _panel(
    outcome: ServedClass, quantity: str, title: str, curve_s: Sequence[float]
) -> Panel | None:
    """A curve with its targets; None of what no request has."""
    points = [
        (seconds, share)
        for seconds, share in zip(curve_s, CURVE, strict=False)  # none of what is not served
        if math.isfinite(seconds) and seconds > 0.0
    ]
    if not points:
        return None
    limits = [
        it for it in outcome.percentiles if it.quantity == quantity and it.at_most_s is not None
    ]
    numbers = [seconds for seconds, _ in points]
    numbers += [it.at_most_s for it in limits if it.at_most_s is not None]
    return Panel(
        quantity=quantity,
        title=title,
        points=points,
        targets=limits,
        x=axis(numbers, LEFT, HALF - RIGHT, is_log=True),
    )


def _height(share: float) -> float:
    """The pixel of a share, by its nines."""
    nines = -math.log10(1.0 - min(share, CURVE[-1]))
    return HEIGHT - BOTTOM - nines / -math.log10(1.0 - CURVE[-1]) * (HEIGHT - BOTTOM - TOP)


def _frame(panel: Panel) -> Iterator[str]:
    return Frame(
        left=panel.x.start,
        right=panel.x.end,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        xs=[(panel.x.at(n), show(n, "s")) for n in panel.x.ticks(7)],
        ys=[(_height(share), percent(share)) for share in SHARES],
        title=panel.title,
        above="requests within",
    ).drawn()


def _targets(panel: Panel) -> Iterator[str]:
    """A ring at each target, its limit down to the axis, a veil over what is beyond."""
    bottom, right = HEIGHT - BOTTOM, panel.x.end
    for it in panel.targets:
        assert it.at_most_s is not None
        x, y = panel.x.at(it.at_most_s), _height(it.share)
        yield f'<rect class="veil" x="{x:.1f}" y="{y:.1f}" width="{right - x:.1f}" '
        yield f'height="{bottom - y:.1f}"/><path class="target" d="M{x:.1f} {bottom}V{y:.1f}"/>'
        yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        text = f"p{it.share * 100.0:.8g} ≤ {show(it.at_most_s, 's')}"
        yield f'<text class="target-text" x="{x - 10:.1f}" y="{y - 6:.1f}" {END}>{text}</text>'


def _curve(panel: Panel, name: str, colour: int) -> Iterator[str]:
    places = [(panel.x.at(seconds), _height(share)) for seconds, share in panel.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<g class="c{colour}"><path class="line" d="M{path}"/>'
    for (x, y), (seconds, share) in zip(places, panel.points, strict=True):
        if any(math.isclose(share, one) for one in SHARES):
            text = f"{percent(share)} of requests: at most {finite(seconds, 's')}"
            yield f'<use class="p" href="#{name}-dot" x="{x:.1f}" y="{y:.1f}">'
            yield f"<title>{escape(text)}</title></use>"
    yield "</g>"


def rents(staircase: FleetStaircase, name: str) -> str:
    """The least rent over traffic, and what none is cheaper than."""
    of = staircase.request.rate_per_s
    steps = [one for one in staircase.steps if one.upto_factor > 0.0]
    ends = [one.upto_factor * of for one in steps]
    first = steps[0].above_factor * of or ends[0] / 2.0
    is_log = ends[-1] / first > LOG_FROM
    bottom = HEIGHT - BOTTOM
    x = axis([first, *ends, of] if is_log else [*ends, of], LEFT, WIDTH - RIGHT, is_log=is_log)
    y = axis([one.usd_per_hour for one in steps], bottom, TOP, is_log=False)
    parts = [
        f'<svg class="chart" id="{name}" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-label="the least rent over traffic" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12">',
        f'<defs><g id="{name}-dot">{DOT}</g></defs>',
        *_rent_frame(x, y),
        *_today(x, of),
        f'<path class="limit" d="{_stairs(staircase, steps, x, y, of_bounds=True)}"/>',
        f'<g class="c0"><path class="line" d="{_stairs(staircase, steps, x, y)}"/>',
    ]
    for step in steps:
        at = f'x="{x.at(step.upto_factor * of):.1f}" y="{y.at(step.usd_per_hour):.1f}"'
        parts.append(f'<use class="p" href="#{name}-dot" {at}>')
        parts.append(f"<title>{escape(_step_label(step, of))}</title></use>")
    return "\n".join([*parts, "</g>", "</svg>"])


def _stairs(
    staircase: FleetStaircase, steps: Sequence[Step], x: Axis, y: Axis, *, of_bounds: bool = False
) -> str:
    of, path = staircase.request.rate_per_s, ""
    for step in steps:
        rent = step.bound_usd_per_hour if of_bounds else step.usd_per_hour
        start = max(x.at(max(step.above_factor * of, x.low)), x.start)
        path += f"{'L' if path else 'M'}{start:.1f} {y.at(rent):.1f}"
        path += f"H{x.at(step.upto_factor * of):.1f}"
    return path


def _step_label(step: Step, of: float) -> str:
    devices = plural(step.n_devices, "device")
    return (
        f"{rate(step.above_factor * of)} to {rate(step.upto_factor * of)}: "
        f"{show(step.usd_per_hour, 'USD/h')}, bound {show(step.bound_usd_per_hour, 'USD/h')}\n"
        f"{devices}: {step.words}"
    )


def _rent_frame(x: Axis, y: Axis) -> Iterator[str]:
    return Frame(
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        xs=[(x.at(n), tick_text(n)) for n in x.ticks()],
        ys=[(y.at(n), tick_text(n, "$")) for n in y.ticks(6)],
        title="requests a second, of all classes",
        above="rent an hour; dashed: none is cheaper",
    ).drawn()


def _today(x: Axis, of: float) -> Iterator[str]:
    """The traffic that was asked for."""
    at = x.at(of)
    side = END if at > WIDTH / 2 else ""
    yield f'<path class="target" d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
    yield f'<text class="target-text" x="{at + (-6 if side else 6):.1f}" y="{TOP + 15}" {side}>'
    yield f"{escape(f'asked: {rate(of)}')}</text>"
