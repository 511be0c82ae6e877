"""How records are written as JSON, whatever answer they are in: `as_json` and `from_json` agree.

A record is an object of its fields; what it computes from them stands beside them, so that no
reader has to. Records that stand in the same place say which they are.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from functools import cache, reduce
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from planner.results import Deployment, Division, Memory, PhasePlan, Plan, StepTime
from planner.results.arrivals import Load, Percentile
from planner.results.audits import Audit
from planner.results.engines import EngineAudit, EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.experts import ExpertPlan, RedundantExperts
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase, ServedClass
from planner.results.phase_deployments import PhaseDeployment, TableDeployment
from planner.results.placements import Placement, Served
from planner.results.predictions import Interval, Launch, OperationLine, PassLine, Prediction
from planner.results.repairs import Repair
from planner.results.staging import LayerPlacement, StageLine, StagePlan
from planner.results.surveys import Frontier
from planner.results.verifications import Verification
from planner.specs.architecture import Experts, FeedForward
from planner.specs.economics.records import EconomicsRequest
from planner.specs.engine_request import EngineRequest, ServingRecords
from planner.specs.graphs import GraphSpec
from planner.specs.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.placement_request import PlacementRequest
from planner.specs.pools import PoolSpec
from planner.specs.records import ClusterSpec, LinkedFabric, ModelSpec, NodesFabric, TorusFabric
from planner.specs.request import Request
from planner.specs.stations import Station
from planner.specs.traffic.arrivals import Trace
from planner.specs.traffic.distributions import (
    ExponentialTokens,
    FixedTokens,
    LognormalTokens,
    TabledTokens,
    UniformTokens,
)
from planner.specs.traffic.lengths import DividedLengths, IndependentLengths, TraceLengths
from planner.verifier.rules import FIELDS

DERIVED: Mapping[type, tuple[str, ...]] = {
    StepTime: ("total_s",),
    Division: ("n_most", "n_copies"),
    PhasePlan: ("tokens_per_s",),
    Memory: ("kv_bytes", "used_bytes", "free_bytes"),
    Deployment: (
        "summary",
        "n_devices",
        "ttft_s",
        "tpot_s",
        "output_tokens_per_s",
        "served_tokens_per_s",
        "utilization_fraction",
    ),
    PhaseDeployment: (
        "summary",
        "n_devices",
        "ttft_s",
        "tpot_s",
        "requests_per_s",
        "output_tokens_per_s",
    ),
    ClusterSpec: ("n_devices",),
    ModelSpec: ("n_params", "n_params_served"),
    Plan: ("n_assumed",),
    Frontier: ("at_target", "n_assumed"),
    EconomicsDeployment: ("summary", "n_devices", "output_tokens_per_s"),
    EngineDeployment: ("summary", "n_devices", "device_tokens_per_s"),
    TableDeployment: ("summary",),
    Audit: ("excess",),
    EngineAudit: ("prediction_factor", "errors_off", "cost_factor"),
    ExpertPlan: ("imbalance", "is_proven", "gain_fraction", "moved_bytes"),
    OperationLine: ("total_s",),
    PassLine: ("hbm_bytes", "sent_bytes"),
    Prediction: ("prefill_device_tokens_per_s", "decode_device_tokens_per_s"),
    StageLine: ("total_s", "held_bytes"),
    StagePlan: ("summary",),
    LayerPlacement: ("summary", "n_stages"),
    Served: ("share",),
    Repair: ("moved_bytes",),
    Placement: ("n_used", "n_free", "output_tokens_per_s"),
    Verification: ("is_true",),
    FleetPlan: ("usd_per_hour", "n_devices", "is_whole", "fluid_gap"),
    FleetPool: ("n_replicas",),
    FleetStaircase: ("gap",),
    Percentile: ("is_met",),
    ServedClass: ("usd_per_mtoken_in", "usd_per_mtoken_out"),
}
"""What records compute from their fields and a reader should not have to."""

KINDS: Mapping[type, tuple[str, str]] = {
    ClusterSpec: ("site", "cluster"),
    PoolSpec: ("site", "pool"),
    GraphSpec: ("site", "graph"),
    TorusFabric: ("kind", "torus"),
    NodesFabric: ("kind", "nodes"),
    LinkedFabric: ("kind", "linked"),
    GroupedAttention: ("mixer", "grouped attention"),
    LatentAttention: ("mixer", "latent attention"),
    Recurrence: ("mixer", "recurrence"),
    FeedForward: ("ffn", "whole"),
    Deployment: ("of", "layouts"),
    PhaseDeployment: ("of", "phase"),
    EngineDeployment: ("of", "engine"),
    EconomicsDeployment: ("of", "erdil2025"),
    TableDeployment: ("of", "table"),
    Request: ("asks", "layouts"),
    EngineRequest: ("asks", "engine"),
    EconomicsRequest: ("asks", "erdil2025"),
    Experts: ("ffn", "experts"),
    IndependentLengths: ("lengths", "independent"),
    DividedLengths: ("lengths", "divided"),
    TraceLengths: ("lengths", "trace"),
    FixedTokens: ("law", "fixed"),
    UniformTokens: ("law", "uniform"),
    LognormalTokens: ("law", "lognormal"),
    ExponentialTokens: ("law", "exponential"),
    TabledTokens: ("law", "table"),
}
"""Key and value that tell records apart that stand in the same place."""

RANGES = frozenset({"batches", "prefill_batches", "chunks"})
"""Integers that are written as [first, last, step] of each run."""

COLUMNS: Mapping[type, Mapping[str, str]] = {
    Trace: {"arrival_s": "d", "n_input": "q", "n_output": "q"}
}
"""Arrays, by their type codes: each is one text, of numbers with a space between."""

JOINT = "/"
"""Joins the parts of a key that is several names: `gemm/bf16`."""

UNVERIFIED: Mapping[type, tuple[str, ...]] = {
    record: judged.names("unverified") for record, judged in FIELDS.items()
}
"""What nobody can recount: seconds of solvers, and their versions."""


_LATE: Mapping[str, type] = {
    record.__name__: record
    for record in (
        *(Placement, PlacementRequest, Load, Station),
        *(Interval, Launch, RedundantExperts, ServingRecords),
    )
}
"""Types that records name and do not import, for the sake of a light start."""


@cache
def record_hints(record: type) -> Mapping[str, Any]:
    """The types of a record's fields, of what is generic the bounds."""
    return {name: _bounded(hint) for name, hint in get_type_hints(record, localns=_LATE).items()}


def _bounded(hint: Any) -> Any:  # noqa: ANN401
    if isinstance(hint, TypeVar):
        return hint.__bound__
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(origin, type) and dataclasses.is_dataclass(origin):
        return origin
    if origin is tuple:
        return tuple[tuple(_bounded(one) for one in inner)]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return reduce(operator.or_, [_bounded(one) for one in inner])
    return hint
