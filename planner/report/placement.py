"""A placement for people: what is served, how replicas run, where they are, what proves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.quantities import QUANTITIES
from planner.report.floorplan_map import placement_map
from planner.report.launch.text import launch_texts
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.proof import certificate_lines
from planner.report.region import planned_words
from planner.report.times import times_lines
from planner.report.words import plural
from planner.results import Obstacle
from planner.results.floorplans import FloorPlan
from planner.results.placements import (
    Channel,
    Handover,
    Placed,
    Placement,
    PlacementConflict,
    Recipe,
    Replica,
)
from planner.specs.quality import Formatted, quality_words
from planner.specs.roles import DECODE, PREFILL, role_words
from planner.specs.runtimes import ROOFLINE, runtime_of
from planner.units import show

MOST_LISTED = 12
"""Replicas that are listed one by one; the others are in the JSON, and with `--ranks`."""


def placement_line(placement: Placement) -> str:
    """The placement in one line."""
    rent = show(sum(one.usd_per_hour for one in placement.served), "USD/h")
    devices = f"{placement.n_used:,} of {plural(placement.n_free, 'free device')}"
    n_replicas = plural(len(placement.replicas), "replica")
    rate = show(placement.output_tokens_per_s, "token/s")
    return f"{n_replicas} on {devices}: {rate}, {rent}"


def placement_text(
    placement: Placement,
    width: int,
    *,
    ranks: bool = False,
    floorplan: FloorPlan | None = None,
    is_part: bool = False,
) -> str:
    """The whole report, in lines of at most `width` columns.

    Args:
        width: columns, 60 or more.
        ranks: whether to list every rank.
        floorplan: the cluster, for a map of it; None for none.
        is_part: of a report that has said whose times these are.
    """
    times = [] if is_part else times_lines(placement, width)
    replicas = placement.replicas if ranks else placement.replicas[:MOST_LISTED]
    sections = (
        "\n".join([*wrapped(placement_line(placement), width), *times]),
        section("cluster", labelled(_cluster_rows(placement), width)),
        section("models", _model_lines(placement)),
        section("limits", _limit_lines(placement)),
        section("recipes", recipe_lines(placement, width)),
        section("hand-over", _handover_lines(placement, width)),
        section("map", placement_map(placement, floorplan, width) if floorplan else []),
        section("replicas", replica_lines(placement, replicas, width)),
        section("narrowest links", _channel_lines(replicas)),
        section("ranks", _rank_lines(placement) if ranks else []),
        section("certificate", certificate_lines(placement.certificate, width)),
        *launch_texts(placement.recipes, width),
    )
    return "\n\n".join(filter(None, sections))


def _cluster_rows(placement: Placement) -> list[tuple[str, str]]:
    rows = [("pool", placement.title), *kind_rows(placement)]
    if placement.request.engines != (ROOFLINE.name,) or placement.request.confidence:
        rows.append(("times", planned_words(placement.request.confidence)))
    return rows


def kind_rows(placed: Placed) -> list[tuple[str, str]]:
    """Devices of each kind, and how many of them are free and used."""
    return [
        (kind.kind, f"{kind.n_devices:,} {kind.device}, {kind.n_free:,} free, {kind.n_used:,} used")
        for kind in placed.kinds
    ]


def _model_lines(placement: Placement) -> list[str]:
    rows = [("model", "replicas", "devices", "output", "demand", "share", "rent")]
    for one in placement.served:
        demand = "" if one.demand_tokens_per_s is None else show(one.demand_tokens_per_s, "token/s")
        share = "" if one.share is None else percent(one.share)
        output = show(one.output_tokens_per_s, "token/s")
        rent = show(one.usd_per_hour, "USD/h")
        row = (one.model, str(one.n_replicas), str(one.n_devices), output, demand, share, rent)
        rows.append(row)
    used = [i for i in range(7) if any(row[i] for row in rows[1:])]
    return columns([[row[i] for i in used] for row in rows], "<" + ">" * (len(used) - 1))


def _limit_lines(placement: Placement) -> list[str]:
    """What was asked of all replicas together, and what they come to."""
    rows = [
        (f"{one.label} {one.limit_text(limit)}", f"{one.shown(placement.used(name))} used")
        for name, limit in placement.request.limits.items()
        for one in (QUANTITIES[name],)
    ]
    return columns(rows, "<>")


def recipe_lines(placement: Placement, width: int) -> list[str]:
    """Figures of each recipe, and under them its layout, wrapped."""
    lines = []
    models = {one.model.name: one.model for one in placement.request.models}
    for number, recipe in enumerate(placement.recipes):
        n_replicas = sum(one.recipe == number for one in placement.replicas)
        lines += _recipe(number, recipe, n_replicas, models[recipe.model], width)
    return lines


def _recipe(
    number: int, recipe: Recipe, n_replicas: int, model: Formatted, width: int
) -> list[str]:
    it = recipe.deployment
    quality = quality_words(model, it.weights_format, it.kv_format)
    slow = "" if recipe.speed_fraction == 1 else f" at {percent(recipe.speed_fraction)} of speed"
    under = "" if recipe.engine == ROOFLINE.name else f" under {runtime_of(recipe.engine).title}"
    on = f"{role_words(recipe.role)} on {recipe.kind}{slow}{under}"
    times = f"{', '.join(_times(recipe))}, {show(it.output_tokens_per_s, 'token/s')} each"
    head = f"{n_replicas} × {recipe.model}{on}: {times}"
    text = f"{it.summary}; within one {recipe.span}; quality: {quality}"
    first, *rest = wrapped(head, width - 7)
    body = [*rest, *wrapped(text, width - 7)]
    return [f"{number:>3}  {first}", *("     " + line for line in body)]


def _handover_lines(placement: Placement, width: int) -> list[str]:
    """What hands caches over, and from which recipe to which: requests, bytes, time."""
    connector = placement.request.roles.connector
    if connector is None or not placement.handovers:
        return []
    most = "what links carry"
    if connector.bytes_per_s is not None:
        most = f"{show(connector.bytes_per_s, 'B/s')} a pair of workers, or what links carry"
    words = f"by {connector.title}: {show(connector.latency_s, 's')} and its bytes at {most}"
    recipe_of = {one.name: one.recipe for one in placement.replicas}
    of_recipes: dict[tuple[int, int], list[Handover]] = {}
    for one in placement.handovers:
        key = (recipe_of[one.source], recipe_of[one.target])
        of_recipes.setdefault(key, []).append(one)
    rows = [("from", "to", "pairs", "requests", "each", "takes", "TTFT")]
    rows += [
        (
            f"recipe {source}",
            f"recipe {target}",
            str(len(some)),
            show(sum(one.requests_per_s for one in some), "request/s"),
            show(some[0].request_bytes, "B"),
            show(max(one.seconds for one in some), "s"),
            show(max(one.ttft_s for one in some), "s"),
        )
        for (source, target), some in sorted(of_recipes.items())
    ]
    return [*wrapped(words, width - 2), *columns(rows, "<<>>>>>")]


def _times(recipe: Recipe) -> Iterator[str]:
    """What a user waits for; of one phase, what that phase takes."""
    if recipe.role != PREFILL:
        yield f"TPOT {show(recipe.tpot_s, 's')}"
    if recipe.role != DECODE:
        before = " before the hand-over" if recipe.role == PREFILL else ""
        yield f"TTFT {show(recipe.ttft_s, 's')}{before}"


def replica_lines(
    placed: Placed,
    replicas: Sequence[Replica],
    width: int,
    *,
    told_by: str = "`--ranks` or `--json`",
) -> list[str]:
    """Where some of the replicas are; how many others there are, and which options list them."""
    if not placed.replicas:
        return []
    rows = _replica_rows(replicas)
    head = [len(max((row[i] for row in rows), key=len)) for i in range(3)]
    room = max(20, width - sum(head) - 8)
    lines = []
    for row in rows:
        first, *rest = wrapped(row[3], room)
        start = f"{row[0]:<{head[0]}}  {row[1]:>{head[1]}}  {row[2]:<{head[2]}}  "
        lines += [start + first, *(" " * len(start) + line for line in rest)]
    n_more = len(placed.replicas) - len(replicas)
    return [*lines, f"and {n_more} more: {told_by} lists them all"] if n_more else lines


def _replica_rows(replicas: Sequence[Replica]) -> list[tuple[str, str, str, str]]:
    if any(rank.coordinate for one in replicas for rank in one.ranks):
        rows = [("replica", "recipe", "ranks", "from first to last")]
        return rows + [
            (one.name, str(one.recipe), str(len(one.ranks)), _ends(one)) for one in replicas
        ]
    return [
        ("replica", "recipe", "leaves", "nodes"),
        *(
            (one.name, str(one.recipe), ", ".join(one.leaves) or "–", ", ".join(_runs(one.nodes)))
            for one in replicas
        ),
    ]


def _ends(replica: Replica) -> str:
    return f"{replica.ranks[0].device} … {replica.ranks[-1].device}"


def _runs(nodes: Sequence[str]) -> list[str]:
    """Names of nodes, runs of neighbours shortened: `node3…node7`."""
    runs: list[list[str]] = []
    for name in nodes:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [f"{run[0]}…{run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]


def _follows(name: str, other: str) -> bool:
    stem, number = _parted(name)
    return number is not None and _parted(other) == (stem, number + 1)


def _parted(name: str) -> tuple[str, int | None]:
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem, int(digits) if digits else None


def _channel_lines(replicas: Sequence[Replica]) -> list[str]:
    """Of each axis the groups, and the narrowest link that one of them uses."""
    rows = [("replica", "axis", "groups", "bandwidth", "link")]
    rows += [(one.name, *_channel(channel)) for one in replicas for channel in one.channels]
    return columns(rows, "<<>><") if len(rows) > 1 else []


def _channel(channel: Channel) -> tuple[str, str, str, str]:
    groups = f"{channel.n_groups} × {channel.n_devices}"
    width = f"{show(channel.bytes_per_s, 'B/s')}"
    return channel.axis, groups, width, " – ".join(channel.link)


def _rank_lines(placement: Placement) -> list[str]:
    rows = [("replica", "rank", "device", "node", "stage", "axes")]
    rows += [
        (
            one.name,
            str(rank.rank),
            rank.device,
            rank.node,
            str(rank.stage),
            ",".join(map(str, rank.axes)),
        )
        for one in placement.replicas
        for rank in one.ranks
    ]
    return columns(rows, "<><<><")


def placement_conflict_text(conflict: PlacementConflict, width: int) -> str:
    """Why nothing can be placed, in lines of at most `width` columns."""
    names = " and ".join(f"`{one.name}`" for one in conflict.obstacles) or "what is asked"
    head = (
        f"error: no placement on `{conflict.pool}` keeps {names}: "
        f"{conflict.n_free} of its {conflict.n_devices} devices are free"
    )
    rows = [("wish", "asked", "reachable", "")]
    rows += [_obstacle(one) for one in conflict.obstacles if not one.name.startswith("targets")]
    table = columns(rows, "<<<<") if len(rows) > 1 else []
    reasons = [
        line
        for one in conflict.obstacles
        if one.name.startswith("targets")
        for line in wrapped(f"{one.name}: {one.reason}", width - 2)
    ]
    found = [line for text in conflict.verified for line in wrapped(text, width - 2)]
    parts = (
        "\n".join(wrapped(head, width)),
        *("\n".join("  " + line for line in lines) for lines in (reasons, table, found) if lines),
    )
    return "\n\n".join(parts)


def _obstacle(one: Obstacle) -> tuple[str, str, str, str]:
    return one.name, show(one.asked, one.dimension), show(one.reachable, one.dimension), one.reason
