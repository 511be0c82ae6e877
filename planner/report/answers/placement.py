"""A placement for people: what is served, how replicas run, where they are, what proves it."""

from collections.abc import Sequence
from functools import partial

from planner.quantities.table import QUANTITIES
from planner.quantities.units import show
from planner.report.answers.plan_parts import recipe_table, recipes_section, wish_rows
from planner.report.documents import blocks
from planner.report.drawings.floorplans import Groups, drawing, style
from planner.report.drawings.maps import placement_map
from planner.report.proof import certificate_section
from planner.report.region import replicas_region_rows
from planner.report.words import percent, plural
from planner.results.floorplans import FloorPlan
from planner.results.placements import Channel, Handover, Placed, Placement, Replica
from planner.specs.records.roles import PREFILL, TOGETHER

MOST_LISTED = 12
"""Replicas that are listed one by one; the others are in the JSON, and with `--ranks`."""


def line_of(placement: Placement) -> str:
    rent = show(sum(one.usd_per_hour for one in placement.served), "USD/h")
    devices = f"{placement.n_used:,} of {plural(placement.n_free, 'free device')}"
    n_replicas = plural(len(placement.replicas), "replica")
    rate = show(placement.output_tokens_per_s, "token/s")
    return f"{n_replicas} on {devices}: {rate}, {rent}"


def document(
    placement: Placement, *, is_whole: bool = False, floorplan: FloorPlan | None = None
) -> blocks.Document:
    """What is served, how replicas run, where they are, what proves it.

    Args:
        is_whole: whether text lists every rank.
        floorplan: the cluster, for a drawing of it; None for none.
    """
    line = line_of(placement)
    return blocks.Document(
        title=f"{' and '.join(it.model for it in placement.served)} placed on {placement.title}",
        line=line,
        sections=(
            blocks.section("request", blocks.Pairs(wish_rows(placement.request))),
            *placed_sections(placement, is_whole=is_whole, floorplan=floorplan),
        ),
    )


def placed_sections(
    placement: Placement, *, is_whole: bool = False, floorplan: FloorPlan | None = None
) -> tuple[blocks.Section, ...]:
    """All that is said of a placement below what was asked."""
    return (
        blocks.section("cluster", blocks.Pairs([("pool", placement.title), *kind_rows(placement)])),
        blocks.section("models", _models(placement)),
        blocks.section("limits", blocks.Table(rows=_limit_rows(placement), align="<>")),
        blocks.section("latency", blocks.Pairs(_slowest_rows(placement))),
        blocks.section("recipes", recipe_table(placement)),
        blocks.section("measured region", blocks.Pairs(replicas_region_rows(placement))),
        blocks.section("hand-over", *_handovers(placement)),
        map_section(placement, floorplan),
        replicas_section(placement, is_whole=is_whole),
        blocks.section("narrowest links", _channels(placement, is_whole=is_whole)),
        blocks.section("ranks", _ranks(placement, is_whole=is_whole)),
        certificate_section(placement.certificate),
        recipes_section(placement.recipes),
    )


def _slowest_rows(placement: Placement) -> list[tuple[str, str]]:
    """What users of the slowest replicas see; nothing of a phase that no replica does."""
    tpot, ttft = slowest(placement)
    return [
        ("TPOT", f"{tpot} at the slowest replica" * bool(tpot)),
        ("TTFT", f"{ttft} at the slowest replica, without a queue" * bool(ttft)),
    ]


def slowest(placement: Placement) -> tuple[str, str]:
    """TPOT and TTFT of the slowest replicas, hand-overs included."""
    tpot_s = [one.tpot_s for one in placement.recipes if one.role != PREFILL]
    ttft_s = [one.ttft_s for one in placement.recipes if one.role == TOGETHER]
    ttft_s += [one.ttft_s for one in placement.handovers]
    tpot, ttft = (show(max(times_s), "s") if times_s else "" for times_s in (tpot_s, ttft_s))
    return tpot, ttft


def map_section(
    placed: Placed, floorplan: FloorPlan | None, groups: Groups | None = None
) -> blocks.Section:
    """Devices and the replicas on them, drawn; nothing without a floor plan.

    Args:
        groups: as `drawing` takes them.
    """
    if floorplan is None:
        return blocks.section("map")
    svg = partial(drawing, placed, floorplan, groups)
    lines = partial(placement_map, placed, floorplan)
    return blocks.section("map", blocks.Drawing(svg=svg, lines=lines, style=style()))


def kind_rows(placed: Placed) -> list[tuple[str, str]]:
    """Devices of each kind, and how many of them are free and used."""
    return [
        (kind.kind, f"{kind.n_devices:,} {kind.device}, {kind.n_free:,} free, {kind.n_used:,} used")
        for kind in placed.kinds
    ]


