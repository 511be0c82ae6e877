"""Answers of tools, drawn: a cut into stages, layers on machines, a placement of experts.

Layers run from left to right. Each stage is a box over its layers, as high as the share of the
slowest stage's time that it takes; below it the classes of layers. Of a placement each machine
is a box over its layers, as high as what it serves.

Of experts, loads of ranks before and after stand around the mean and the bound. In the map a rank
has a row and a slot a cell, as dark as its load; a copy under the pointer lights up all copies of
its expert.
"""

from collections.abc import Iterable, Sequence

from planner.quantities.units import show
from planner.report.words import escape, percent, plural
from planner.results.experts import ExpertPlan, ExpertRank
from planner.results.staging import LayerPlacement, StageLine, StagePlan

_WIDTH, _LEFT, _RIGHT, _HIGH, _TOP = 960, 64, 16, 180, 34
_N_COLOURS = 7


def holds(stage: StageLine) -> str:
    """`embedding, layers 1 to 13`, counted from 1."""
    first, last = stage.first_layer + 1, stage.first_layer + stage.n_layers
    some = f"layers {first} to {last}" if stage.n_layers > 1 else f"layer {first}"
    parts = (
        "embedding" if stage.has_embedding else "",
        some if stage.n_layers else "",
        "head" if stage.has_head else "",
    )
    return ", ".join(filter(None, parts))


def stages_drawing(plan: StagePlan) -> str:
    """Boxes over units: the embedding first, the head last."""
    kinds = [one.kind for one in plan.groups]
    n_units = len(plan.request.model.order) + 2
    slowest = max(one.total_s for one in plan.stages)
    parts = [_svg(_TOP + _HIGH + 28), *_rule(f"slowest {show(slowest, 's')}")]
    for stage in plan.stages:
        first = 0 if stage.has_embedding else stage.first_layer + 1
        last = n_units if stage.has_head else stage.first_layer + stage.n_layers + 1
        times = f"{show(stage.run_s, 's')}, then {show(stage.hand_s, 's')}"
        words = f"{stage.kind}\n{holds(stage)}\n{times}"
        colour = _colour(kinds.index(stage.kind))
        run, send = stage.run_s / slowest, stage.hand_s / slowest
        span = (_x(first, n_units), _x(last, n_units))
        parts.append(_box(span, (0.0, run), colour, words))
        parts.append(_box(span, (run, run + send), f"{colour} send", words))
    parts += _strip(plan, n_units)
    return "\n".join([_legend(kinds), *parts, "</svg>", _strip_legend(plan)])


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


def _strip_legend(plan: StagePlan) -> str:
    names = [*(layer.name for layer in plan.request.model.layers), "embedding or head"]
    kinds = [*range(len(names) - 1), -1]
    return _legend(names, [_N_COLOURS - 1 - (kind + 1) % _N_COLOURS for kind in kinds])


def layers_drawing(placement: LayerPlacement) -> str:
    """Machines stand on those that hold the same layers: a layer is served by all above it."""
    types = list(dict.fromkeys(machine.type for machine in placement.machines))
    n_layers = placement.request.layers.n_layers
    lows, highest = _stacked(placement)
    parts = [_svg(_TOP + _HIGH + 28)]
    for machine, low in zip(placement.machines, lows, strict=True):
        first, end = machine.first_layer, machine.first_layer + machine.n_layers
        high = low + machine.tokens_per_s
        held = plural(machine.n_layers, "layer")
        words = f"{machine.machine}\n{held}, {machine.tokens_per_s:.1f} token/s"
        colour = _colour(types.index(machine.type))
        span = (_x(first, n_layers), _x(end, n_layers))
        parts.append(_box(span, (low / highest, high / highest), colour, words))
    parts += _rule(f"{placement.tokens_per_s:.1f} token/s", placement.tokens_per_s / highest)
    ends = ((1, "start", _LEFT), (n_layers, "end", _WIDTH - _RIGHT))
    for number, anchor, x in ends:
        parts.append(
            f'<text class="faint" x="{x}" y="{_TOP + _HIGH + 18}" text-anchor="{anchor}">'
            f"layer {number}</text>"
        )
    return "\n".join([_legend(types), *parts, "</svg>"])


def _stacked(placement: LayerPlacement) -> tuple[list[float], float]:
    """Where the box of each machine begins, in token/s, and the highest end of one."""
    heights, lows = [0.0] * placement.request.layers.n_layers, []
    for machine in placement.machines:
        held = range(machine.first_layer, machine.first_layer + machine.n_layers)
        low = max(heights[layer] for layer in held)
        lows.append(low)
        for layer in held:
            heights[layer] = low + machine.tokens_per_s
    return lows, max(heights)


def _svg(height: int) -> str:
    return f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="layers">'


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
        f'<path class="limit" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>',
        f'<text x="{_LEFT}" y="{min(y, _TOP) - 8:.1f}">{escape(words)}</text>',
    ]


def _colour(index: int) -> str:
    return f"c{index % _N_COLOURS}"


