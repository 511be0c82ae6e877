"""The layout program of a decode request under the reference model.

One slot, `decode`. A context is a number format and a split of devices into stages; a column
is a batch in it, with the fastest layout that fits. Units as in `programs.deployment`:
milliseconds, GiB, US dollars per million tokens.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.economics.choices import Choices
from planner.estimates.economics.request import EconomicsRequest
from planner.programs.deployment import TIE_BREAKER
from planner.programs.layout import LayoutProgram
from planner.programs.posed import PosedProgram
from planner.programs.quantities import Coefficients, known
from planner.programs.targets import further, target_limits
from planner.quantities import GIB, KW, MS, USD_PER_MTOKEN

SLOTS = ("decode",)
KNOWN = frozenset(
    {"cost", "latency", "throughput", "device-throughput", "rent", "devices", "power"}
    | {"batch", "memory"}
)
"""Quantities that programs of the reference model count."""
MOST_STAGES = 1 << 20  # of the key that numbers contexts


def pose_economics(
    choices: Choices,
    request: EconomicsRequest,
    *,
    objective: str,
    without: Collection[str] = (),
    memory_scale: float = 1.0,
    at_most: tuple[tuple[str, float], ...] = (),
    tie_breaker: str = TIE_BREAKER,
    model: int = 0,
    variant: int = 0,
) -> PosedProgram:
    """State the request over its choices; column j is choice j.

    Args:
        choices: what there is to choose from, in the memory that `memory_scale` says.
        request: targets and prices.
        objective: the quantity to minimise, a key of the result's `quantities`.
        without: names of limits to leave out.
        memory_scale: factor on the memory of a device; infinite is no limit.
        at_most: further limits: a quantity, and how much of it there may be.
        tie_breaker: the quantity that decides between optima.
        model, variant: see `known`.
    """
    ways = choices.ways
    key = (choices.served * MOST_STAGES + ways.n_stages) * MOST_STAGES + ways.n_tensor
    _, first, context = np.unique(key, return_index=True, return_inverse=True)
    n_devices = ways.n_devices[first].astype(float)
    quantities = known(
        _quantities(choices, request, n_devices, ways.n_devices.astype(float)),
        context=context,
        batch=choices.batch,
        model=model,
        variant=variant,
    )
    context_objective, column_objective = quantities[objective]
    weights, held = quantities["memory"]
    n_columns = len(choices.batch)
    program = LayoutProgram(
        slots=SLOTS,
        context_objective=context_objective,
        column_context=context,
        column_slot=np.zeros(n_columns, dtype=np.int64),
        column_objective=column_objective,
        context_bytes=weights,
        column_bytes=held,
        capacity_bytes=np.full(len(first), request.hbm_bytes * memory_scale * GIB),
        limits=(
            *target_limits(request.targets, quantities, without),
            *(further(quantities, name, most, row=f"also {name}") for name, most in at_most),
        ),
    )
    return PosedProgram(
        program=program,
        quantities=quantities,
        tie_breaker=None if objective == tie_breaker else tie_breaker,
        n_unfit=0,
    )


def _quantities(
    choices: Choices,
    request: EconomicsRequest,
    context_devices: FloatArray,
    column_devices: FloatArray,
) -> dict[str, Coefficients]:
    """All that may be limited or minimised, each linear in contexts and columns.

    Source: [Erdil2025] Eqs. 2 and 4 for the cost.
    """
    nothing, none = np.zeros(len(context_devices)), np.zeros(len(choices.batch))
    rent, tdp_w = request.usd_per_hour, request.device.tdp_w
    milliseconds, sizes = choices.token_s * MS, choices.batch.astype(float)
    usd = choices.token_s / sizes * column_devices * (rent / 3600.0)
    return {
        "cost": (nothing, usd * USD_PER_MTOKEN),
        "latency": (nothing, milliseconds),
        "throughput": (nothing, milliseconds / sizes),
        "device-throughput": (nothing, milliseconds / sizes * column_devices),
        "rent": (context_devices * rent, none),
        "devices": (context_devices, none),
        **({} if tdp_w is None else {"power": (context_devices * (tdp_w / KW), none)}),
        "batch": (nothing, -sizes),
        "memory": (nothing, choices.held_bytes * GIB),
    }
