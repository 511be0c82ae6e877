"""All deployments of an engine on a pool, timed as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.equations.tails import planned_sigmas
from planner.estimates.serving.deployments import (
    DeploymentTable,
    deployments,
    has_experts,
    kind_of,
)
from planner.estimates.serving.drafting import drafts_of, has_drafter, rounds_of
from planner.estimates.serving.errors import RecordingClock, serving_errors
from planner.estimates.serving.grids import blocks, joined, with_small_chunks
from planner.estimates.serving.kernels import KernelClock
from planner.estimates.serving.memory import Holding, holding
from planner.estimates.serving.popularity import with_copies
from planner.estimates.serving.reading import has_room
from planner.estimates.serving.region import Settings, outside_error
from planner.estimates.serving.rules import Ground, Run, breaks_alone, is_valid, starts
from planner.estimates.serving.serving import Serving, serving_times
from planner.estimates.serving.times import place_s
from planner.estimates.serving.traffic import Drafts, Traffic
from planner.running.deadlines import is_over
from planner.specs.architecture import Architecture
from planner.specs.engine_request import EngineRequest
from planner.specs.engines.rules import EngineRule
from planner.specs.roles import PREFILL, TOGETHER
from planner.specs.served_formats import as_run


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoices:
    """Deployments that an engine would start, (J,) each.

    Args:
        table: the deployments.
        tpot_s, ttft_s: as predicted.
        prompt_s: from a free engine to a prompt's first token.
        tpot_error, ttft_error: relative standard deviations.
        outside_error: the part of them for what was not measured; 0 inside the measured region.
        fixed_bytes: weights and workspace of the fullest device.
        moving_bytes: activations and caches beside them, with the whole batch; the drafter.
        n_drafted: tokens drafted at once; 0 without drafts.
        model_index: which of the request's models each serves.
        limit_bytes: what the engine may take of a device.
        n_considered: deployments that break no rule of the engine, whether they fit or not.
        traffic: the requests, and what they do of them.
        confidence: share of cases in which what is planned holds; 0 plans what is predicted, and
            without one so does what was measured, while what was not is planned for `CONFIDENCE`.
        is_cut: whether time ended before all of them were timed.
    """

    table: DeploymentTable
    tpot_s: FloatArray
    ttft_s: FloatArray
    prompt_s: FloatArray
    tpot_error: FloatArray
    ttft_error: FloatArray
    outside_error: FloatArray
    fixed_bytes: FloatArray
    moving_bytes: FloatArray
    n_drafted: IntArray
    model_index: IntArray
    limit_bytes: float
    n_considered: int
    traffic: Traffic
    confidence: float | None
    is_cut: bool = False

    def __len__(self) -> int:
        return len(self.table)

    @property
    def role(self) -> str:
        return self.traffic.role

    @property
    def beyond(self) -> FloatArray:
        """Standard deviations beyond what is predicted that are planned."""
        outside = self.outside_error > 0.0
        return np.broadcast_to(planned_sigmas(self.confidence, outside), outside.shape)

    @property
    def tpot_high_s(self) -> FloatArray:
        """What is planned against."""
        return np.asarray(self.tpot_s * (1.0 + self.beyond * self.tpot_error))

    @property
    def ttft_high_s(self) -> FloatArray:
        """What is planned against."""
        return np.asarray(self.ttft_s * (1.0 + self.beyond * self.ttft_error))

    @property
    def place_s(self) -> FloatArray:
        """What a place takes for a token that is written and its part of the prompt, as planned."""
        prompt_s = self.prompt_s * (1.0 + self.beyond * self.ttft_error)
        ttft_s, tpot_s = self.ttft_high_s, self.tpot_high_s
        stay_s = place_s(self.traffic, ttft_s=ttft_s, tpot_s=tpot_s, prompt_s=prompt_s)
        return np.asarray(stay_s / self.traffic.n_output_tokens)

    def within(self, memory_scale: float) -> EngineChoices:
        """Those that fit so many times what the engine may take of a device."""
        held = self.fixed_bytes + self.moving_bytes
        return self.take(held <= self.limit_bytes * memory_scale)

    def take(self, kept: BoolArray) -> EngineChoices:
        """Some of them."""
        rows = np.flatnonzero(kept)
        arrays = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(EngineChoices)
            if field.name not in _OF_ALL
        }
        return replace(self, table=self.table.take(rows), **arrays)


_OF_ALL = ("table", "limit_bytes", "n_considered", "traffic", "confidence", "is_cut")
"""Fields of choices that are not one number each."""


def traffic_of(request: EngineRequest, role: str = TOGETHER) -> Traffic:
    """The requests that come, at random times, to deployments of one role."""
    return Traffic(
        n_input_tokens=float(request.workload.n_input_tokens),
        n_output_tokens=float(request.workload.n_output_tokens),
        hit_fraction=request.hit_fraction,
        role=role,
    )


def ground_of(request: EngineRequest) -> Ground:
    """What is known of all cuts of a request."""
    records = request.records
    return Ground(
        rules=records.engine.rules,
        device=records.cluster.device,
        n_per_node=request.cluster.n_devices_per_node,
    )


def degrees(model: Architecture, request: EngineRequest) -> DeploymentTable:
    """Every cut of the model over devices of the pool that the engine starts, of one sequence.

    Formats are the first of the request; the table is empty if no cut is left.
    """
    cuts = all_degrees(model, request)
    return cuts.take(is_valid(model, cuts, ground_of(request)))


def all_degrees(model: Architecture, request: EngineRequest) -> DeploymentTable:
    """Every cut of the request's degrees over devices of the pool, whether it starts or not."""
    tensor, data, stages = _cuts(model, request.cluster.n_devices)
    group = tensor * data
    row, expert = np.arange(len(group)), np.ones(len(group), dtype=np.int64)
    if has_experts(model):
        row, expert = _expert_groups(group)
    table = deployments(
        formats=request.formats,
        n_tensor=tensor[row],
        n_data=data[row],
        n_stages=stages[row],
        n_expert_parallel=expert,
    )
    table = with_copies(model, table, request.records.engine, ground_of(request))
    asked = request.targets.degrees
    kept = np.ones(len(table), dtype=np.bool_)
    for wanted, found in (
        (asked.tensor, table.n_tensor),
        (asked.data, table.n_data),
        (asked.pipeline, table.n_stages),
        (asked.expert, table.n_expert_parallel),
    ):
        if wanted is not None:
            kept &= found == wanted
    return table.take(kept)


