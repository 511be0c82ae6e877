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
TIE_BREAKER = "cost"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosedProgram:
    """A program, and which candidate each of its columns is.

    Args:
        program: contexts and columns; contexts are those of the table.
        arm: arm of each column, (J,).
        batch: batch of each column, (J,).
        variant: which of the table's ways to decode each decode column is, (J,).
        quantities: coefficients (contexts, columns) by name: what may be limited or minimised.
        tie_breaker: quantity that decides between optima, `None` where it is the objective.
        n_unfit: candidates left out because they alone exceed the memory.
    """

    program: LayoutProgram
    arm: IntArray
    batch: IntArray
    variant: IntArray
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
    columns = _columns(table, room)
    quantities = _quantities(table, request, columns)
    quantities["memory"] = (table.contexts.weight_bytes * GIB, columns.held_bytes * GIB)
    context_objective, column_objective = quantities[objective]
    program = LayoutProgram(
        slots=PHASES,
        context_objective=context_objective,
        column_context=table.context[columns.arm],
        column_slot=columns.slot,
        column_objective=column_objective,
        context_bytes=table.contexts.weight_bytes * GIB,
        column_bytes=columns.held_bytes * GIB,
        capacity_bytes=np.full(len(table.contexts), room * GIB),
        limits=_limits(request, quantities, without),
    )
    return PosedProgram(
        program=program,
        arm=columns.arm,
        batch=columns.batch,
        variant=columns.variant,
        quantities=quantities,
        tie_breaker=None if objective == TIE_BREAKER else TIE_BREAKER,
        n_unfit=columns.n_unfit,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    """Candidates that fit by themselves, (J,): which they are, their time and bytes."""

    arm: IntArray
    batch: IntArray
    slot: IntArray
    variant: IntArray
    pass_s: FloatArray
    held_bytes: FloatArray
    n_unfit: int


def _columns(table: CandidateTable, room: float) -> _Columns:
    """All candidates that fit; prefill holds its working set beside the decode batch."""
    decodes = [(DECODE, i, way.candidates) for i, way in enumerate(table.variants)]
    parts, n_unfit = [], 0
    for slot, variant, source in [(PREFILL, 0, table.prefill), *decodes]:
        fits = fitting(table, source, room) & np.isfinite(source.pass_s)
        arm, index = np.nonzero(fits)
        held = source.kv_bytes[arm, index]
        if slot == PREFILL:
            held = held + source.working_bytes[arm, index]
        place = np.full(len(arm), slot), np.full(len(arm), variant)
        parts.append((arm, source.batches[index], *place, source.pass_s[arm, index], held))
        n_unfit += int(np.count_nonzero(np.isfinite(source.pass_s)) - len(arm))
    arm, batch, slot_of, variant_of, pass_s, held_bytes = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return _Columns(
        arm=arm,
        batch=batch,
        slot=slot_of,
        variant=variant_of,
        pass_s=pass_s,
        held_bytes=held_bytes,
        n_unfit=n_unfit,
    )


def _quantities(
    table: CandidateTable, request: Request, columns: _Columns
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """All that may be limited or minimised, each linear in contexts and columns.

    The device time of a request is t_prefill/B_prefill + steps × t_decode/B_decode: with the
    batch fixed by the column, a ratio becomes a coefficient. With a draft, t_decode is the
    time of a round over the tokens that it yields.
    """
    workload, contexts = request.workload, table.contexts
    sizes = columns.batch.astype(float)
    no_context, no_column = np.zeros(len(contexts)), np.zeros(len(sizes))
    n_devices = contexts.n_devices.astype(float)
    rent = n_devices * request.cluster.usd_per_hour
    is_decode = columns.slot == DECODE
    n_passes = np.where(is_decode, float(workload.n_decode_steps), 1.0)
    token_s = columns.pass_s * n_passes / sizes / workload.n_output_tokens
    usd = token_s * rent[table.context[columns.arm]] / 3600.0
    milliseconds = columns.pass_s * MS
    return {
        "cost": (no_context, usd * USD_PER_MTOKEN),
        "decode_cost": (no_context, np.where(is_decode, usd * USD_PER_MTOKEN, 0.0)),
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
