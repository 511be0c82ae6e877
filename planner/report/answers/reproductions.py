"""Tables of papers beside our own answers: row by row, and each figure drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from statistics import fmean, median

from planner.quantities.units import RANGES, show
from planner.report.documents import blocks
from planner.report.documents.as_text import columns
from planner.report.drawings.axes import Axis, Frame, axis, tick_text
from planner.report.drawings.chart import BOTTOM, HEIGHT, LEFT, N_COLOURS, RIGHT, TOP, WIDTH
from planner.report.words import escape, percent, plural, wrapped
from planner.results.listings import ReproducedRow, ReproducedTable
from planner.specs.files.papers import NO_PLAN, PaperTable, PublishedRow

_HEADS = ("table", "rows", "mean error", "median", "largest", "disagree")
_DATA = (
    *("table", "paper", "where", "series", "row", "published", "answered", "unit", "error"),
    *("reason", "command", "beside"),
)


def document(tables: Sequence[ReproducedTable], *, in_full: bool) -> blocks.Document:
    """Each table drawn and row by row; text has its rows only in full, or else errors of each."""
    title = tables[0].table.title if len(tables) == 1 else f"{len(tables)} tables of papers"
    errors = blocks.Table(heads=_HEADS, rows=[_summary(one) for one in tables], align="<>>>>>")
    more = "`plan reproduce NAME` shows every row, its command and its error"
    return blocks.Document(
        title=title,
        line=title,
        head=(errors,),
        sections=(
            *(_section(one, in_full=in_full) for one in tables),
            blocks.hint("" if in_full else more),
        ),
        data=partial(_data, tables),
    )


def _data(tables: Sequence[ReproducedTable]) -> blocks.Data:
    return _DATA, [_data_row(table.table, one) for table in tables for one in table.rows]


def _data_row(table: PaperTable, reproduced: ReproducedRow) -> tuple[object, ...]:
    row = reproduced.row
    printed = NO_PLAN if row.fails else row.published
    figures = (printed, reproduced.answered, row.unit, reproduced.error)
    head = (table.name, table.paper, table.where, row.series, row.label)
    return (*head, *figures, reproduced.reason, row.command, row.beside)


def _summary(table: ReproducedTable) -> blocks.Row:
    errors = table.errors
    shown = [percent(of(errors)) if errors else "" for of in (fmean, median, max)]
    n_disagree = sum(one.disagrees for one in table.rows)
    return table.table.name, f"{len(table.rows):,}", *shown, str(n_disagree or "")


def _section(reproduced: ReproducedTable, *, in_full: bool) -> blocks.Section:
    table = reproduced.table
    rows = [
        (row.row.series, row.row.label, *_figures(row), _request_text(row.row), _reason(row))
        for row in reproduced.rows
    ]
    heads = ("", "row", "published", "here", "error", "command", "")
    lines = partial(_lines, reproduced) if in_full else None
    return blocks.section(
        f"{table.name}: {table.title} ([{table.paper}] {table.where})",
        blocks.Drawing(svg=partial(_drawn, reproduced), lines=lines),
        blocks.Table(heads=heads, rows=rows, align="<<>>><<", listed=(), sorts=True),
    )


def _lines(table: ReproducedTable, width: int) -> list[str]:
    """The table as text, each command line below the row that it answers."""
    cells = [("  " + one.row.label, *_cells(one)) for one in table.rows]
    head, *lines = columns(("", "published", "here", "error"), cells, "<>>>", width)
    told = [*(wrapped(table.table.note, width) if table.table.note else ()), head]
    pairs = zip(table.rows, lines, strict=True)
    for series, of_series in groupby(pairs, lambda pair: pair[0].row.series):
        rows, its_lines = zip(*of_series, strict=True)
        told += [series, *_series_lines(rows, its_lines, width)]
    return [*told, *wrapped(_errors_text(table), width)]


def _series_lines(rows: Sequence[ReproducedRow], lines: Sequence[str], width: int) -> Iterator[str]:
    """Rows with their lines of a table: below each why it has no figure, and how to ask for it."""
    before = ""
    for row, line in zip(rows, lines, strict=True):
        yield line
        if reason := _reason(row):
            yield from (f"    {text}" for text in wrapped(reason, width - 4))
        if row.row.command != before:
            yield from (f"    $ {text}" for text in (row.row.command, row.row.beside) if text)
        before = row.row.command
    note = rows[0].row.note
    yield from (f"  {text}" for text in wrapped(note, width - 2) if text)


def _reason(row: ReproducedRow) -> str:
    """Why there is no plan, where the paper has one."""
    return "" if row.row.fails else row.reason


def _request_text(row: PublishedRow) -> str:
    return " ".join(f"`{text}`" for text in (row.command, row.beside) if text)


def _figures(row: ReproducedRow) -> blocks.Row:
    """Cells of which the error is sorted by how far it is."""
    printed, answered, error = _cells(row)
    return printed, answered, error if row.error is None else blocks.Figure(error, abs(row.error))


def _cells(reproduced: ReproducedRow) -> tuple[str, str, str]:
    """Published, answered, and how far apart they are."""
    row, error = reproduced.row, reproduced.error
    printed = NO_PLAN if row.fails else _figure(row.published, row.unit)
    answered = NO_PLAN if reproduced.answered is None else _figure(reproduced.answered, row.unit)
    if reproduced.disagrees:
        return printed, answered, "disagrees"
    return printed, answered, "" if error is None else f"{100 * error:+.1f} %"


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "not printed"
    return show(value, unit) if unit in RANGES and unit != "token" else _plain(value, unit)


def _plain(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.4g} {unit}"


def _errors_text(table: ReproducedTable) -> str:
    """`12 rows: mean error 3.1 %, median 2 %, largest 9 %`."""
    errors = table.errors
    text = plural(len(table.rows), "row")
    if errors:
        text += f": mean error {percent(fmean(errors))}, median {percent(median(errors))}, "
        text += f"largest {percent(errors[-1])}"
    n_disagree = sum(one.disagrees for one in table.rows)
    if n_disagree:
        text += f"; of {plural(n_disagree, 'row')} one side has a plan and the other has none"
    return text


def _drawn(table: ReproducedTable) -> str:
    """What is said of the table, and its rows as dots, with printed figures as rings."""
    chart = table.table.chart
    words = (table.table.note, _errors_text(table))
    return "\n".join(
        (
            *(f"<p>{escape(text)}</p>" for text in words if text),
            scatter(
                list(_dots(table)),
                chart.x_title or "published",
                chart.y_title or "here",
                is_log=chart.is_log,
                is_square=not chart.x,
            ),
        )
    )


def _dots(table: ReproducedTable) -> Iterator[Dot]:
    """Answers, and printed figures where the table has an axis of its own."""
    has_axis = bool(table.table.chart.x)
    for row in table.rows:
        published, series = row.row.published, row.row.series
        text = " ".join((row.row.label, *_cells(row)))
        x = row.x if has_axis else published
        if x and row.answered and min(x, row.answered) > 0:
            yield Dot(series=series, x=x, y=row.answered, text=text)
        if has_axis and row.published_x and published and min(row.published_x, published) > 0:
            yield Dot(series=series, x=row.published_x, y=published, text=text, is_ring=True)


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
    return "\n".join(_scattered(dots, x, y, (x_title, y_title), is_square=is_square))


def _scattered(
    dots: Sequence[Dot], x: Axis, y: Axis, titles: tuple[str, str], *, is_square: bool
) -> Iterator[str]:
    x_title, y_title = map(escape, titles)
    yield f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-size="12" '
    yield 'aria-label="figures of the planner over those of the paper">'
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
