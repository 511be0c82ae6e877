"""Why there is no plan: facts, their consequence, what is reachable, a command that works.

error: no plan decodes `palm-540b` on `tpu-v4-4x8x8` in 5 ms a token

  Because the fastest decode pass takes 20 ms, TPOT ≤ 5 ms is out of reach.

  limit  requested  best reachable
  TPOT   ≤ 5 ms     20 ms

hint: this has a plan: `plan --latency-target 20ms`
"""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from planner.quantities.table import MEMORY, QUANTITIES, limited_text
from planner.quantities.units import show
from planner.report.documents.blocks import (
    Block,
    Command,
    Document,
    Note,
    Section,
    Table,
    hint,
    notes,
    section,
)
from planner.report.outlines import headline_of
from planner.report.words import limit_label, limit_text, plural
from planner.results.conflicts import (
    Conflict,
    PlacementConflict,
    PlacementRelaxation,
    Relaxation,
    RelaxedLimit,
)
from planner.results.obstacles import Obstacle
from planner.results.staging import StagingConflict
from planner.specs.records.economics import EconomicsRequest

_FAILS = {MEMORY: "nothing fits", "prefill_batch": "the limits cannot hold together"}
_SEVERAL = "no plan serves {model} on {pool} within {limits}"


AnyConflict = Conflict | PlacementConflict | StagingConflict


def document(conflict: AnyConflict) -> Document:
    """Why there is none, and what is reachable."""
    if isinstance(conflict, PlacementConflict):
        names = " and ".join(f"`{one.name}`" for one in conflict.obstacles) or "what is asked"
        free = f"{conflict.n_free} of its {conflict.n_devices} devices are free"
        head, sections = (
            f"no placement on `{conflict.pool}` keeps {names}: {free}",
            _of_placement(conflict),
        )
    elif isinstance(conflict, StagingConflict):
        head = f"nothing fits: {conflict.what}"
        sections = [section("", *notes(conflict.facts)), hint(conflict.remedy)]
    else:
        head, sections = _head(conflict), _of_plan(conflict)
    line = f"error: {head}"
    return Document(
        title=head.replace("`", ""),
        line=line,
        sections=tuple(sections),
    )


def _of_plan(conflict: Conflict) -> list[Section]:
    obstacles, best = conflict.obstacles, conflict.closest
    reasons = _reasons(obstacles, most_offered=max(conflict.request.batches))
    relaxed = list(_relaxations(conflict, conflict.command))
    closest = [] if relaxed or not best else [f"Closest: {best.summary}: {headline_of(best)}."]
    checked = Note(_search_text(conflict))
    return [
        section("", *notes(reasons)),
        section("", *notes(_cores(conflict))),
        section("", _reachable(obstacles)),
        section("", *notes(closest)),
        section("", *[checked] * (not relaxed)),
        hint(f"this has a plan: `{conflict.command}`" if conflict.command else ""),
        section("what to loosen", *relaxed, *[checked] * bool(relaxed)),
    ]


def _head(conflict: Conflict) -> str:
    request, obstacles = conflict.request, conflict.obstacles
    assert not isinstance(request, EconomicsRequest)  # it has no names
    alone = obstacles[0] if len(obstacles) == 1 else None
    known = QUANTITIES.get(alone.name) if alone else None
    template = (known and known.head) or _SEVERAL
    return template.format(
        model=f"`{request.model.name}`",
        pool=f"`{request.cluster.name}`",
        n_input=request.workload.n_input_tokens,
        asked=limited_text(alone.asked, alone.dimension) if alone else "",
        limits=_and(list(dict.fromkeys(map(_limit, obstacles)))) or "its limits",
    )


def _reasons(obstacles: tuple[Obstacle, ...], *, most_offered: int) -> list[str]:
    """Facts and consequences, in the order in which limits were named."""
    reasons = dict.fromkeys(_reason(obstacle, most_offered) for obstacle in obstacles)
    return [f"{'And because' if i else 'Because'} {reason}." for i, reason in enumerate(reasons)]


def _reason(obstacle: Obstacle, most_offered: int) -> str:
    """A fact, its consequence, and the detail that the fact has after a semicolon."""
    fact, _, detail = obstacle.reason.rstrip(".").partition("; ")
    if obstacle.name == "batch" and obstacle.asked > most_offered:
        detail = f"`--batch` offers at most {most_offered}"
    fails = _FAILS.get(obstacle.name, f"{_limit(obstacle)} is out of reach")
    return f"{fact}, {fails}" + (f": {detail}" if detail else "")


