"""Replicas of several sorts beside a plan of replicas that are all alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.report.lines import percent, wrapped
from planner.report.proof import status_text
from planner.results import AnyPlan
from planner.units import show

if TYPE_CHECKING:
    from planner.results.placements import Placement


def mix_head(plan: AnyPlan, width: int) -> list[str]:
    """That others serve the demand for less, in a line or two; nothing where none do."""
    mix = plan.cheaper_mix
    if mix is None:
        return []
    from planner.report.placement import placement_line

    gain = percent(1.0 - plan.of_alike(mix))
    words = f"for {gain} less, replicas of several sorts (`mix`, below): {placement_line(mix)}"
    return wrapped(words, width)


def mix_lines(plan: AnyPlan, width: int) -> list[str]:
    """The replicas of several sorts that serve a demand for less, or how it is known of none."""
    mix = plan.mix
    if mix is None:
        return []
    if plan.cheaper_mix is None:
        return wrapped(_none(plan, mix), width - 2)
    from planner.report.placement import recipe_lines

    words = f"{status_text(mix.certificate)}; `plan place` shows where they lie"
    return [*recipe_lines(mix, width), *wrapped(words, width - 2)]


def _none(plan: AnyPlan, mix: Placement) -> str:
    """That alike replicas are the cheapest, or that no cheaper ones were found."""
    proof = mix.certificate
    sure = proof.vouched_bound
    if not sure:  # that nothing is cheaper than nothing bounds nothing
        return "no cheaper replicas of several sorts were found; nothing bounds them"
    alike = proof.objective / plan.of_alike(mix)
    least = show(min(sure, alike), proof.dimension)
    if sure >= alike * (1.0 - plan.request.options.gap - 1e-9):
        return f"`plan place` proves that no replicas of several sorts serve it for less: {least}"
    return f"no cheaper replicas of several sorts were found; `plan place` has none below {least}"
