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
    "Audit": ("audits", "judge_audit"),
    "FleetPlan": ("fleets.judging", "judge_fleet"),
    "FleetStaircase": ("fleets.judging", "judge_staircase"),
    "Curves": ("frontiers", "judge_curves"),
    "Comparison": ("comparisons", "judge_comparison"),
    "EngineAudit": ("engine_audits", "judge_engine_audit"),
    "Prediction": ("predictions", "judge_prediction"),
    "LayoutPrediction": ("layout_predictions", "judge_layout_prediction"),
}


def judge_of(record: type) -> Judge | None:
    """Who judges answers of a record; None if nobody can."""
    home = _HOMES.get(record.__name__)
    if home is None:
        return None
    module, name = home
    found: Judge = getattr(import_module(f"planner.verifier.{module}"), name)
    return found
