"""A placement of experts: bars of loads and a heat map.

Loads of ranks before and after stand around the mean and the bound. In the map a rank has a row
and a slot a cell, as dark as its load; a copy under the pointer lights up all copies of its expert.
"""

from collections.abc import Iterable

from planner.report.words import escape, percent
from planner.results.experts import ExpertPlan, ExpertRank

_WIDTH, _LEFT, _RIGHT, _TOP = 880, 130, 16, 8
_BARS, _LETTERS = 200, 14
_ROW, _CELL, _MAP = 16, 54, 960


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
    step = (_WIDTH - _LEFT - _RIGHT) / n
    yield f'<svg class="chart" viewBox="0 0 {_WIDTH} {_BARS + 40}" role="img">'
    for g, rank in enumerate(plan.ranks):
        x = _LEFT + g * step
        words = escape(
            f"rank {g}, node {rank.node}: {rank.load / mean:.4f}, "
            f"{plan.before} {rank.load_before / mean:.4f}"
        )
        yield f"<g><title>{words}</title>"
        for kind, load, at in (("other", rank.load_before, 0.06), ("c0", rank.load, 0.5)):
            high = load / mean / top * _BARS
            yield f'<rect class="box {kind}" x="{x + at * step:.2f}" y="{_TOP + _BARS - high:.2f}" '
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
    request = plan.request
    bound, lines = plan.certificate.bound / plan.mean_load, [("limit", "faint", 1.0, "mean")]
    height = (bound - 1.0) / top * _BARS
    if height <= 1.0 and not request.move_price:
        lines = [("limit", "faint", 1.0, "mean, bound")]
    elif not request.move_price:
        lines.append(("target", "target-text", bound, f"bound {bound:.4g}"))
    lower = (
        max(0.0, _LETTERS - height) if len(lines) > 1 else 0.0
    )  # words that would be overprinted
    for kind, text, level, words in lines:
        y = _TOP + _BARS - level / top * _BARS
        below = y + 4 + (lower if kind == "limit" else 0.0)
        yield f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="{text}" x="{_LEFT - 6}" y="{below:.1f}" text-anchor="end">'
        yield f"{words}</text>"


def _map(plan: ExpertPlan) -> Iterable[str]:
    """Ranks down, in as many columns as there is room for; slots across, heaviest copy first."""
    request = plan.request
    darkest = max((size for rank in plan.ranks for size in _sizes(plan, rank)), default=0.0) or 1.0
    wide = _LEFT + request.n_slots * _CELL + _RIGHT
    across = max(1, _MAP // wide)
    down = -(-request.n_ranks // across)
    size = (across * wide, _TOP + down * _ROW + 8)
    yield f'<svg class="map" width="{size[0]}" viewBox="0 0 {size[0]} {size[1]}" role="img">'
    for g, rank in enumerate(plan.ranks):
        column, row = divmod(g, down)
        left, y = column * wide, _TOP + row * _ROW
        if row and rank.node != plan.ranks[g - 1].node:
            yield f'<path class="frame" d="M{left} {y - 0.5}H{left + wide - _RIGHT}"/>'
        name = f"node {rank.node} rank {g}" if request.n_nodes > 1 else f"rank {g}"
        yield f'<text class="faint" x="{left + _LEFT - 6}" y="{y + 12}" text-anchor="end">'
        yield f"{name}</text>"
        held = sorted(zip(_sizes(plan, rank), rank.experts, strict=True), reverse=True)
        for i in range(request.n_slots):
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
