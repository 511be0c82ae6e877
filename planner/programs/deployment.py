"""The layout program of a request: candidates and targets as arrays with named constraints.

Units are those in which solvers' tolerances are harmless: milliseconds, GiB, and US dollars
per million output tokens.

Where a demand is asked for, a third slot chooses how many replicas of the deployment serve it:
n of them are n columns' worth of devices and of rent, and

    Σ demand × device time of a token x_j - Σ (n - 1) x_n ≤ 1                      demand

says that they are enough. A plan is credited with the demand and no more, so its cost per token
is the rent of all replicas over the demand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.candidates import PHASES, CandidateTable, fitting, usable_bytes
from planner.programs.layout import LayoutProgram
from planner.programs.quantities import Coefficients, Quantities
from planner.programs.targets import MS, USD_PER_MTOKEN, target_limits
from planner.specs.request import Request
from planner.topology.packing import n_places

GIB = 1.0 / 2**30
PREFILL, DECODE, REPLICAS = 0, 1, 2
REPLICA_SLOT = "replicas"
TIE_BREAKER = "cost"
IDLEST = "throughput"  # least device time of a token: most of the replicas' time is left over


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosedProgram:
    """A program, and which candidate each of its columns is.

    Args:
        program: contexts and columns; contexts are those of the table.
        arm: arm of each column, (J,); of a number of replicas, any of its context.
        batch: batch of each column, or its number of replicas, (J,).
        variant: which of the table's ways to decode each decode column is, (J,).
        quantities: coefficients (contexts, columns) by name: what may be limited or minimised.
        tie_breaker: quantity that decides between optima, `None` where it is the objective.
        last_tie_breaker: quantity that decides where that one ties too, if any.
        n_unfit: candidates left out because they alone exceed the memory.
    """

    program: LayoutProgram
    arm: IntArray
    batch: IntArray
    variant: IntArray
    quantities: Mapping[str, Coefficients]
    tie_breaker: str | None
    n_unfit: int
    last_tie_breaker: str | None = None


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
        without: names of rows to leave out, `hbm` among them; without `demand` there is one
            replica, and it is credited with all that it can serve.
        memory_scale: factor on the memory of a device; infinite is no limit.
    """
    scale = np.inf if "hbm" in without else memory_scale
    room = usable_bytes(table.machine, scale=scale)
    demand = None if "demand" in without else request.targets.demand_tokens_per_s
    columns = _columns(table, room)
    if demand is not None:
        columns = _with_replicas(columns, table, request)
    quantities = _quantities(table, request, columns)
    column_bytes, context_bytes = columns.held_bytes * GIB, table.contexts.weight_bytes * GIB
    quantities = quantities.with_those({"memory": lambda: (context_bytes, column_bytes)})
    if demand is not None:
        quantities = quantities.with_those(_for_demand(quantities, table, request, columns))
    elif request.targets.demand_tokens_per_s is not None:
        capacity = _capacity(quantities, table, request, columns, without)
        quantities = quantities.with_those({"capacity": lambda: capacity})
    context_objective, column_objective = quantities[objective]
    program = LayoutProgram(
        slots=PHASES if demand is None else (*PHASES, REPLICA_SLOT),
        context_objective=context_objective,
        column_context=table.context[columns.arm],
        column_slot=columns.slot,
        column_objective=column_objective,
        context_bytes=context_bytes,
        column_bytes=column_bytes,
        capacity_bytes=np.full(len(table.contexts), room * GIB),
        limits=target_limits(request.targets, quantities, without, of_batch="sequences"),
    )
    return PosedProgram(
        program=program,
        arm=columns.arm,
        batch=columns.batch,
        variant=columns.variant,
        quantities=quantities,
        tie_breaker=None if objective == TIE_BREAKER else TIE_BREAKER,
        n_unfit=columns.n_unfit,
        last_tie_breaker=None if demand is None else IDLEST,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    """Candidates that fit by themselves, (J,): which they are, their time and bytes.

    Numbers of replicas come last; they take no time and no bytes of a device.
    """

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
    sources = [(PREFILL, 0, table.prefill), *decodes]
    places, n_unfit = [], 0
    for _, _, source in sources:
        finite = np.isfinite(source.pass_s)
        places.append(np.flatnonzero(fitting(table, source, room) & finite))
        n_unfit += int(np.count_nonzero(finite) - len(places[-1]))
    ends = np.cumsum([len(at) for at in places])
    n_columns = int(ends[-1])
    columns = _Columns(
        arm=np.empty(n_columns, dtype=np.int64),
        batch=np.empty(n_columns, dtype=np.int64),
        slot=np.zeros(n_columns, dtype=np.int64),
        variant=np.zeros(n_columns, dtype=np.int64),
        pass_s=np.empty(n_columns),
        held_bytes=np.empty(n_columns),
        n_unfit=n_unfit,
    )
    # written in place: there are millions, and memory that is new costs more than arithmetic
    for (slot, variant, source), at, end in zip(sources, places, ends.tolist(), strict=True):
        here = slice(end - len(at), end)
        arm, index = np.divmod(at, len(source.batches))
        columns.arm[here] = arm
        source.batches.take(index, out=columns.batch[here], mode="clip")
        source.pass_s.ravel().take(at, out=columns.pass_s[here], mode="clip")
        source.kv_bytes.ravel().take(at, out=columns.held_bytes[here], mode="clip")
        if slot == PREFILL:
            columns.held_bytes[here] += source.working_bytes.ravel()[at]
            continue
        columns.slot[here] = slot
        if variant:
            columns.variant[here] = variant
    return columns


def _with_replicas(columns: _Columns, table: CandidateTable, request: Request) -> _Columns:
    """And, in every context that has candidates, each number of replicas that has room."""
    first_arm = np.full(len(table.contexts), -1, dtype=np.int64)
    first_arm[table.context[::-1]] = np.arange(len(table.arms))[::-1]
    rooms = np.where(first_arm >= 0, _rooms(table, request), 0)
    context = np.repeat(np.arange(len(rooms)), rooms)
    starts = np.repeat(np.cumsum(rooms) - rooms, rooms)
    n_replicas = np.arange(len(context)) - starts + 1
    nothing = np.zeros(len(context))

    return _Columns(
        arm=np.concatenate([columns.arm, first_arm[context]]),
        batch=np.concatenate([columns.batch, n_replicas]),
        slot=np.concatenate([columns.slot, np.full(len(context), REPLICAS)]),
        variant=np.concatenate([columns.variant, np.zeros(len(context), dtype=np.int64)]),
        pass_s=np.concatenate([columns.pass_s, nothing]),
        held_bytes=np.concatenate([columns.held_bytes, nothing]),
        n_unfit=columns.n_unfit,
    )


def _rooms(table: CandidateTable, request: Request) -> IntArray:
    """Replicas of each context that the pool has room for, (K,)."""
    return n_places(request.cluster, table.machine.meshes)[table.contexts.mesh]


def _quantities(table: CandidateTable, request: Request, columns: _Columns) -> Quantities:
    """All that may be limited or minimised, each linear in contexts and columns.

    The device time of a request is t_prefill/B_prefill + steps × t_decode/B_decode: with the
    batch fixed by the column, a ratio becomes a coefficient. With a draft, t_decode is the
    time of a round over the tokens that it yields.
    """
    workload, contexts = request.workload, table.contexts
    no_context, no_column = np.zeros(len(contexts)), np.zeros(len(columns.arm))
    n_devices = contexts.n_devices.astype(float)
    rent = n_devices * request.cluster.usd_per_hour
    is_decode = columns.slot == DECODE

    @cache
    def token_s() -> FloatArray:
        n_passes = np.where(is_decode, float(workload.n_decode_steps), 1.0)
        return np.asarray(columns.pass_s * n_passes / columns.batch / workload.n_output_tokens)

    @cache
    def usd_per_mtoken() -> FloatArray:
        usd = token_s() * rent[table.context[columns.arm]] / 3600.0
        return np.asarray(usd * USD_PER_MTOKEN)

    def milliseconds(rows: BoolArray) -> FloatArray:
        return np.where(rows, columns.pass_s * MS, 0.0)

    return Quantities(
        {
            "cost": lambda: (no_context, usd_per_mtoken()),
            "decode_cost": lambda: (no_context, np.where(is_decode, usd_per_mtoken(), 0.0)),
            "latency": lambda: (no_context, milliseconds(is_decode)),
            "ttft": lambda: (no_context, milliseconds(~is_decode)),
            "throughput": lambda: (no_context, token_s() * MS),
            "rent": lambda: (rent, no_column),
            "devices": lambda: (n_devices, no_column),
            "batch": lambda: (no_context, np.where(is_decode, -columns.batch.astype(float), 0.0)),
        }
    )


def _for_demand(
    quantities: Quantities,
    table: CandidateTable,
    request: Request,
    columns: _Columns,
) -> dict[str, Callable[[], Coefficients]]:
    """What changes with a demand: money and devices are those of all replicas.

    `demand` is the replicas' worth of device time that the demand takes, less those beyond
    the first: at most 1, so that its tolerance is a share of one replica.
    """
    contexts, demand = table.contexts, request.targets.demand_tokens_per_s
    assert demand is not None
    context = table.context[columns.arm]
    is_replicas = columns.slot == REPLICAS
    n_replicas = np.where(is_replicas, columns.batch, 0).astype(float)
    no_context = np.zeros(len(contexts))
    n_devices = np.asarray(n_replicas * contexts.n_devices[context])
    rent = np.asarray(n_devices * request.cluster.usd_per_hour)
    _, token_ms = quantities["throughput"]
    busy = token_ms / MS * demand
    return {
        "cost": lambda: (no_context, np.asarray(rent / 3600.0 / demand * USD_PER_MTOKEN)),
        "rent": lambda: (no_context, rent),
        "devices": lambda: (no_context, n_devices),
        "demand": lambda: (no_context, busy - np.where(is_replicas, n_replicas - 1.0, 0.0)),
    }


def _capacity(
    quantities: Quantities,
    table: CandidateTable,
    request: Request,
    columns: _Columns,
    without: Collection[str],
) -> tuple[FloatArray, FloatArray]:
    """Time of a token when as many replicas as there may be work on tokens [ms].

    Its least is one over the largest demand that can be met.
    """
    most, most_devices = _rooms(table, request), request.targets.n_devices
    if most_devices is not None and "devices" not in without:
        most = np.minimum(most, most_devices // table.contexts.n_devices)
    no_context, token_ms = quantities["throughput"]
    n_replicas = np.maximum(most, 1)[table.context[columns.arm]]
    return no_context, token_ms / n_replicas
