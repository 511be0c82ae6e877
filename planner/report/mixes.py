"""Replicas of several sorts beside a plan of replicas that are all alike."""

from __future__ import annotations

from planner.quantities import objective_of
from planner.report.lines import percent, wrapped
from planner.report.placement import placement_line, recipe_lines
from planner.report.proof import status_text
from planner.results import AnyPlan
from planner.units import show

PLACES = "`plan place` shows where they lie"


def mix_head(plan: AnyPlan, width: int) -> list[str]:
    """That others serve the demand for less, in a line or two; nothing where none do."""
    if plan.mix is None:
        return []
    reached = plan.mix.certificate.objective
    alike = {"devices": float(plan.deployment.n_devices)}.get(
        plan.mix.certificate.objective_name, plan.deployment.usd_per_hour
    )
    words = f"for {percent(1.0 - reached / alike)} less, replicas of several sorts (`mix`, below): "
    return wrapped(words + placement_line(plan.mix), width)


def mix_lines(plan: AnyPlan, width: int) -> list[str]:
    """The replicas of several sorts that serve a demand for less, or that none do."""
    if plan.mix_bound is None:
        return []
    quantity = objective_of(plan.request.objective)
    least = show(plan.mix_bound, quantity.dimension)
    if plan.mix is None:
        words = "no replicas, of however many sorts and on whatever devices, serve it for less than"
        return wrapped(f"{words} {least}", width - 2)
    return [
        *recipe_lines(plan.mix, width),
        *wrapped(
            f"{status_text(plan.mix.certificate)}; `plan place` shows where they lie", width - 2
        ),
    ]
