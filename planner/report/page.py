"""Frontiers as one page of HTML that needs nothing else: drawing, legend, points, proof.

Without a script the page shows everything: the choice of axes is a pair of radio buttons that
the style sheet follows, and a point's details are its title. The script shows them at once,
for the nearest point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.report.chart import Line, chart, swatch
from planner.report.markup import escape
from planner.report.outlines import cell, has_prefill, headline_of, run_heads
from planner.report.survey_words import (
    at_target,
    axis_targets,
    best_text,
    case_label,
    end_text,
    preferred_text,
    proof_text,
    shared_words,
    survey_title,
)
from planner.report.words import plural
from planner.results.surveys import Curve

_STYLE = """\
:root{color-scheme:light dark}
:root{--page:#fff;--ink:#1b1f24;--faint:#6a737d;--rule:#e3e6ea;--box:#f6f7f9;
--c0:#0072b2;--c1:#d55e00;--c2:#007f5f;--c3:#b0508a;--c4:#a87400;--c5:#2a8fd0;--c6:#1b1f24}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e8eb;--faint:#98a1ab;
--rule:#2b3036;--box:#1e2227;--c0:#56b4e9;--c1:#ff8a3d;--c2:#2fc79b;--c3:#e79bc6;--c4:#e6b422;
--c5:#9cc9ff;--c6:#e6e8eb}}
body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}
p{margin:.3rem 0}.faint{color:var(--faint);fill:var(--faint)}
svg{display:block}.chart{width:100%;height:auto;fill:var(--ink)}
.grid path{stroke:var(--rule)}.frame{fill:none;stroke:var(--faint)}.title{font-size:13px}
.line{fill:none;stroke:currentColor;stroke-width:1.5;stroke-linejoin:round}
.p{fill:currentColor}.p:hover{stroke:var(--ink);stroke-width:2}
.star{stroke:var(--page);stroke-width:1.5}.ring{fill:none;stroke:var(--ink);stroke-width:2}
.target{stroke:var(--ink);stroke-dasharray:4 3;fill:none}.target-text{font-weight:600}
.veil{fill:var(--ink);opacity:.045}.swatch{display:inline-block;vertical-align:middle}
.swatch :not(.line){fill:currentColor}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
.c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}
#linear:checked~.charts #log-axes,#log:checked~.charts #linear-axes{display:none}
label{margin-right:1rem}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
td,th{padding:.2rem .6rem .2rem 0;text-align:left;border-bottom:1px solid var(--rule);
white-space:nowrap}th{font-weight:600;white-space:normal}td.words{white-space:normal}
.scroll,pre{overflow-x:auto}tr.mark td{font-weight:600}summary{cursor:pointer}
#tip{position:fixed;display:none;pointer-events:none;white-space:pre-line;background:var(--box);
border:1px solid var(--faint);border-radius:4px;padding:.4rem .6rem;font-size:13px;
max-width:30rem}"""

_SCRIPT = """\
(function () {
  var tip = document.getElementById("tip");
  document.querySelectorAll(".chart").forEach(function (chart) {
    var points = [];
    chart.querySelectorAll(".p").forEach(function (use) {
      var title = use.querySelector("title");
      var box = { x: +use.getAttribute("x"), y: +use.getAttribute("y"), text: title.textContent };
      use.removeChild(title);
      points.push(box);
    });
    chart.addEventListener("pointermove", function (event) {
      var scale = chart.getBoundingClientRect().width / chart.viewBox.baseVal.width;
      var at = chart.getBoundingClientRect(), best = null, least = 24 * 24;
      points.forEach(function (point) {
        var x = at.left + point.x * scale - event.clientX;
        var y = at.top + point.y * scale - event.clientY;
        var far = x * x + y * y;
        if (far <= least) { least = far; best = point; }
      });
      tip.style.display = best ? "block" : "none";
      if (!best) { return; }
      tip.textContent = best.text;
      var wide = document.documentElement.clientWidth - tip.offsetWidth - 8;
      tip.style.left = Math.max(4, Math.min(event.clientX + 16, wide)) + "px";
      var below = event.clientY + 16 + tip.offsetHeight < window.innerHeight;
      tip.style.top = (below ? event.clientY + 16 : event.clientY - tip.offsetHeight - 12) + "px";
    });
    chart.addEventListener("pointerleave", function () { tip.style.display = "none"; });
  });
})();"""


def page(curves: Sequence[Curve]) -> str:
    """The whole page.

    Args:
        curves: at least one of them with a frontier.
    """
    cases = [curve.case for curve in curves]
    lines = [
        Line(label=case_label(curve.case, cases), frontier=curve.frontier)
        for curve in curves
        if curve.frontier is not None
    ]
    title = escape(survey_title(cases, lines[0].frontier))
    body = (
        f"<h1>{title}</h1>",
        *(f'<p class="faint">{escape(w)}</p>' for w in shared_words(lines[0].frontier)),
        *radio_charts(
            chart(lines, is_log=True, name="log-chart"),
            chart(lines, is_log=False, name="linear-chart"),
        ),
        *_legend(lines, curves),
        *_proofs(lines),
        *(part for i, line in enumerate(lines) for part in _points(line, i)),
    )
    return document(survey_title(cases, lines[0].frontier), body)


def radio_charts(logarithmic: str, linear: str) -> tuple[str, ...]:
    """Two drawings of which a pair of buttons shows one."""
    return (
        '<input type="radio" name="axes" id="log" checked="checked"/> '
        '<label for="log">logarithmic axes</label>',
        '<input type="radio" name="axes" id="linear"/> <label for="linear">linear axes</label>',
        '<div class="charts"><div id="log-axes">',
        logarithmic,
        '</div><div id="linear-axes">',
        linear,
        "</div></div>",
    )


def document(title: str, body: Iterable[str]) -> str:
    """A page with our style and script around its body."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}\n</style></head><body>",
            *body,
            '<div id="tip"></div>',
            f"<script>//<![CDATA[\n{_SCRIPT}\n//]]></script>",
            "</body></html>",
            "",
        ]
    )


