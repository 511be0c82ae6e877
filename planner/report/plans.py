"""A plan for people, whichever runtime it is of; reports of other runtimes are not imported."""

from __future__ import annotations

from importlib import import_module

from planner.results import AnyPlan
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment


def line_of(plan: AnyPlan) -> str:
    """The plan in one line; of replicas of several sorts, where these serve for less."""
    if plan.cheaper_mix is not None:
        from planner.report.placement import placement_line

        return placement_line(plan.cheaper_mix)
    return str(_written(plan, "line", plan))


def text_of(plan: AnyPlan, width: int) -> str:
    """The whole report, in lines of at most `width` columns."""
    return str(_written(plan, "text", plan, width))


def _written(plan: AnyPlan, form: str, *arguments: object) -> object:
    """What the reports of a plan's runtime say in a form, `line` or `text`."""
    module, of = "economics", "economics"
    if isinstance(plan.deployment, Deployment):
        module, of = "terminal", "plan"
    elif isinstance(plan.deployment, EngineDeployment):
        module, of = "engine", "engine"
    return getattr(import_module(f"planner.report.{module}"), f"{of}_{form}")(*arguments)
