"""The layout program of an engine's deployments.

A slot `serving`, and one of numbers of replicas where these are chosen. A context is a model, a
choice of formats and a way to cut the model; a column is a batch and a chunk in it, with or
without drafts and overlap. Units as in
`programs.deployment`: milliseconds, GiB, US dollars per million tokens.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from planner.equations.arrays import IntArray
from planner.errors import Problem, RequestError
from planner.estimates.serving.choices import EngineChoices
from planner.estimates.serving.deployments import DeploymentTable, deployments
from planner.programs.amounts import Fleet, Priced, counted, timed_facts, timed_replica, ways_of
from planner.programs.blocks import BlockProgram, Objective, stated
from planner.programs.rows import alike_rows
from planner.programs.targets import SIMPLICITY, Coefficients, Facts, Quantities, simplicity
from planner.quantities.table import GIB
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.served_formats import ServedFormats
from planner.topology.packing import n_node_places

SLOTS = ("serving",)


def pose_engine(
    choices: EngineChoices,
    request: EngineRequest,
    aim: Objective,
    *,
    memory_scale: float = 1.0,
    model: int = 0,
    variant: int = 0,
) -> BlockProgram:
    """State the request over its choices; column j is choice j.

    Contexts and columns are numbered by what they are, see `numbers_of`, so that a program of some
    of them says the same of each as one of all.

    Args:
        memory_scale: factor on what the engine may take of a device.
        model, variant: see `timed_facts`.
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
    first, context = alike_rows(keys)
    facts = _facts(choices, request, first, context, aim.without, model, variant)
    device = Priced(usd_per_hour=request.cluster.usd_per_hour, tdp_w=request.cluster.tdp_w)
    quantities = Quantities(ways_of(REPLICA, device, request.targets, aim.without), facts)
    return stated(
        quantities,
        aim,
        request.targets,
        slots=SLOTS,
        room=choices.limit_bytes * memory_scale * GIB,  # which all choices keep by themselves
        ties=(SIMPLICITY,),
        delays=DELAYS,
        n_unfit=choices.n_considered - len(table),
    )


def _facts(
    choices: EngineChoices,
    request: EngineRequest,
    first: IntArray,
    context: IntArray,
    without: Collection[str],
    model: int,
    variant: int,
) -> Facts:
    """What is known of contexts and columns.

    Args:
        first: a column of each context (K,).
        context: of each column (J,).
    """
    table, pool = choices.table, request.cluster
    n_devices = table.n_devices[first]
    in_flight = (table.batch * table.n_data).astype(float)
    each_s = choices.place_s
    rooms = n_node_places(pool.n_devices, pool.n_devices_per_node, n_devices)
    return timed_facts(
        Fleet.asked(request.targets, without),
        context=context,
        of_context={
            "number": numbers_of(table.take(first)),
            "n_devices": n_devices,
            "n_rooms": rooms,
            "fixed_bytes": choices.fixed_bytes[first],
            "n_stages": table.n_stages[first],
            "n_data": table.n_data[first],
        },
        of_column={
            "arm": arms_of(choices),
            "batch": table.batch.astype(np.int64),
            "token_s": each_s / in_flight,
            "device_s": each_s * (table.n_devices / in_flight),
            "latency": choices.tpot_high_s,
            "ttft": choices.ttft_high_s,
            "n_sequences": in_flight,
            "held_bytes": choices.moving_bytes,
        },
        model=model,
        variant=variant,
    )


_CUT_BITS = {"n_stages": 10, "n_data": 19, "n_expert_parallel": 19, "n_tensor": 10}
"""Room for each degree in the number of a context, and for formats before them; 63 in all."""

OF_A_CUT = (1 << sum(_CUT_BITS.values())) - 1
"""What of the number of a context says how the model is cut."""

_ARM_BITS = 24
"""Room for a batch and for a chunk in the number of a column."""


def numbers_of(table: DeploymentTable) -> IntArray:
    """Contexts by what they are: formats and degrees in one number each, (N,).

    Raises:
        RequestError: a degree is beyond all that was thought of.
    """
    number = table.format_index
    for name, bits in _CUT_BITS.items():
        degree = getattr(table, name)
        if degree.max(initial=0) >= 1 << bits or number.max(initial=0) >= 1 << (63 - bits):
            fact = f"is more than the {1 << bits} that engines are planned with"
            raise RequestError([Problem(where=name, value=str(degree.max()), fact=fact)])
        number = (number << bits) | degree
    return number


def arms_of(choices: EngineChoices) -> IntArray:
    """Columns by what they are in their context: drafts, overlap, batch and chunk, (N,)."""
    table = choices.table
    number = (choices.n_drafted << 1) | table.overlaps
    for amount in (table.batch, table.chunk_tokens):
        number = (number << _ARM_BITS) | amount.astype(np.int64)
    return number


def row_of(number: int, arm: int, formats: Sequence[ServedFormats]) -> tuple[DeploymentTable, int]:
    """The deployment of a column, by the numbers of its context and its own; tokens it drafts."""
    (chunk, batch), mask = ((arm >> (_ARM_BITS * i)) for i in range(2)), (1 << _ARM_BITS) - 1
    drafted = arm >> (2 * _ARM_BITS)
    row = replace(
        cuts_of(np.array([number]), formats),
        batch=np.array([float(batch & mask)]),
        chunk_tokens=np.array([float(chunk & mask)]),
        overlaps=np.array([bool(drafted & 1)]),
    )
    return row, drafted >> 1


def cuts_of(numbers: IntArray, formats: Sequence[ServedFormats]) -> DeploymentTable:
    """The cuts of contexts by `numbers_of`, each of one sequence in its formats."""
    cuts: dict[str, IntArray] = {}
    for name, bits in reversed(_CUT_BITS.items()):
        cuts[name], numbers = numbers & ((1 << bits) - 1), numbers >> bits
    return deployments(formats=formats, format_index=numbers, **cuts)


def _simplicity(facts: Facts) -> Coefficients:
    of = facts.of_context
    simple = simplicity(of["n_devices"], of["n_stages"], of["n_data"])
    return simple, np.zeros(len(facts.context))


DELAYS = ("latency", "ttft")

REPLICA = timed_replica(*DELAYS, own={SIMPLICITY: _simplicity})
"""What these facts say of one replica."""

KNOWN = counted(REPLICA)
"""Quantities that an engine's programs count."""
