"""A sweep for people: what came of its requests, and a page with frontiers and a table of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.quantities import axis_of
from planner.report.axes import axis
from planner.report.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Plot,
    sheet,
    staircase,
    swatch,
)
from planner.report.lines import columns, wrapped
from planner.report.markup import escape
from planner.report.page import document, radio_charts
from planner.report.words import plural
from planner.units import show

Row = Mapping[str, Any]
Series = tuple[str, list[Row]]

_X, _Y = "latency", "cost"
_DIMENSIONS = {
    "tpot_s": "s",
    "ttft_s": "s",
    "usd_per_token": "USD/token",
    "usd_per_hour": "USD/h",
    "output_tokens_per_s": "token/s",
}
_HEADS = {
    "index": "request",
    "model": "model",
    "topology": "pool",
    "engine": "engine",
    "tpot_s": "TPOT",
    "ttft_s": "TTFT",
    "usd_per_token": "cost",
    "usd_per_hour": "rent",
    "output_tokens_per_s": "speed",
    "n_devices": "devices",
    "n_replicas": "replicas",
    "status": "status",
}
_REASONS = 5
_SCRIPT = """\
(function () {
  var table = document.getElementById("rows"), body = table.tBodies[0];
  var rows = Array.prototype.slice.call(body.rows), words = document.getElementById("words");
  function key(row, i) {
    var cell = row.cells[i], number = cell.getAttribute("data-n");
    return number === null ? cell.textContent : +number;
  }
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, i) {
    head.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      Array.prototype.forEach.call(table.tHead.rows[0].cells, function (one) {
        one.removeAttribute("aria-sort");
      });
      head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
      rows.sort(function (a, b) {
        var x = key(a, i), y = key(b, i);
        if (x === "" || y === "") { return (x === "") - (y === ""); }
        return down * (x < y ? -1 : x > y ? 1 : 0);
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
  words.addEventListener("input", function () {
    var wanted = words.value.toLowerCase().split(" "), n = 0;
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !wanted.every(function (word) { return text.indexOf(word) >= 0; });
      n += !row.hidden;
    });
    document.getElementById("shown").textContent = n + " of " + rows.length;
  });
})();"""


def sweep_text(rows: Sequence[Row], width: int, *, folder: str, elapsed_s: float) -> str:
    """What came of the requests, in lines of at most `width` columns.

    Args:
        rows: of all requests.
        folder: in which they are.
        elapsed_s: since the command began [s].
    """
    plans = [row for row in rows if row["code"] == 0]
    head = f"{plural(len(rows), 'request')}: {plural(len(plans), 'plan')}"
    head += f", {len(rows) - len(plans):,} without, {show(elapsed_s, 's')}"
    lines = [head, f"rows: {folder}"]
    table = [("cheapest", "model", "pool", "TPOT", "cost", "rent")]
    for _, series in series_of(rows):
        best = min(series, key=lambda row: row["usd_per_token"])
        shown = (_cell(best, name) for name in ("tpot_s", "usd_per_token", "usd_per_hour"))
        table.append((f"request {best['index']}", best["model"], best["topology"], *shown))
    if len(table) > 1:
        lines += ["", *columns(table, "<<<>>>")]
    reasons = Counter(row["reason"] for row in rows if row["code"] != 0)
    if reasons:
        lines += ["", "without a plan"]
        for reason, n in reasons.most_common(_REASONS):
            lines += wrapped(f"{n:,} × {reason}", width)
        if len(reasons) > _REASONS:
            lines.append(f"and {plural(len(reasons) - _REASONS, 'other reason')}, see `reason`")
    return "\n".join(lines)


def sweep_page(rows: Sequence[Row]) -> str:
    """Frontiers of cost against TPOT by model and pool, and all rows."""
    n_plans = sum(row["code"] == 0 for row in rows)
    title = f"{plural(len(rows), 'request')}, {plural(n_plans, 'plan')}"
    series = series_of(rows)
    body = (f"<h1>{escape(title)}</h1>", *_frontiers(series), *_table(rows))
    return document(title, (*body, f"<script>//<![CDATA[\n{_SCRIPT}\n//]]></script>"))


def series_of(rows: Sequence[Row]) -> list[Series]:
    """Rows with a time and a cost per token, by model and pool, in the order of the requests."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["code"] == 0 and row["tpot_s"] and row["usd_per_token"]:
            found.setdefault(f"{row['model']} on {row['topology']}", []).append(row)
    return list(found.items())


