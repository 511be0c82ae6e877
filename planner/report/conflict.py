"""Why there is no plan: facts, their consequence, what is reachable, a command that works.

error: no plan decodes `palm-540b` on `tpu-v4-4x8x8` in 5 ms a token

  Because the fastest decode pass takes 20 ms, TPOT ≤ 5 ms is out of reach.

  limit  asked   reachable
  TPOT   ≤ 5 ms  20 ms

hint: this has a plan: `plan --latency-target 20ms`
"""

from __future__ import annotations

from planner.quantities import MEMORY, QUANTITIES, limited_text
from planner.report.lines import columns, wrapped
from planner.report.outlines import headline_of
from planner.report.times import times_lines
from planner.report.words import limit_label, limit_text
from planner.results import Conflict, Obstacle
from planner.specs.economics.request import EconomicsRequest

_FAILS = {MEMORY: "nothing fits", "prefill_batch": "the limits cannot hold together"}
_SEVERAL = "no plan serves {model} on {pool} within {limits}"


def conflict_text(conflict: Conflict, width: int) -> str:
    """The whole message, in lines of at most `width` columns."""
    hint = f"hint: this has a plan: `{conflict.command}`" if conflict.command else ""
    parts = (
        "\n".join([*wrapped(f"error: {_head(conflict)}", width), *times_lines(conflict, width)]),
        _reasons(conflict.obstacles, width, most_offered=max(conflict.request.batches)),
        _reachable(conflict.obstacles),
        _closest(conflict, width),
        _indented(_search_text(conflict), width),
        hint,
    )
    return "\n\n".join(filter(None, parts))


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


def _reasons(obstacles: tuple[Obstacle, ...], width: int, *, most_offered: int) -> str:
    """A paragraph of facts and consequences, in the order in which limits were named."""
    reasons = dict.fromkeys(_reason(obstacle, most_offered) for obstacle in obstacles)
    sentences = [
        f"{'And because' if i else 'Because'} {reason}." for i, reason in enumerate(reasons)
    ]
    return "\n".join(_indented(sentence, width) for sentence in sentences)


def _reason(obstacle: Obstacle, most_offered: int) -> str:
    """A fact, its consequence, and the detail that the fact has after a semicolon."""
    fact, _, detail = obstacle.reason.rstrip(".").partition("; ")
    if obstacle.name == "batch" and obstacle.asked > most_offered:
        detail = f"`--batch` offers at most {most_offered}"
    fails = _FAILS.get(obstacle.name, f"{_limit(obstacle)} is out of reach")
    return f"{fact}, {fails}" + (f": {detail}" if detail else "")


def _reachable(obstacles: tuple[Obstacle, ...]) -> str:
    """What each limit could be if it alone yields."""
    head = "reachable" if len(obstacles) == 1 else "reachable, the others kept"
    rows = [("limit", "asked", head)]
    for obstacle in obstacles:
        name, dimension = obstacle.name, obstacle.dimension
        reachable = limited_text(obstacle.reachable, dimension)
        rows.append((limit_label(name), limit_text(name, obstacle.asked, dimension), reachable))
    if not obstacles:  # there was no time to find them
        return ""
    distinct = list(dict.fromkeys(rows))  # a limit may stand in several conflicts
    return "\n".join(f"  {line}" for line in columns(distinct, "<<<"))


def _closest(conflict: Conflict, width: int) -> str:
    best = conflict.closest
    return _indented(f"Closest: {best.summary}: {headline_of(best)}.", width) if best else ""


def _search_text(conflict: Conflict) -> str:
    checks = "".join(f"; {check}" for check in conflict.verified)
    return f"Looked at {conflict.n_candidates:,} candidates{checks}."


def _limit(obstacle: Obstacle) -> str:
    asked = limit_text(obstacle.name, obstacle.asked, obstacle.dimension)
    return f"{limit_label(obstacle.name)} {asked}"


def _and(words: list[str]) -> str:
    *some, last = words or [""]
    return f"{', '.join(some)} and {last}" if some else last


def _indented(text: str, width: int) -> str:
    return "\n".join(f"  {line}" for line in wrapped(text, width - 2))
