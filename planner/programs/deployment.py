"""The layout program of a request: candidates and targets as arrays with named constraints.

Units are those in which solvers' tolerances are harmless: milliseconds, GiB, and US dollars
per million output tokens.

Where a demand is asked for, a third slot chooses how many replicas of the deployment serve it:
n of them are n columns' worth of devices and of rent, and

    Σ demand × device time of a token x_j - Σ (n - 1) x_n ≤ 1                      demand

says that they are enough. A plan is credited with the demand and no more, so its cost per token
is the rent of all replicas over the demand.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.candidates import Block, CandidateTable, alone_bytes, usable_bytes
from planner.estimates.phases import PHASES
from planner.programs.amounts import PREFILLED, Fleet, Priced, Replica, ways_of, with_replicas
from planner.programs.blocks import NO_RELIEFS, BlockProgram, Objective, stated
from planner.programs.layout import LayoutProgram
from planner.programs.targets import (
    SIMPLICITY,
    Coefficients,
    Facts,
    Quantities,
    further,
    simplicity,
)
from planner.quantities.table import GIB, USD_PER_MTOKEN
from planner.specs.ask.request import Request
from planner.specs.records.devices import Workload
from planner.topology.packing import n_places

PREFILL, DECODE, REPLICAS = 0, 1, 2
"""Slots of a deployment."""


class Posing:
    """A request stated over its candidates, block by block.

    Phases take turns, and the sequences of a prefill become those of the decode batch, so that no
    sequence is held twice. While a prefill runs there are beside the weights its activations and
    gathered weights, and of the KV cache the larger of two:

        hbm         the decode batch at its full context
        prefilled   the sequences of a prefill at their input, and what the decode batch has
                    written meanwhile: some of them wait where decode takes fewer at once

    A decode pass needs its cache and its small working set; candidates that exceed the
    memory by themselves are left out.

    Args:
        table: the candidates.
        request: targets and prices.
        aim: what it is stated for. `hbm` is both rows of the memory; without `demand` there is one
            replica, and it is credited with all that it can serve.
        model: number of the model among those that are chosen among.
    """

    is_cut = False

    def __init__(
        self, table: CandidateTable, request: Request, aim: Objective, *, model: int = 0
    ) -> None:
        self._table, self._request, self._aim, self._model = table, request, aim, model
        self._scale = aim.memory
        self._fleet = Fleet.asked(request.targets, aim.without)
        device = Priced(
            usd_per_hour=request.cluster.usd_per_hour, tdp_w=request.cluster.device.tdp_w
        )
        self._ways = ways_of(_replica(request), device, request.targets, aim.without)

    def blocks(
        self, n_best: int | None = None, reliefs: Mapping[str, float] = NO_RELIEFS
    ) -> Iterator[BlockProgram]:
        """Every context once, with all of its columns."""
        for block in self._table.blocks():
            yield self._program(self._scale, block)

    def of(self, model: int, numbers: IntArray) -> BlockProgram:
        """Some contexts of the model with all of their columns, evaluated anew."""
        assert model == self._model
        return self._program(self._scale, self._table.block_of(numbers))

    def _program(self, scale: float, block: Block) -> BlockProgram:
        table, targets = self._table, self._request.targets
        room = usable_bytes(table.machine, scale=scale)
        numbers, context = np.unique(table.context[block.arms], return_inverse=True)
        contexts = {
            "model": np.full(len(numbers), self._model),
            "number": numbers,
            "n_devices": table.contexts.n_devices[numbers],
            "weight_bytes": table.contexts.weight_bytes[numbers],
        }
        if Fleet.asked(targets, ()).is_chosen:
            contexts["n_rooms"] = self._rooms[table.contexts.mesh[numbers]]
            contexts[SIMPLICITY] = self._simplicity[table.contexts.mesh[numbers]]
        facts, n_unfit, least_unfit = _fitting(table, block, context.reshape(-1), contexts, room)
        if self._fleet.is_chosen:
            facts = with_replicas(facts, self._fleet, REPLICAS)
        quantities = Quantities(self._ways, facts)
        posed = stated(
            quantities,
            self._aim,
            targets,
            slots=PHASES,
            room=room * GIB,
            first=(further(quantities, PREFILLED, room * GIB),),
            n_unfit=n_unfit,
        )

        def roomier(times: float) -> BlockProgram:
            more = usable_bytes(table.machine, scale=scale * times)
            if more >= least_unfit:  # there are further columns
                return self._program(scale * times, block)
            return replace(posed, program=_with_room(posed.program, more * GIB))

        return replace(posed, roomier=roomier)

    @cached_property
    def _rooms(self) -> IntArray:
        """Replicas of each mesh that the pool has room for, (M,)."""
        return n_places(self._request.cluster, self._table.machine.meshes)

    @cached_property
    def _simplicity(self) -> FloatArray:
        """Of a replica on each mesh, by its stages and the nodes that one spans, (M,)."""
        meshes = self._table.machine.meshes
        return simplicity(meshes.n_devices, meshes.n_stages, meshes.n_across)


def _with_room(program: LayoutProgram, room: float) -> LayoutProgram:
    """The program on devices with so much room, in both rows of the memory."""
    return replace(
        program,
        capacity_bytes=np.full(program.n_contexts, room),
        limits=tuple(
            replace(limit, at_most=room) if limit.name == PREFILLED else limit
            for limit in program.limits
        ),
    )


def _fitting(
    table: CandidateTable,
    block: Block,
    context: IntArray,
    contexts: dict[str, IntArray],
    room: float,
) -> tuple[Facts, int, float]:
    """All candidates that fit; how many do not, and the least memory that one of them takes.

    Prefill holds its working set beside the decode batch, and its cache beside what decode writes.
    """
    phases = [(PREFILL, 0, block.prefill)]
    phases += [(DECODE, variant, phase) for variant, phase in enumerate(block.decodes)]
    places, n_unfit, least_unfit = [], 0, np.inf
    for _, _, phase in phases:
        finite, alone = np.isfinite(phase.pass_s), alone_bytes(table, block, phase)
        fits = (alone <= room) & finite
        places.append(np.flatnonzero(fits))
        n_beyond = int(np.count_nonzero(finite) - len(places[-1]))
        n_unfit += n_beyond
        if n_beyond:
            least_unfit = min(least_unfit, float(alone[finite & ~fits].min()))
    ends = np.cumsum([len(at) for at in places])
    n_columns = int(ends[-1])
    whole = {name: np.zeros(n_columns, np.int64) for name in ("slot", "variant")}
    whole |= {name: np.empty(n_columns, np.int64) for name in ("arm", "batch")}
    numbers = {name: np.empty(n_columns) for name in ("pass_s", "held_bytes", "prefilled_bytes")}
    of_context = np.empty(n_columns, np.int64)
    # written in place: memory that is new costs more than arithmetic
    for (slot, variant, phase), at, end in zip(phases, places, ends.tolist(), strict=True):
        here = slice(end - len(at), end)
        row, index = np.divmod(at, len(phase.batches))
        block.arms.take(row, out=whole["arm"][here], mode="clip")
        context.take(row, out=of_context[here], mode="clip")
        phase.batches.take(index, out=whole["batch"][here], mode="clip")
        phase.pass_s.ravel().take(at, out=numbers["pass_s"][here], mode="clip")
        phase.written_bytes.ravel().take(at, out=numbers["prefilled_bytes"][here], mode="clip")
        if slot == PREFILL:
            phase.working_bytes.ravel().take(at, out=numbers["held_bytes"][here], mode="clip")
            numbers["prefilled_bytes"][here] += numbers["held_bytes"][here]
            continue
        phase.kv_bytes.ravel().take(at, out=numbers["held_bytes"][here], mode="clip")
        whole["slot"][here], whole["variant"][here] = slot, variant
    facts = Facts(context=of_context, of_context=contexts, of_column=whole | numbers)
    return facts, n_unfit, least_unfit


def _token_s(workload: Workload, facts: Facts) -> FloatArray:
    """Device time of an output token that a column takes; with a draft, of a round over its yield.

    A request is t_prefill/B_prefill + steps × t_decode/B_decode of it.
    """
    of = facts.of_column
    n_passes = np.where(of["slot"] == DECODE, float(workload.n_decode_steps), 1.0)
    return np.asarray(of["pass_s"] * n_passes / of["batch"] / workload.n_output_tokens)


def _device_s(workload: Workload, facts: Facts) -> FloatArray:
    return _token_s(workload, facts) * facts.of_context["n_devices"][facts.context]


def _pass_s(facts: Facts, *, slot: int) -> FloatArray:
    of = facts.of_column
    return np.where(of["slot"] == slot, of["pass_s"], 0.0)


def _n_sequences(facts: Facts) -> FloatArray:
    of = facts.of_column
    return np.where(of["slot"] == DECODE, of["batch"].astype(float), 0.0)


def _memory(facts: Facts) -> Coefficients:
    return facts.of_context["weight_bytes"] * GIB, facts.of_column["held_bytes"] * GIB


def _prefilled(facts: Facts) -> Coefficients:
    return facts.of_context["weight_bytes"] * GIB, facts.of_column["prefilled_bytes"] * GIB


def _decode_cost(workload: Workload, rent: float, facts: Facts) -> Coefficients:
    """Rent of a decoded token while one replica decodes."""
    devices = facts.of_context["n_devices"].astype(float)
    share = workload.n_decode_steps / workload.n_output_tokens  # the first token is prefill's
    token_s = _token_s(workload, facts) / (share or 1.0)
    usd = token_s * (devices * rent)[facts.context] / 3600.0 * USD_PER_MTOKEN
    return np.zeros(facts.n_contexts), np.where(facts.of_column["slot"] == DECODE, usd, 0.0)


def _replica(request: Request) -> Replica:
    """What the facts of a layout say of one replica."""
    workload, rent = request.workload, request.cluster.usd_per_hour
    return Replica(
        token_s=partial(_token_s, workload),
        device_s=partial(_device_s, workload),
        delays_s={"latency": partial(_pass_s, slot=DECODE), "ttft": partial(_pass_s, slot=PREFILL)},
        n_sequences=_n_sequences,
        memory=_memory,
        slot=REPLICAS,
        own={"decode_cost": partial(_decode_cost, workload, rent), PREFILLED: _prefilled},
    )