def frontier_of(rows: Sequence[Row]) -> list[Row]:
    """Rows that no other beats in both time and cost per token, the slowest first."""
    found: list[Row] = []
    for row in sorted(rows, key=lambda one: (one["tpot_s"], one["usd_per_token"])):
        if not found or row["usd_per_token"] < found[-1]["usd_per_token"]:
            found.append(row)
    return found[::-1]


def _frontiers(series: Sequence[Series]) -> Iterator[str]:
    if not series:
        return
    lines = [(label, frontier_of(rows)) for label, rows in series]
    yield from radio_charts(
        _chart(lines, "log-chart", is_log=True), _chart(lines, "linear-chart", is_log=False)
    )
    yield '<div class="scroll"><table>'
    for i, (label, rows) in enumerate(lines):
        best = _point_text(rows[0]).replace("\n", ": ")
        yield f'<tr><td>{swatch(i)}</td><td>{escape(label)}</td><td class="words">'
        yield f"{escape(best)}</td></tr>"
    yield "</table></div>"


def _chart(lines: Sequence[Series], name: str, *, is_log: bool) -> str:
    rows = [row for _, frontier in lines for row in frontier]
    xs = [axis_of(_X).drawn(row["tpot_s"]) for row in rows]
    ys = [axis_of(_Y).drawn(row["usd_per_token"]) for row in rows]
    plot = Plot(
        x_name=_X,
        y_name=_Y,
        x=axis(xs, LEFT, WIDTH - RIGHT, is_log=is_log),
        y=axis(ys, HEIGHT - BOTTOM, TOP, is_log=is_log),
    )
    parts = [*sheet(plot, name)]
    for i, (label, frontier) in enumerate(lines):
        points = [(row["tpot_s"], row["usd_per_token"]) for row in frontier]
        texts = [f"{label}\n{_point_text(row)}" for row in frontier]
        parts += staircase(plot, points, texts, i, name)
    return "\n".join([*parts, "</svg>"])


def _point_text(row: Row) -> str:
    figures = f"TPOT {_cell(row, 'tpot_s')}, {_cell(row, 'usd_per_token')}"
    return f"request {row['index']}, {row['engine']}\n{figures}: {row['summary']}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """All rows; without the script in the order of the requests."""
    yield "<h2>Requests</h2>"
    yield '<p><label for="words">with the words</label>'
    yield '<input id="words" type="search" style="max-width:100%"/> '
    yield f'<span id="shown" class="faint">{len(rows)} of {len(rows)}</span></p>'
    yield '<div class="scroll"><table id="rows"><thead><tr>'
    yield from (f'<th style="cursor:pointer">{escape(head)}</th>' for head in _HEADS.values())
    yield "<th>plan, or why there is none</th><th>command</th></tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(_td(row, name) for name in _HEADS)
        words = row["summary"] if row["code"] == 0 else f"no plan: {row['reason']}"
        yield f"<td>{escape(words or '')}</td><td><code>{escape(row['command'])}</code></td></tr>"
    yield "</tbody></table></div>"


def _td(row: Row, name: str) -> str:
    value = row[name]
    number = f' data-n="{value!r}"' if isinstance(value, int | float) else ""
    return f"<td{number}>{escape(_cell(row, name))}</td>"


def _cell(row: Row, name: str) -> str:
    value = row[name]
    if value is None:
        return ""
    return show(value, _DIMENSIONS[name]) if name in _DIMENSIONS else str(value)
