"""What the reports of several plans call things."""

from __future__ import annotations

from collections.abc import Sequence

from planner.quantities import axis_of, objective_of
from planner.report.outlines import speed_text
from planner.results.surveys import Case, Frontier, FrontierPoint
from planner.units import show


def case_label(case: Case, cases: Sequence[Case]) -> str:
    """What tells a case from the others; of a single one, its model and pool."""
    parts = (
        (case.model, {one.model for one in cases}),
        (case.topology, {one.topology for one in cases}),
        (case.weights, {one.weights for one in cases}),
        (f"{case.kv} KV", {one.kv for one in cases}),
        (case.engine, {one.engine for one in cases}),
        (case.roles, {one.roles for one in cases}),
    )
    told = [text for text, seen in parts if len(seen) > 1]
    return ", ".join(told) or f"{case.model} on {case.topology}"


def cases_text(cases: Sequence[Case]) -> str:
    """All models and pools: `llama-3.1-70b on h100-nvl8-x4, h200-nvl8-x4`."""
    models = ", ".join(dict.fromkeys(case.model for case in cases))
    engines = ", ".join(dict.fromkeys(case.engine for case in cases if case.engine))
    under = f" under {engines}" if engines else ""
    return f"{models} on {', '.join(dict.fromkeys(case.topology for case in cases))}{under}"


def survey_title(cases: Sequence[Case], frontier: Frontier) -> str:
    """`palm-540b on tpu-v4-4x8x8: cost per token against speed per user`."""
    axes = f"{axis_of(frontier.y_name).words} against {axis_of(frontier.x_name).words}"
    return f"{cases_text(cases)}: {axes}"


ECONOMICS_WORDS = "of Erdil 2025, its degrees of parallelism as integers: decode only"
"""What the other cost model is."""


def preferred_text(frontier: Frontier) -> str:
    """Why a point is preferred."""
    speed = "speed" if frontier.x_name == "latency" else "(1/TTFT)"
    price = axis_of(frontier.y_name).price
    return f"preferred: the most {speed}^{frontier.alpha:g} / {price}"


def axis_targets(frontier: Frontier) -> list[tuple[bool, float, str]]:
    """Targets on the axes: whether on x, the value in SI, and its text."""
    asked = frontier.request.targets.limits()
    sides = ((True, objective_of(frontier.x_name)), (False, objective_of(frontier.y_name)))
    return [
        (is_x, asked[one.name], f"{one.label} {one.limit_text(asked[one.name])}")
        for is_x, one in sides
        if one.name in asked
    ]


def best_text(frontier: Frontier) -> str:
    """What is best of the points within the targets."""
    return "the most throughput" if objective_of(frontier.y_name).is_rate else "the cheapest"


def end_text(frontier: Frontier, point: FrontierPoint) -> str:
    """Both quantities of a point: `43.9 token/s at $234/Mtoken`."""
    is_speed = frontier.x_name == "latency"
    x = speed_text(point.deployment) if is_speed else f"TTFT {show(point.x, 's')}"
    return f"{x} at {show(point.y, frontier.y_dimension)}"


def ends_text(frontier: Frontier) -> str:
    """From the slowest point to the fastest."""
    first, last = frontier.points[0], frontier.points[-1]
    return f"{end_text(frontier, first)} to {end_text(frontier, last)}"


def at_target(frontier: Frontier) -> int | None:
    """Index of the cheapest point within targets on the axes; `None` without such targets too."""
    return frontier.at_target if axis_targets(frontier) else None
