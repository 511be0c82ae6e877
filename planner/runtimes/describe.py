"""A chosen candidate as a `Deployment`: the columns of a program in the words of the field."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.equations.speculation import expected_tokens, n_scored
from planner.estimates.candidates import CandidateTable
from planner.estimates.phases import NumberFormats, passes
from planner.estimates.steps import Machine, peak_of, step_times
from planner.layouts import attention, naming
from planner.layouts.divisions import uneven
from planner.layouts.geometry import Geometry, Pass, geometry, spread
from planner.layouts.layer import microbatch, residence
from planner.layouts.table import LayoutTable
from planner.layouts.work import Residence
from planner.programs.deployment import DECODE, PREFILL, REPLICAS
from planner.programs.layout import Assignment
from planner.programs.posed import PosedProgram
from planner.results import Deployment, Division, DraftPlan, Memory, Mesh, PhasePlan, StepTime
from planner.specs.records import FORMAT_BYTES, ModelSpec
from planner.specs.request import Request, Speculation


def describe(
    table: CandidateTable, posed: PosedProgram, request: Request, assignment: Assignment
) -> Deployment:
    """The deployment that an assignment stands for, evaluated afresh at its one point."""
    columns = assignment.columns
    arms, batches = posed.arm[list(columns)], posed.batch[list(columns)]
    work, model, machine = passes(request.workload), request.model, table.machine

    def point(slot: int, phase: Pass) -> Point:
        arm = int(arms[slot])
        formats = table.formats[int(table.arm_formats[arm])]
        layout = table.arms.take(np.array([arm]))
        margin = table.margins.of("prefill" if slot == PREFILL else "decode")
        return Point(machine, model, layout, formats, int(batches[slot]), phase, margin)

    prefill = point(PREFILL, work["prefill"])
    draft = chosen_draft(table, posed, request, columns[DECODE])
    scored = work["decode"] if draft is None else draft.target_work
    decode = point(DECODE, scored)
    token_s = decode.pass_s if draft is None else draft.token_s(decode.pass_s)
    mesh = mesh_of(machine, int(table.arms.mesh[arms[DECODE]]))
    n_replicas, demand = posed.fleet(REPLICAS, assignment, request.targets)
    usd_per_hour = n_replicas * mesh.n_devices * request.cluster.usd_per_hour
    n_output = request.workload.n_output_tokens
    prefill_s = prefill.pass_s / prefill.batch
    decode_s = request.workload.n_decode_steps * token_s / decode.batch
    # idle time is paid for too, by the tokens that there are
    credited = n_replicas * n_output / (prefill_s + decode_s) if demand is None else demand
    usd_per_token = usd_per_hour / 3600.0 / credited
    return Deployment(
        mesh=mesh,
        weights_format=decode.formats.weights,
        kv_format=decode.formats.kv,
        storage=naming.notation(machine.meshes, decode.layout, 0),
        prefill=prefill.phase_plan("prefill"),
        decode=decode.phase_plan("decode"),
        memory=_memory(machine, prefill, decode, draft),
        usd_per_hour=usd_per_hour,
        usd_per_token=usd_per_token,
        prefill_usd_per_token=usd_per_token * (prefill_s / (prefill_s + decode_s)),
        request_s=prefill_s + decode_s,
        n_output_tokens=n_output,
        draft=None if draft is None else draft.plan(),
        n_replicas=n_replicas,
        demand_tokens_per_s=demand,
        copied_axes=decode.axes("data"),
        sliced_axes=decode.axes("sliced"),
        further=posed.further(request.targets.limits(), assignment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDraft:
    """The draft of one decode column.

    Args:
        speculation: what the request allows.
        n_drafted: tokens proposed before each pass.
        point: the draft's own layout, evaluated.
        work: a decode pass without a draft.
    """

    speculation: Speculation
    n_drafted: int
    point: Point
    work: Pass

    @property
    def target_work(self) -> Pass:
        """The target's pass, which scores what was proposed."""
        scored = n_scored(self.n_drafted, convention=self.speculation.convention)
        return replace(self.work, n_new_tokens=float(scored))

    @property
    def n_yielded(self) -> float:
        return expected_tokens(
            self.n_drafted, self.speculation.acceptance, convention=self.speculation.convention
        )

    def token_s(self, target_s: float) -> float:
        """Time of a round over the tokens that it yields."""
        return (target_s + self.n_drafted * self.point.pass_s) / self.n_yielded

    def held_bytes(self) -> float:
        held = self.point.residence()
        parts = held.weight_bytes, held.kv_bytes, held.activation_bytes, held.gather_bytes
        return sum(scalar(part) for part in parts)

    def plan(self) -> DraftPlan:
        point = self.point
        return DraftPlan(
            model=point.model.name,
            n_drafted=self.n_drafted,
            acceptance=self.speculation.acceptance,
            n_yielded=self.n_yielded,
            weights_format=point.formats.weights,
            layout=point.layout_name(),
            attention=naming.attention_name(point.layout, 0),
            storage=naming.notation(point.machine.meshes, point.layout, 0),
            step=point.step,
            held_bytes=self.held_bytes(),
            gathered_axes=point.axes("gathered"),
            copied_axes=point.axes("data"),
            sliced_axes=point.axes("sliced"),
        )


def chosen_draft(
    table: CandidateTable, posed: PosedProgram, request: Request, column: int
) -> ChosenDraft | None:
    """The draft of a decode column; `None` where it decodes without one."""
    variant = table.variants[int(posed.variant[column])]
    if variant.n_drafted == 0 or request.speculation is None or table.drafts is None:
        return None
    drafts, arm = table.drafts, int(posed.arm[column])
    formats = int(table.arm_formats[arm])
    row = drafts.chosen[formats, int(table.arms.mesh[arm]), variant.rank]
    work = passes(request.workload)["decode"]
    return ChosenDraft(
        speculation=request.speculation,
        n_drafted=variant.n_drafted,
        work=work,
        point=Point(
            table.machine,
            request.speculation.draft,
            drafts.arms.take(np.array([row])),
            drafts.formats[formats],
            int(posed.batch[column]),
            work,
            table.margins.decode,
        ),
    )


