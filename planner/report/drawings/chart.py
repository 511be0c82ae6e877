"""Frontiers as one drawing: staircases with their points, targets and preferred points, in SVG.

A point says what it is when the pointer rests on it. Curves differ in colour, in the shape
of their points and in the dashes of their lines; colours are those of Okabe and Ito, which
nearly everyone can tell apart, and follow a light or a dark page by `--c0` … `--c6`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from planner.quantities.table import axis_of
from planner.quantities.units import show
from planner.report.drawings.axes import END, MIDDLE, Axis, Frame, axis, tick_text
from planner.report.outlines import (
    at_target,
    axis_targets,
    best_text,
    details,
    ends_text,
    headline_of,
    preferred_text,
    speed_text,
)
from planner.report.words import escape, plural
from planner.results.surveys import Frontier

WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 76, 24, 52, 56
N_COLOURS = 7
DASHES = ("", "7 3", "2 3", "9 3 2 3")
SHAPES = (
    '<circle r="3.6"/>',
    '<path d="M-3-3h6v6h-6z"/>',
    '<path d="M0-4 3.8 3h-7.6z"/>',
    '<path d="M0-4.2 4.2 0 0 4.2-4.2 0z"/>',
    '<path d="M0 4-3.8-3h7.6z"/>',
)
APART = 30  # pixels between two points that are drawn in the curve's shape; the others are dots
STAR = "M0-9 2.6-3.2 8.8-2.6 4.1 1.5 5.5 7.6 0 4.4-5.5 7.6-4.1 1.5-8.8-2.6-2.6-3.2z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One frontier to draw, and what it is called."""

    label: str
    frontier: Frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point of its own, in the quantities of the axes, SI: what runs, or what it could be.

    Args:
        label: what stands beside it.
        text: what it is, in a few lines.
        is_ring: whether it is on a curve and gets a ring only.
    """

    x: float
    y: float
    label: str
    text: str
    is_ring: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Where numbers are drawn."""

    x_name: str
    y_name: str
    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixels of a point given in SI."""
        return (self.x.at(axis_of(self.x_name).drawn(x)), self.y.at(axis_of(self.y_name).drawn(y)))


def frontiers_drawing(lines: Sequence[Line], marks: Sequence[Mark] = ()) -> str:
    """All curves on either kind of axes, of which a pair of buttons shows one, and their names."""
    return two_charts(
        chart(lines, is_log=True, name="log-chart", marks=marks),
        chart(lines, is_log=False, name="linear-chart", marks=marks),
        (legend_entry(i, line.label, ends_text(line.frontier)) for i, line in enumerate(lines)),
    )


def two_charts(logarithmic: str, linear: str, legend: Iterable[str]) -> str:
    """Two drawings of which a pair of buttons shows one, and what is below both."""
    return "\n".join(
        (
            '<input type="radio" name="axes" id="log" checked="checked"/> '
            '<label for="log">logarithmic axes</label>',
            '<input type="radio" name="axes" id="linear"/> <label for="linear">linear axes</label>',
            f'<div class="charts"><div id="log-axes">\n{logarithmic}',
            f'</div><div id="linear-axes">\n{linear}\n</div></div>',
            *legend,
        )
    )


def legend_entry(i: int, label: str, text: str) -> str:
    """What the line and the points of a curve look like, and what it is."""
    return f"<p>{swatch(i)} {escape(label)}: {escape(text)}</p>"


def chart(lines: Sequence[Line], *, is_log: bool, name: str, marks: Sequence[Mark] = ()) -> str:
    """The drawing; ids begin with its name, and rays go from the first mark to the others."""
    plot = _plot(lines, marks, is_log=is_log)
    first = lines[0].frontier
    parts = [*sheet(plot, name), *_targets(plot, first)]
    for i, line in enumerate(lines):
        parts += _curve(plot, line, i, name)
    if len(lines) == 1:
        parts += _sizes(plot, first)
    for i, line in enumerate(lines):  # above all curves
        if not marks:
            parts += _marks(plot, line, i, name)
    parts += _own_marks(plot, marks, name)
    return "\n".join([*parts, "</svg>"])


def sheet(plot: Plot, name: str) -> Iterator[str]:
    """The beginning of a drawing: shapes of points, grid and titles."""
    title = f"{axis_of(plot.y_name).title} against {axis_of(plot.x_name).title}"
    yield f'<svg class="chart" id="{name}" xmlns="http://www.w3.org/2000/svg" role="img" '
    yield f'aria-label="{escape(title)}" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="12"><defs>'
    yield from (f'<g id="{name}-s{i}">{shape}</g>' for i, shape in enumerate(SHAPES))
    yield f'<circle id="{name}-dot" r="1.7"/><path id="{name}-star" d="{STAR}"/></defs>'
    yield from _frame(plot)


def swatch(i: int) -> str:
    """The line and point of a curve, for a legend."""
    return (
        f'<svg class="swatch c{i % N_COLOURS}" viewBox="-16 -7 32 14" width="32" height="14">'
        f'<path class="line" d="M-16 0h32"{_dashes(i)}/>{SHAPES[i % len(SHAPES)]}</svg>'
    )


def point_text(line: Line, i: int) -> str:
    """What a point is, in a few lines."""
    frontier = line.frontier
    best = frontier.points[i].deployment
    if frontier.y_name == "decode_cost":
        cost = show(frontier.points[i].y, frontier.y_dimension)
        return f"{line.label}\n{speed_text(best)} per user at {cost}\n{best.summary}"
    lines = [line.label, f"{speed_text(best)} per user: {headline_of(best)}", *details(best)]
    if i == frontier.preferred:
        lines.append(preferred_text(frontier))
    if i == at_target(frontier):
        lines.append(f"{best_text(frontier)} within the targets")
    return "\n".join(lines)


def _plot(lines: Sequence[Line], marks: Sequence[Mark], *, is_log: bool) -> Plot:
    """Axes that hold all points, marks and targets."""
    first = lines[0].frontier
    x, y = axis_of(first.x_name).drawn, axis_of(first.y_name).drawn
    xs = [x(point.x) for line in lines for point in line.frontier.points]
    ys = [y(point.y) for line in lines for point in line.frontier.points]
    xs += [x(mark.x) for mark in marks]
    ys += [y(mark.y) for mark in marks]
    for is_x, value, _ in axis_targets(first):
        (xs if is_x else ys).append((x if is_x else y)(value))
    return Plot(
        x_name=first.x_name,
        y_name=first.y_name,
        x=axis(xs, LEFT, WIDTH - RIGHT, is_log=is_log),
        y=axis(ys, HEIGHT - BOTTOM, TOP, is_log=is_log),
    )


def _frame(plot: Plot) -> Iterator[str]:
    """Grid, numbers and titles; speeds have the time per token above them."""
    x_quantity, y_quantity = axis_of(plot.x_name), axis_of(plot.y_name)
    yield from Frame(
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        xs=[(plot.x.at(n), tick_text(n, x_quantity.before)) for n in plot.x.ticks()],
        ys=[(plot.y.at(n), tick_text(n, y_quantity.before)) for n in plot.y.ticks()],
        title=x_quantity.title,
    ).drawn()
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text class="title minor" x="18" y="{middle:.0f}" {MIDDLE} '
    yield f'transform="rotate(-90 18 {middle:.0f})">{y_quantity.title}</text>'
    if plot.x_name == "latency":
        yield from _times_above(plot)


_LETTER, _LINE = 6.0, 14.0  # of small print


def _times_above(plot: Plot) -> Iterator[str]:
    slowest = 1e3 / plot.x.low if plot.x.low else 1e3 / (plot.x.high / 20)
    times = Axis(low=1e3 / plot.x.high, high=slowest, start=0, end=1, is_log=True)
    yield f'<text class="faint" x="{LEFT - 8}" y="{TOP - 10}" {END}>TPOT</text>'
    last = float("inf")
    for time_ms in times.ticks():
        x = plot.x.at(1e3 / time_ms)
        if last - x > 46 and x > LEFT + 24:  # numbers that would touch are left out
            yield f'<path class="frame" d="M{x:.1f} {TOP}v-4"/>'
            text = show(time_ms / 1e3, "s")
            yield f'<text class="faint" x="{x:.1f}" y="{TOP - 10}" {MIDDLE}>{text}</text>'
            last = x


def _targets(plot: Plot, frontier: Frontier) -> Iterator[str]:
    """A line at each target on an axis, and a veil over what is beyond."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for is_x, value, text in axis_targets(frontier):
        if is_x:
            x = plot.x.at(axis_of(plot.x_name).drawn(value))
            left, wide = (LEFT, x - LEFT) if plot.x_name == "latency" else (x, right - x)
            yield f'<rect class="veil" x="{left:.1f}" y="{TOP}" width="{wide:.1f}" '
            yield f'height="{bottom - TOP}"/><path class="target" d="M{x:.1f} {TOP}V{bottom}"/>'
            side = END if x > (LEFT + right) / 2 else ""
            x += -6 if side else 6
            yield f'<text class="target-text" x="{x:.1f}" y="{TOP + 16}" {side}>{text}</text>'
        else:
            y = plot.y.at(axis_of(plot.y_name).drawn(value))
            yield f'<rect class="veil" x="{LEFT}" y="{TOP}" width="{right - LEFT}" '
            yield f'height="{y - TOP:.1f}"/><path class="target" d="M{LEFT} {y:.1f}H{right}"/>'
            yield f'<text class="target-text" x="{LEFT + 6}" y="{y - 6:.1f}">{text}</text>'


