"""How records are written as JSON, whatever answer they are in: `as_json` and `saved` agree.

A record is an object of its fields; what it computes from them stands beside them, so that no
reader has to. Records that stand in the same place say which they are.
"""

import dataclasses
import operator
from collections.abc import Mapping
from functools import cache, reduce
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from planner.results.arrivals import Load
from planner.results.deployments import Deployment
from planner.results.engines import EngineDeployment
from planner.results.erdil2025 import EconomicsDeployment
from planner.results.experts import RedundantExperts
from planner.results.phase_deployments import PhaseDeployment, TableDeployment
from planner.results.placements import Placement
from planner.results.predictions import Interval, Launch
from planner.specs.ask.engine import EngineRequest, ServingRecords
from planner.specs.ask.placement import PlacementRequest
from planner.specs.ask.request import Request
from planner.specs.files.pools import MixedPoolSpec, PoolSpec
from planner.specs.records.architecture import Experts, FeedForward
from planner.specs.records.devices import ClusterSpec, LinkedFabric, NodesFabric, TorusFabric
from planner.specs.records.economics import EconomicsRequest
from planner.specs.records.graphs import GraphSpec
from planner.specs.records.mixers import GroupedAttention, LatentAttention, Recurrence
from planner.specs.records.roles import Station
from planner.specs.traffic import distributions
from planner.specs.traffic.arrivals import Trace
from planner.specs.traffic.lengths import DividedLengths, IndependentLengths, TraceLengths
from planner.specs.validation.hints import Computed

KINDS: Mapping[type, tuple[str, str]] = {
    ClusterSpec: ("site", "cluster"),
    PoolSpec: ("site", "pool"),
    MixedPoolSpec: ("site", "mixed"),
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
    distributions.FixedTokens: ("law", "fixed"),
    distributions.UniformTokens: ("law", "uniform"),
    distributions.LognormalTokens: ("law", "lognormal"),
    distributions.ExponentialTokens: ("law", "exponential"),
    distributions.TabledTokens: ("law", "table"),
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


@cache
def computed_of(record: type) -> tuple[str, ...]:
    """Names of what a record computes from its fields and a reader should not have to."""
    return tuple(name for name, what in vars(record).items() if isinstance(what, Computed))


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
