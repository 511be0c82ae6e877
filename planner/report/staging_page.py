"""A cut or a placement as one page of HTML that needs nothing else.

Layers run from left to right. Each stage is a box over its layers, as high as the share of the
slowest stage's time that it takes; below it the classes of layers. Of a placement each machine
is a box over its layers, as high as what it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.report.layers import (
    bound_knows,
    claim,
    layers_line,
    layers_span,
    machines_text,
    rows_of,
)
from planner.report.lines import percent
from planner.report.markup import escape
from planner.report.proof import prover_line
from planner.report.stages import gap_text, holds, stages_line
from planner.report.words import plural
from planner.results.staging import LayerPlacement, StagePlan
from planner.units import show

_WIDTH, _LEFT, _RIGHT, _HIGH, _TOP = 960, 64, 16, 180, 34
_N_COLOURS = 7

_STYLE = """\
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--faint:#6a737d;--rule:#e3e6ea;
--c0:#0072b2;--c1:#d55e00;--c2:#007f5f;--c3:#b0508a;--c4:#a87400;--c5:#2a8fd0;--c6:#737b84}
@media(prefers-color-scheme:dark){:root{--page:#15181c;--ink:#e6e8eb;--faint:#98a1ab;
--rule:#2b3036;--c0:#56b4e9;--c1:#ff8a3d;--c2:#2fc79b;--c3:#e79bc6;--c4:#e6b422;--c5:#9cc9ff;
--c6:#98a1ab}}
body{margin:2rem auto;max-width:64rem;padding:0 1rem;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.2rem;margin:0 0 .5rem}h2{font-size:1.05rem;margin:2rem 0 .4rem}p{margin:.3rem 0}
.faint{color:var(--faint);fill:var(--faint)}
svg{display:block;width:100%;height:auto;fill:var(--ink);font-size:12px}
.rule{stroke:var(--faint);stroke-dasharray:4 3}.box{fill:currentColor;stroke:var(--page)}
.box:hover{stroke:var(--ink);stroke-width:2}.send{opacity:.45}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
.c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
td,th{padding:.15rem .6rem .15rem 0;text-align:right;border-bottom:1px solid var(--rule);
white-space:nowrap}td.word,th.word{text-align:left}.scroll{overflow-x:auto}"""


def stages_page(plan: StagePlan) -> str:
    """The cut: drawing, stages, proof."""
    found = plan.certificate
    kinds = [one.kind for one in plan.groups]
    body = [
        f"<h1>{escape(stages_line(plan))}</h1>",
        _legend(kinds),
        _stages_drawing(plan, kinds),
        _table(
            ("group", "holds", "run", "hand over", "weights", "cache", "of its memory"),
            [
                (
                    one.kind,
                    holds(one),
                    show(one.run_s, "s"),
                    show(one.hand_s, "s") if one.hand_s else "–",
                    show(one.weights_bytes, "B"),
                    show(one.cache_bytes, "B") if one.cache_bytes else "–",
                    percent(one.held_bytes / one.limit_bytes),
                )
                for one in plan.stages
            ],
            n_words=2,
        ),
        "<h2>Proof</h2>",
        f"<p>least {found.objective_name}: {show(found.objective, 's')}, "
        f"bound {show(found.bound, 's')}, {gap_text(found)}</p>",
        f"<p>{escape(prover_line(found))}</p>",
        *(f"<p>verified: {escape(check)}</p>" for check in found.verified),
    ]
    return _page(f"{plan.request.model.name} in {len(plan.stages)} stages", body)


def layers_page(one: LayerPlacement) -> str:
    """The placement: drawing, stages, proof."""
    found = one.certificate
    types = list(dict.fromkeys(machine.type for machine in one.machines))
    rows = rows_of(one)
    body = [
        f"<h1>{escape(layers_line(one))}</h1>",
        _legend(types),
        _placement_drawing(one, types),
        _table(
            ("layers", "machines", "token/s"),
            [
                (
                    layers_span(row[0]),
                    machines_text(row),
                    f"{sum(machine.tokens_per_s for machine in row):.1f}",
                )
                for row in rows
            ],
            n_words=2,
        ),
        "<h2>Proof</h2>",
        f"<p>{found.objective:.2f} token/s; {escape(claim(one))}</p>",
        *(f"<p>{escape(words)}</p>" for words in (bound_knows(one), prover_line(found)) if words),
        *(f"<p>verified: {escape(check)}</p>" for check in found.verified),
    ]
    return _page(one.request.layers.title, body)


def _stages_drawing(plan: StagePlan, kinds: Sequence[str]) -> str:
    """Boxes over units: the embedding first, the head last."""
    n_units = len(plan.request.model.order) + 2
    slowest = max(one.total_s for one in plan.stages)
    parts = [_svg(_TOP + _HIGH + 64), *_rule(f"slowest {show(slowest, 's')}")]
    for one in plan.stages:
        first = 0 if one.has_embedding else one.first_layer + 1
        last = n_units if one.has_head else one.first_layer + one.n_layers + 1
        words = f"{one.kind}\n{holds(one)}\n{show(one.run_s, 's')}, then {show(one.hand_s, 's')}"
        colour = _colour(kinds.index(one.kind))
        run, send = one.run_s / slowest, one.hand_s / slowest
        span = (_x(first, n_units), _x(last, n_units))
        parts.append(_box(span, (0.0, run), colour, words))
        parts.append(_box(span, (run, run + send), f"{colour} send", words))
    parts += _strip(plan, n_units)
    return "\n".join([*parts, "</svg>"])


def _strip(plan: StagePlan, n_units: int) -> Iterable[str]:
    """Classes of layers below the boxes, colours from the last one on."""
    top = _TOP + _HIGH + 6
    classes = [layer.name for layer in plan.request.model.layers]
    units = [-1, *plan.request.model.order, -1]
    for unit, kind in enumerate(units):
        x, then = _x(unit, n_units), _x(unit + 1, n_units)
        end = "embedding" if unit == 0 else "head"
        name = classes[kind] if kind >= 0 else end
        colour = _colour(_N_COLOURS - 1 - (kind + 1) % _N_COLOURS)
        yield (
            f'<rect class="box {colour}" x="{x:.1f}" y="{top}" width="{then - x:.1f}" '
            f'height="16"><title>{escape(name)}</title></rect>'
        )
    x = float(_LEFT)
    for kind, name in enumerate((*classes, "embedding or head")):
        index = kind if kind < len(classes) else -1
        colour = _colour(_N_COLOURS - 1 - (index + 1) % _N_COLOURS)
        yield f'<text x="{x:.0f}" y="{top + 36}"><tspan class="{colour}" fill="currentColor">■'
        yield f"</tspan> {escape(name)}</text>"
        x += 7.0 * len(name) + 30


def _placement_drawing(one: LayerPlacement, types: Sequence[str]) -> str:
    """Machines stand on those that hold the same layers: a layer is served by all above it."""
    n_layers = one.request.layers.n_layers
    lows, highest = _stacked(one)
    parts = [_svg(_TOP + _HIGH + 28)]
    for machine, low in zip(one.machines, lows, strict=True):
        first, end = machine.first_layer, machine.first_layer + machine.n_layers
        high = low + machine.tokens_per_s
        held = plural(machine.n_layers, "layer")
        words = f"{machine.machine}\n{held}, {machine.tokens_per_s:.1f} token/s"
        colour = _colour(types.index(machine.type))
        span = (_x(first, n_layers), _x(end, n_layers))
        parts.append(_box(span, (low / highest, high / highest), colour, words))
    parts += _rule(f"{one.tokens_per_s:.1f} token/s", one.tokens_per_s / highest)
    ends = ((1, "start", _LEFT), (n_layers, "end", _WIDTH - _RIGHT))
    for number, anchor, x in ends:
        parts.append(
            f'<text class="faint" x="{x}" y="{_TOP + _HIGH + 18}" text-anchor="{anchor}">'
            f"layer {number}</text>"
        )
    return "\n".join([*parts, "</svg>"])


def _stacked(one: LayerPlacement) -> tuple[list[float], float]:
    """Where the box of each machine begins, in token/s, and the highest end of one."""
    heights, lows = [0.0] * one.request.layers.n_layers, []
    for machine in one.machines:
        held = range(machine.first_layer, machine.first_layer + machine.n_layers)
        low = max(heights[layer] for layer in held)
        lows.append(low)
        for layer in held:
            heights[layer] = low + machine.tokens_per_s
    return lows, max(heights)


def _svg(height: int) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img">'


def _x(unit: int, n_units: int) -> float:
    return _LEFT + unit * (_WIDTH - _LEFT - _RIGHT) / n_units


def _box(span: tuple[float, float], shares: tuple[float, float], colour: str, words: str) -> str:
    bottom = _TOP + _HIGH
    y, high = bottom - shares[1] * _HIGH, (shares[1] - shares[0]) * _HIGH
    return (
        f'<rect class="box {colour}" x="{span[0]:.1f}" y="{y:.1f}" '
        f'width="{span[1] - span[0]:.1f}" height="{high:.1f}"><title>{escape(words)}</title></rect>'
    )


def _rule(words: str, share: float = 1.0) -> list[str]:
    y = _TOP + (1.0 - share) * _HIGH
    return [
        f'<path class="rule" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>',
        f'<text x="{_LEFT}" y="{min(y, _TOP) - 8:.1f}">{escape(words)}</text>',
    ]


def _colour(index: int) -> str:
    return f"c{index % _N_COLOURS}"


def _legend(names: Sequence[str]) -> str:
    marks = " ".join(
        f'<span class="{_colour(i)}">■</span> {escape(name)}' for i, name in enumerate(names)
    )
    return f"<p>{marks}</p>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, n_words: int) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        drawn = (
            f"<{tag}{' class=word' if i < n_words else ''}>{escape(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(drawn)}</tr>"

    body = "\n".join([line(heads, "th"), *(line(row, "td") for row in rows)])
    return f'<div class="scroll"><table>\n{body}\n</table></div>'.replace(
        " class=word", ' class="word"'
    )


def _page(title: str, body: Iterable[str]) -> str:
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}\n</style></head><body>",
            *body,
            "</body></html>",
            "",
        ]
    )