def _curve(plot: Plot, line: Line, i: int, name: str) -> Iterator[str]:
    """The staircase: at a demanded speed the next faster point is what serves it."""
    frontier = line.frontier
    texts = [point_text(line, j) for j in range(len(frontier.points))]
    yield from staircase(plot, [(one.x, one.y) for one in frontier.points], texts, i, name)


def staircase(
    plot: Plot, points: Sequence[tuple[float, float]], texts: Sequence[str], i: int, name: str
) -> Iterator[str]:
    """Points in SI, the slowest first, each with what it says, and a stair through them."""
    places = [plot.place(x, y) for x, y in points]
    slow_end = LEFT if plot.x_name == "latency" else WIDTH - RIGHT
    path = f"M{slow_end} {places[0][1]:.1f}H{places[0][0]:.1f}"
    path += "".join(f"V{y:.1f}H{x:.1f}" for x, y in places[1:])
    yield f'<g class="c{i % N_COLOURS}"><path class="line" d="{path}"{_dashes(i)}/>'
    shape, last = f"{name}-s{i % len(SHAPES)}", None
    for j, (x, y) in enumerate(places):
        is_far = last is None or hypot(x - last[0], y - last[1]) >= APART
        last = (x, y) if is_far else last
        drawn = shape if is_far else f"{name}-dot"
        yield f'<use class="p" href="#{drawn}" x="{x:.1f}" y="{y:.1f}">'
        yield f"<title>{escape(texts[j])}</title></use>"
    yield "</g>"