def _legend(names: Sequence[str], colours: Sequence[int] = ()) -> str:
    pairs = zip(names, colours or range(len(names)), strict=True)
    marks = (f'<span class="{_colour(i)}">■</span> {escape(name)}' for name, i in pairs)
    return f'<p class="faint">{"; ".join(marks)}</p>'


_WIDE, _NAMES, _OVER = 880, 130, 8
_BARS, _LETTERS = 200, 14
_ROW, _CELL, _MAP = 16, 54, 960
_OF_RANKS = 'role="img" aria-label="ranks"'


def experts_drawing(plan: ExpertPlan) -> str:
    """Loads of ranks, then what each of them holds."""
    keys = (("c0", "this plan"), ("other", plan.before))
    marks = ", ".join(f'<span class="{name}">■</span> {escape(text)}' for name, text in keys)
    slots = "a cell is a slot, as dark as its load; point at a copy to see all copies of its expert"
    return "\n".join(
        (
            f'<p class="faint">{marks}: load of each rank, in mean loads</p>',
            *_bars(plan),
            f'<p class="faint">{slots}</p>',
            *_map(plan),
        )
    )


def _bars(plan: ExpertPlan) -> Iterable[str]:
    """A pair of bars for each rank; lines at the mean and at the bound."""
    mean, n = plan.mean_load, plan.request.n_ranks
    top = 1.06 * max(max(rank.load, rank.load_before) for rank in plan.ranks) / mean
    step = (_WIDE - _NAMES - _RIGHT) / n
    yield f'<svg class="chart" viewBox="0 0 {_WIDE} {_BARS + 40}" {_OF_RANKS}>'
    for g, rank in enumerate(plan.ranks):
        x = _NAMES + g * step
        words = escape(
            f"rank {g}, node {rank.node}: {rank.load / mean:.4f}, "
            f"{plan.before} {rank.load_before / mean:.4f}"
        )
        yield f"<g><title>{words}</title>"
        for kind, load, at in (("other", rank.load_before, 0.06), ("c0", rank.load, 0.5)):
            high = load / mean / top * _BARS
            y = _OVER + _BARS - high
            yield f'<rect class="box {kind}" x="{x + at * step:.2f}" y="{y:.2f}" '
            yield f'width="{0.44 * step:.2f}" height="{high:.2f}"/>'
        yield "</g>"
        every = -(-n // 24)
        if g % every == 0:
            yield f'<text class="faint" x="{x + step / 2:.1f}" y="{_OVER + _BARS + 16}" '
            yield f'text-anchor="middle">{g}</text>'
    yield from _levels(plan, top)
    yield "</svg>"


def _levels(plan: ExpertPlan, top: float) -> Iterable[str]:
    """Lines at the mean and at the bound, one where no eye could tell them apart.

    A bound that includes the price of moves is no load, and has no line.

    Args:
        top: load of the whole height, in mean loads.
    """
    request = plan.request
    bound, lines = plan.certificate.bound / plan.mean_load, [("limit", "faint", 1.0, "mean")]
    height = (bound - 1.0) / top * _BARS
    if height <= 1.0 and not request.move_price:
        lines = [("limit", "faint", 1.0, "mean, bound")]
    elif not request.move_price:
        lines.append(("target", "target-text", bound, f"bound {bound:.4g}"))
    # words that would be overprinted
    lower = max(0.0, _LETTERS - height) if len(lines) > 1 else 0.0
    for kind, text, level, words in lines:
        y = _OVER + _BARS - level / top * _BARS
        below = y + 4 + (lower if kind == "limit" else 0.0)
        yield f'<path class="{kind}" d="M{_NAMES} {y:.1f}H{_WIDE - _RIGHT}"/>'
        yield f'<text class="{text}" x="{_NAMES - 6}" y="{below:.1f}" text-anchor="end">'
        yield f"{words}</text>"


def _map(plan: ExpertPlan) -> Iterable[str]:
    """Ranks down, in as many columns as there is room for; slots across, heaviest copy first."""
    request = plan.request
    darkest = max((size for rank in plan.ranks for size in _sizes(plan, rank)), default=0.0) or 1.0
    wide = _NAMES + request.n_slots * _CELL + _RIGHT
    across = max(1, _MAP // wide)
    down = -(-request.n_ranks // across)
    size = (across * wide, _OVER + down * _ROW + 8)
    yield f'<svg class="map" width="{size[0]}" viewBox="0 0 {size[0]} {size[1]}" {_OF_RANKS}>'
    for g, rank in enumerate(plan.ranks):
        column, row = divmod(g, down)
        left, y = column * wide, _OVER + row * _ROW
        if row and rank.node != plan.ranks[g - 1].node:
            yield f'<path class="frame" d="M{left} {y - 0.5}H{left + wide - _RIGHT}"/>'
        name = f"node {rank.node} rank {g}" if request.n_nodes > 1 else f"rank {g}"
        yield f'<text class="faint" x="{left + _NAMES - 6}" y="{y + 12}" text-anchor="end">'
        yield f"{name}</text>"
        held = sorted(zip(_sizes(plan, rank), rank.experts, strict=True), reverse=True)
        for i in range(request.n_slots):
            x = left + _NAMES + i * _CELL
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
    strength = 0.06 + 0.44 * size / darkest  # its number stands out, on dark pages too
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
