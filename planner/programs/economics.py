"""The layout program of a decode request under the reference model.

A slot `decode`, and one of numbers of replicas where these are chosen. A context is a number
format and a split of devices into stages; a column is a batch in it, with the fastest layout that
fits. Units as in `programs.deployment`: milliseconds, GiB, US dollars per million tokens.
"""

import numpy as np

from planner.estimates.economics.choices import Choices
from planner.programs.amounts import Fleet, Priced, counted, timed_facts, timed_replica, ways_of
from planner.programs.blocks import BlockProgram, Objective, stated
from planner.programs.targets import SIMPLICITY, Quantities, simplicity
from planner.quantities.table import GIB
from planner.specs.records.economics import EconomicsRequest
from planner.topology.packing import n_node_places

SLOTS = ("decode",)
REPLICA = timed_replica("latency", own={})
"""What the facts of a choice say of one replica: [Erdil2025] Eqs. 2 and 4 for the cost."""

KNOWN = counted(REPLICA)
"""Quantities that programs of the reference model count."""

MOST_STAGES = 1 << 20  # of the key that numbers contexts


def pose_economics(
    choices: Choices,
    request: EconomicsRequest,
    aim: Objective,
    *,
    memory_scale: float = 1.0,
    model: int = 0,
    variant: int = 0,
) -> BlockProgram:
    """State the request over its choices; column j is choice j.

    Args:
        choices: what there is to choose from, in the memory that `memory_scale` says.
        request: targets and prices.
        memory_scale: factor on the memory of a device; infinite is no limit.
        model, variant: see `timed_facts`.
    """
    ways = choices.ways
    key = (choices.served * MOST_STAGES + ways.n_stages) * MOST_STAGES + ways.n_tensor
    _, first, context = np.unique(key, return_index=True, return_inverse=True)
    n_devices = ways.n_devices[first]
    device = request.device
    fleet = Fleet.asked(request.targets, aim.without)
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
    quantities = Quantities(ways_of(REPLICA, priced, request.targets, aim.without), facts)
    room = request.hbm_bytes * memory_scale * GIB
    return stated(quantities, aim, request.targets, slots=SLOTS, room=room)