class Point:
    """One layout of a model at one batch: its geometry and its pass, with a margin."""

    def __init__(
        self,
        machine: Machine,
        model: ModelSpec,
        layout: LayoutTable,
        formats: NumberFormats,
        batch: int,
        work: Pass,
        margin: float,
    ) -> None:
        self.machine, self.model, self.layout = machine, model, layout
        self.formats, self.batch, self.work, self.margin = formats, batch, work, margin
        self.shape: Geometry = geometry(layout, machine.meshes)
        self.width = np.array([[FORMAT_BYTES[formats.weights]]])
        self.cached = np.array([[FORMAT_BYTES[formats.kv]]])
        self.step = self._step()
        self.pass_s = self.step.total_s

    def _step(self) -> StepTime:
        times = step_times(
            self.model,
            self.machine,
            self.layout,
            self.shape,
            work=self.work,
            n_sequences=self._batches(),
            weights_formats=self.width,
            kv_formats=self.cached,
            peak_flop_per_s=np.array([peak_of(self.machine.device, self.formats.weights)]),
        )
        parts = ("compute_s", "weights_s", "attention_s", "network_s", "overhead_s")
        return StepTime(**{part: self.margin * scalar(getattr(times, part)) for part in parts})

    def _batches(self) -> FloatArray:
        return np.array([[float(self.batch)]])

    def residence(self) -> Residence:
        return residence(
            self.model,
            self.shape,
            self.work,
            n_sequences=self._batches(),
            weight_bytes_per_number=self.width,
            kv_bytes_per_number=self.cached,
        )

    def phase_plan(self, phase: str) -> PhasePlan:
        device, meshes = self.machine.device, self.machine.meshes
        n_devices = int(meshes.n_devices[self.layout.mesh[0]])
        n_tokens = self.batch * int(self.work.n_new_tokens)
        peak = peak_of(device, self.formats.weights) * n_devices
        active = self.model.n_active_params_published or self.model.n_params_published
        model_flop = 2.0 * active * n_tokens
        return PhasePlan(
            phase=phase,
            batch=self.batch,
            n_microbatches=int(self.layout.n_microbatches[0]),
            layout=self.layout_name(),
            attention=naming.attention_name(self.layout, 0),
            n_kv_ways=self._kv_ways(),
            step=self.step,
            n_tokens=n_tokens,
            mfu_fraction=model_flop / (peak * self.pass_s),
            gathered_axes=self.axes("gathered"),
            divisions=self._divisions(),
        )

    def axes(self, of: str) -> str:
        """Axes of a mask of the layout, by name: `gathered`, `data`, `sliced`."""
        size = self.machine.meshes.group_size[self.layout.mesh[0]]
        return naming.axes_text(size, int(getattr(self.layout, of)[0]))

    def layout_name(self) -> str:
        meshes, moe = self.machine.meshes, self.model.moe
        if moe:
            return naming.expert_layout_name(meshes, self.layout, 0, moe.n_experts)
        return naming.layout_name(meshes, self.layout, 0)

    def _divisions(self) -> tuple[Division, ...]:
        part = spread(self.shape, microbatch(self.shape, self._batches()))
        return tuple(
            Division(things=things, n_things=n_things, n_parts=n_parts)
            for things, n_things, n_parts in uneven(self.model, self.shape, part)
        )

    def _kv_ways(self) -> int:
        part = spread(self.shape, microbatch(self.shape, self._batches()))
        ways = part.n_batch_ways * attention.kv_head_ways(self.model, self.shape, part)
        return round(scalar(ways))


def mesh_of(machine: Machine, row: int) -> Mesh:
    meshes = machine.meshes
    x, y, z = (int(size) for size in meshes.axis_size[row])
    wraps = tuple(bool(wrap) for wrap in meshes.axis_wraps[row])
    return Mesh(
        label=meshes.words(row),
        axes=(x, y, z),
        axes_wrap=(wraps[0], wraps[1], wraps[2]),
        is_torus=not bool(meshes.axis_is_switch[row].any()),
        n_stages=int(meshes.n_stages[row]),
        n_devices=int(meshes.n_devices[row]),
        n_positions=int(meshes.n_positions[row]),
    )


def _memory(machine: Machine, prefill: Point, decode: Point, draft: ChosenDraft | None) -> Memory:
    """The fuller of two moments: in a prefill, and in a decode pass of the whole batch."""
    device, before, after = machine.device, prefill.residence(), decode.residence()
    draft_bytes = 0.0 if draft is None else draft.held_bytes()

    def moment(fullest: str, during: Residence) -> Memory:
        return Memory(
            fullest=fullest,
            weights_bytes=scalar(after.weight_bytes),
            decode_kv_bytes=scalar(after.kv_bytes),
            prefill_kv_bytes=scalar(before.kv_bytes),
            written_kv_bytes=scalar(after.written_bytes),
            activation_bytes=scalar(during.activation_bytes),
            gather_bytes=scalar(during.gather_bytes),
            draft_bytes=draft_bytes,
            reserve_bytes=device.reserve_bytes,
            capacity_bytes=device.hbm_bytes,
        )

    moments = moment("prefill", before), moment("decode", after)
    return max(moments, key=lambda memory: memory.used_bytes)


def scalar(values: FloatArray) -> float:
    return float(np.asarray(values).reshape(-1)[0])
