"""Which verifier judges which kind of answer; each is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from planner.verifier.findings import Finding

Judge = Callable[[Any], tuple[Any, list[Finding]]]
"""From an answer to the one that is true of what was chosen, and all that is not so in it."""

_HOMES = {
    "Plan": ("plans", "judge_plan"),
    "Placement": ("placements", "judge_placement"),
    "Repair": ("repairs", "judge_repair_whole"),
    "ExpertPlan": ("expert_plans", "judge_experts"),
    "StagePlan": ("stage_plans", "judge_stages"),
    "LayerPlacement": ("layer_placements", "judge_layers"),
    "EngineAudit": ("engine_plans", "judge_engine_audit"),
    "Prediction": ("predictions", "judge_prediction"),
}


_OF_DEPLOYMENTS = {
    "Deployment": ("plans", "judge_plan"),
    "EngineDeployment": ("engine_plans", "judge_engine_plan"),
}
"""Who judges a plan, by what it deploys."""


def judge_for(answer: object) -> Judge | None:
    """Who judges an answer; None if nobody does yet."""
    deployment = getattr(answer, "deployment", None)
    if type(answer).__name__ != "Plan":
        return judge_of(type(answer))
    home = _OF_DEPLOYMENTS.get(type(deployment).__name__)
    return _loaded(home) if home else None


def judge_of(record: type) -> Judge | None:
    """Who judges answers of a record; None if nobody does yet."""
    home = _HOMES.get(record.__name__)
    if home is None:
        return None
    return _loaded(home)


def _loaded(home: tuple[str, str]) -> Judge:
    module, name = home
    found: Judge = getattr(import_module(f"planner.verifier.{module}"), name)
    return found