def _sizes(plot: Plot, frontier: Frontier) -> Iterator[str]:
    """Where the devices or the format change along a curve, as far as there is room."""
    before, last, taken = "", (0.0, 0.0), (0.0, 0.0)
    for point in frontier.points:
        best = point.deployment
        text = f"{plural(best.n_devices, 'device')}, {best.weights_format}"
        x, y = plot.place(point.x, point.y)
        side = END if x > LEFT + 90 else ""
        left = x - 8 - len(text) * _LETTER if side else x
        is_free = left > taken[0] or abs(y - taken[1]) > _LINE
        if text != before and is_free and hypot(x - last[0], y - last[1]) > 3 * APART:
            yield f'<text class="faint" x="{x - 8 if side else x:.1f}" y="{y - 9:.1f}" '
            yield f"{side}>{text}</text>"
            last, taken = (x, y), (left + len(text) * _LETTER, y)
        before = text


def _marks(plot: Plot, line: Line, i: int, name: str) -> Iterator[str]:
    """A star at the preferred point, a ring at the best within the targets."""
    frontier = line.frontier
    yield f'<g class="c{i % N_COLOURS}">'
    cheapest = at_target(frontier)
    if cheapest is not None:
        point = frontier.points[cheapest]
        x, y = plot.place(point.x, point.y)
        yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="8"/>'
    x, y = plot.place(frontier.best.x, frontier.best.y)
    text = escape(point_text(line, frontier.preferred))
    yield f'<use class="star p" href="#{name}-star" x="{x:.1f}" y="{y:.1f}">'
    yield f"<title>{text}</title></use></g>"


def _own_marks(plot: Plot, marks: Sequence[Mark], name: str) -> Iterator[str]:
    """A star for what stands alone, rings on curves, a dashed ray from the first to each."""
    places = [plot.place(mark.x, mark.y) for mark in marks]
    for x, y in places[1:]:
        yield f'<path class="target" d="M{places[0][0]:.1f} {places[0][1]:.1f}L{x:.1f} {y:.1f}"/>'
    for mark, (x, y) in zip(marks, places, strict=True):
        shape = f"{name}-dot" if mark.is_ring else f"{name}-star"
        if mark.is_ring:
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="8"/>'
        yield f'<use class="p" href="#{shape}" x="{x:.1f}" y="{y:.1f}">'
        yield f"<title>{escape(mark.text)}</title></use>"
        left = x > (LEFT + WIDTH - RIGHT) / 2
        below = y + 22 if mark.is_ring and not left else y - 10  # curves rise to the right
        yield f'<text class="target-text" x="{x - 14 if left else x + 14:.1f}" '
        yield f'y="{below:.1f}" {END if left else ""}>{escape(mark.label)}</text>'


def _dashes(i: int) -> str:
    dashes = DASHES[i % len(DASHES)]
    return f' stroke-dasharray="{dashes}"' if dashes else ""
