"""A fleet for people: what it costs and serves, its pools, percentiles, bounds, how to start it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
from planner.report.fleets.staircases import staircase_lines
from planner.report.fleets.words import (
    COST_WORDS,
    arrival_words,
    class_verdict,
    deployment_words,
    devices_words,
    finite,
    joined,
    most_words,
    per_mtoken,
    pools_of,
    prompt_words,
    rate,
    share_known,
    target_words,
    whole_costs,
)
from planner.report.floorplan_map import placement_map
from planner.report.launch.text import launch_texts
from planner.report.lines import columns, labelled, section, wrapped
from planner.report.placement import kind_rows, replica_lines
from planner.report.proof import certificate_lines
from planner.report.times import times_lines
from planner.report.words import plural
from planner.results.fleets import (
    FleetPlan,
    FleetPool,
    FleetStaircase,
)
from planner.results.floorplans import FloorPlan
from planner.units import show

BEST_FLEET = "no cheaper fleet meets the targets in simulation"

MOST_LISTED = 12
"""Replicas that are listed one by one; the others are in the JSON."""


def fleet_line(plan: FleetPlan) -> str:
    """The fleet in one line."""
    n_replicas = sum(one.n_replicas for one in plan.pools)
    read, written = whole_costs(plan)
    costs = f"{per_mtoken(read)} in or {per_mtoken(written)} out"
    head = f"{plural(n_replicas, 'replica')} on {devices_words(plan)}"
    verdicts = "; ".join(class_verdict(one) for one in plan.classes)
    return f"{head}: {show(plan.usd_per_hour, 'USD/h')}, {costs}; {verdicts}"


def fleet_text(
    plan: FleetPlan,
    width: int,
    staircase: FleetStaircase | None = None,
    *,
    floorplan: FloorPlan | None = None,
) -> str:
    """The whole report, in lines of at most `width` columns; commands are lines of their own.

    Args:
        plan: to report.
        width: columns, 60 or more.
        staircase: its rent over demand, where that was asked for.
        floorplan: of the site, for a map of it; None for none.
    """
    head = [*wrapped(fleet_line(plan), width), *times_lines(plan, width), *_warnings(plan, width)]
    steps = staircase_lines(staircase, width - 2) if staircase else []
    sections = (
        "\n".join(head),
        section("traffic", _traffic_lines(plan, width)),
        section("site", labelled([("pool", plan.title), *kind_rows(plan)], width)),
        section("pools", _pool_lines(plan, width)),
        section("hand-over", _handover_lines(plan, width)),
        section("for users", columns(percentile_rows(plan), "<<>>><")),
        section("costs", _cost_lines(plan, width)),
        section("bounds", labelled(bound_rows(plan), width)),
        section("rounds", _round_lines(plan, width)),
        section("simulation", labelled(simulation_rows(plan), width)),
        section("other fleets", _alternative_lines(plan, width)),
        section("over demand", steps),
        section("map", placement_map(plan, floorplan, width) if floorplan else []),
        section("replicas", _replica_lines(plan, width)),
        section("certificate", certificate_lines(plan.certificate, width, best=BEST_FLEET)),
        section("what percentiles are of", _definition_lines(plan, width)),
        *launch_texts(plan.recipes, width, names=recipe_names(plan)),
    )
    return "\n\n".join(filter(None, sections))


def recipe_names(plan: FleetPlan) -> list[str]:
    """What replicas of each recipe are called: by the pools that have some."""
    pools = (pools_of(plan, number) for number in range(len(plan.recipes)))
    return [joined([f"`{one.name}`" for one in some]) for some in pools]


def _warnings(plan: FleetPlan, width: int) -> list[str]:
    return [line for one in warnings(plan) for line in wrapped(f"warning: {one}", width)]


def _traffic_lines(plan: FleetPlan, width: int) -> list[str]:
    """Of each class what comes, how, and what is asked for it."""
    lines = []
    for one, got in zip(plan.request.classes, plan.classes, strict=True):
        tokens = (
            f"{got.n_input_tokens:,.0f} tokens in and {got.n_output_tokens:,.0f} out on average"
        )
        comes = f"{rate(one.rate_per_s)} {arrival_words(one.arrivals)}, {tokens}"
        rank = f"; priority {one.priority}" if one.priority else ""
        lines += [
            *wrapped(f"{one.name}: {got.model}, {comes}{rank}", width - 2),
            *(f"  {line}" for line in wrapped(f"targets: {target_words(one)}", width - 4)),
        ]
    return lines


def _pool_lines(plan: FleetPlan, width: int) -> list[str]:
    return [line for one in plan.pools for line in _pool(plan, one, width)]


def _pool(plan: FleetPlan, pool: FleetPool, width: int) -> Iterator[str]:
    recipe = plan.recipes[pool.recipe]
    rent = show(pool.usd_per_hour, "USD/h")
    head = f"{pool.name}: {pool.n_replicas} × {deployment_words(recipe)}, {rent}"
    yield from wrapped(head, width - 2)
    prompts = prompt_words(pool)
    of = f"{joined(pool.classes)}{', ' * bool(prompts)}{prompts}"
    then = f", then handed to {pool.then}" if pool.then else ""
    busy = share_known(pool.utilisation, pool.utilisation_half_width)
    does = f"{of}{then}: {rate(pool.rate_per_s)}, {most_words(pool)}; at work {busy} of the time"
    yield from (f"  {line}" for line in wrapped(does, width - 4))


def _handover_lines(plan: FleetPlan, width: int) -> list[str]:
    """What hands caches over, and between which pools."""
    connector = plan.request.roles.connector
    if not plan.handovers:
        return []
    rows = [("from", "to", "requests", "each token", "latency", "a pair", "a replica's links")]
    rows += [
        (
            one.source,
            one.target,
            rate(one.requests_per_s),
            show(one.token_bytes, "B"),
            show(one.latency_s, "s"),
            finite(one.bytes_per_s, "B/s"),
            finite(one.wire_bytes_per_s, "B/s"),
        )
        for one in plan.handovers
    ]
    by = wrapped(f"by {connector.title}", width - 2) if connector else []
    return [*by, *columns(rows, "<<>>>>>")]


def _cost_lines(plan: FleetPlan, width: int) -> list[str]:
    return [*columns(cost_rows(plan), "<>>>>"), *wrapped(COST_WORDS, width - 2)]


def _round_lines(plan: FleetPlan, width: int) -> list[str]:
    """What each solution cost, and what the simulation said of it."""
    lines = []
    for number, one in enumerate(plan.rounds, start=1):
        head = f"{number}  "
        first, *rest = wrapped(round_words(one), width - 2 - len(head))
        lines += [head + first, *(" " * len(head) + line for line in rest)]
    return lines


def _alternative_lines(plan: FleetPlan, width: int) -> list[str]:
    rows = alternative_rows(plan)
    figures = columns([row[:-1] for row in rows], ">>>")
    start = max(map(len, figures))
    lines = []
    for figure, row in zip(figures, rows, strict=True):
        first, *rest = wrapped(row[-1], max(20, width - start - 4))
        lines.append(f"{figure:<{start}}  {first}".rstrip())
        lines += [" " * (start + 2) + line for line in rest]
    return lines if len(rows) > 1 else []


def _replica_lines(plan: FleetPlan, width: int) -> list[str]:
    return replica_lines(plan, plan.replicas[:MOST_LISTED], width, told_by="`--json`")


def _definition_lines(plan: FleetPlan, width: int) -> list[str]:
    return _listed(definitions(plan), width)


def _listed(texts: Sequence[str], width: int) -> list[str]:
    lines = []
    for text in texts:
        first, *rest = wrapped(text, width - 2)
        lines += [first, *(f"  {line}" for line in rest)]
    return lines
