"""A repair for people: what moves, how much, how long, and what staying optimal would cost."""

from __future__ import annotations

from collections import Counter

from planner.floorplans import FloorPlan
from planner.repair_results import Change, Move, Repair
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.placement import placement_text
from planner.report.words import plural
from planner.units import show

MOST_LISTED = 12


def repair_line(repair: Repair) -> str:
    """The repair in one line."""
    fates = Counter(change.fate for change in repair.changes)
    counted = ", ".join(f"{n} {fate}" for fate in ("kept", "patched", "new") if (n := fates[fate]))
    loss = repair.chosen.loss_fraction
    lost = f"{percent(loss)} below the best" if loss > 0 else "as good as can be"
    return f"{show(repair.moved_bytes, 'B')} move; replicas: {counted or 'none'}; {lost}"


def repair_text(repair: Repair, width: int, *, floorplan: FloorPlan | None = None) -> str:
    """The whole report, in lines of at most `width` columns."""
    sections = (
        "\n".join(wrapped(repair_line(repair), width)),
        section("repair", labelled(_rows(repair), width)),
        section("replicas that change", _change_lines(repair.changes)),
        section("moves", _move_lines(repair.moves)),
        section("bytes against the objective", _frontier_lines(repair)),
        placement_text(repair.placement, width, floorplan=floorplan),
    )
    return "\n\n".join(filter(None, sections))


def _rows(repair: Repair) -> list[tuple[str, str]]:
    name = repair.placement.certificate.objective_name
    reached = repair.placement.certificate.objective
    unit = repair.dimension
    best = max(repair.frontier, key=lambda point: point.moved_bytes)
    more = best.moved_bytes - repair.moved_bytes
    from_storage = sum(move.n_bytes for move in repair.moves if not move.source)
    loads = []
    if repair.load_s > 0:
        loads.append(f"{show(repair.load_s, 's')} over the links of the busiest device")
    if from_storage:
        loads.append(f"{show(from_storage, 'B')} come from storage, not timed")
    return [
        ("before", f"{name} {show(repair.before, unit)}"),
        ("repaired", f"{name} {show(reached, unit)}"),
        (
            "best",
            f"{show(repair.best, unit)}, {show(more, 'B')} more to move"
            if more > 0
            else f"{show(repair.best, unit)}: this is it",
        ),
        ("moved", show(repair.moved_bytes, "B")),
        ("loading", "; ".join(loads) if repair.moves else ""),
        ("given up", ", ".join(repair.dropped)),
        ("lost", repair.lost),
    ]


def _change_lines(changes: tuple[Change, ...]) -> list[str]:
    changed = [change for change in changes if change.fate != "kept"]
    rows = [("replica", "was", "fate", "ranks", "bytes")]
    rows += [
        (
            change.replica,
            change.before or "–",
            change.fate,
            str(change.n_moved),
            show(change.moved_bytes, "B"),
        )
        for change in changed[:MOST_LISTED]
    ]
    return [*(columns(rows, "<<<>>") if changed else []), *_more(len(changed))]


def _move_lines(moves: tuple[Move, ...]) -> list[str]:
    rows = [("replica", "rank", "to", "from", "bytes")]
    rows += [
        (
            move.replica,
            str(move.rank),
            move.device,
            move.source or "storage",
            show(move.n_bytes, "B"),
        )
        for move in moves[:MOST_LISTED]
    ]
    return [*(columns(rows, "<><<>") if moves else []), *_more(len(moves))]


def _more(n_listed: int) -> list[str]:
    n_more = n_listed - MOST_LISTED
    return [f"and {n_more} more: `--json` lists them all"] if n_more > 0 else []


def _frontier_lines(repair: Repair) -> list[str]:
    name = repair.placement.certificate.objective_name
    rows = [("moved", name, "loss", "")]
    rows += [
        (
            show(point.moved_bytes, "B"),
            show(point.objective, repair.dimension),
            percent(point.loss_fraction),
            "chosen" if point.is_chosen else "",
        )
        for point in repair.frontier
    ]
    whole = "" if repair.is_whole else plural(len(repair.frontier), "point") + " of more"
    return [*columns(rows, ">>><"), *([whole] if whole else [])]
