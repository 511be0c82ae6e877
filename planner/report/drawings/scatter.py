"""Points of several series on axes of their own: dots, and rings for what they stand against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.report.drawings.axes import Axis, Frame, axis, tick_text
from planner.report.drawings.chart import BOTTOM, HEIGHT, LEFT, N_COLOURS, RIGHT, TOP, WIDTH
from planner.report.lines import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point, and what it says where the pointer rests on it."""

    series: str
    x: float
    y: float
    text: str
    is_ring: bool = False


def scatter(
    dots: Sequence[Dot], x_title: str, y_title: str, *, is_log: bool, is_square: bool
) -> str:
    """The drawing; nothing without a dot.

    Args:
        is_square: both axes are of one quantity, and a line goes through what is equal on both.
    """
    if not dots:
        return ""
    xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
    if is_square:
        xs = ys = [*xs, *ys]
    x = axis(xs, LEFT, WIDTH - RIGHT, is_log=is_log)
    y = axis(ys, HEIGHT - BOTTOM, TOP, is_log=is_log)
    return "\n".join(_drawn(dots, x, y, (x_title, y_title), is_square=is_square))


def _drawn(
    dots: Sequence[Dot], x: Axis, y: Axis, titles: tuple[str, str], *, is_square: bool
) -> Iterator[str]:
    x_title, y_title = map(escape, titles)
    yield f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12">'
    yield from Frame(
        left=x.start,
        right=x.end,
        top=y.end,
        bottom=y.start,
        xs=[(x.at(n), tick_text(n)) for n in x.ticks()],
        ys=[(y.at(n), tick_text(n)) for n in y.ticks()],
        title=x_title,
        above=y_title,
    ).drawn()
    if is_square:
        yield f'<path class="target" d="M{LEFT} {HEIGHT - BOTTOM}L{WIDTH - RIGHT} {TOP}"/>'
    for i, name in enumerate(dict.fromkeys(dot.series for dot in dots)):
        yield f'<g class="c{i % N_COLOURS}"><text fill="currentColor" x="{LEFT + 10}" '
        yield f'y="{TOP + 18 + 15 * i}">{escape(name)}</text>'
        for dot in dots:
            if dot.series == name:
                drawn = 'class="line" r="5"' if dot.is_ring else 'fill="currentColor" r="2.6"'
                yield f'<circle {drawn} cx="{x.at(dot.x):.1f}" cy="{y.at(dot.y):.1f}">'
                yield f"<title>{escape(dot.text)}</title></circle>"
        yield "</g>"
    yield "</svg>"
