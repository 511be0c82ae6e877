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

from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import Block, CandidateTable, alone_bytes, usable_bytes
from planner.estimates.phases import PHASES
from planner.programs.layout import LayoutProgram, Limit
from planner.programs.posed import PosedProgram
from planner.programs.quantities import Coefficients, Facts, Quantities, Ways
from planner.programs.targets import MS, USD_PER_MTOKEN, target_limits
from planner.specs.records import Workload
from planner.specs.request import Request
from planner.topology.packing import n_places

GIB = 1.0 / 2**30
PREFILL, DECODE, REPLICAS = 0, 1, 2
REPLICA_SLOT = "replicas"
TIE_BREAKER = "cost"
IDLEST = "throughput"  # least device time of a token: most of the replicas' time is left over


class Posing:
    """A request stated over its candidates, block by block.

    While a prefill runs, the cache of the decode batch stays beside the weights, and the
    prefill's own cache, activations and gathered weights come on top: that is the memory row.
    A decode pass needs its cache and its small working set; candidates that exceed the
    memory by themselves are left out.

    Args:
        table: the candidates.
        request: targets and prices.
        objective: the quantity to minimise, a key of `quantities`.
        without: names of rows to leave out, `hbm` among them; without `demand` there is one
            replica, and it is credited with all that it can serve.
        memory_scale: factor on the memory of a device; infinite is no limit.
        model: number of the model among those that are chosen among.
        at_most: further limits: a quantity, and how much of it there may be.
        tie_breaker: quantity that decides between optima; the cost where it is left out.
    """

    is_cut = False

    def __init__(
        self,
        table: CandidateTable,
        request: Request,
        *,
        objective: str,
        without: Collection[str] = (),
        memory_scale: float = 1.0,
        model: int = 0,
        at_most: tuple[tuple[str, float], ...] = (),
        tie_breaker: str = TIE_BREAKER,
    ) -> None:
        self._table, self._request, self._objective = table, request, objective
        self._without, self._at_most, self._model = without, at_most, model
        self._tie_breaker = tie_breaker
        self._scale = np.inf if "hbm" in without else memory_scale
        self._demand = None if "demand" in without else request.targets.demand_tokens_per_s
        self._ways = _ways(request, without)

    def blocks(self) -> Iterator[PosedProgram]:
        """Every context once, with all of its columns."""
        for block in self._table.blocks():
            yield self._posed(self._scale, block)

    def of(self, model: int, numbers: IntArray) -> PosedProgram:
        """Some contexts of the model with all of their columns, evaluated anew."""
        assert model == self._model
        return self._posed(self._scale, self._table.block_of(numbers))

    def _posed(self, scale: float, block: Block) -> PosedProgram:
        table, targets = self._table, self._request.targets
        room = usable_bytes(table.machine, scale=scale)
        numbers, context = np.unique(table.context[block.arms], return_inverse=True)
        contexts = {
            "model": np.full(len(numbers), self._model),
            "number": numbers,
            "n_devices": table.contexts.n_devices[numbers],
            "weight_bytes": table.contexts.weight_bytes[numbers],
        }
        if targets.demand_tokens_per_s is not None:
            contexts["n_rooms"] = self._rooms[table.contexts.mesh[numbers]]
        facts, n_unfit = _fitting(table, block, context.reshape(-1), contexts, room)
        if self._demand is not None:
            facts = _with_replicas(facts, block.arms, context.reshape(-1))
        quantities = Quantities(self._ways, facts)
        context_objective, column_objective = quantities[self._objective]
        weights, held = quantities["memory"]
        program = LayoutProgram(
            slots=PHASES if self._demand is None else (*PHASES, REPLICA_SLOT),
            context_objective=context_objective,
            column_context=facts.context,
            column_slot=facts.of_column["slot"],
            column_objective=column_objective,
            context_bytes=weights,
            column_bytes=held,
            capacity_bytes=np.full(len(numbers), room * GIB),
            limits=(
                *target_limits(targets, quantities, self._without, of_batch="sequences"),
                *(_limit(quantities, name, at_most) for name, at_most in self._at_most),
            ),
        )
        breaker = self._tie_breaker
        return PosedProgram(
            program=program,
            quantities=quantities,
            tie_breaker=None if self._objective == breaker else breaker,
            n_unfit=n_unfit,
            last_tie_breaker=None if self._demand is None else IDLEST,
            roomier=lambda times: self._posed(scale * times, block),
        )

    @cached_property
    def _rooms(self) -> IntArray:
        """Replicas of each mesh that the pool has room for, (M,)."""
        return n_places(self._request.cluster, self._table.machine.meshes)


