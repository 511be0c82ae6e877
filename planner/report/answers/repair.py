"""A repair for people: what moves, how much, how long, and what staying optimal would cost."""

from collections import Counter
from collections.abc import Sequence

from planner.quantities.units import show
from planner.report.answers.placement import line_of as placement_line, placed_sections
from planner.report.answers.plan_parts import wish_rows
from planner.report.documents.blocks import Block, Document, Note, Pairs, Row, Table, notes, section
from planner.report.words import percent, plural
from planner.results.floorplans import FloorPlan
from planner.results.repairs import Change, Move, Repair

MOST_LISTED = 12


def line_of(repair: Repair) -> str:
    fates = Counter(change.fate for change in repair.changes)
    counted = ", ".join(f"{n} {fate}" for fate in ("kept", "patched", "new") if (n := fates[fate]))
    loss = repair.chosen.loss_fraction
    lost = f"{percent(loss)} below the best" if loss > 0 else "as good as can be"
    return f"{show(repair.moved_bytes, 'B')} move; replicas: {counted or 'none'}; {lost}"


def document(
    repair: Repair, *, is_whole: bool = False, floorplan: FloorPlan | None = None
) -> Document:
    """What moves, how much, how long, what staying optimal would cost, and what stands then."""
    line = line_of(repair)
    return Document(
        title=f"repair of {repair.placement.title}",
        line=line,
        head=(Note(line), Note(placement_line(repair.placement))),
        sections=(
            section("repair", Pairs(_rows(repair))),
            section("request", Pairs(wish_rows(repair.request.wanted))),
            section("replicas that change", _changes(repair.changes)),
            section("moves", _moves(repair.moves)),
            section("bytes against the objective", *_frontier(repair)),
            *placed_sections(repair.placement, is_whole=is_whole, floorplan=floorplan),
        ),
    )


def _rows(repair: Repair) -> list[tuple[str, str]]:
    name = repair.placement.certificate.objective_name
    reached = repair.placement.certificate.objective
    unit = repair.dimension
    best = max(repair.frontier, key=lambda point: point.moved_bytes)
    more = best.moved_bytes - repair.moved_bytes
    from_storage = sum(move.n_bytes for move in repair.moves if not move.source)
    loads, changed = [], repair.request.changed
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
        ("inherited", f"all but {', '.join(changed)}" if changed else "all of the request"),
    ]


def _changes(changes: tuple[Change, ...]) -> Table:
    rows = [
        (
            change.replica,
            change.before or "–",
            change.fate,
            str(change.n_moved),
            show(change.moved_bytes, "B"),
        )
        for change in changes
        if change.fate != "kept"
    ]
    return _listed(("replica", "was", "fate", "ranks", "bytes"), rows, "<<<>>")


def _moves(moves: tuple[Move, ...]) -> Table:
    rows = [
        (
            move.replica,
            str(move.rank),
            move.device,
            move.source or "storage",
            show(move.n_bytes, "B"),
        )
        for move in moves
    ]
    return _listed(("replica", "rank", "to", "from", "bytes"), rows, "<><<>")


def _listed(heads: Row, rows: Sequence[Row], align: str) -> Table:
    """A table of which text lists the first rows."""
    listed = range(min(MOST_LISTED, len(rows)))
    return Table(heads=heads, rows=rows, align=align, listed=listed)


def _frontier(repair: Repair) -> list[Block]:
    rows = [
        (
            show(point.moved_bytes, "B"),
            show(point.objective, repair.dimension),
            percent(point.loss_fraction),
            "chosen" if point.is_chosen else "",
        )
        for point in repair.frontier
    ]
    heads = ("moved", repair.placement.certificate.objective_name, "loss", "")
    whole = "" if repair.is_whole else plural(len(repair.frontier), "point") + " of more"
    return [Table(heads=heads, rows=rows, align=">>><"), *notes([whole] * bool(whole))]
