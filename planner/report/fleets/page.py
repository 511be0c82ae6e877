"""A fleet as one page of HTML that needs nothing else: pools, map, waits, rent over traffic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from planner.report.fleets.curves import rents, waits
from planner.report.fleets.rows import (
    alternative_rows,
    bound_rows,
    cost_rows,
    definitions,
    percentile_rows,
    round_words,
    simulation_rows,
    warnings,
)
from planner.report.fleets.staircases import staircase_line
from planner.report.fleets.text import BEST_FLEET, fleet_line, recipe_names
from planner.report.fleets.words import (
    COST_WORDS,
    deployment_words,
    most_words,
    pool_of_replica,
    prompt_words,
    rate,
    share_known,
)
from planner.report.floorplan_drawing import Groups, drawing, number_of, runs
from planner.report.launch.text import launch_texts
from planner.report.markup import escape
from planner.report.page import document
from planner.report.proof import certificate_lines
from planner.report.times import times_lines
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase
from planner.results.floorplans import FloorPlan
from planner.units import show

TEXT_WIDTH = 110
N_COLOURS = 7
MOST_IN_LINE = 40
"""Letters of a cell that is not to be broken."""
HEADS = ("pool", "replicas", "each", "serves", "requests", "at work", "rent")


def fleet_page(
    plan: FleetPlan,
    staircase: FleetStaircase | None = None,
    *,
    floorplan: FloorPlan | None = None,
) -> str:
    """The whole page.

    Args:
        staircase: its rent over traffic, where that was asked for.
        floorplan: of the site, for a map of it; None for none.
    """
    line = fleet_line(plan)
    body = (
        f"<h1>{escape(plan.title)}</h1>",
        f"<p>{escape(line)}</p>",
        *(f"<p>{escape(f'warning: {one}')}</p>" for one in warnings(plan)),
        *(f'<p class="faint">{escape(one)}</p>' for one in times_lines(plan, 1 << 20)),
        "<h2>Pools</h2>",
        *_pools(plan, has_map=floorplan is not None),
        *(_map(plan, floorplan) if floorplan else ()),
        "<h2>What users wait for</h2>",
        *_waits(plan),
        *(_rents(staircase) if staircase is not None and staircase.steps else ()),
        "<h2>Costs</h2>",
        *_table(cost_rows(plan)),
        f'<p class="faint">{escape(COST_WORDS)}</p>',
        *_alternatives(plan),
        "<h2>Bounds</h2>",
        *_labelled(bound_rows(plan)),
        "<h2>Rounds</h2>",
        *(f"<p>{i}  {escape(round_words(one))}</p>" for i, one in enumerate(plan.rounds, start=1)),
        *_labelled(simulation_rows(plan)),
        "<h2>Proof</h2>",
        _text(certificate_lines(plan.certificate, TEXT_WIDTH, best=BEST_FLEET)),
        "<h2>Start</h2>",
        *(_text([one]) for one in launch_texts(plan.recipes, TEXT_WIDTH, names=recipe_names(plan))),
    )
    return document(f"{plan.title}: {line}", body)


def _pools(plan: FleetPlan, *, has_map: bool) -> Iterator[str]:
    """A line a pool, in the colour that its replicas have on the map, if there is one."""
    yield '<div class="scroll"><table>'
    yield "<tr>" + "".join(f"<th>{escape(head)}</th>" for head in HEADS) + "</tr>"
    for number, one in enumerate(plan.pools):
        cells = (
            str(one.n_replicas),
            deployment_words(plan.recipes[one.recipe]),
            _serves(one),
            f"{rate(one.rate_per_s)}, {most_words(one)}",
            share_known(one.utilisation, one.utilisation_half_width),
            show(one.usd_per_hour, "USD/h"),
        )
        yield f"<tr><td>{_swatch(number) * has_map} {escape(one.name)}</td>"
        yield "".join(f'<td class="words">{escape(cell)}</td>' for cell in cells) + "</tr>"
    yield "</table></div>"


def _serves(pool: FleetPool) -> str:
    then = f"then {pool.then}" if pool.then else ""
    return ", ".join(filter(None, (*pool.classes, prompt_words(pool), then)))


def _swatch(number: int) -> str:
    return (
        '<svg class="floor swatch" viewBox="0 0 12 12" width="12" height="12">'
        f'<rect class="h{number % N_COLOURS}" width="12" height="12" rx="2"/></svg>'
    )


def _map(plan: FleetPlan, floorplan: FloorPlan) -> Iterator[str]:
    """The devices, replicas of a pool in one hue."""
    numbers = {one.name: i for i, one in enumerate(plan.pools)}
    hues = {}
    for number, replica in enumerate(plan.replicas):
        pool = pool_of_replica(plan, number)
        if pool is not None:
            hues[replica.name] = numbers[pool.name]
    groups = Groups(hues=hues, legend=[_legend(plan, one) for one in plan.pools])
    yield "<h2>Where</h2>"
    yield f'<div class="scroll">{drawing(plan, floorplan, groups)}</div>'


def _legend(plan: FleetPlan, pool: FleetPool) -> str:
    """`chat: llama-3.1-70b 0–2, 4 devices TP 4, …`."""
    recipe = plan.recipes[pool.recipe]
    numbers = runs([int(number_of(plan.replicas[one])) for one in pool.replicas])
    return f"{pool.name}: {recipe.model} {numbers}, {recipe.deployment.summary}"


def _waits(plan: FleetPlan) -> Iterator[str]:
    for number, one in enumerate(plan.classes):
        yield f"<h3>{escape(one.name)}</h3>"
        yield waits(one, f"waits{number}", number % N_COLOURS)
    yield from _table(percentile_rows(plan))
    yield from (f'<p class="faint">{escape(text)}</p>' for text in definitions(plan))


def _rents(staircase: FleetStaircase) -> Iterator[str]:
    yield "<h2>Rent over traffic</h2>"
    yield f"<p>{escape(staircase_line(staircase))}</p>"
    yield rents(staircase, "rents")


def _alternatives(plan: FleetPlan) -> Iterator[str]:
    rows = alternative_rows(plan)
    if len(rows) > 1:
        yield "<h2>Other fleets</h2>"
        yield from _table(rows)


def _labelled(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (f"<p>{escape(f'{label}: {text}')}</p>" for label, text in rows if text)


def _text(lines: Iterable[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    for i, row in enumerate(rows):
        tag = "th" if i == 0 else "td"
        yield (
            "<tr>" + "".join(f"{_open(tag, cell)}{escape(cell)}</{tag}>" for cell in row) + "</tr>"
        )
    yield "</table></div>"


def _open(tag: str, cell: str) -> str:
    """The tag of a cell; sentences may take several lines."""
    return f'<{tag} class="words">' if len(cell) > MOST_IN_LINE else f"<{tag}>"
