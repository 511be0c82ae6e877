"""A cut into stages, or layers on machines, drawn.

Layers run from left to right. Each stage is a box over its layers, as high as the share of the
slowest stage's time that it takes; below it the classes of layers. Of a placement each machine
is a box over its layers, as high as what it serves.
"""

from collections.abc import Iterable, Sequence

from planner.quantities.units import show
from planner.report.words import escape, plural
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
    return f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" role="img">'


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
