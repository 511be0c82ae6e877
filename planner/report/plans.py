"""A plan for people, whichever runtime it is of."""

from __future__ import annotations

from typing import cast

from planner.report.economics import economics_line, economics_text
from planner.report.engine import engine_line, engine_text
from planner.report.placement import placement_line
from planner.report.terminal import plan_line, plan_text
from planner.results import AnyPlan, Deployment, EnginePlan, ErdilPlan, LayoutPlan
from planner.results.engines import EngineDeployment


def line_of(plan: AnyPlan) -> str:
    """The plan in one line; of replicas of several sorts, where these serve for less."""
    if plan.cheaper_mix is not None:
        return placement_line(plan.cheaper_mix)
    if isinstance(plan.deployment, Deployment):
        return plan_line(cast("LayoutPlan", plan))
    if isinstance(plan.deployment, EngineDeployment):
        return engine_line(cast("EnginePlan", plan))
    return economics_line(cast("ErdilPlan", plan))


def text_of(plan: AnyPlan, width: int) -> str:
    """The whole report, in lines of at most `width` columns."""
    if isinstance(plan.deployment, Deployment):
        return plan_text(cast("LayoutPlan", plan), width)
    if isinstance(plan.deployment, EngineDeployment):
        return engine_text(cast("EnginePlan", plan), width)
    return economics_text(cast("ErdilPlan", plan), width)