def _cuts(model: Architecture, n_devices: int) -> tuple[IntArray, IntArray, IntArray]:
    """Tensor, data and pipeline degrees whose product is no more than the pool (K,)."""
    sizes = np.arange(1, n_devices + 1)
    heads = [layer.mixer.n_heads for layer in model.layers if layer.mixer is not None]
    tensor = sizes[np.all([n % sizes == 0 for n in heads], axis=0)] if heads else sizes
    stages = sizes[: model.n_layers]
    t, s = (axis.ravel() for axis in np.meshgrid(tensor, stages, indexing="ij"))
    t, s = t[t * s <= n_devices], s[t * s <= n_devices]
    most = n_devices // (t * s)
    row = np.repeat(np.arange(len(t)), most)
    data = np.arange(len(row)) - np.repeat(np.cumsum(most) - most, most) + 1
    return t[row], data, s[row]


def _expert_groups(group: IntArray) -> tuple[IntArray, IntArray]:
    """For each group of devices the ways to deal experts: rows of `group`, numbers of groups."""
    rows, counts = [], []
    for size in np.unique(group).tolist():
        ways = [n for n in range(1, size + 1) if size % n == 0]
        here = np.flatnonzero(group == size)
        rows.append(np.repeat(here, len(ways)))
        counts.append(np.tile(ways, len(here)))
    return np.concatenate(rows), np.concatenate(counts)


def choices(
    model: Architecture,
    clock: KernelClock,
    request: EngineRequest,
    *,
    memory_scale: float = 1.0,
    cuts: DeploymentTable | None = None,
    role: str = TOGETHER,
    forbidden: EngineRule | None = None,
) -> EngineChoices:
    """Time all deployments of one of the request's models whose batch fits.

    Args:
        clock: kernels of the pool's devices under the engine.
        cuts: ways to cut the model to choose from; all of `degrees` if left out.
        memory_scale: factor on what the engine may take of a device; those beyond are left out.
        role: what they do of a request.
        forbidden: a rule that the request's engine does without, and all of these break.
    """
    names = [one.name for one in request.models]
    which = names.index(model.name)
    cuts = degrees(model, request) if cuts is None else cuts
    traffic, ways = traffic_of(request, role), _drafts(model, request, role)
    parts: list[tuple[DeploymentTable, tuple[FloatArray, ...]]] = []
    n_considered, is_cut = 0, False
    ground = ground_of(request)
    for block in blocks(cuts, _formats_of(request, which), request, traffic):
        is_cut = bool(parts) and is_over()
        if is_cut:
            break
        formats = as_run(model, block.formats[int(block.format_index[0])], clock.engine)
        for way in ways:
            run = Run.of(role, formats, way)
            here = replace(ground, run=run)
            some = with_copies(model, block, clock.engine, here)
            is_known = np.array_equal(some.n_redundant, block.n_redundant)
            can = starts(here, model, some, beyond=ground if is_known else None)
            if forbidden:
                can &= ~starts(replace(here, rules=(forbidden,)), model, some)
            some = some.take(can & has_room(clock.engine, block, way, role))
            n_considered += len(some)
            parts.append(_timed(model, clock, traffic, some, memory_scale, way))
            if role == TOGETHER and clock.engine.mixes_prefill:
                rows, (tpot, decode, *_, error, _, outside, _, _, _) = parts[-1]
                slower = tpot * (1.0 + planned_sigmas(request.confidence, outside > 0.0) * error)
                again = with_small_chunks(rows, request, slower, decode)
                again = again.take(has_room(clock.engine, again, way, role))
                n_considered += len(again)
                parts.append(_timed(model, clock, traffic, again, memory_scale, way))
    if not parts:
        parts = [_timed(model, clock, traffic, cuts, memory_scale, None)]
    columns = [np.concatenate(column) for column in zip(*(p[1] for p in parts), strict=True)]
    tpot, _, ttft, prompt, tpot_error, ttft_error, outside, fixed, moving, n_drafted = columns
    return EngineChoices(
        table=joined([p[0] for p in parts]),
        tpot_s=tpot,
        ttft_s=ttft,
        prompt_s=prompt,
        tpot_error=tpot_error,
        ttft_error=ttft_error,
        outside_error=outside,
        fixed_bytes=fixed,
        moving_bytes=moving,
        n_drafted=n_drafted.astype(np.int64),
        model_index=np.full(len(tpot), which),
        limit_bytes=clock.device.hbm_bytes * clock.engine.memory_fraction,
        n_considered=n_considered,
        traffic=traffic,
        confidence=request.confidence,
        is_cut=is_cut,
    )


