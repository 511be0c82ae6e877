"""All deployments of an engine on a pool, timed as arrays, or bounded before they are timed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.serving.choices import (
    EngineChoices,
    equal_degrees,
    ground_of,
    joined_choices,
    traffic_of,
)
from planner.estimates.serving.deployments import DeploymentTable, has_experts, kind_of
from planner.estimates.serving.drafting import drafts_of, has_drafter, rounds_of
from planner.estimates.serving.grids import Grid, blocks, grid_of, whole_requests
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import holding
from planner.estimates.serving.passes import equal_rows
from planner.estimates.serving.popularity import with_copies
from planner.estimates.serving.region import Settings, outside_error
from planner.estimates.serving.rules import Context, Run, breaks_alone, starts
from planner.estimates.serving.serving import (
    Serving,
    decode_s as token_s,
    least_times,
    serving_times,
)
from planner.estimates.serving.times import least_errors, serving_errors
from planner.estimates.serving.traffic import Drafts, Traffic, has_room
from planner.running.deadlines import is_over
from planner.specs.ask.engine import EngineRequest
from planner.specs.records.architecture import Architecture
from planner.specs.records.engine_rules import EngineRule
from planner.specs.records.roles import PREFILL, TOGETHER
from planner.specs.records.served_formats import ServedFormats, as_run

FIRST_ROWS = 1 << 11
"""Of the first block: what is met there rejects much of what comes."""

MOST_ROWS = 1 << 17
"""Of a block, of which spans of batches are bounded and few rows are timed."""

SAFE = 1.0 - 1e-9
"""Of what is a bound, beyond what sums round."""

_TIMES = ("tpot_s", "ttft_s", "prompt_s", "tpot_error", "ttft_error", "outside_error", "decode_s")


@dataclass(frozen=True, kw_only=True, eq=False)
class Timer:
    """What times deployments of one of a request's models.

    Args:
        clock: kernels of the pool's devices under the engine.
        role: what they do of a request.
        forbidden: a rule that the request's engine does without, and all of these break.
    """

    model: Architecture
    clock: KernelClock
    request: EngineRequest
    role: str = TOGETHER
    forbidden: EngineRule | None = None

    @cached_property
    def which(self) -> int:
        """Of the request's models."""
        return [one.name for one in self.request.models].index(self.model.name)

    @cached_property
    def traffic(self) -> Traffic:
        return traffic_of(self.request, self.role)

    @cached_property
    def grid(self) -> Grid:
        mixes = self.clock.engine.mixes_prefill
        return grid_of(self.request, self.traffic, mixes_prefill=mixes)

    @cached_property
    def formats(self) -> list[int]:
        """Formats of the request that the model may take."""
        known = self.request.models[self.which].weights_formats
        listed = enumerate(self.request.formats)
        return [i for i, one in listed if not known or one.weights in known]

    @cached_property
    def drafts(self) -> list[Drafts | None]:
        """Ways to decode: without drafts, and with each number of them, if it can be drafted."""
        model, drafting = self.model, self.request.drafting
        if drafting is None or self.role == PREFILL or not has_drafter(model, drafting.kind):
            return [rounds_of(model, None, 0, ())]
        rounds = (
            drafts_of(model, drafting.kind, n, drafting.acceptance) for n in drafting.lookaheads
        )
        return [None, *rounds]

    def offered(
        self, block: DeploymentTable, drafts: Drafts | None, chunks: FloatArray | None = None
    ) -> tuple[DeploymentTable, BoolArray]:
        """Deployments of one choice of formats, with the copies of experts that they have.

        Args:
            chunks: that each is asked of in the place of its own (C, 1).

        Returns:
            them, and which of them the engine starts and have room, (N,) or (C, N).
        """
        ground, here = ground_of(self.request), self._context(self._formats(block), drafts)
        some = with_copies(self.model, block, self.clock.engine, here)
        here = replace(here, chunks=chunks)
        is_known = np.array_equal(some.n_redundant, block.n_redundant)
        can = starts(here, self.model, some, beyond=ground if is_known else None)
        if self.forbidden:  # those that this rule alone keeps from starting
            can = can & ~starts(replace(here, rules=(self.forbidden,)), self.model, some)
        table = some if chunks is None else replace(some, chunk_tokens=chunks)
        return some, np.asarray(can & has_room(self.clock.engine, table, drafts, self.role))

    def _context(self, formats: ServedFormats, drafts: Drafts | None) -> Context:
        loaded = as_run(self.model, formats, self.request.records.engine)
        return replace(ground_of(self.request), run=Run.of(self.role, loaded, drafts))

    @cached_property
    def equal_cuts(self) -> DeploymentTable:
        """Cuts into equal parts, whether the engine starts them or not."""
        return equal_degrees(self.model, self.request)

    def cuts_forbidden(self, chunk_tokens: float) -> dict[str, DeploymentTable]:
        """Cuts, by name of a rule, of which a deployment of one sequence breaks it alone."""
        cuts, request = self.equal_cuts.with_chunk(chunk_tokens), self.request
        alone: dict[str, BoolArray] = {}
        for index in self.formats:
            table = replace(cuts, format_index=np.full(len(cuts), index))
            for drafts in self.drafts:
                ground = self._context(request.formats[index], drafts)
                for name, hit in breaks_alone(ground, self.model, table).items():
                    alone[name] = alone.get(name, False) | hit
        return {name: cuts.take(hit) for name, hit in alone.items() if hit.any()}

    def choices(
        self, cuts: DeploymentTable, memory_scale: float, *, to_end: bool = False
    ) -> EngineChoices:
        """All deployments of some cuts that fit, each in all formats, while there is time.

        Args:
            to_end: even if there is none: what is in hand is checked among them.
        """
        parts: list[EngineChoices] = []
        is_cut = False
        for block in blocks(cuts, self.formats, self.request, self.grid):
            # whatever the time, the first block is timed: there is something to answer with
            is_cut = bool(parts) and not to_end and is_over()
            if is_cut:
                break
            for drafts in self.drafts:
                some, can = self.offered(block, drafts)
                parts.append(self.exact(some.take(can), drafts, memory_scale))
        if not parts:  # of no cuts, all columns without a row
            parts.append(self.exact(cuts, None, memory_scale))
        return replace(joined_choices(parts), is_cut=is_cut)

    def n_drafted(self, drafts: Drafts | None) -> int:
        """Tokens drafted at once."""
        return drafts.n_drafted if drafts and drafts.n_passes else 0

    @cached_property
    def chunks(self) -> FloatArray:
        """That are offered, the least first (C,)."""
        return np.unique(self.grid.chunk_tokens)

    def blocks(
        self, cuts: DeploymentTable, *, n_first: int = FIRST_ROWS
    ) -> Iterator[DeploymentTable]:
        """Cuts with every batch and the least chunk; few first, so that something is soon met."""
        batch = np.sort(np.array(whole_requests(self.request.batches, self.traffic), dtype=float))
        grid = Grid(batch=batch, chunk_tokens=np.full(len(batch), self.chunks[0]))
        return blocks(cuts, self.formats, self.request, grid, n_first=n_first, n_most=MOST_ROWS)

    def in_chunks(
        self, block: DeploymentTable, drafts: Drafts | None
    ) -> tuple[DeploymentTable, BoolArray]:
        """Deployments with the least chunk (N,), and with which chunks they start (C, N)."""
        some, can = self.offered(block.with_chunk(self.chunks[0]), drafts, self.chunks[:, None])
        # rules and memory that no chunk changes say one row for all
        return some, np.array(np.broadcast_to(can, (len(self.chunks), len(some))))

    def decode_s(self, table: DeploymentTable, drafts: Drafts | None) -> FloatArray:
        """Time of a token while no prompt is read (N,) [s]."""
        return token_s(self._serving(table), table, self.traffic, drafts)

    def exact(
        self, table: DeploymentTable, drafts: Drafts | None, memory_scale: float
    ) -> EngineChoices:
        """Deployments that fit, of one choice of formats, that draft alike."""
        stays, held = self._held(table, drafts, memory_scale)
        fits = table.take(stays)
        if not len(fits):
            nothing = dict.fromkeys(_TIMES, np.zeros(0))
            return self._choices(fits, held, drafts, len(table), nothing)
        serving, yields = self._serving(fits), drafts.yields if drafts else 1.0
        times = serving_times(serving, fits, self.traffic, drafts=drafts)
        outside = self._outside(serving, fits, drafts)
        kind, host_s = kind_of(self.model), serving.prefill_host_s
        tpot_error, ttft_error = serving_errors(
            times,
            self.clock.engine,
            kind=kind,
            prefill_host_s=host_s,
            yields=yields,
            outside=outside,
        )
        values = {
            "tpot_s": times.tpot_s,
            "ttft_s": times.ttft_s,
            "prompt_s": times.prompt_s,
            "tpot_error": tpot_error,
            "ttft_error": ttft_error,
            "outside_error": outside,
            "decode_s": times.itl_s / yields,
        }
        return self._choices(fits, held, drafts, len(table), values)

    def least(
        self,
        table: DeploymentTable,
        drafts: Drafts | None,
        memory_scale: float,
        *,
        last: FloatArray,
        decode_s: tuple[FloatArray, FloatArray],
        reads: bool = True,
    ) -> tuple[BoolArray, EngineChoices]:
        """Deployments with as many batches each: which fit (N,), and these with times as bounds.

        They take what the least batch takes, of which the last gives most tokens.

        Args:
            table: with the least batch of each.
            last: the largest (N,).
            decode_s: a token of both while no prompt is read.
            reads: whether prompts are counted.
        """
        stays, held = self._held(table, drafts, memory_scale)
        fits = table.take(stays)
        if not len(fits):
            return stays, self.exact(fits, drafts, memory_scale)
        serving, last = self._serving(fits), last[stays]
        first_s, last_s = (each[stays] for each in decode_s)
        # before its first token a request is received, whatever else is not counted
        tpot, ttft = first_s, np.full(len(fits), serving.received_s(self.traffic))
        if reads:
            tpot, ttft = self._least_times(serving, fits, drafts, last, (first_s, last_s))
        outside = self._outside(serving, fits, drafts, last)
        errors = least_errors(self.clock.engine, kind_of(self.model), outside)
        values = {
            "tpot_s": tpot * SAFE,
            "ttft_s": ttft * SAFE,
            "prompt_s": np.zeros(len(fits)),
            "tpot_error": errors[0] * SAFE,
            "ttft_error": errors[1] * SAFE,
            "outside_error": outside,
            "decode_s": first_s,
        }
        # times of the least batch and tokens of the last: no batch between has better of either
        most = replace(fits, batch=last)
        return stays, self._choices(most, held, drafts, len(table), values)

    def _least_times(
        self,
        serving: Serving,
        fits: DeploymentTable,
        drafts: Drafts | None,
        last: FloatArray,
        decode_s: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, ...]:
        """With prompts: of deployments that do not differ in them once."""
        # copies of a model without experts have passes of their own, and send each other nothing
        experts = (fits.n_data, fits.n_expert_parallel, fits.n_redundant)
        columns = (fits.n_tensor, fits.n_stages, fits.overlaps, fits.batch, fits.chunk_tokens)
        columns = (*columns, last, *decode_s, *(experts if has_experts(self.model) else ()))
        some, row = equal_rows(columns)
        times = least_times(
            serving,
            fits.take(some),
            self.traffic,
            drafts,
            decode_s=decode_s[0][some],
            last=last[some],
            last_decode_s=decode_s[1][some],
        )
        return tuple(each[row] for each in times)

    def _formats(self, table: DeploymentTable) -> ServedFormats:
        # without rows nothing is timed, and any formats do
        return table.formats[int(table.format_index[0]) if len(table) else 0]

    def _serving(self, table: DeploymentTable) -> Serving:
        engine = self.clock.engine
        formats = self._formats(table)
        return Serving(model=self.model, formats=formats, engine=engine, clock=self.clock)

    def _held(
        self, table: DeploymentTable, drafts: Drafts | None, memory_scale: float
    ) -> tuple[BoolArray, dict[str, FloatArray]]:
        """Which rows fit (N,), and the bytes of these."""
        held = holding(
            self.model,
            table,
            self._formats(table),
            self.clock.engine,
            hbm_bytes=self.clock.device.hbm_bytes,
            n_tokens=self.traffic.n_tokens,
            **self.traffic.sharing(),
            drafts=drafts,
        )
        fixed = held.weights_bytes + held.workspace_bytes
        moving = held.activation_bytes + table.batch * held.sequence_bytes + held.shared_bytes
        moving = moving + held.drafter_bytes  # of some columns of a context and not of others
        if table.has_pools:  # of whichever device is fuller
            both = np.maximum(fixed + moving, held.pool_bytes)
            fixed = np.maximum(fixed, held.pool_weights_bytes + held.workspace_bytes)
            moving = both - fixed
        fits = np.asarray(fixed + moving <= held.limit_bytes * memory_scale)
        return fits, {"fixed_bytes": fixed[fits], "moving_bytes": moving[fits]}

    def _outside(
        self,
        serving: Serving,
        table: DeploymentTable,
        drafts: Drafts | None,
        last: FloatArray | None = None,
    ) -> FloatArray:
        some = Settings(
            table=table,
            run_formats=serving.run_formats,
            role=self.role,
            n_drafted=self.n_drafted(drafts),
            n_per_node=self.clock.network.n_per_node,
        )
        names = self.clock.engine.name, self.clock.device.name
        return outside_error(*names, kind_of(self.model), self.traffic, some, last=last)

    def _choices(
        self,
        table: DeploymentTable,
        held: Mapping[str, Any],
        drafts: Drafts | None,
        n_considered: int,
        times: Mapping[str, Any],
    ) -> EngineChoices:
        return EngineChoices(
            table=table,
            **held,
            **times,
            n_drafted=np.full(len(table), self.n_drafted(drafts)),
            model_index=np.full(len(table), self.which),
            limit_bytes=self.clock.device.hbm_bytes * self.clock.engine.memory_fraction,
            n_considered=n_considered,
            traffic=self.traffic,
            confidence=self.request.confidence,
        )
