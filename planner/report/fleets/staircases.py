"""The least rent over traffic for people: each step, its proved bound, and what it has."""

from __future__ import annotations

from planner.report.fleets.words import rate
from planner.report.lines import columns, percent, wrapped
from planner.report.words import plural
from planner.results.fleets import FleetStaircase, Step
from planner.units import show

_POOLS = 5
"""Column of the pools, which is as wide as there is room."""


def staircase_line(staircase: FleetStaircase) -> str:
    """All of it in one line."""
    first, last = ends_per_s(staircase)
    if not staircase.steps:
        return "no step: nothing serves the least of the traffic"
    rents = [show(one.usd_per_hour, "USD/h") for one in staircase.steps]
    over = f"{rate(first)} to {rate(last)}"
    limit = staircase.request.options.time_limit_s
    why = "there are too few devices" if limit is None else "devices or time did not suffice"
    short = "" if staircase.is_whole else f"; beyond, {why}"
    what = f"{plural(len(rents), 'step')} from {rents[0]} to {rents[-1]}"
    return f"{what} over {over}, none further than {percent(staircase.gap)} from its bound{short}"


def staircase_text(staircase: FleetStaircase, width: int) -> str:
    """The whole report, in lines of at most `width` columns."""
    head = wrapped(staircase_line(staircase), width)
    return "\n".join([*head, "", *staircase_lines(staircase, width)])


def staircase_lines(staircase: FleetStaircase, width: int) -> list[str]:
    """A line a step; what its pools are wraps."""
    rows = [("requests above", "up to", "rent", "bound", "devices", "pools")]
    rows += [_step(staircase, one) for one in staircase.steps]
    if len(rows) == 1:
        return []
    heads = columns([row[:_POOLS] for row in rows], ">>>>>")
    start = max(map(len, heads))
    room = max(20, width - start - 2)
    lines = []
    for head, row in zip(heads, rows, strict=True):
        first, *rest = wrapped(row[_POOLS], room)
        lines.append(f"{head:<{start}}  {first}".rstrip())
        lines += [" " * (start + 2) + line for line in rest]
    said = "rates of replicas are those of formulas: a simulation may take some of them down"
    return [*lines, *wrapped(said, width)]


def ends_per_s(staircase: FleetStaircase) -> tuple[float, float]:
    """The least and the most traffic that it is of [request/s]."""
    of = staircase.request.rate_per_s
    if not staircase.steps:
        return 0.0, 0.0
    return staircase.steps[0].above_factor * of, staircase.steps[-1].upto_factor * of


def _step(staircase: FleetStaircase, one: Step) -> tuple[str, str, str, str, str, str]:
    of = staircase.request.rate_per_s
    return (
        rate(one.above_factor * of),
        rate(one.upto_factor * of),
        show(one.usd_per_hour, "USD/h"),
        show(one.bound_usd_per_hour, "USD/h"),
        f"{one.n_devices:,}",
        one.words,
    )
