"""The layout program of a request: candidates and targets as arrays with named constraints.

Units are those in which solvers' tolerances are harmless: milliseconds, GiB, and US dollars
per million output tokens.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import PHASES, CandidateTable, fitting, usable_bytes
from planner.programs.layout import LayoutProgram, Limit
from planner.specs.request import Request

MS = 1e3
GIB = 1.0 / 2**30
USD_PER_MTOKEN = 1e6
PREFILL, DECODE = 0, 1
PHASES_OF_COLUMNS = PHASES
TIE_BREAKER = "cost"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosedProgram:
    """A program, and which candidate each of its columns is.

    Args:
        program: contexts and columns; contexts are those of the table.
        arm: arm of each column, (J,).
        batch: batch of each column, (J,).
        quantities: coefficients (contexts, columns) by name: what may be limited or minimised.
        tie_breaker: quantity that decides between optima, `None` where it is the objective.
        n_unfit: candidates left out because they alone exceed the memory.
    """

    program: LayoutProgram
    arm: IntArray
    batch: IntArray
    quantities: dict[str, tuple[FloatArray, FloatArray]]
    tie_breaker: str | None
    n_unfit: int


def pose(
    table: CandidateTable,
    request: Request,
    *,
    objective: str,
    without: Collection[str] = (),
    memory_scale: float = 1.0,
) -> PosedProgram:
    """State the request over the candidates.

    While a prefill runs, the cache of the decode batch stays beside the weights, and the
    prefill's own cache, activations and gathered weights come on top: that is the memory row.
    A decode pass needs its cache and its small working set; candidates that exceed the
    memory by themselves are left out here.

    Args:
        table: the candidates.
        request: targets and prices.
        objective: the quantity to minimise, a key of `quantities`.
        without: names of rows to leave out, `hbm` among them.
        memory_scale: factor on the memory of a device; infinite is no limit.
    """
    scale = np.inf if "hbm" in without else memory_scale
    room = usable_bytes(table.machine, scale=scale)
    arm, batch, slot, n_unfit = _columns(table, room)
    at = _column_values(table, arm, batch, slot)
    quantities = _quantities(table, request, arm, batch, slot, at["pass_s"])
    held = at["kv_bytes"] + np.where(slot == PREFILL, at["working_bytes"], 0.0)
    quantities["memory"] = (table.contexts.weight_bytes * GIB, held * GIB)
    context_objective, column_objective = quantities[objective]
    n_contexts = len(table.contexts)
    program = LayoutProgram(
        slots=PHASES,
        context_objective=context_objective,
        column_context=table.context[arm],
        column_slot=slot,
        column_objective=column_objective,
        context_bytes=table.contexts.weight_bytes * GIB,
        column_bytes=held * GIB,
        capacity_bytes=np.full(n_contexts, room * GIB),
        limits=_limits(request, quantities, without),
    )
    return PosedProgram(
        program=program,
        arm=arm,
        batch=table_batches(table, batch, slot),
        quantities=quantities,
        tie_breaker=None if objective == TIE_BREAKER else TIE_BREAKER,
        n_unfit=n_unfit,
    )


def table_batches(table: CandidateTable, index: IntArray, slot: IntArray) -> IntArray:
    """Batches of columns from their positions in each phase's choices."""
    sizes = np.empty(len(index), dtype=np.int64)
    for phase, name in enumerate(PHASES):
        mine = slot == phase
        sizes[mine] = table.phase(name).batches[index[mine]]
    return sizes


def _columns(table: CandidateTable, room: float) -> tuple[IntArray, IntArray, IntArray, int]:
    """(arm, batch index, slot) of every candidate that fits by itself."""
    arms, batches, slots, n_unfit = [], [], [], 0
    for phase, name in enumerate(PHASES):
        fits = fitting(table, name, room)
        arm, batch = np.nonzero(fits)
        arms.append(arm)
        batches.append(batch)
        slots.append(np.full(len(arm), phase, dtype=np.int64))
        n_unfit += int(fits.size - len(arm))
    return np.concatenate(arms), np.concatenate(batches), np.concatenate(slots), n_unfit


def _column_values(
    table: CandidateTable, arm: IntArray, batch: IntArray, slot: IntArray
) -> dict[str, FloatArray]:
    """Each array of the phases at the columns."""
    names = ("pass_s", "kv_bytes", "working_bytes")
    values = {name: np.empty(len(arm)) for name in names}
    for phase, phase_name in enumerate(PHASES):
        mine = slot == phase
        source = table.phase(phase_name)
        for name in names:
            values[name][mine] = getattr(source, name)[arm[mine], batch[mine]]
    return values


def _quantities(
    table: CandidateTable,
    request: Request,
    arm: IntArray,
    batch: IntArray,
    slot: IntArray,
    pass_s: FloatArray,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """All that may be limited or minimised, each linear in contexts and columns.

    The device time of a request is t_prefill/B_prefill + steps × t_decode/B_decode: with the
    batch fixed by the column, a ratio becomes a coefficient.
    """
    workload, contexts = request.workload, table.contexts
    sizes = table_batches(table, batch, slot).astype(float)
    no_context, no_column = np.zeros(len(contexts)), np.zeros(len(arm))
    n_devices = contexts.n_devices.astype(float)
    rent = n_devices * request.cluster.usd_per_hour
    is_decode = slot == DECODE
    n_passes = np.where(is_decode, float(workload.n_decode_steps), 1.0)
    token_s = pass_s * n_passes / sizes / workload.n_output_tokens
    usd = token_s * rent[table.context[arm]] / 3600.0
    milliseconds = pass_s * MS
    return {
        "cost": (no_context, usd * USD_PER_MTOKEN),
        "latency": (no_context, np.where(is_decode, milliseconds, 0.0)),
        "ttft": (no_context, np.where(is_decode, 0.0, milliseconds)),
        "throughput": (no_context, token_s * MS),
        "rent": (rent, no_column),
        "devices": (n_devices, no_column),
        "batch": (no_context, np.where(is_decode, -sizes, 0.0)),
    }


def _limits(
    request: Request,
    quantities: dict[str, tuple[FloatArray, FloatArray]],
    without: Collection[str],
) -> tuple[Limit, ...]:
    targets = request.targets
    asked = (
        ("tpot", "latency", targets.tpot_s, MS, "ms"),
        ("ttft", "ttft", targets.ttft_s, MS, "ms"),
        ("cost", "cost", targets.usd_per_token, USD_PER_MTOKEN, "USD/Mtoken"),
        ("devices", "devices", targets.n_devices, 1.0, "devices"),
        ("batch", "batch", targets.min_batch, -1.0, "sequences"),
    )
    return tuple(
        Limit(
            name=name,
            context=quantities[quantity][0],
            column=quantities[quantity][1],
            at_most=value * scale,
            unit=unit,
        )
        for name, quantity, value, scale, unit in asked
        if value is not None and name not in without
    )