def _limit(quantities: Quantities, name: str, at_most: float) -> Limit:
    context, column = quantities[name]
    return Limit(name=name, context=context, column=column, at_most=at_most)


def _fitting(
    table: CandidateTable,
    block: Block,
    context: IntArray,
    contexts: dict[str, IntArray],
    room: float,
) -> tuple[Facts, int]:
    """All candidates that fit, and how many do not; prefill holds its working set in decode too."""
    phases = [(PREFILL, 0, block.prefill)]
    phases += [(DECODE, variant, phase) for variant, phase in enumerate(block.decodes)]
    places, n_unfit = [], 0
    for _, _, phase in phases:
        finite = np.isfinite(phase.pass_s)
        places.append(np.flatnonzero((alone_bytes(table, block, phase) <= room) & finite))
        n_unfit += int(np.count_nonzero(finite) - len(places[-1]))
    ends = np.cumsum([len(at) for at in places])
    n_columns = int(ends[-1])
    whole = {name: np.zeros(n_columns, np.int64) for name in ("slot", "variant")}
    whole |= {name: np.empty(n_columns, np.int64) for name in ("arm", "batch")}
    numbers = {name: np.empty(n_columns) for name in ("pass_s", "held_bytes")}
    of_context = np.empty(n_columns, np.int64)
    # written in place: memory that is new costs more than arithmetic
    for (slot, variant, phase), at, end in zip(phases, places, ends.tolist(), strict=True):
        here = slice(end - len(at), end)
        row, index = np.divmod(at, len(phase.batches))
        block.arms.take(row, out=whole["arm"][here], mode="clip")
        context.take(row, out=of_context[here], mode="clip")
        phase.batches.take(index, out=whole["batch"][here], mode="clip")
        phase.pass_s.ravel().take(at, out=numbers["pass_s"][here], mode="clip")
        phase.kv_bytes.ravel().take(at, out=numbers["held_bytes"][here], mode="clip")
        if slot == PREFILL:
            numbers["held_bytes"][here] += phase.working_bytes.ravel()[at]
            continue
        whole["slot"][here], whole["variant"][here] = slot, variant
    return Facts(context=of_context, of_context=contexts, of_column=whole | numbers), n_unfit


def _with_replicas(facts: Facts, arms: IntArray, context: IntArray) -> Facts:
    """And, in every context that has candidates, each number of replicas that has room.

    Args:
        arms, context: of the block; a context's replicas are of its first arm.
    """
    rooms = facts.of_context["n_rooms"]
    first_arm = np.zeros(len(rooms), dtype=np.int64)
    first_arm[context[::-1]] = arms[::-1]
    of = np.repeat(np.arange(len(rooms)), rooms)
    starts = np.repeat(np.cumsum(rooms) - rooms, rooms)
    nothing = np.zeros(len(of))
    replicas = {
        "arm": first_arm[of],
        "batch": np.arange(len(of)) - starts + 1,
        "slot": np.full(len(of), REPLICAS),
        "variant": facts.of_context["number"][of],
        "pass_s": nothing,
        "held_bytes": nothing,
    }
    return Facts(
        context=np.concatenate([facts.context, of]),
        of_context=facts.of_context,
        of_column={
            name: np.concatenate([values, replicas[name]])
            for name, values in facts.of_column.items()
        },
    )


