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

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # read at run time too, by `_homes`
    from planner.commands.requests import predict as predict
    from planner.commands.sweeping.sweeps import Sweep as Sweep, sweep as sweep
    from planner.errors import (
        NoPlanError as NoPlanError,
        OutOfTimeError as OutOfTimeError,
        PlannerError as PlannerError,
        RequestError as RequestError,
        SolverError as SolverError,
        SpecError as SpecError,
    )
    from planner.placing.fleets.answering import fleet as fleet, fleet_staircase as fleet_staircase
    from planner.placing.planning import place as place
    from planner.placing.repairing import repair as repair
    from planner.planning.comparing import compare as compare, frontiers as frontiers
    from planner.planning.engine_audit import audit_engine as audit_engine
    from planner.planning.pareto import frontier as frontier
    from planner.planning.plans import plan as plan
    from planner.planning.verification import verify as verify
    from planner.report.as_json import answer_json as answer_json
    from planner.report.saved import load_placement as load_placement
    from planner.results.audits import LayoutPrediction as LayoutPrediction
    from planner.results.conflicts import (
        Conflict as Conflict,
        PlacementConflict as PlacementConflict,
    )
    from planner.results.deployments import Deployment as Deployment
    from planner.results.engines import EngineAudit as EngineAudit
    from planner.results.experts import ExpertPlan as ExpertPlan
    from planner.results.fleets import FleetPlan as FleetPlan, FleetStaircase as FleetStaircase
    from planner.results.listings import Verification as Verification
    from planner.results.placements import Placement as Placement
    from planner.results.plans import Plan as Plan
    from planner.results.predictions import Prediction as Prediction
    from planner.results.repairs import Repair as Repair
    from planner.results.staging import (
        LayerPlacement as LayerPlacement,
        StagePlan as StagePlan,
        StagingConflict as StagingConflict,
    )
    from planner.results.surveys import (
        Comparison as Comparison,
        Curve as Curve,
        Frontier as Frontier,
        FrontierPoint as FrontierPoint,
    )
    from planner.specs.ask.calibrations import (
        calibrated as calibrated,
        load_calibrations as load_calibrations,
    )
    from planner.specs.ask.placement import Serve as Serve
    from planner.specs.ask.request import Request as Request
    from planner.specs.ask.targets import SolverOptions as SolverOptions, Targets as Targets
    from planner.specs.files.engines import (
        changed_rules as changed_rules,
        engine_memory as engine_memory,
    )
    from planner.specs.files.layer_files import LayersSpec as LayersSpec, load_layers as load_layers
    from planner.specs.files.pools import load_site as load_site
    from planner.specs.files.reading import (
        load_architecture as load_architecture,
        load_cluster as load_cluster,
        load_device as load_device,
        load_model as load_model,
    )
    from planner.specs.files.servers import PoolSpec as PoolSpec, load_pool as load_pool
    from planner.specs.files.state import State as State, load_state as load_state
    from planner.specs.files.what_if import what_if as what_if
    from planner.specs.records.certificates import Certificate as Certificate
    from planner.specs.records.devices import (
        ClusterSpec as ClusterSpec,
        DeviceSpec as DeviceSpec,
        Workload as Workload,
    )
    from planner.specs.records.models import ModelSpec as ModelSpec
    from planner.specs.traffic.building import traffic_class as traffic_class
    from planner.specs.traffic.reading import load_traffic as load_traffic
    from planner.specs.traffic.records import (
        FleetTraffic as FleetTraffic,
        TrafficClass as TrafficClass,
    )
    from planner.specs.traffic.trace_files import load_trace as load_trace
    from planner_workshop.experts.placing import place_experts as place_experts
    from planner_workshop.staging.asking import cut_stages as cut_stages
    from planner_workshop.staging.placing import place_layers as place_layers

    load_topology = load_cluster


@cache
def _homes() -> Mapping[str, tuple[str, str]]:
    """Names of the library: the module that makes each, and what it is called there."""
    import ast
    from pathlib import Path

    imports = ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
    made = [node for node in imports if isinstance(node, ast.ImportFrom)]
    homes = {
        it.name: (str(node.module), it.name) for node in made for it in node.names if it.asname
    }
    return {**homes, "load_topology": homes["load_cluster"]}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("llm-serving-planner")
    if name == "__all__":
        return __dir__()
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module `planner` has no attribute `{name}`")
    module, called = _homes()[name]
    value: object = getattr(import_module(module), called)
    return value


def __dir__() -> list[str]:
    return sorted(_homes())


if "ipykernel" in sys.modules:
    import_module("planner.report.progress").below_cells()
