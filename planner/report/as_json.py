"""Plans, conflicts and errors for machines: every field of the records, in SI units.

Keys are the names of the fields, which name their units. A schema's number rises when a key
goes or changes its meaning; new keys may come. What is not finite is `null`. The schemas
are in docs/schema.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.audit_results import Audit
from planner.economics_results import EconomicsDeployment, EconomicsPlan
from planner.engine_results import EngineAudit, EngineConflict, EngineDeployment, EnginePlan
from planner.errors import PlannerError, RequestError
from planner.expert_results import ExpertPlan
from planner.placement_results import Placement, PlacementConflict, Served
from planner.predictions import OperationLine, Prediction
from planner.repair_results import Repair
from planner.results import Conflict, Deployment, Division, Memory, PhasePlan, Plan, StepTime
from planner.specs.records import (
    ClusterSpec,
    DeviceSpec,
    LinkedFabric,
    ModelSpec,
    NodesFabric,
    TorusFabric,
)
from planner.specs.spans import spans
from planner.staging_results import LayerPlacement, StageLine, StagePlan
from planner.surveys import Comparison, Curve, Frontier

Json = dict[str, Any]

PLAN, CONFLICT, ERROR = "planner.plan/1", "planner.conflict/1", "planner.error/1"
FRONTIERS, COMPARISON = "planner.frontiers/1", "planner.comparison/1"
AUDIT, ECONOMICS = "planner.audit/1", "planner.economics/1"
PREDICTION, DEVICES = "planner.prediction/1", "planner.devices/1"
STAGES, LAYERS = "planner.stages/1", "planner.layers/1"
ENGINE, ENGINE_CONFLICT = "planner.engine/1", "planner.engine-conflict/1"
ENGINE_AUDIT = "planner.engine-audit/1"
EXPERTS = "planner.experts/1"
REPAIR = "planner.repair/1"
PLACEMENT, PLACEMENT_CONFLICT = "planner.placement/1", "planner.placement-conflict/1"

DERIVED: Mapping[type, tuple[str, ...]] = {
    StepTime: ("total_s",),
    Division: ("n_most", "n_copies"),
    PhasePlan: ("tokens_per_s",),
    Memory: ("used_bytes", "free_bytes"),
    Deployment: (
        "summary",
        "n_devices",
        "ttft_s",
        "tpot_s",
        "output_tokens_per_s",
        "served_tokens_per_s",
        "utilization_fraction",
    ),
    ClusterSpec: ("n_devices",),
    ModelSpec: ("n_params", "n_params_served"),
    Plan: ("n_assumed",),
    Frontier: ("at_target", "n_assumed"),
    EconomicsDeployment: ("summary", "n_devices", "output_tokens_per_s"),
    EngineDeployment: ("summary", "n_devices", "device_tokens_per_s"),
    Audit: ("excess",),
    EngineAudit: ("prediction_factor", "errors_off", "cost_factor"),
    ExpertPlan: ("imbalance", "is_proven", "gain_fraction", "moved_bytes"),
    OperationLine: ("total_s",),
    StageLine: ("total_s", "held_bytes"),
    StagePlan: ("summary",),
    LayerPlacement: ("summary",),
    Served: ("share",),
    Repair: ("moved_bytes",),
    Placement: ("n_used", "n_free", "output_tokens_per_s"),
}
"""What records compute from their fields and a reader should not have to."""

KINDS: Mapping[type, str] = {TorusFabric: "torus", NodesFabric: "nodes", LinkedFabric: "linked"}
"""What tells records apart that stand in the same place."""

RANGES = frozenset({"batches", "prefill_batches", "chunks"})
"""Integers that are written as [first, last, step] of each run."""


def plan_json(plan: Plan) -> Json:
    return {"schema": PLAN, **_record(plan)}


def conflict_json(conflict: Conflict) -> Json:
    return {"schema": CONFLICT, **_record(conflict)}


def any_conflict_json(conflict: Conflict | EngineConflict | PlacementConflict) -> Json:
    """A conflict of any way to plan."""
    if isinstance(conflict, Conflict):
        return conflict_json(conflict)
    if isinstance(conflict, PlacementConflict):
        return {"schema": PLACEMENT_CONFLICT, **_record(conflict)}
    return engine_conflict_json(conflict)


def engine_json(plan: EnginePlan) -> Json:
    return {"schema": ENGINE, **_record(plan)}


def engine_conflict_json(conflict: EngineConflict) -> Json:
    return {"schema": ENGINE_CONFLICT, **_record(conflict)}


def prediction_json(prediction: Prediction) -> Json:
    return {"schema": PREDICTION, **_record(prediction)}


def stages_json(plan: StagePlan) -> Json:
    return {"schema": STAGES, **_record(plan)}


def layers_json(placement: LayerPlacement) -> Json:
    return {"schema": LAYERS, **_record(placement)}


def repair_json(repair: Repair) -> Json:
    return {"schema": REPAIR, **_record(repair)}


def placement_json(placement: Placement) -> Json:
    return {"schema": PLACEMENT, **_record(placement)}


def frontiers_json(curves: Sequence[Curve]) -> Json:
    return {"schema": FRONTIERS, "curves": [_record(curve) for curve in curves]}


def comparison_json(comparison: Comparison) -> Json:
    return {"schema": COMPARISON, **_record(comparison)}


def audit_json(audit: Audit) -> Json:
    return {"schema": AUDIT, **_record(audit)}


def devices_json(devices: Sequence[DeviceSpec]) -> Json:
    return {"schema": DEVICES, "devices": [_record(device) for device in devices]}


def engine_audit_json(audit: EngineAudit) -> Json:
    return {"schema": ENGINE_AUDIT, **_record(audit)}


def economics_json(plan: EconomicsPlan) -> Json:
    return {"schema": ECONOMICS, **_record(plan)}


def experts_json(plan: ExpertPlan) -> Json:
    return {"schema": EXPERTS, **_record(plan)}


def error_json(error: BaseException, *, exit_code: int) -> Json:
    """An error other than a conflict; `problems` is empty unless the request cannot be read."""
    kind = type(error).__name__ if isinstance(error, PlannerError) else "InternalError"
    problems = error.problems if isinstance(error, RequestError) else ()
    return {
        "schema": ERROR,
        "kind": kind,
        "exit_code": exit_code,
        "message": str(error) or type(error).__name__,
        "problems": [_record(problem) for problem in problems],
        "hint": error.hint if isinstance(error, RequestError) else "",
    }


def dumps(record: Json) -> str:
    """As text, in ASCII, so that it passes through every terminal and pipe unchanged."""
    return json.dumps(record, indent=2, allow_nan=False)


def _record(record: object) -> Json:
    assert dataclasses.is_dataclass(record)
    kind = KINDS.get(type(record))
    fields = {f.name: _value(getattr(record, f.name), f.name) for f in dataclasses.fields(record)}
    derived = {name: _value(getattr(record, name)) for name in DERIVED.get(type(record), ())}
    return {**({"kind": kind} if kind else {}), **fields, **derived}


def _value(value: object, name: str = "") -> object:
    if dataclasses.is_dataclass(value):
        return _record(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _value(inner) for key, inner in value.items()}
    if isinstance(value, tuple) and name in RANGES:
        return [list(span) for span in spans(value)]
    if isinstance(value, (tuple, list)):
        return [_value(inner) for inner in value]
    return value
