"""JSON Schemas of what `as_json` writes, from the types of the records.

docs/schema holds them; a test compares, so that no field comes or goes unseen.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planner.audit_results import Audit
from planner.economics_results import EconomicsPlan
from planner.engine_results import EngineAudit, EngineConflict, EnginePlan
from planner.errors import Problem
from planner.expert_results import ExpertPlan
from planner.placement_results import Placement, PlacementConflict
from planner.predictions import Prediction
from planner.repair_results import Repair
from planner.report.as_json import (
    AUDIT,
    COMPARISON,
    CONFLICT,
    DERIVED,
    DEVICES,
    ECONOMICS,
    ENGINE,
    ENGINE_AUDIT,
    ENGINE_CONFLICT,
    ERROR,
    EXPERTS,
    FRONTIERS,
    KINDS,
    LAYERS,
    PLACEMENT,
    PLACEMENT_CONFLICT,
    PLAN,
    PREDICTION,
    RANGES,
    REPAIR,
    STAGES,
)
from planner.results import Conflict, Plan
from planner.specs.records import DeviceSpec
from planner.staging_results import LayerPlacement, StagePlan
from planner.surveys import Comparison, Curve

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[type, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null: not finite
    str: {"type": "string"},
}
_SPANS: Schema = {
    "description": "[first, last, step] of each run of integers",
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3},
}


def plan_schema() -> Schema:
    return _document(PLAN, Plan)


def conflict_schema() -> Schema:
    return _document(CONFLICT, Conflict)


def audit_schema() -> Schema:
    return _document(AUDIT, Audit)


def economics_schema() -> Schema:
    return _document(ECONOMICS, EconomicsPlan)


def engine_schema() -> Schema:
    return _document(ENGINE, EnginePlan)


def engine_audit_schema() -> Schema:
    return _document(ENGINE_AUDIT, EngineAudit)


def engine_conflict_schema() -> Schema:
    return _document(ENGINE_CONFLICT, EngineConflict)


def prediction_schema() -> Schema:
    return _document(PREDICTION, Prediction)


def experts_schema() -> Schema:
    return _document(EXPERTS, ExpertPlan)


def stages_schema() -> Schema:
    return _document(STAGES, StagePlan)


def layers_schema() -> Schema:
    return _document(LAYERS, LayerPlacement)


def repair_schema() -> Schema:
    return _document(REPAIR, Repair)


def placement_schema() -> Schema:
    return _document(PLACEMENT, Placement)


def placement_conflict_schema() -> Schema:
    return _document(PLACEMENT_CONFLICT, PlacementConflict)


def comparison_schema() -> Schema:
    return _document(COMPARISON, Comparison)


def frontiers_schema() -> Schema:
    definitions: dict[str, Schema] = {}
    curves: Schema = {"type": "array", "items": _type(Curve, definitions)}
    properties: dict[str, Schema] = {"schema": {"const": FRONTIERS}, "curves": curves}
    return _titled(FRONTIERS, _object(properties), definitions)


def devices_schema() -> Schema:
    definitions: dict[str, Schema] = {}
    devices: Schema = {"type": "array", "items": _type(DeviceSpec, definitions)}
    properties: dict[str, Schema] = {"schema": {"const": DEVICES}, "devices": devices}
    return _titled(DEVICES, _object(properties), definitions)


def error_schema() -> Schema:
    definitions: dict[str, Schema] = {}
    problem = _type(Problem, definitions)
    properties = {
        "schema": {"const": ERROR},
        "kind": _SCALARS[str],
        "exit_code": _SCALARS[int],
        "message": _SCALARS[str],
        "problems": {"type": "array", "items": problem},
        "hint": _SCALARS[str],
    }
    return _titled(ERROR, _object(properties), definitions)


def _document(name: str, record: type) -> Schema:
    definitions: dict[str, Schema] = {}
    _type(record, definitions)
    root = definitions.pop(record.__name__)
    properties = {"schema": {"const": name}, **root["properties"]}
    return _titled(name, {**root, **_object(properties)}, definitions)


def _titled(name: str, root: Schema, definitions: dict[str, Schema]) -> Schema:
    named = dict(sorted(definitions.items()))
    return {"$schema": _DIALECT, "title": name, **root, "$defs": named}


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _type(annotation: Any, definitions: dict[str, Schema]) -> Schema:  # noqa: ANN401
    """The schema of a type; records are defined once and referred to."""
    if dataclasses.is_dataclass(annotation):
        assert isinstance(annotation, type)
        if annotation.__name__ not in definitions:
            definitions[annotation.__name__] = {}  # a record may hold itself
            definitions[annotation.__name__] = _properties(annotation, definitions)
        return {"$ref": f"#/$defs/{annotation.__name__}"}
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return {"enum": list(inner)}
    if get_origin(annotation) in (Union, types.UnionType):
        return {"anyOf": [_type(one, definitions) for one in inner]}
    if annotation is type(None):
        return {"type": "null"}
    if get_origin(annotation) is tuple:
        if inner[-1] is Ellipsis:
            return {"type": "array", "items": _type(inner[0], definitions)}
        size = {"minItems": len(inner), "maxItems": len(inner)}
        if len(set(inner)) > 1:
            each = [_type(one, definitions) for one in inner]
            return {"type": "array", "prefixItems": each, **size}
        return {"type": "array", "items": _type(inner[0], definitions), **size}
    assert issubclass(get_origin(annotation), Mapping), annotation
    return {"type": "object", "additionalProperties": _type(inner[1], definitions)}


def _properties(record: type, definitions: dict[str, Schema]) -> Schema:
    hints = get_type_hints(record)
    properties: dict[str, Schema] = {}
    if record in KINDS:
        properties["kind"] = {"const": KINDS[record]}
    for field in dataclasses.fields(record):
        name = field.name
        properties[name] = _SPANS if name in RANGES else _type(hints[name], definitions)
    for name in DERIVED.get(record, ()):
        returned = get_type_hints(getattr(record, name).fget)["return"]
        properties[name] = _type(returned, definitions)
    about = (record.__doc__ or "").split("\n")[0]
    return {"description": about, **_object(properties)}
