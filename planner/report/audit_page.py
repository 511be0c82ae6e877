"""An audit as one page of HTML: what runs as a point beside the frontiers, and the report."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.audit import audit_line, audit_text
from planner.report.chart import Line, Mark, chart, swatch
from planner.report.markup import escape
from planner.report.page import document, radio_charts
from planner.report.survey_words import end_text, proof_text
from planner.results.audits import Audit
from planner.results.surveys import Curve
from planner.units import show

_WIDTH = 110


def audit_page(audit: Audit, curves: Sequence[Curve]) -> str:
    """The whole page.

    Args:
        audit: what was found.
        curves: frontiers of decoding, that of the formats which run first.
    """
    lines = [
        Line(label=curve.case.weights, frontier=curve.frontier)
        for curve in curves
        if curve.frontier is not None and curve.frontier.points
    ]
    marks = _marks(audit)
    body = [f"<h1>{escape(audit_line(audit))}</h1>"]
    if lines:
        charts = (chart(lines, is_log=log, name=name, marks=marks) for log, name in _CHARTS)
        body += radio_charts(*charts)
        body += _legend(lines)
    body.append(f"<pre>{escape(audit_text(audit, _WIDTH))}</pre>")
    body += (f"<p>{escape(line.label)}: {escape(proof_text(line.frontier))}</p>" for line in lines)
    return document(audit_line(audit), body)


_CHARTS = ((True, "log-chart"), (False, "linear-chart"))


def _marks(audit: Audit) -> tuple[Mark, ...]:
    """What runs, and where it would be on the frontier of its own formats."""
    seen = audit.observed
    text = (
        f"what runs\n{1.0 / seen.tpot_s:.3g} token/s per user at "
        f"{show(seen.usd_per_token, 'USD/token')}\n{seen.n_devices} devices, batch {seen.batch}"
    )
    found = [Mark(x=seen.tpot_s, y=seen.usd_per_token, label="what runs", text=text)]
    for label, best in (("at equal speed", audit.equal_speed), ("at equal cost", audit.equal_cost)):
        if best is not None:
            x, y = best.tpot_s, best.usd_per_decoded_token
            where = f"{label}\n{best.summary}"
            found.append(Mark(x=x, y=y, label=label, text=where, is_ring=True))
    return tuple(found)


def _legend(lines: Sequence[Line]) -> list[str]:
    rows = ["<table>"]
    for i, line in enumerate(lines):
        points = line.frontier.points
        ends = f"{end_text(line.frontier, points[0])} to {end_text(line.frontier, points[-1])}"
        rows.append(
            f"<tr><td>{swatch(i)}</td><td>{escape(line.label)}</td><td>{escape(ends)}</td></tr>"
        )
    return [*rows, "</table>"]