def _models(placement: Placement) -> blocks.Table:
    heads = ("model", "replicas", "devices", "output", "demand", "share", "rent")
    rows = []
    for model in placement.served:
        demand = (
            "" if model.demand_tokens_per_s is None else show(model.demand_tokens_per_s, "token/s")
        )
        share = "" if model.share is None else percent(model.share)
        output, rent = show(model.output_tokens_per_s, "token/s"), show(model.usd_per_hour, "USD/h")
        counts = (str(model.n_replicas), str(model.n_devices))
        rows.append((model.model, *counts, output, demand, share, rent))
    used = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    return blocks.Table(
        heads=[heads[i] for i in used],
        rows=[[row[i] for i in used] for row in rows],
        align="<" + ">" * (len(used) - 1),
        sorts=True,
    )


def _limit_rows(placement: Placement) -> list[tuple[str, str]]:
    """What was asked of all replicas together, and what they come to."""
    return [
        (f"{it.label} {it.limit_text(limit)}", f"{it.shown(placement.used(name))} used")
        for name, limit in placement.request.limits.items()
        for it in (QUANTITIES[name],)
    ]


def _handovers(placement: Placement) -> list[blocks.Block]:
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
    rows = [
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
    heads = ("from", "to", "pairs", "requests", "each", "takes", "TTFT")
    return [blocks.Note(words), blocks.Table(heads=heads, rows=rows, align="<<>>>>>")]


def replicas_section(
    placed: Placed, *, is_whole: bool = False, told_by: str = "`--ranks` or `--json` lists them all"
) -> blocks.Section:
    """Where the replicas are; text lists some, and says which options list the others."""
    listed = range(len(placed.replicas) if is_whole else min(MOST_LISTED, len(placed.replicas)))
    if any(rank.coordinate for one in placed.replicas for rank in one.ranks):
        heads = ("replica", "recipe", "ranks", "from first to last")
        rows = [(it.name, str(it.recipe), str(len(it.ranks)), _ends(it)) for it in placed.replicas]
    else:
        heads = ("replica", "recipe", "leaves", "nodes")
        rows = [
            (it.name, str(it.recipe), ", ".join(it.leaves) or "–", _nodes(placed, it))
            for it in placed.replicas
        ]
    table = blocks.Table(
        heads=heads, rows=rows, align="<><<", wraps=True, listed=listed, more=told_by, sorts=True
    )
    return blocks.section("replicas", table)


def _ends(replica: Replica) -> str:
    return f"{replica.ranks[0].device} … {replica.ranks[-1].device}"


def _nodes(placed: Placed, replica: Replica) -> str:
    """Nodes of a replica; of attention and of experts where each has devices of its own."""
    n_pool = placed.recipes[replica.recipe].n_expert_devices
    if not n_pool:
        return ", ".join(_runs(replica.nodes))
    pools = {"attention": replica.ranks[:-n_pool], "experts": replica.ranks[-n_pool:]}
    nodes = {name: [*dict.fromkeys(rank.node for rank in it)] for name, it in pools.items()}
    return "; ".join(f"{name} {', '.join(_runs(some))}" for name, some in nodes.items())


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


def _channels(placement: Placement, *, is_whole: bool) -> blocks.Table:
    """Of each axis the groups, and the narrowest link that one of them uses."""
    rows = [
        (i, replica.name, *_channel(it))
        for i, replica in enumerate(placement.replicas)
        for it in replica.channels
    ]
    most = len(placement.replicas) if is_whole else MOST_LISTED
    return blocks.Table(
        heads=("replica", "axis", "groups", "bandwidth", "link"),
        rows=[row[1:] for row in rows],
        align="<<>><",
        sorts=True,
        listed=[n for n, row in enumerate(rows) if row[0] < most],
    )


def _channel(channel: Channel) -> tuple[str, str, str, str]:
    groups = f"{channel.n_groups} × {channel.n_devices}"
    width = f"{show(channel.bytes_per_s, 'B/s')}"
    return channel.axis, groups, width, " – ".join(channel.link)


def _ranks(placement: Placement, *, is_whole: bool) -> blocks.Table:
    """Every rank and its device; a page has them where they are opened."""
    rows = [
        (
            replica.name,
            str(rank.rank),
            rank.device,
            rank.node,
            str(rank.stage),
            ",".join(map(str, rank.axes)),
        )
        for replica in placement.replicas
        for rank in replica.ranks
    ]
    return blocks.Table(
        heads=("replica", "rank", "device", "node", "stage", "axes"),
        rows=rows,
        align="<><<><",
        sorts=True,
        listed=None if is_whole else (),
        caption=f"all {plural(len(rows), 'rank')}",
    )
