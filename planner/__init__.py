"""Plan deployments of large language models, with proof.

>>> from planner import Targets, load_cluster, load_model, plan
>>> best = plan(
...     load_model("palm-540b"),
...     load_cluster("tpu-v4-4x8x8"),
...     targets=Targets(tpot_s=0.030),
... )
>>> best.deployment.mesh.label
'4×4×4'

Names are imported when they are first used, so that `import planner` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.commands.sweeping.sweeps import Sweep, sweep
    from planner.errors import (
        NoPlanError,
        OutOfTimeError,
        PlannerError,
        RequestError,
        SolverError,
        SpecError,
    )
    from planner.placing.fleets.answering import fleet, fleet_staircase
    from planner.placing.planning import place
    from planner.placing.repairing import repair
    from planner.planning.comparing import compare, frontiers
    from planner.planning.engine_audit import audit_engine
    from planner.planning.pareto import frontier
    from planner.planning.plans import plan
    from planner.planning.verification import verify
    from planner.report.as_json import answer_json
    from planner.report.saved import load_placement
    from planner.results.deployments import Deployment
    from planner.results.engines import EngineAudit
    from planner.results.experts import ExpertPlan
    from planner.results.fleets import FleetPlan, FleetStaircase
    from planner.results.listings import Verification
    from planner.results.obstacles import PlacementConflict
    from planner.results.placements import Placement
    from planner.results.plans import Conflict, Plan
    from planner.results.repairs import Repair
    from planner.results.staging import LayerPlacement, StagePlan, StagingConflict
    from planner.results.surveys import Comparison, Curve, Frontier, FrontierPoint
    from planner.specs.ask.placement import Serve
    from planner.specs.ask.request import Request
    from planner.specs.ask.targets import SolverOptions, Targets
    from planner.specs.files.engines import changed_rules, engine_memory
    from planner.specs.files.layer_files import LayersSpec, load_layers
    from planner.specs.files.pools import PoolSpec, load_pool
    from planner.specs.files.reading import load_architecture, load_cluster, load_device, load_model
    from planner.specs.files.reading import load_cluster as load_topology
    from planner.specs.files.state import State, load_state
    from planner.specs.records.certificates import Certificate
    from planner.specs.records.devices import ClusterSpec, DeviceSpec, ModelSpec, Workload
    from planner.specs.traffic.building import traffic_class
    from planner.specs.traffic.reading import load_traffic
    from planner.specs.traffic.records import FleetTraffic, TrafficClass
    from planner.specs.traffic.trace_files import load_trace
    from planner.tools.experts.placing import place_experts
    from planner.tools.staging.asking import cut_stages
    from planner.tools.staging.placing import place_layers

_HOMES = {
    "plan": "planner.planning.plans",
    "audit_engine": "planner.planning.engine_audit",
    "EngineAudit": "planner.results.engines",
    "place_experts": "planner.tools.experts.placing",
    "ExpertPlan": "planner.results.experts",
    "place": "planner.placing.planning",
    "repair": "planner.placing.repairing",
    "Repair": "planner.results.repairs",
    "Serve": "planner.specs.ask.placement",
    "Placement": "planner.results.placements",
    "PlacementConflict": "planner.results.obstacles",
    "PoolSpec": "planner.specs.files.pools",
    "load_pool": "planner.specs.files.pools",
    "State": "planner.specs.files.state",
    "load_state": "planner.specs.files.state",
    "changed_rules": "planner.specs.files.engines",
    "engine_memory": "planner.specs.files.engines",
    "fleet": "planner.placing.fleets.answering",
    "fleet_staircase": "planner.placing.fleets.answering",
    "FleetPlan": "planner.results.fleets",
    "FleetStaircase": "planner.results.fleets",
    "FleetTraffic": "planner.specs.traffic.records",
    "TrafficClass": "planner.specs.traffic.records",
    "traffic_class": "planner.specs.traffic.building",
    "load_traffic": "planner.specs.traffic.reading",
    "load_trace": "planner.specs.traffic.trace_files",
    "frontier": "planner.planning.pareto",
    "frontiers": "planner.planning.comparing",
    "compare": "planner.planning.comparing",
    "load_model": "planner.specs.files.reading",
    "load_architecture": "planner.specs.files.reading",
    "load_cluster": "planner.specs.files.reading",
    "load_device": "planner.specs.files.reading",
    "ModelSpec": "planner.specs.records.models",
    "ClusterSpec": "planner.specs.records.devices",
    "DeviceSpec": "planner.specs.records.devices",
    "Workload": "planner.specs.records.devices",
    "Request": "planner.specs.ask.request",
    "SolverOptions": "planner.specs.ask.targets",
    "Targets": "planner.specs.ask.targets",
    "Plan": "planner.results.plans",
    "Deployment": "planner.results.deployments",
    "Certificate": "planner.specs.records.certificates",
    "Conflict": "planner.results.plans",
    "Frontier": "planner.results.surveys",
    "FrontierPoint": "planner.results.surveys",
    "Curve": "planner.results.surveys",
    "Comparison": "planner.results.surveys",
    "cut_stages": "planner.tools.staging.asking",
    "place_layers": "planner.tools.staging.placing",
    "load_layers": "planner.specs.files.layer_files",
    "LayersSpec": "planner.specs.files.layer_files",
    "StagePlan": "planner.results.staging",
    "LayerPlacement": "planner.results.staging",
    "StagingConflict": "planner.results.staging",
    "PlannerError": "planner.errors",
    "RequestError": "planner.errors",
    "SpecError": "planner.errors",
    "NoPlanError": "planner.errors",
    "OutOfTimeError": "planner.errors",
    "SolverError": "planner.errors",
    "answer_json": "planner.report.as_json",
    "load_placement": "planner.report.saved",
    "sweep": "planner.commands.sweeping.sweeps",
    "Sweep": "planner.commands.sweeping.sweeps",
    "verify": "planner.planning.verification",
    "Verification": "planner.results.listings",
}
_ALIASES = {"load_topology": "load_cluster"}

__all__ = [
    "Certificate",
    "ClusterSpec",
    "Comparison",
    "Conflict",
    "Curve",
    "Deployment",
    "DeviceSpec",
    "EngineAudit",
    "ExpertPlan",
    "FleetPlan",
    "FleetStaircase",
    "FleetTraffic",
    "Frontier",
    "FrontierPoint",
    "LayerPlacement",
    "LayersSpec",
    "ModelSpec",
    "NoPlanError",
    "OutOfTimeError",
    "Placement",
    "PlacementConflict",
    "Plan",
    "PlannerError",
    "PoolSpec",
    "Repair",
    "Request",
    "RequestError",
    "Serve",
    "SolverError",
    "SolverOptions",
    "SpecError",
    "StagePlan",
    "StagingConflict",
    "State",
    "Sweep",
    "Targets",
    "TrafficClass",
    "Verification",
    "Workload",
    "answer_json",
    "audit_engine",
    "changed_rules",
    "compare",
    "cut_stages",
    "engine_memory",
    "fleet",
    "fleet_staircase",
    "frontier",
    "frontiers",
    "load_architecture",
    "load_cluster",
    "load_device",
    "load_layers",
    "load_model",
    "load_placement",
    "load_pool",
    "load_state",
    "load_topology",
    "load_trace",
    "load_traffic",
    "place",
    "place_experts",
    "place_layers",
    "plan",
    "repair",
    "sweep",
    "traffic_class",
    "verify",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("llm-serving-planner")
    name = _ALIASES.get(name, name)
    if name not in _HOMES:
        raise AttributeError(f"module `planner` has no attribute `{name}`")
    value: object = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__
