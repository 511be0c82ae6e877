"""A fleet for people: what it costs and serves, its pools, percentiles, bounds, how to start it."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from planner.quantities.units import show
from planner.report.answers.fleet_rows import (
    alternatives,
    bound_rows,
    costs,
    definitions,
    percentiles,
    round_words,
    simulation_rows,
    warnings,
)
from planner.report.answers.fleet_words import (
    COST_WORDS,
    arrival_words,
    class_verdict,
    class_words,
    deployment_words,
    devices_words,
    finite,
    joined,
    most_words,
    per_mtoken,
    pool_of_replica,
    pools_of,
    prompt_words,
    rate,
    share_known,
    target_words,
    whole_costs,
)
from planner.report.answers.placement import kind_rows, map_section, replicas_section
from planner.report.answers.plan_parts import recipes_section
from planner.report.answers.staircases import (
    line_of as staircase_line,
    staircase_blocks,
    staircase_data,
)
from planner.report.documents import blocks
from planner.report.drawings.fleets import N_COLOURS, waits
from planner.report.drawings.floorplans import Groups, number_of, runs
from planner.report.proof import certificate_section
from planner.report.region import replicas_region_rows
from planner.report.words import plural
from planner.results.engines import EngineDeployment
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase
from planner.results.floorplans import FloorPlan

BEST_FLEET = "no cheaper fleet meets the targets in simulation"


def line_of(plan: FleetPlan) -> str:
    """The fleet in one line."""
    n_replicas = sum(one.n_replicas for one in plan.pools)
    read, written = whole_costs(plan)
    costs = f"{per_mtoken(read)} in or {per_mtoken(written)} out"
    head = f"{plural(n_replicas, 'replica')} on {devices_words(plan)}"
    verdicts = "; ".join(class_verdict(one) for one in plan.classes)
    return f"{head}: {show(plan.usd_per_hour, 'USD/h')}, {costs}; {verdicts}"


def document(
    plan: FleetPlan, *, staircase: FleetStaircase | None = None, floorplan: FloorPlan | None = None
) -> blocks.Document:
    """What it costs and serves, its pools, percentiles, bounds, and how to start it.

    Args:
        staircase: its rent over traffic, where that was asked for.
        floorplan: of the site, for a map of it; None for none.
    """
    line, climbed = line_of(plan), [staircase] if staircase else []
    models = joined([*dict.fromkeys(it.model for it in plan.recipes)])
    return blocks.Document(
        title=f"fleet of {models} on {plan.title}",
        line="\n".join([line, *map(staircase_line, climbed)]),
        head=(
            blocks.Note(line),
            *blocks.notes(filter(None, map(class_words, plan.classes))),
            *blocks.notes(f"warning: {one}" for one in warnings(plan)),
        ),
        sections=(
            blocks.section("traffic", *_traffic(plan)),
            blocks.section("site", blocks.Pairs([("pool", plan.title), *kind_rows(plan)])),
            blocks.section("pools", *_pools(plan)),
            blocks.section("hand-over", *_handovers(plan)),
            blocks.section("latency", *_waits(plan), percentiles(plan)),
            blocks.section("costs", costs(plan), blocks.Note(COST_WORDS, kind="faint")),
            blocks.section("measured region", blocks.Pairs(replicas_region_rows(plan))),
            blocks.section("bounds", blocks.Pairs(bound_rows(plan))),
            blocks.section("rounds", _rounds(plan)),
            blocks.section("simulation", blocks.Pairs(simulation_rows(plan))),
            blocks.section("other fleets", alternatives(plan)),
            *(blocks.section("over demand", *staircase_blocks(one)) for one in climbed),
            map_section(plan, floorplan, _groups(plan)),
            replicas_section(plan, told_by=blocks.IN_JSON),
            certificate_section(plan.certificate, best=BEST_FLEET),
            blocks.section(
                "what percentiles are of", *blocks.notes(definitions(plan), kind="item")
            ),
            recipes_section(plan.recipes, recipe_names(plan)),
        ),
        data=partial(staircase_data, staircase) if staircase else partial(_pools_data, plan),
    )


def _groups(plan: FleetPlan) -> Groups:
    """Replicas of a pool in one hue."""
    numbers = {one.name: i for i, one in enumerate(plan.pools)}
    hues, legend = {}, []
    for number, replica in enumerate(plan.replicas):
        pool = pool_of_replica(plan, number)
        if pool is not None:
            hues[replica.name] = numbers[pool.name]
    for each in plan.pools:
        recipe = plan.recipes[each.recipe]
        mine = runs([int(number_of(plan.replicas[i])) for i in each.replicas])
        legend.append(f"{each.name}: {recipe.model} {mine}, {recipe.deployment.summary}")
    return Groups(hues=hues, legend=legend)


def recipe_names(plan: FleetPlan) -> list[str]:
    """What replicas of each recipe are called: by the pools that have some."""
    pools = (pools_of(plan, number) for number in range(len(plan.recipes)))
    return [joined([f"`{one.name}`" for one in some]) for some in pools]


def _traffic(plan: FleetPlan) -> Iterator[blocks.Note]:
    """Of each class what comes, how, and what is asked for it."""
    for traffic, got in zip(plan.request.classes, plan.classes, strict=True):
        tokens = (
            f"{got.n_input_tokens:,.0f} tokens in and {got.n_output_tokens:,.0f} out on average"
        )
        comes = f"{rate(traffic.rate_per_s)} {arrival_words(traffic.arrivals)}, {tokens}"
        rank = f"; priority {traffic.priority}" if traffic.priority else ""
        yield blocks.Note(f"{traffic.name}: {got.model}, {comes}{rank}")
        yield blocks.Note(f"targets: {target_words(traffic)}", kind="part")


def _pools(plan: FleetPlan) -> Iterator[blocks.Note]:
    for pool in plan.pools:
        rent = show(pool.usd_per_hour, "USD/h")
        runs_as = deployment_words(plan.recipes[pool.recipe])
        yield blocks.Note(f"{pool.name}: {pool.n_replicas} × {runs_as}, {rent}")
        prompts = prompt_words(pool)
        of = f"{joined(pool.classes)}{', ' * bool(prompts)}{prompts}"
        then = f", then handed to {pool.then}" if pool.then else ""
        busy = share_known(pool.utilisation, pool.utilisation_half_width)
        does = f"{of}{then}: {rate(pool.rate_per_s)}, {most_words(pool)}"
        yield blocks.Note(f"{does}; busy {busy} of the time", kind="part")


def _handovers(plan: FleetPlan) -> list[blocks.Block]:
    """What hands caches over, and between which pools."""
    connector = plan.request.roles.connector
    rows = [
        (
            handover.source,
            handover.target,
            rate(handover.requests_per_s),
            show(handover.token_bytes, "B"),
            show(handover.latency_s, "s"),
            finite(handover.bytes_per_s, "B/s"),
            finite(handover.wire_bytes_per_s, "B/s"),
        )
        for handover in plan.handovers
    ]
    by = [f"by {connector.title}"] if connector and rows else []
    heads = ("from", "to", "requests", "each token", "latency", "a pair", "a replica's links")
    return [*blocks.notes(by), blocks.Table(heads=heads, rows=rows, align="<<>>>>>")]


def _waits(plan: FleetPlan) -> Iterator[blocks.Drawing]:
    """What each class waits for, drawn."""
    for number, one in enumerate(plan.classes):
        yield blocks.Drawing(svg=partial(waits, one, f"waits{number}", number % N_COLOURS))


def _rounds(plan: FleetPlan) -> blocks.Table:
    """What each solution cost, and what the simulation said of it."""
    rows = [(str(i), round_words(one)) for i, one in enumerate(plan.rounds, start=1)]
    return blocks.Table(rows=rows, align="<<", wraps=True)


_POOL = (
    *("pool", "classes", "above_tokens", "upto_tokens", "then", "n_replicas", "rate_per_s"),
    *("replica_rate_per_s", "utilisation", "usd_per_hour"),
)
_RECIPE = ("model", "engine", "kind", "role")
_DEPLOYMENT = (
    *("n_tensor", "n_data", "n_stages", "n_expert_parallel", "weights_format", "kv_format"),
    *("batch", "chunk_tokens"),
)


def _pools_data(plan: FleetPlan) -> blocks.Data:
    """A row a pool, with how its replicas run and what starts them."""
    heads = (*_POOL, *_RECIPE, "n_devices", *_DEPLOYMENT, "command")
    return heads, (_pool_row(plan, one) for one in plan.pools)


def _pool_row(plan: FleetPlan, pool: FleetPool) -> Sequence[object]:
    recipe = plan.recipes[pool.recipe]
    deployment = recipe.deployment
    upto = pool.upto_tokens if math.isfinite(pool.upto_tokens) else ""
    told = {"pool": pool.name, "classes": " ".join(pool.classes), "upto_tokens": upto}
    run: list[object] = [""] * (len(_DEPLOYMENT) + 1)
    if isinstance(deployment, EngineDeployment):
        run = [getattr(deployment, name) for name in _DEPLOYMENT]
        run.append(deployment.launch.command if deployment.launch else "")
    return (
        *(told[name] if name in told else getattr(pool, name) for name in _POOL),
        *(getattr(recipe, name) for name in _RECIPE),
        deployment.n_devices,
        *run,
    )