def _legend(lines: Sequence[Line], curves: Sequence[Curve]) -> Iterable[str]:
    """What each curve is, its preferred point, and the best within the targets."""
    yield '<div class="scroll"><table>'
    yield _row(("", "", "fastest", "slowest", f"★ {preferred_text(lines[0].frontier)}"), "th")
    for i, line in enumerate(lines):
        points = line.frontier.points
        best = line.frontier.best.deployment
        cells = (
            line.label,
            end_text(line.frontier, points[-1]),
            end_text(line.frontier, points[0]),
        )
        yield f"<tr><td>{swatch(i)}</td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<td class="words">{escape(f"{headline_of(best)}: {best.summary}")}</td></tr>'
    for curve in curves:
        if curve.frontier is None:
            label = escape(case_label(curve.case, [one.case for one in curves]))
            yield f'<tr><td>–</td><td class="words">{label}</td>'
            yield f'<td class="words" colspan="3">no plan: {escape(curve.reason)}</td></tr>'
    yield "</table></div>"
    for line in lines:
        frontier = line.frontier
        if axis_targets(frontier):
            text = " and ".join(text for _, _, text in axis_targets(frontier))
            found = at_target(frontier)
            chosen = None if found is None else frontier.points[found].deployment
            words = f"{chosen.summary}: {headline_of(chosen)}" if chosen else "no point"
            label = f"{line.label}, {best_text(frontier)} within {text}"
            yield f"<p>○ {escape(label)}: {escape(words)}</p>"


def _proofs(lines: Sequence[Line]) -> Iterable[str]:
    yield "<h2>Proof</h2>"
    for line in lines:
        yield f"<p>{escape(line.label)}: {escape(proof_text(line.frontier))}</p>"


_DOES = ("TPOT", "TTFT", "cost", "rent")


def _points(line: Line, i: int) -> Iterable[str]:
    """All points of a curve, in a table that opens."""
    frontier = line.frontier
    counted = f"{line.label}: all {plural(len(frontier.points), 'point')}"
    yield f"<details><summary>{swatch(i)} {escape(counted)}</summary>"
    yield '<div class="scroll"><table>'
    deployments = [point.deployment for point in frontier.points]
    does = [head for head in _DOES if has_prefill(deployments[0]) or head != "TTFT"]
    heads = (*does, *run_heads(deployments, [frontier.request]), "tokens/s")
    yield _row(("", *heads), "th")
    for j, best in enumerate(deployments):
        is_preferred = j == frontier.preferred
        is_cheapest = j == at_target(frontier)
        cells = (
            "★" * is_preferred + "○" * is_cheapest,
            *(cell(head, best) for head in heads),
        )
        yield _row(cells, "td", ' class="mark"' if is_preferred or is_cheapest else "")
    yield "</table></div></details>"


def _row(cells: Sequence[str], tag: str, attributes: str = "") -> str:
    inner = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr{attributes}>{inner}</tr>"
