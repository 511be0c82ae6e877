"""Plans of several cases side by side: what to run, what it does, what it loses to the best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from planner.quantities import QUANTITIES, objective_of
from planner.report.economics import request_rows
from planner.report.engine_requests import engine_rows
from planner.report.launch.text import launch_text
from planner.report.lines import columns, labelled, percent, section, wrapped
from planner.report.outlines import cell, headline_of, run_heads
from planner.report.placement import placement_line
from planner.report.survey_words import case_label, cases_text
from planner.report.terminal import request_lines
from planner.report.times import times_lines
from planner.report.words import amount, limit_label, target_texts
from planner.results import AnyPlan, ErdilPlan
from planner.results.engines import EngineDeployment
from planner.results.placements import Placement
from planner.results.surveys import Comparison, Row
from planner.specs.engine_request import EngineRequest
from planner.specs.request import Request
from planner.specs.roles import PREFILL, ROLES, TOGETHER
from planner.units import show

_DOES = ("TPOT", "TTFT", "cost", "tokens/s")
_LIMITS = ("binds", "loses")


def comparison_text(comparison: Comparison, width: int) -> str:
    """The whole report; two tables where one would be wider than `width` columns."""
    rows = comparison.rows
    cases = [row.case for row in rows]
    found = [row.answer for row in rows if row.answer is not None]
    head = f"{cases_text(cases)}: {objective_of(comparison.objective).aim}"
    parts = ["\n".join([*wrapped(head, width), *times_lines(comparison, width)])]
    if comparison.best is not None:
        parts[0] = "\n".join([parts[0], *wrapped(best_line(comparison), width)])
        parts.append(section("request", _asked_lines(comparison, width)))
    are_placed = any(isinstance(one, Placement) for one in found)
    tables = _placed_tables(rows, width) if are_placed else _tables(rows, width)
    sections = [*parts, *tables, *_certificates(found, width)]
    return "\n\n".join(filter(None, [*sections, _started(comparison, width)]))


def _asked_lines(comparison: Comparison, width: int) -> list[str]:
    """What was asked of all rows."""
    rows = comparison.rows
    placed = [row.placement for row in rows if row.placement is not None]
    if placed:
        return _wish_lines(placed[-1], width)
    without = {"model", "pool"} if len(rows) > 1 else set()
    plans = [row.plan for row in rows if row.plan is not None]
    return _request_lines(plans[0], width, {*without, "weights"})


def _started(comparison: Comparison, width: int) -> str:
    """How the best is started, if an engine serves it."""
    best = None if comparison.best is None else comparison.rows[comparison.best].plan
    if best is None or not isinstance(best.deployment, EngineDeployment):
        return ""
    return launch_text(best.deployment.launch, width, of="the best is")


def _request_lines(plan: AnyPlan, width: int, without: set[str]) -> list[str]:
    request = plan.request
    if isinstance(request, Request):
        return request_lines(request, width, without=without)
    if isinstance(request, EngineRequest):
        without = without | {"engine", "formats"} if "model" in without else without
        return labelled([row for row in engine_rows(request) if row[0] not in without], width)
    return labelled(request_rows(cast("ErdilPlan", plan), without=without), width)


def _wish_lines(placed: Placement, width: int) -> list[str]:
    """What replicas together are asked, whichever roles they may have."""
    request = placed.request
    work, connector = request.workload, request.roles.connector
    targets = [*target_texts(request.targets)]
    targets += [
        f"demand {show(one.demand_tokens_per_s, 'token/s')}"
        for one in request.models
        if one.demand_tokens_per_s is not None
    ]
    limits = ((QUANTITIES[name], most) for name, most in request.limits.items())
    targets += [f"{one.label} {one.limit_text(most)}" for one, most in limits]
    rows = [
        ("requests", f"{amount(work.n_input_tokens)} tokens in, {work.n_output_tokens} out"),
        ("targets", ", ".join(targets)),
        ("hand-over", connector.title if connector else ""),
    ]
    return labelled([row for row in rows if row[1]], width)


def best_line(comparison: Comparison) -> str:
    """The best of all rows, in one line."""
    if comparison.best is None:
        return "no plan"
    row = comparison.rows[comparison.best]
    label = case_label(row.case, [one.case for one in comparison.rows])
    if row.placement is not None:
        return f"{label}: {placement_line(row.placement)}"
    assert row.plan is not None
    best = row.plan.deployment
    return f"{label}: {best.summary}: {headline_of(best)}"


def _tables(rows: Sequence[Row], width: int) -> list[str]:
    """One table where it fits, else what to run above what it does."""
    cases = [row.case for row in rows]
    names = [case_label(row.case, cases) for row in rows]
    found = [row.plan for row in rows if row.plan]
    asked = [plan.request for plan in found]
    requests = [one for one in asked if isinstance(one, Request | EngineRequest)]
    what = run_heads([plan.deployment for plan in found], requests) if found else []
    if all(case.engine for case in cases):  # the names of the rows say it
        what = [head for head in what if head != "engine"]
    knows_prefill = len(requests) == len(found)
    how = [head for head in _DOES if knows_prefill or head != "TTFT"]
    run = [_cells(what, row.plan) if row.plan else () for row in rows]
    does = [(*_cells(how, row.plan), *_limits(row)) if row.plan else () for row in rows]
    reasons = [f"no plan: {row.reason}" for row in rows]
    whole = [(*one, *other) for one, other in zip(run, does, strict=True)]
    wide = _table(("", *what, *how, *_LIMITS), names, whole, reasons, width)
    if max(map(len, wide)) + 2 <= width:
        return [section("plans", wide)]
    return [
        section("what to run", _table(("", *what), names, run, reasons, width)),
        section("what it does", _table(("", *how, *_LIMITS), names, does, [""] * len(rows), width)),
    ]


def _placed_tables(rows: Sequence[Row], width: int) -> list[str]:
    """What replicas of each case there are, and what they do together."""
    cases = [row.case for row in rows]
    names = [case_label(row.case, cases) for row in rows]
    heads = ("", "replicas", "devices", "TPOT", "TTFT", "rent", "loses")
    cells = [_placed(row.placement, row.loss_fraction) if row.placement else () for row in rows]
    reasons = [f"no plan: {row.reason}" for row in rows]
    return [section("replicas", _table(heads, names, cells, reasons, width))]


def _placed(found: Placement, loss_fraction: float | None) -> tuple[str, ...]:
    """Cells of a placement; times are those of its slowest replicas."""
    roles = Counter(found.recipes[one.recipe].role for one in found.replicas)
    ttft_s = [one.ttft_s for one in found.handovers]
    ttft_s += [one.ttft_s for one in found.recipes if one.role == TOGETHER]
    tpot_s = [one.tpot_s for one in found.recipes if one.role != PREFILL]
    return (
        " + ".join(f"{roles[role]} {role}" for role in ROLES if role in roles),
        str(found.n_used),
        show(max(tpot_s), "s"),
        show(max(ttft_s), "s"),
        show(found.used("rent"), "USD/h"),
        _loss_text(loss_fraction),
    )


def _table(
    heads: tuple[str, ...],
    names: Sequence[str],
    cells: Sequence[tuple[str, ...]],
    reasons: Sequence[str],
    width: int,
) -> list[str]:
    """Rows with cells aligned; a row without cells is its name and its reason."""
    side = max(len(name) for name in names)
    rows = [heads, *((f"{n:<{side}}", *c) for n, c in zip(names, cells, strict=True) if c)]
    aligned = iter(columns(rows, "<" * len(heads)))
    head = next(aligned)
    lines = [head] if any(cells) else []
    for name, row, reason in zip(names, cells, reasons, strict=True):
        if row:
            lines.append(next(aligned))
        elif reason:
            first, *rest = wrapped(reason, max(30, width - side - 4))
            lines += [f"{name:<{side}}  {first}", *(" " * (side + 2) + line for line in rest)]
    return lines


def _cells(heads: Sequence[str], plan: AnyPlan) -> tuple[str, ...]:
    return tuple(cell(head, plan.deployment) for head in heads)


def _limits(row: Row) -> tuple[str, ...]:
    assert row.plan is not None
    binding = ", ".join(limit_label(use.name) for use in row.plan.limits if use.binds)
    return (binding or "nothing", _loss_text(row.loss_fraction))


def _loss_text(loss_fraction: float | None) -> str:
    """`33.3 %`, and from twice on `2.5 times`."""
    if not loss_fraction:
        return "best"
    return percent(loss_fraction) if loss_fraction < 1 else f"{1 + loss_fraction:.3g} times"


def _certificates(found: Sequence[AnyPlan | Placement], width: int) -> list[str]:
    """One line for all plans, where all are optimal."""
    if not found:
        return []
    proofs = [plan.certificate for plan in found]
    optimal = sum(proof.status == "optimal" for proof in proofs)
    solvers = ", ".join(dict.fromkeys(proof.solver for proof in proofs))
    worst = max(proof.gap for proof in proofs)
    wall_s = sum(proof.wall_s for proof in proofs)
    words = (
        f"{optimal} of {len(found)} optimal, largest gap {percent(worst)}, {solvers}, "
        f"{sum(proof.n_candidates for proof in proofs):,} candidates, every plan verified; "
        f"{show(wall_s, 's')}"
    )
    return [section("certificates", wrapped(words, width - 2))]
