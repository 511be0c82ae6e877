"""A chosen candidate as a `Deployment`: the columns of a program in the words of the field."""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.candidates import CandidateTable, passes
from planner.estimates.steps import step_times
from planner.layouts import attention, naming
from planner.layouts.geometry import Geometry, Pass, geometry, spread
from planner.layouts.layer import microbatch, residence
from planner.layouts.table import LayoutTable
from planner.layouts.work import Residence
from planner.programs.deployment import DECODE, PREFILL, PosedProgram
from planner.programs.layout import Assignment
from planner.results import Deployment, Memory, Mesh, PhasePlan, StepTime
from planner.specs.records import FORMAT_BYTES
from planner.specs.request import Request


def describe(
    table: CandidateTable, posed: PosedProgram, request: Request, assignment: Assignment
) -> Deployment:
    """The deployment that an assignment stands for, evaluated afresh at its one point."""
    arms = posed.arm[list(assignment.columns)]
    batches = posed.batch[list(assignment.columns)]
    work = passes(request.workload)
    prefill = _Point(table, request, int(arms[PREFILL]), int(batches[PREFILL]), work["prefill"])
    decode = _Point(table, request, int(arms[DECODE]), int(batches[DECODE]), work["decode"])
    mesh = _mesh(table, int(table.contexts.mesh[assignment.context]))
    usd_per_hour = mesh.n_devices * request.cluster.usd_per_hour
    n_output = request.workload.n_output_tokens
    prefill_s = prefill.pass_s / prefill.batch
    decode_s = request.workload.n_decode_steps * decode.pass_s / decode.batch
    usd_per_token_s = usd_per_hour / 3600.0 / n_output
    return Deployment(
        mesh=mesh,
        weights_format=decode.format_name,
        kv_format=request.model.kv_format,
        storage=naming.notation(table.machine.meshes, decode.layout, 0),
        prefill=prefill.phase_plan("prefill"),
        decode=decode.phase_plan("decode"),
        memory=_memory(table, prefill.residence(), decode.residence()),
        usd_per_hour=usd_per_hour,
        usd_per_token=(prefill_s + decode_s) * usd_per_token_s,
        prefill_usd_per_token=prefill_s * usd_per_token_s,
        request_s=prefill_s + decode_s,
        n_output_tokens=n_output,
    )


class _Point:
    """One arm at one batch: its layout, geometry and pass."""

    def __init__(
        self, table: CandidateTable, request: Request, arm: int, batch: int, work: Pass
    ) -> None:
        self.table, self.model, self.work, self.batch = table, request.model, work, batch
        self.layout: LayoutTable = table.arms.take(np.array([arm]))
        self.shape: Geometry = geometry(self.layout, table.machine.meshes)
        self.format_name = table.formats[int(table.weights_format[arm])]
        self.width = np.array([[FORMAT_BYTES[self.format_name]]])
        self.step = self._step()
        self.pass_s = self.step.total_s

    def _step(self) -> StepTime:
        times = step_times(
            self.model,
            self.table.machine,
            self.layout,
            self.shape,
            work=self.work,
            n_sequences=self._batches(),
            weights_formats=self.width[:, 0],
        )
        parts = ("compute_s", "weights_s", "attention_s", "network_s", "overhead_s")
        return StepTime(**{part: _scalar(getattr(times, part)) for part in parts})

    def _batches(self) -> FloatArray:
        return np.array([[float(self.batch)]])

    def residence(self) -> Residence:
        return residence(
            self.model,
            self.shape,
            self.work,
            n_sequences=self._batches(),
            weight_bytes_per_number=self.width,
        )

    def phase_plan(self, phase: str) -> PhasePlan:
        device = self.table.machine.device
        meshes = self.table.machine.meshes
        n_devices = int(meshes.n_devices[self.layout.mesh[0]])
        n_tokens = self.batch * int(self.work.n_new_tokens)
        peak = device.peak_flop_per_s[self.model.activation_format] * n_devices
        model_flop = 2.0 * self.model.n_params_published * n_tokens
        return PhasePlan(
            phase=phase,
            batch=self.batch,
            n_microbatches=int(self.layout.n_microbatches[0]),
            layout=naming.layout_name(meshes, self.layout, 0),
            attention=naming.attention_name(self.layout, 0),
            n_kv_ways=self._kv_ways(),
            step=self.step,
            n_tokens=n_tokens,
            mfu_fraction=model_flop / (peak * self.pass_s),
        )

    def _kv_ways(self) -> int:
        part = spread(self.shape, microbatch(self.shape, self._batches()))
        ways = part.n_batch_ways * attention.kv_head_ways(self.model, self.shape, part)
        return round(_scalar(ways))


def _mesh(table: CandidateTable, row: int) -> Mesh:
    meshes = table.machine.meshes
    x, y, z = (int(size) for size in meshes.axis_size[row])
    wraps = tuple(bool(wrap) for wrap in meshes.axis_wraps[row])
    return Mesh(
        label=meshes.label[row],
        axes=(x, y, z),
        axes_wrap=(wraps[0], wraps[1], wraps[2]),
        is_torus=not bool(meshes.axis_is_switch[row].any()),
        n_stages=int(meshes.n_stages[row]),
        n_devices=int(meshes.n_devices[row]),
        n_positions=int(meshes.n_positions[row]),
    )


def _memory(table: CandidateTable, prefill: Residence, decode: Residence) -> Memory:
    device = table.machine.device
    return Memory(
        weights_bytes=_scalar(decode.weight_bytes),
        decode_kv_bytes=_scalar(decode.kv_bytes),
        prefill_kv_bytes=_scalar(prefill.kv_bytes),
        activation_bytes=_scalar(prefill.activation_bytes),
        gather_bytes=_scalar(prefill.gather_bytes),
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
    )


def _scalar(values: FloatArray) -> float:
    return float(np.asarray(values).reshape(-1)[0])
