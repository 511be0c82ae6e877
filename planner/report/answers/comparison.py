"""Plans of several cases side by side: what to run, what it does, what it loses to the best."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

from planner.quantities.table import objective_of
from planner.quantities.units import show
from planner.report import outlines
from planner.report.answers import economics, layouts
from planner.report.answers.placement import line_of as placement_line, slowest
from planner.report.answers.plan_parts import start_section, wish_rows
from planner.report.documents.blocks import Cell, Document, Figure, Note, Pairs, Table, section
from planner.report.engine_requests import engine_rows
from planner.report.proof import prover_name
from planner.report.words import limit_label, percent
from planner.results.engines import EngineDeployment
from planner.results.placements import Placement
from planner.results.plans import AnyPlan, ErdilPlan
from planner.results.surveys import Comparison, Row
from planner.specs.ask.engine import EngineRequest
from planner.specs.ask.request import Request
from planner.specs.records.roles import ROLES

_DOES = ("TPOT", "TTFT", "cost", "tokens/s")
_LIMITS = ("binds", "loses")


def document(comparison: Comparison) -> Document:
    """What to run in each case, what it does, what it loses to the best."""
    rows = comparison.rows
    cases = [row.case for row in rows]
    answers = [row.answer for row in rows if row.answer is not None]
    aim, line = objective_of(comparison.objective).aim, line_of(comparison)
    best = None if comparison.best is None else comparison.rows[comparison.best].plan
    starts = []
    if best is not None and isinstance(best.deployment, EngineDeployment):
        starts.append((best.deployment.launch, "the best is"))
    are_placed = any(isinstance(one, Placement) for one in answers)
    title = f"{outlines.cases_text(cases)}: {aim}"
    return Document(
        title=title,
        line=line,
        head=(Note(f"{title}:"), Note(line)),
        sections=(
            section("request", Pairs(_request_rows(comparison) if answers else [])),
            section("replicas", _placed_table(rows))
            if are_placed
            else section("plans", _table(rows)),
            section("certificates", *_certificates(answers)),
            start_section(*starts),
        ),
    )


def _request_rows(comparison: Comparison) -> list[tuple[str, str]]:
    """What was asked of all rows."""
    rows = comparison.rows
    placed = [row.placement for row in rows if row.placement is not None]
    if placed:
        return wish_rows(placed[-1].request)
    plan = next(row.plan for row in rows if row.plan is not None)
    request, without = plan.request, {"weights"}
    if len(rows) > 1:
        without |= {"model", "pool", "engine", "formats"}
    if isinstance(request, Request):
        return layouts.request_rows(request, without=without)
    if isinstance(request, EngineRequest):
        return [row for row in engine_rows(request) if row[0] not in without]
    return economics.request_rows(request, cast("ErdilPlan", plan), without)


def line_of(comparison: Comparison) -> str:
    if comparison.best is None:
        return "no plan"
    row = comparison.rows[comparison.best]
    label = outlines.case_label(row.case, [one.case for one in comparison.rows])
    if row.placement is not None:
        return f"{label}: {placement_line(row.placement)}"
    assert row.plan is not None
    best = row.plan.deployment
    return f"{label}: {best.summary}: {outlines.headline_of(best)}"


def _table(rows: Sequence[Row]) -> Table:
    """What to run, then what it does; a case without a plan has its reason instead."""
    plans = [row.plan for row in rows if row.plan]
    if not plans:
        return _cases(rows, (), list(map(_no_plan, rows)))
    deployments = [plan.deployment for plan in plans]
    unsaid = {
        "engine": all(row.case.engine for row in rows),  # names of rows say it
        "TTFT": not all(map(outlines.has_prefill, deployments)),
    }
    what, how = (
        [head for head in heads if not unsaid.get(head)]
        for heads in (outlines.run_heads(deployments, [plan.request for plan in plans]), _DOES)
    )
    told = [_planned(row, (*what, *how)) for row in rows]
    return _cases(rows, (*what, *how, *_LIMITS), told, splits=1 + len(what))


def _planned(row: Row, heads: Sequence[str]) -> tuple[Cell, ...]:
    """Cells of a plan, or why there is none."""
    if row.plan is None:
        return _no_plan(row)
    return (*(outlines.cell(head, row.plan.deployment) for head in heads), *_limits(row, row.plan))


def _no_plan(row: Row) -> tuple[str]:
    return (f"no plan: {row.reason}",)


def _placed_table(rows: Sequence[Row]) -> Table:
    """What replicas of each case there are, and what they do together."""
    heads = ("replicas", "devices", "TPOT", "TTFT", "rent", "loses")
    told = [
        _placed(row.placement, row.loss_fraction) if row.placement else _no_plan(row)
        for row in rows
    ]
    return _cases(rows, heads, told)


def _cases(
    rows: Sequence[Row], heads: Sequence[str], told: Sequence[Sequence[Cell]], splits: int = 0
) -> Table:
    """What is told of each case, behind its name."""
    cases = [row.case for row in rows]
    named = [
        (outlines.case_label(one, cases), *cells) for one, cells in zip(cases, told, strict=True)
    ]
    whole = ("", *heads) if heads else ()
    return Table(heads=whole, rows=named, wraps=not heads, splits=splits, sorts=bool(heads))


def _placed(placement: Placement, loss_fraction: float | None) -> tuple[Cell, ...]:
    """Cells of a placement; times are those of its slowest replicas."""
    roles = Counter(placement.recipes[one.recipe].role for one in placement.replicas)
    return (
        " + ".join(f"{roles[role]} {role}" for role in ROLES if role in roles),
        str(placement.n_used),
        *slowest(placement),
        show(placement.used("rent"), "USD/h"),
        _loss(loss_fraction),
    )


def _limits(row: Row, plan: AnyPlan) -> tuple[str, Figure]:
    binding = ", ".join(limit_label(use.name) for use in plan.limits if use.binds)
    return (binding or "nothing", _loss(row.loss_fraction))


def _loss(loss_fraction: float | None) -> Figure:
    """`33.3 %`, and from twice on `2.5 times`."""
    lost = loss_fraction or 0.0
    text = percent(lost) if lost < 1 else f"{1 + lost:.3g} times"
    return Figure(text if lost else "best", lost)


def _certificates(answers: Sequence[AnyPlan | Placement]) -> list[Note]:
    """One line for all plans, where all are optimal."""
    if not answers:
        return []
    proofs = [plan.certificate for plan in answers]
    optimal = sum(proof.status == "optimal" for proof in proofs)
    solvers = ", ".join(dict.fromkeys(prover_name(proof.solver) for proof in proofs))
    worst = max(proof.gap for proof in proofs)
    wall_s = sum(proof.wall_s for proof in proofs)
    words = (
        f"{optimal} of {len(answers)} optimal, largest gap {percent(worst)}, by {solvers}; "
        f"{sum(proof.n_candidates for proof in proofs):,} candidates, every plan verified; "
        f"{show(wall_s, 's')}"
    )
    return [Note(words)]
