"""The least rent over traffic for people: each step, its proved bound, and what it has."""

from functools import partial

from planner.quantities.units import show
from planner.report.answers.fleet_words import rate
from planner.report.documents.blocks import Block, Data, Document, Drawing, Note, Table, section
from planner.report.drawings.fleets import rents
from planner.report.words import percent, plural
from planner.results.fleets import FleetStaircase, Step


def line_of(staircase: FleetStaircase) -> str:
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


def document(staircase: FleetStaircase) -> Document:
    """Each step, its proved bound, and what it has."""
    line = line_of(staircase)
    return Document(
        title="least rent over traffic",
        line=line,
        sections=(section("steps", *staircase_blocks(staircase)),),
        data=partial(staircase_data, staircase),
    )


def staircase_blocks(staircase: FleetStaircase) -> list[Block]:
    """A drawing, and a row a step."""
    if not staircase.steps:
        return []
    heads = ("requests above", "up to", "rent", "bound", "devices", "pools")
    rows = [_step(staircase, one) for one in staircase.steps]
    said = "rates of replicas are those of formulas: a simulation may take some of them down"
    drawing = Drawing(svg=partial(rents, staircase, "rents"))
    table = Table(heads=heads, rows=rows, align=">>>>><", wraps=True, sorts=True)
    return [drawing, table, Note(said)]


def staircase_data(staircase: FleetStaircase) -> Data:
    """A row a step; requests are of all classes together."""
    of, factors = staircase.request.rate_per_s, ("above_factor", "upto_factor")
    figures = (*factors, "usd_per_hour", "bound_usd_per_hour", "n_devices")
    heads = ("above_requests_per_s", "upto_requests_per_s", *figures, "pools")
    rows = (
        (
            *(of * getattr(step, name) for name in factors),
            *(getattr(step, name) for name in figures),
            step.words,
        )
        for step in staircase.steps
    )
    return heads, rows


def ends_per_s(staircase: FleetStaircase) -> tuple[float, float]:
    """The least and the most traffic that it is of [request/s]."""
    of = staircase.request.rate_per_s
    if not staircase.steps:
        return 0.0, 0.0
    return staircase.steps[0].above_factor * of, staircase.steps[-1].upto_factor * of


def _step(staircase: FleetStaircase, step: Step) -> tuple[str, str, str, str, str, str]:
    of = staircase.request.rate_per_s
    return (
        rate(step.above_factor * of),
        rate(step.upto_factor * of),
        show(step.usd_per_hour, "USD/h"),
        show(step.bound_usd_per_hour, "USD/h"),
        f"{step.n_devices:,}",
        step.words,
    )
