"""A fleet as a table for machines: a row a pool; its staircase: a row a step. SI units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from planner.report.as_csv import table_csv
from planner.results.engines import EngineDeployment
from planner.results.fleets import FleetPlan, FleetPool, FleetStaircase, Step

_Row = TypeVar("_Row")
_Columns = Sequence[tuple[str, Callable[[_Row], object]]]

_POOL: _Columns[FleetPool] = (
    ("pool", lambda one: one.name),
    ("classes", lambda one: " ".join(one.classes)),
    ("above_tokens", lambda one: one.above_tokens),
    ("upto_tokens", lambda one: _finite(one.upto_tokens)),
    ("then", lambda one: one.then),
    ("n_replicas", lambda one: one.n_replicas),
    ("rate_per_s", lambda one: one.rate_per_s),
    ("replica_rate_per_s", lambda one: one.replica_rate_per_s),
    ("utilisation", lambda one: one.utilisation),
    ("usd_per_hour", lambda one: one.usd_per_hour),
)
_DEPLOYMENT: _Columns[EngineDeployment] = (
    ("n_tensor", lambda one: one.n_tensor),
    ("n_data", lambda one: one.n_data),
    ("n_stages", lambda one: one.n_stages),
    ("n_expert_parallel", lambda one: one.n_expert_parallel),
    ("weights_format", lambda one: one.formats.weights),
    ("kv_format", lambda one: one.formats.cache),
    ("batch", lambda one: one.batch),
    ("chunk_tokens", lambda one: one.chunk_tokens),
    ("command", lambda one: one.launch.command if one.launch else ""),
)
_STEP: _Columns[Step] = (
    ("above_factor", lambda one: one.above_factor),
    ("upto_factor", lambda one: one.upto_factor),
    ("usd_per_hour", lambda one: one.usd_per_hour),
    ("bound_usd_per_hour", lambda one: one.bound_usd_per_hour),
    ("n_devices", lambda one: one.n_devices),
    ("pools", lambda one: one.words),
)


def fleet_csv(plan: FleetPlan) -> str:
    """A row a pool, with how its replicas run and what starts them."""
    heads = (
        *(name for name, _ in _POOL),
        *("model", "engine", "kind", "role", "n_devices"),
        *(name for name, _ in _DEPLOYMENT),
    )
    return table_csv(heads, (_pool_row(plan, one) for one in plan.pools))


def staircase_csv(staircase: FleetStaircase) -> str:
    """A row a step; requests are of all classes together."""
    of = staircase.request.rate_per_s
    heads = ("above_requests_per_s", "upto_requests_per_s", *(name for name, _ in _STEP))
    rows = (
        (one.above_factor * of, one.upto_factor * of, *(read(one) for _, read in _STEP))
        for one in staircase.steps
    )
    return table_csv(heads, rows)


def _pool_row(plan: FleetPlan, pool: FleetPool) -> Sequence[object]:
    recipe = plan.recipes[pool.recipe]
    one = recipe.deployment
    of_engine = (
        [read(one) for _, read in _DEPLOYMENT]
        if isinstance(one, EngineDeployment)
        else [""] * len(_DEPLOYMENT)
    )
    return (
        *(read(pool) for _, read in _POOL),
        *(recipe.model, recipe.engine, recipe.kind, recipe.role, one.n_devices),
        *of_engine,
    )


def _finite(value: float) -> object:
    """Nothing in place of what has no end."""
    return value if math.isfinite(value) else ""