def _ways(request: Request, without: Collection[str]) -> Ways:
    """How all that may be limited or minimised follows, each linear in contexts and columns.

    The device time of a request is t_prefill/B_prefill + steps × t_decode/B_decode: with the
    batch fixed by the column, a ratio becomes a coefficient. With a draft, t_decode is the
    time of a round over the tokens that it yields.
    """
    rent = request.cluster.usd_per_hour
    ways: dict[str, Callable[[Facts], Coefficients]] = {
        "cost": partial(_cost, request.workload, rent),
        "decode_cost": partial(_decode_cost, request.workload, rent),
        "latency": partial(_milliseconds, slot=DECODE),
        "ttft": partial(_milliseconds, slot=PREFILL),
        "throughput": partial(_throughput, request.workload),
        "rent": lambda facts: (_devices(facts) * rent, _nothing(facts)),
        "devices": lambda facts: (_devices(facts), _nothing(facts)),
        "batch": _negative_batch,
        "memory": _memory,
    }
    demand = request.targets.demand_tokens_per_s
    if demand is None:
        return ways
    if "demand" in without:
        most = None if "devices" in without else request.targets.n_devices
        return ways | {"capacity": partial(_capacity, request.workload, most)}
    return ways | {
        "cost": lambda facts: _fleet_cost(facts, rent, demand),
        "rent": lambda facts: (_no_context(facts), _fleet(facts) * rent),
        "devices": lambda facts: (_no_context(facts), _fleet(facts)),
        "demand": partial(_demand, request.workload, demand),
    }


def _nothing(facts: Facts) -> FloatArray:
    return np.zeros(len(facts.context))


def _no_context(facts: Facts) -> FloatArray:
    return np.zeros(facts.n_contexts)


def _devices(facts: Facts) -> FloatArray:
    return facts.of_context["n_devices"].astype(float)


def _token_s(facts: Facts, workload: Workload) -> FloatArray:
    """Device time of an output token that a column takes [s]."""
    of = facts.of_column
    n_passes = np.where(of["slot"] == DECODE, float(workload.n_decode_steps), 1.0)
    return np.asarray(of["pass_s"] * n_passes / of["batch"] / workload.n_output_tokens)


def _cost(workload: Workload, rent: float, facts: Facts) -> Coefficients:
    usd = _token_s(facts, workload) * (_devices(facts) * rent)[facts.context] / 3600.0
    return _no_context(facts), np.asarray(usd * USD_PER_MTOKEN)


def _decode_cost(workload: Workload, rent: float, facts: Facts) -> Coefficients:
    context, column = _cost(workload, rent, facts)
    return context, np.where(facts.of_column["slot"] == DECODE, column, 0.0)


def _milliseconds(facts: Facts, *, slot: int) -> Coefficients:
    of = facts.of_column
    return _no_context(facts), np.where(of["slot"] == slot, of["pass_s"] * MS, 0.0)


def _throughput(workload: Workload, facts: Facts) -> Coefficients:
    return _no_context(facts), _token_s(facts, workload) * MS


def _negative_batch(facts: Facts) -> Coefficients:
    of = facts.of_column
    return _no_context(facts), np.where(of["slot"] == DECODE, -of["batch"].astype(float), 0.0)


def _memory(facts: Facts) -> Coefficients:
    return facts.of_context["weight_bytes"] * GIB, facts.of_column["held_bytes"] * GIB


def _n_replicas(facts: Facts) -> FloatArray:
    of = facts.of_column
    return np.where(of["slot"] == REPLICAS, of["batch"], 0).astype(float)


def _fleet(facts: Facts) -> FloatArray:
    """Devices of all replicas: with a demand, money and devices are theirs."""
    return np.asarray(_n_replicas(facts) * facts.of_context["n_devices"][facts.context])


def _fleet_cost(facts: Facts, rent: float, demand: float) -> Coefficients:
    return _no_context(facts), _fleet(facts) * rent / 3600.0 / demand * USD_PER_MTOKEN


def _demand(workload: Workload, demand: float, facts: Facts) -> Coefficients:
    """Replicas' worth of device time that the demand takes, less those beyond the first.

    At most 1, so that its tolerance is a share of one replica.
    """
    busy = _token_s(facts, workload) * MS / MS * demand
    beyond = np.where(facts.of_column["slot"] == REPLICAS, _n_replicas(facts) - 1.0, 0.0)
    return _no_context(facts), busy - beyond


def _capacity(workload: Workload, most_devices: int | None, facts: Facts) -> Coefficients:
    """Time of a token when as many replicas as there may be work on tokens [ms].

    Its least is one over the largest demand that can be met.
    """
    most = facts.of_context["n_rooms"]
    if most_devices is not None:
        most = np.minimum(most, most_devices // facts.of_context["n_devices"])
    n_replicas = np.maximum(most, 1)[facts.context]
    return _no_context(facts), _token_s(facts, workload) * MS / n_replicas