def cuts_forbidden(model: Architecture, request: EngineRequest) -> dict[str, DeploymentTable]:
    """Cuts, by name of a rule, of which a deployment of one sequence breaks it and nothing else."""
    cuts, engine = all_degrees(model, request), request.records.engine
    chunk = np.full(len(cuts), float(request.chunks[0]))
    alone: dict[str, BoolArray] = {}
    for index in _formats_of(request, [one.name for one in request.models].index(model.name)):
        formats = as_run(model, request.formats[index], engine)
        table = replace(cuts, chunk_tokens=chunk, format_index=np.full(len(cuts), index))
        for drafts in _drafts(model, request, TOGETHER):
            ground = replace(ground_of(request), run=Run.of(TOGETHER, formats, drafts))
            for name, hit in breaks_alone(ground, model, table).items():
                alone[name] = alone.get(name, False) | hit
    return {name: cuts.take(hit) for name, hit in alone.items() if hit.any()}


def _formats_of(request: EngineRequest, which: int) -> list[int]:
    """Formats of the request that one of its models may take."""
    known = request.models[which].weights_formats
    return [i for i, one in enumerate(request.formats) if not known or one.weights in known]


def _drafts(model: Architecture, request: EngineRequest, role: str) -> list[Drafts | None]:
    """Ways to decode: without drafts, and with each number of them, if the model can be drafted."""
    asked = request.drafting
    if asked is None or role == PREFILL or not has_drafter(model, asked.kind):
        return [rounds_of(model, None, 0, ())]
    rounds = (drafts_of(model, asked.kind, n, asked.acceptance) for n in asked.lookaheads)
    return [None, *rounds]


def _timed(
    model: Architecture,
    clock: KernelClock,
    traffic: Traffic,
    table: DeploymentTable,
    memory_scale: float,
    drafts: Drafts | None,
) -> tuple[DeploymentTable, tuple[FloatArray, ...]]:
    """Rows that fit, with TPOT, that without others' prompts, TTFT, time of a prompt, errors,
    bytes, and tokens drafted.

    All have the same formats, and draft alike.
    """
    engine = clock.engine
    formats = table.formats[int(table.format_index[0]) if len(table) else 0]

    def held(rows: DeploymentTable) -> Holding:
        hbm_bytes = clock.device.hbm_bytes
        n_tokens = traffic.n_tokens
        return holding(
            model, rows, formats, engine, hbm_bytes=hbm_bytes, n_tokens=n_tokens, drafts=drafts
        )

    bytes_of = held(table)
    fixed = bytes_of.weights_bytes + bytes_of.workspace_bytes
    moving = bytes_of.activation_bytes + table.batch * bytes_of.sequence_bytes
    moving = moving + bytes_of.drafter_bytes  # of some columns of a context and not of others
    fits = fixed + moving <= bytes_of.limit_bytes * memory_scale
    table, fixed, moving = table.take(fits), fixed[fits], moving[fits]
    n_drafted = np.full(len(table), drafts.n_drafted if drafts and drafts.n_passes else 0)
    if not len(table):
        return table, (*(np.zeros(0) for _ in range(7)), fixed, moving, n_drafted)
    recording = RecordingClock(clock=clock)
    serving = Serving(model=model, formats=formats, engine=engine, clock=recording)
    times = serving_times(serving, table, traffic, drafts=drafts)
    yields = drafts.yields if drafts else 1.0
    some = Settings(
        table=table,
        run_formats=serving.run_formats,
        role=traffic.role,
        n_drafted=int(n_drafted[0]),
        n_per_node=clock.network.n_per_node,
    )
    outside = outside_error(engine.name, clock.device.name, kind_of(model), traffic, some)
    errors = serving_errors(
        times,
        recording,
        engine,
        kind=kind_of(model),
        prefill_host_s=serving.prefill_host_s,
        yields=yields,
        outside=outside,
    )
    first = (times.tpot_s, times.itl_s / yields, times.ttft_s, times.prompt_s)
    return table, (*first, *errors, outside, fixed, moving, n_drafted)
