"""Answers in one line, whatever they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.report.audit import audit_line
from planner.report.comparison import best_line
from planner.report.engine_audit import engine_audit_line
from planner.report.experts import experts_line
from planner.report.fleets.staircases import staircase_line
from planner.report.fleets.text import fleet_line
from planner.report.frontiers import preferred_line
from planner.report.layers import layers_line
from planner.report.placement import placement_line
from planner.report.plans import line_of
from planner.report.prediction import prediction_line
from planner.report.repair import repair_line
from planner.report.stages import stages_line
from planner.results import Plan
from planner.results.audits import Audit
from planner.results.engines import EngineAudit
from planner.results.experts import ExpertPlan
from planner.results.fleets import FleetPlan, FleetStaircase
from planner.results.placements import Placement
from planner.results.predictions import Prediction
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StagePlan
from planner.results.surveys import Comparison, Curves


def curves_line(answer: Curves) -> str:
    """The preferred plan of each curve."""
    return "; ".join(preferred_line(one, answer.curves) for one in answer.curves)


_LINES: Mapping[type, Callable[[Any], str]] = {
    Plan: line_of,
    Placement: placement_line,
    Repair: repair_line,
    FleetPlan: fleet_line,
    FleetStaircase: staircase_line,
    ExpertPlan: experts_line,
    StagePlan: stages_line,
    LayerPlacement: layers_line,
    Audit: audit_line,
    EngineAudit: engine_audit_line,
    Prediction: prediction_line,
    Curves: curves_line,
    Comparison: best_line,
}


def summary_of(answer: object) -> str:
    """An answer in one line.

    Raises:
        KeyError: it is of a kind that has none.
    """
    return _LINES[type(answer)](answer)
