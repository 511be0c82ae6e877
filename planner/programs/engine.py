"""The layout program of an engine's deployments.

One slot, `serving`. A context is a model, a choice of formats and a way to cut the model; a
column is a batch and a chunk in it, with or without drafts and overlap. Units as in
`programs.deployment`: milliseconds, GiB, US dollars per million tokens.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.serving.choices import EngineChoices
from planner.programs.deployment import TIE_BREAKER
from planner.programs.layout import LayoutProgram
from planner.programs.posed import PosedProgram
from planner.programs.quantities import Coefficients, known
from planner.programs.targets import further, target_limits
from planner.quantities import GIB, KW, MS, USD_PER_MTOKEN
from planner.specs.engine_request import EngineRequest

SLOTS = ("serving",)
SIMPLICITY = "simplicity"
KNOWN = frozenset(
    {
        "cost",
        "latency",
        "ttft",
        "throughput",
        "device-throughput",
        "rent",
        "devices",
        "power",
        "batch",
        "memory",
    }
)
"""Quantities that an engine's programs count."""


def pose_engine(
    choices: EngineChoices,
    request: EngineRequest,
    *,
    objective: str,
    without: Collection[str] = (),
    at_most: tuple[tuple[str, float], ...] = (),
    tie_breaker: str = TIE_BREAKER,
    memory_scale: float = 1.0,
    model: int = 0,
    variant: int = 0,
) -> PosedProgram:
    """State the request over its choices; column j is choice j.

    Args:
        objective: the quantity to minimise, a key of the result's `quantities`.
        without: names of limits to leave out, `hbm` among them.
        at_most: further limits: a quantity, and how much of it there may be.
        tie_breaker: the quantity that decides between optima.
        memory_scale: factor on what the engine may take of a device.
        model, variant: see `known`.
    """
    table = choices.table
    keys = (
        choices.model_index,
        table.format_index,
        table.n_stages,
        table.n_data,
        table.n_expert_parallel,
        table.n_tensor,
    )
    _, first, context = np.unique(
        np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True
    )
    context = context.ravel()
    quantities = known(
        _quantities(choices, request, first),
        context=context,
        batch=table.batch.astype(np.int64),
        model=model,
        variant=variant,
    )
    context_objective, column_objective = quantities[objective]
    weights, held = quantities["memory"]
    capacity = np.inf if "hbm" in without else choices.limit_bytes * memory_scale * GIB
    program = LayoutProgram(
        slots=SLOTS,
        context_objective=context_objective,
        column_context=context,
        column_slot=np.zeros(len(table), dtype=np.int64),
        column_objective=column_objective,
        context_bytes=weights,
        column_bytes=held,
        capacity_bytes=np.full(len(first), capacity),
        limits=(
            *target_limits(request.targets, quantities, without),
            *(further(quantities, name, most, row=f"also {name}") for name, most in at_most),
        ),
    )
    return PosedProgram(
        program=program,
        quantities=quantities,
        tie_breaker=None if objective == tie_breaker else tie_breaker,
        n_unfit=choices.n_considered - len(table),
        last_tie_breaker=None if objective == SIMPLICITY else SIMPLICITY,
    )


def _quantities(
    choices: EngineChoices, request: EngineRequest, first: np.ndarray
) -> dict[str, Coefficients]:
    """All that may be limited or minimised, each linear in contexts and columns.

    Args:
        first: a column of each context (K,).
    """
    table, rent = choices.table, request.cluster.usd_per_hour
    tdp_w = request.cluster.tdp_w
    nothing, none = np.zeros(len(first)), np.zeros(len(table))
    devices = table.n_devices[first].astype(float)
    in_flight = table.batch * table.n_data
    milliseconds = choices.tpot_high_s * MS
    usd = choices.tpot_high_s / in_flight * table.n_devices * (rent / 3600.0)
    return {
        "cost": (nothing, usd * USD_PER_MTOKEN),
        "latency": (nothing, milliseconds),
        "ttft": (nothing, choices.ttft_high_s * MS),
        "throughput": (nothing, milliseconds / in_flight),
        "device-throughput": (nothing, milliseconds / in_flight * table.n_devices),
        "rent": (devices * rent, none),
        "devices": (devices, none),
        **({} if tdp_w is None else {"power": (devices * (tdp_w / KW), none)}),
        "batch": (nothing, -in_flight),
        "memory": (choices.fixed_bytes[first] * GIB, choices.moving_bytes * GIB),
        SIMPLICITY: (_complexity(choices, first), none),
    }


def _complexity(choices: EngineChoices, first: np.ndarray) -> FloatArray:
    """Rank of each context: fewest devices, then stages, ranks, groups of experts (K,)."""
    table = choices.table
    keys = (table.n_devices, table.n_stages, table.n_data, table.n_expert_parallel)
    ordered = np.stack([key[first] for key in keys], axis=1)
    _, rank = np.unique(ordered, axis=0, return_inverse=True)
    return np.asarray(rank.ravel(), dtype=float)
