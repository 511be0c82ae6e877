"""A placement of experts as one page of HTML that needs nothing else.

Loads of ranks before and after as bars around the mean and the bound; then a heat map: a row
for each rank, a cell for each slot, as dark as its load; a copy under the pointer lights up all
copies of its expert.
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.report.experts import experts_line, status_text
from planner.report.lines import percent
from planner.report.markup import escape
from planner.results.experts import ExpertPlan, ExpertRank

_WIDTH, _LEFT, _RIGHT, _TOP = 880, 96, 16, 8
_BARS, _LETTERS = 200, 14
_ROW, _CELL, _MAP = 16, 54, 960

_STYLE = """\
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--faint:#6a737d;--rule:#e3e6ea;
--after:#0072b2;--before:#c9ced4;--mark:#d55e00}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e8eb;--faint:#98a1ab;
--rule:#2b3036;--after:#56b4e9;--before:#454c54;--mark:#ff8a3d}}
body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.2rem;margin:0 0 .5rem}h2{font-size:1.05rem;margin:2rem 0 .4rem}
p{margin:.3rem 0}.faint{color:var(--faint);fill:var(--faint)}
.scroll{overflow-x:auto}
svg{display:block;max-width:none;height:auto;fill:var(--ink);font-size:11px}
.chart{width:100%}
.after{fill:var(--after)}.before{fill:var(--before)}
.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}
.rule{stroke:var(--ink);stroke-dasharray:4 3;fill:none}.bound{stroke:var(--mark);fill:none}
.bound-text{fill:var(--mark)}
rect.slot{fill:var(--after);stroke:var(--page)}rect.empty{fill:none;stroke:var(--rule)}
g.copy:hover rect,g.copy.on rect{fill:var(--mark);fill-opacity:1}
.node{stroke:var(--ink)}"""

_SCRIPT = """\
document.querySelectorAll('g.copy').forEach(function(one){
 function mark(on){document.querySelectorAll('g.copy[data-e="'+one.dataset.e+'"]')
  .forEach(function(c){c.classList.toggle('on',on)})}
 one.addEventListener('mouseenter',function(){mark(true)});
 one.addEventListener('mouseleave',function(){mark(false)});});"""


def experts_page(plan: ExpertPlan) -> str:
    """The whole page."""
    asked = plan.request
    body = [
        f"<h1>{escape(experts_line(plan))}</h1>",
        f"<p>{escape(status_text(plan))}; loads: {escape(asked.weights.source)}</p>",
        "<h2>Load of each rank</h2>",
        '<p class="faint"><span class="key" style="background:var(--after)"></span>this plan'
        '<span class="key" style="background:var(--before)"></span>'
        f"{escape(plan.before)}; in mean loads</p>",
        *_bars(plan),
        "<h2>What each rank holds</h2>",
        '<p class="faint">a cell is a slot, as dark as its load; point at a copy to see all '
        "copies of its expert</p>",
        '<div class="scroll">',
        *_map(plan),
        "</div>",
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{escape(f'{asked.n_experts} experts on {asked.n_ranks} ranks')}</title>",
            f"<style>\n{_STYLE}\n</style></head><body>",
            *body,
            f"<script>//<![CDATA[\n{_SCRIPT}\n//]]></script>",
            "</body></html>",
            "",
        ]
    )


def _bars(plan: ExpertPlan) -> Iterable[str]:
    """A pair of bars for each rank; lines at the mean and at the bound."""
    mean, n = plan.mean_load, plan.request.n_ranks
    top = 1.06 * max(max(rank.load, rank.load_before) for rank in plan.ranks) / mean
    step = (_WIDTH - _LEFT - _RIGHT) / n
    yield f'<svg class="chart" viewBox="0 0 {_WIDTH} {_BARS + 40}" role="img">'
    for g, rank in enumerate(plan.ranks):
        x = _LEFT + g * step
        words = escape(
            f"rank {g}, node {rank.node}: {rank.load / mean:.4f}, "
            f"{plan.before} {rank.load_before / mean:.4f}"
        )
        yield f"<g><title>{words}</title>"
        for kind, load, at in (("before", rank.load_before, 0.06), ("after", rank.load, 0.5)):
            high = load / mean / top * _BARS
            yield f'<rect class="{kind}" x="{x + at * step:.2f}" y="{_TOP + _BARS - high:.2f}" '
            yield f'width="{0.44 * step:.2f}" height="{high:.2f}"/>'
        yield "</g>"
        every = -(-n // 24)
        if g % every == 0:
            yield f'<text class="faint" x="{x + step / 2:.1f}" y="{_TOP + _BARS + 16}" '
            yield f'text-anchor="middle">{g}</text>'
    yield from _levels(plan, top)
    yield "</svg>"


def _levels(plan: ExpertPlan, top: float) -> Iterable[str]:
    """Lines at the mean and at the bound, one where no eye could tell them apart.

    A bound that includes the price of moves is no load, and has no line.

    Args:
        top: load of the whole height, in mean loads.
    """
    asked = plan.request
    bound, lines = plan.certificate.bound / plan.mean_load, [("rule", "faint", 1.0, "mean")]
    height = (bound - 1.0) / top * _BARS
    if height <= 1.0 and not asked.move_price:
        lines = [("rule", "faint", 1.0, "mean, bound")]
    elif not asked.move_price:
        lines.append(("bound", "bound-text", bound, f"bound {bound:.4g}"))
    lower = (
        max(0.0, _LETTERS - height) if len(lines) > 1 else 0.0
    )  # words that would be overprinted
    for kind, text, level, words in lines:
        y = _TOP + _BARS - level / top * _BARS
        below = y + 4 + (lower if kind == "rule" else 0.0)
        yield f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="{text}" x="{_LEFT - 6}" y="{below:.1f}" text-anchor="end">'
        yield f"{words}</text>"


def _map(plan: ExpertPlan) -> Iterable[str]:
    """Ranks down, in as many columns as there is room for; slots across, heaviest copy first."""
    asked = plan.request
    darkest = max((size for rank in plan.ranks for size in _sizes(plan, rank)), default=0.0) or 1.0
    wide = _LEFT + asked.n_slots * _CELL + _RIGHT
    across = max(1, _MAP // wide)
    down = -(-asked.n_ranks // across)
    size = (across * wide, _TOP + down * _ROW + 8)
    yield f'<svg width="{size[0]}" height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" role="img">'
    for g, rank in enumerate(plan.ranks):
        column, row = divmod(g, down)
        left, y = column * wide, _TOP + row * _ROW
        if row and rank.node != plan.ranks[g - 1].node:
            yield f'<path class="node" d="M{left} {y - 0.5}H{left + wide - _RIGHT}"/>'
        name = f"node {rank.node} rank {g}" if asked.n_nodes > 1 else f"rank {g}"
        yield f'<text class="faint" x="{left + _LEFT - 6}" y="{y + 12}" text-anchor="end">'
        yield f"{name}</text>"
        held = sorted(zip(_sizes(plan, rank), rank.experts, strict=True), reverse=True)
        for i in range(asked.n_slots):
            x = left + _LEFT + i * _CELL
            if i < len(held):
                yield _slot(plan, held[i], (x, y), darkest)
                continue
            extent = f'width="{_CELL - 1}" height="{_ROW - 1}"'
            yield f'<rect class="empty" x="{x}" y="{y}" {extent}/>'
    yield "</svg>"


def _slot(plan: ExpertPlan, copy: tuple[float, int], at: tuple[int, int], darkest: float) -> str:
    """A copy: its expert, and in words its load and how many there are."""
    (size, e), (x, y) = copy, at
    share = size / plan.mean_load
    many = plan.n_copies[e]
    words = f"expert {e}: {percent(share)} of the mean load of a rank, one of {many} copies"
    strength = 0.08 + 0.72 * size / darkest
    return (
        f'<g class="copy" data-e="{e}"><title>{escape(words)}</title>'
        f'<rect class="slot" x="{x}" y="{y}" width="{_CELL - 1}" height="{_ROW - 1}" '
        f'fill-opacity="{strength:.3f}"/>'
        f'<text x="{x + (_CELL - 1) / 2}" y="{y + 12}" text-anchor="middle">{e}</text></g>'
    )


def _sizes(plan: ExpertPlan, rank: ExpertRank) -> list[float]:
    """Load of each copy that a rank holds."""
    return [
        share * plan.request.loads[e] for share, e in zip(rank.shares, rank.experts, strict=True)
    ]