def _reachable(obstacles: tuple[Obstacle, ...]) -> Table:
    """What each limit could be, beside what its reason says is kept; empty where time ended."""
    rows = []
    for obstacle in obstacles:
        name, dimension = obstacle.name, obstacle.dimension
        reachable = limited_text(obstacle.reachable, dimension)
        rows.append((limit_label(name), limit_text(name, obstacle.asked, dimension), reachable))
    distinct = list(dict.fromkeys(rows))  # a limit may stand in several conflicts
    return Table(heads=("limit", "requested", "best reachable"), rows=distinct)


def _cores(conflict: Conflict) -> Iterator[str]:
    """Which limits conflict, where there is more to say than of one by itself."""
    words = {one.name: _limit(one) for one in conflict.obstacles}
    alone = [words[name] for name, *more in conflict.cores if not more and name not in _FAILS]
    if alone and len(conflict.cores) > 1:
        yield f"{'Each of ' * (len(alone) > 1)}{_and(alone)} is out of reach by itself."
    for core in filter(lambda core: len(core) > 1, conflict.cores):
        names = _and([words[name] for name in core])
        rest = "either the other" if len(core) == 2 else "any of them the others"
        yield f"{names} conflict: without {rest} can be met."


def _relaxations(conflict: Conflict | PlacementConflict, hinted: str) -> Iterator[Block]:
    """What limits have to become together, and the plan that each change has; a hint has one."""
    listed: Sequence[Relaxation | PlacementRelaxation] = conflict.relaxations
    changes = [[_change(one) for one in it.changes] for it in listed]
    if len([*chain(*changes)]) < 2:
        return  # it is what is reachable of one limit
    yield Note("The least first; a limit that doubles, or a least that is halved, counts 100 %:")
    for words, it in zip(changes, listed, strict=True):
        total = f"{_figure(100.0 * it.price_fraction)} %"
        yield Note(f"{_and(words)}, {total} in all: {_best(it)}.", "item")
        if it.command and it.command != hinted:
            yield Command(it.command)


def _best(relaxation: Relaxation | PlacementRelaxation) -> str:
    if isinstance(relaxation, Relaxation):
        deployment = relaxation.deployment
        return f"{deployment.summary}: {headline_of(deployment)}"
    devices = plural(relaxation.n_devices, "device")
    rate, rent = relaxation.output_tokens_per_s, relaxation.usd_per_hour
    served = f"{show(rate, 'token/s')}, {show(rent, 'USD/h')}"
    return f"{plural(relaxation.n_replicas, 'replica')} on {devices}: {served}"


def _change(change: RelaxedLimit) -> str:
    """`TPOT ≤ 33 ms (×1.1)`, `decode batch ≥ 8 (÷2)`."""
    what, _, model = change.name.partition(" ")
    quantity = QUANTITIES.get(what)
    if quantity is None:
        return "`--prefill cost`"
    factor = f"{'÷' if quantity.is_least else '×'}{_figure(1.0 + change.price_fraction)}"
    of = f" of {model}" * bool(model)
    return f"{quantity.label}{of} {quantity.limit_text(change.limit)} ({factor})"


def _figure(value: float) -> str:
    """Three significant digits, or whole: `0.123`, `1,070`."""
    return f"{value:.3g}" if value < 1000.0 else f"{value:,.0f}"


def _search_text(conflict: Conflict) -> str:
    checks = "".join(f"; {check}" for check in conflict.verified)
    return f"Looked at {conflict.n_candidates:,} candidates{checks}."


def _limit(obstacle: Obstacle) -> str:
    limit = limit_text(obstacle.name, obstacle.asked, obstacle.dimension)
    return f"{limit_label(obstacle.name)} {limit}"


def _and(words: list[str]) -> str:
    *some, last = words or [""]
    return f"{', '.join(some)} and {last}" if some else last


def _of_placement(conflict: PlacementConflict) -> list[Section]:
    of_targets = [one for one in conflict.obstacles if one.name.startswith("targets")]
    rows = [
        (it.name, show(it.asked, it.dimension), show(_typable(it), it.dimension), it.reason)
        for it in conflict.obstacles
        if it not in of_targets
    ]
    command = next((it.command for it in conflict.relaxations), "")
    checked, relaxed = notes(conflict.verified), list(_relaxations(conflict, command))
    return [
        section("", *notes(f"{one.name}: {one.reason}" for one in of_targets)),
        section("", Table(heads=("limit", "requested", "best reachable", ""), rows=rows)),
        section("", *checked * (not relaxed)),
        hint(f"this has a placement: `{command}`" if command else ""),
        section("what to loosen", *relaxed, *checked * bool(relaxed)),
    ]


def _typable(obstacle: Obstacle) -> float:
    """What is reachable, in digits that have a placement where they are typed."""
    quantity = QUANTITIES.get(obstacle.name.partition(" ")[0])
    is_some = quantity is not None and 0.0 < obstacle.reachable < math.inf
    return quantity.relaxed(obstacle.reachable) if quantity and is_some else obstacle.reachable
