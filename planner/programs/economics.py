"""The layout program of a decode request under the reference model.

A slot `decode`, and one of numbers of replicas where these are chosen. A context is a number
format and a split of devices into stages; a column is a batch in it, with the fastest layout that
fits. Units as in `programs.deployment`: milliseconds, GiB, US dollars per million tokens.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from planner.estimates.economics.choices import Choices
from planner.programs.amounts import (
    REPLICA_SLOT,
    Fleet,
    Priced,
    timed_facts,
    timed_replica,
    ways_of,
)
from planner.programs.deployment import TIE_BREAKER
from planner.programs.layout import LayoutProgram
from planner.programs.posed import PosedProgram
from planner.programs.quantities import Quantities
from planner.programs.targets import SIMPLICITY, further, simplicity, target_limits
from planner.quantities import GIB
from planner.specs.economics.request import EconomicsRequest
from planner.topology.packing import n_node_places

SLOTS = ("decode",)
KNOWN = frozenset(
    {"cost", "latency", "throughput", "device-throughput", "rent", "devices", "power"}
    | {"batch", "demand", "replicas", "memory"}
)
"""Quantities that programs of the reference model count."""
REPLICA = timed_replica("latency", own={})
"""What the facts of a choice say of one replica: [Erdil2025] Eqs. 2 and 4 for the cost."""
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
        model, variant: see `timed_facts`.
    """
    ways = choices.ways
    key = (choices.served * MOST_STAGES + ways.n_stages) * MOST_STAGES + ways.n_tensor
    _, first, context = np.unique(key, return_index=True, return_inverse=True)
    n_devices = ways.n_devices[first]
    device = request.device
    fleet = Fleet.asked(request.targets, without)
    sizes = choices.batch.astype(float)
    facts = timed_facts(
        fleet,
        context=context,
        of_context={
            "n_devices": n_devices,
            "n_rooms": n_node_places(request.n_devices, device.n_devices_per_node, n_devices),
            "fixed_bytes": np.zeros(len(first)),
            SIMPLICITY: simplicity(n_devices, ways.n_stages[first]),
        },
        of_column={
            "batch": choices.batch,
            "token_s": choices.token_s / sizes,
            "device_s": choices.token_s * (ways.n_devices / sizes),
            "latency": choices.token_s,
            "n_sequences": sizes,
            "held_bytes": choices.held_bytes,
        },
        model=model,
        variant=variant,
    )
    priced = Priced(usd_per_hour=request.usd_per_hour, tdp_w=device.tdp_w)
    quantities = Quantities(ways_of(REPLICA, priced, request.targets, without), facts)
    context_objective, column_objective = quantities[objective]
    weights, held = quantities["memory"]
    program = LayoutProgram(
        slots=(*SLOTS, REPLICA_SLOT) if fleet.is_chosen else SLOTS,
        context_objective=context_objective,
        column_context=facts.context,
        column_slot=facts.of_column["slot"],
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
        tie_breakers=fleet.tie_breakers(objective, tie_breaker),
        n_unfit=0,
    )
