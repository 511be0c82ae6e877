"""A comparison counted anew: the plan of every row, which is the best, what the others lose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from planner.quantities import objective_of
from planner.results import AnyPlan
from planner.results.surveys import Comparison, Row
from planner.verifier.cases import misnamed
from planner.verifier.findings import Finding, Path, differences, with_differences
from planner.verifier.plans import judge_plan
from planner.verifier.runtimes.counting import counting_of

ALIKE = ("workload", "targets")
"""What all rows are asked alike."""


def judge_comparison(says: Comparison) -> tuple[Comparison, list[Finding]]:
    """The comparison that is true of its plans, and everything in this one that is not so."""
    wrong: list[Finding] = []
    plans: list[AnyPlan | None] = []
    first = next((row.plan for row in says.rows if row.plan), None)
    for i, row in enumerate(says.rows):
        here: Path = ("rows", str(i))
        if row.plan is None:  # that there is none is proved
            plans.append(None)
            continue
        plan, more = judge_plan(row.plan)
        plans.append(plan)
        wrong += [one.below((*here, "plan")) for one in more]
        runtime = counting_of(row.plan.request).runtime
        wrong += misnamed(row.case, row.plan.request, runtime, (*here, "case"))
        if first is not None:
            wrong += _unlike(row.plan, first, (*here, "plan", "request"))
    objective = first.request.objective if first else says.objective
    rows, best = _ranked(says, plans, objective)
    truth = replace(says, objective=objective, rows=rows, best=best)
    return truth, with_differences(wrong, says, truth)


def _ranked(
    says: Comparison, plans: list[AnyPlan | None], objective: str
) -> tuple[tuple[Row, ...], int | None]:
    """The rows, each with what it loses of the best one; and which that is, the first of equals."""
    values = [objective_of(objective).told(plan.deployment) if plan else None for plan in plans]
    known = [value for value in values if value is not None]
    best = (max if objective_of(objective).is_rate else min)(known, default=None)
    rows: list[Row] = []
    for row, plan, value in zip(says.rows, plans, values, strict=True):
        reason = row.reason if plan is None else ""
        rows.append(replace(row, plan=plan, loss_fraction=_lost(value, best), reason=reason))
    return tuple(rows), None if best is None else values.index(best)


def _lost(value: float | None, best: float | None) -> float | None:
    if value is None or best is None:
        return None
    return abs(value - best) / abs(best) if best else 0.0


def _unlike(plan: AnyPlan, first: AnyPlan, path: Path) -> Iterator[Finding]:
    """What a row was asked that the first was not: only then can they be set side by side."""
    mine, other = plan.request, first.request
    if mine.objective != other.objective:
        yield Finding(path=(*path, "objective"), says=mine.objective, found=other.objective)
    both = {field.name for field in fields(mine)} & {field.name for field in fields(other)}
    for name in ALIKE:
        if name in both:
            yield from differences(getattr(mine, name), getattr(other, name), (*path, name))
