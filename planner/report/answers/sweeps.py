"""A sweep for people: what came of its requests, and a page with frontiers and a table of all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from planner.quantities.table import axis_of
from planner.quantities.tables import packaged_table
from planner.quantities.units import show
from planner.report.documents.blocks import (
    Cell,
    Document,
    Drawing,
    Figure,
    Note,
    Table,
    notes,
    section,
)
from planner.report.drawings import chart
from planner.report.drawings.axes import axis
from planner.report.words import plural

Row = Mapping[str, Any]
Series = tuple[str, list[Row]]

_X, _Y = "latency", "cost"
_COLUMNS = packaged_table("report/words.toml")["sweep"]
_HEADS: Mapping[str, str] = _COLUMNS["heads"]
_DIMENSIONS: Mapping[str, str] = _COLUMNS["dimensions"]
_REASONS = 5


def document(rows: Sequence[Row], *, folder: str, elapsed_s: float) -> Document:
    """What came of the requests: the cheapest of each model and pool, frontiers, all rows.

    Args:
        rows: of all requests.
        folder: in which they are.
        elapsed_s: since the command began [s].
    """
    n_plans = sum(row["code"] == 0 for row in rows)
    without = len(rows) - n_plans
    title = f"{plural(len(rows), 'request')}: {plural(n_plans, 'plan')}, {without:,} without"
    series = series_of(rows)
    return Document(
        title=title,
        line=title,
        head=(Note(f"{title}, {show(elapsed_s, 's')}"), Note(f"rows: {folder}")),
        sections=(
            section("", _cheapest(series), is_bare=True),
            section("frontiers", *([Drawing(svg=partial(_drawn, series))] if series else [])),
            section("without a plan", *_reasons(rows)),
            section("requests", _table(rows)),
        ),
    )


def _cheapest(series: Sequence[Series]) -> Table:
    told = []
    for _, rows in series:
        best = min(rows, key=lambda row: row["usd_per_token"])
        shown = (_text(best, name) for name in ("tpot_s", "usd_per_token", "usd_per_hour"))
        told.append((f"request {best['index']}", best["model"], best["topology"], *shown))
    heads = ("cheapest", "model", "pool", "TPOT", "cost", "rent")
    return Table(heads=heads, rows=told, align="<<<>>>", sorts=True)


def _reasons(rows: Sequence[Row]) -> list[Note]:
    """Why there is no plan, the usual reasons first."""
    reasons = Counter(row["reason"] for row in rows if row["code"] != 0)
    if not reasons:
        return []
    texts = [f"{n:,} × {reason}" for reason, n in reasons.most_common(_REASONS)]
    if len(reasons) > _REASONS:
        texts.append(f"and {plural(len(reasons) - _REASONS, 'other reason')}, see `reason`")
    return notes(texts)


def series_of(rows: Sequence[Row]) -> list[Series]:
    """Rows with a time and a cost per token, by model and pool, in the order of the requests."""
    series: dict[str, list[Row]] = {}
    for row in rows:
        if row["code"] == 0 and row["tpot_s"] and row["usd_per_token"]:
            series.setdefault(f"{row['model']} on {row['topology']}", []).append(row)
    return list(series.items())


def frontier_of(rows: Sequence[Row]) -> list[Row]:
    """Rows that no other beats in both time and cost per token, the slowest first."""
    frontier: list[Row] = []
    for row in sorted(rows, key=lambda row: (row["tpot_s"], row["usd_per_token"])):
        if not frontier or row["usd_per_token"] < frontier[-1]["usd_per_token"]:
            frontier.append(row)
    return frontier[::-1]


def _drawn(series: Sequence[Series]) -> str:
    lines = [(label, frontier_of(rows)) for label, rows in series]
    logarithmic = _chart(lines, "log-chart", is_log=True)
    linear = _chart(lines, "linear-chart", is_log=False)
    legend = (
        chart.legend_entry(i, label, _point_text(rows[0]).replace("\n", ": "))
        for i, (label, rows) in enumerate(lines)
    )
    return chart.two_charts(logarithmic, linear, legend)


def _chart(lines: Sequence[Series], name: str, *, is_log: bool) -> str:
    rows = [row for _, frontier in lines for row in frontier]
    xs = [axis_of(_X).drawn(row["tpot_s"]) for row in rows]
    ys = [axis_of(_Y).drawn(row["usd_per_token"]) for row in rows]
    plot = chart.Plot(
        x_name=_X,
        y_name=_Y,
        x=axis(xs, chart.LEFT, chart.WIDTH - chart.RIGHT, is_log=is_log),
        y=axis(ys, chart.HEIGHT - chart.BOTTOM, chart.TOP, is_log=is_log),
    )
    parts = [*chart.sheet(plot, name)]
    for i, (label, frontier) in enumerate(lines):
        points = [(row["tpot_s"], row["usd_per_token"]) for row in frontier]
        texts = [f"{label}\n{_point_text(row)}" for row in frontier]
        parts += chart.staircase(plot, points, texts, i, name)
    return "\n".join([*parts, "</svg>"])


def _point_text(row: Row) -> str:
    figures = f"TPOT {_text(row, 'tpot_s')}, {_text(row, 'usd_per_token')}"
    return f"request {row['index']}, {row['engine']}\n{figures}: {row['summary']}"


def _table(rows: Sequence[Row]) -> Table:
    """All rows, which only a page has; without its script in the order of the requests."""
    return Table(
        heads=(*_HEADS.values(), "plan, or why there is none", "command"),
        rows=[
            (
                *(_cell(row, name) for name in _HEADS),
                (row["summary"] or "") if row["code"] == 0 else f"no plan: {row['reason']}",
                f"`{row['command']}`",
            )
            for row in rows
        ],
        listed=(),
        sorts=True,
    )


def _cell(row: Row, name: str) -> Cell:
    value = row[name]
    return Figure(_text(row, name), value) if isinstance(value, int | float) else _text(row, name)


def _text(row: Row, name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    return show(value, _DIMENSIONS[name]) if name in _DIMENSIONS else str(value)
