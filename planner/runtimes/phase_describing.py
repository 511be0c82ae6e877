"""A chosen candidate of one phase as a `PhaseDeployment`: a replica that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.estimates.candidates import CandidateTable
from planner.estimates.phases import passes
from planner.layouts import naming
from planner.results import Memory
from planner.results.phase_deployments import PhaseDeployment
from planner.runtimes.describe import Point, mesh_of, scalar
from planner.specs.records import FORMAT_BYTES, ModelSpec
from planner.specs.request import Request
from planner.specs.roles import DECODE
from planner.specs.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPhase:
    """A candidate of one phase.

    Args:
        role: which phase, of `planner.specs.roles`.
        arm: of the table.
        batch: of a pass.
    """

    role: str
    arm: int
    batch: int


def describe_phase(table: CandidateTable, request: Request, choice: ChosenPhase) -> PhaseDeployment:
    """The replica that a candidate of one phase stands for, evaluated afresh at its one point."""
    formats = table.formats[int(table.arm_formats[choice.arm])]
    layout = table.arms.take(np.array([choice.arm]))
    work, machine = passes(request.workload)[choice.role], table.machine
    margin = table.margins.of(choice.role)
    point = Point(machine, request.model, layout, formats, choice.batch, work, margin)
    mesh = mesh_of(machine, int(layout.mesh[0]))
    return PhaseDeployment(
        role=choice.role,
        mesh=mesh,
        weights_format=formats.weights,
        kv_format=formats.kv,
        storage=naming.notation(machine.meshes, layout, 0),
        phase=point.phase_plan(choice.role),
        memory=_memory(point, choice.role),
        usd_per_hour=mesh.n_devices * request.cluster.usd_per_hour,
        n_output_tokens=request.workload.n_output_tokens,
        n_passes=n_passes(request.workload, choice.role),
        handed_bytes=handed_bytes(request.model, request.workload, formats.kv),
        copied_axes=point.axes("data"),
        sliced_axes=point.axes("sliced"),
    )


def n_passes(workload: Workload, role: str) -> int:
    """Passes of one phase that a request takes."""
    return workload.n_decode_steps if role == DECODE else 1


def handed_bytes(model: ModelSpec, workload: Workload, kv_format: str) -> float:
    """The KV cache of one request at its input, of the whole model, each number once [bytes]."""
    at_own_format = model.kv_bytes(float(workload.n_input_tokens))
    return at_own_format * (FORMAT_BYTES[kv_format] / FORMAT_BYTES[model.kv_format])


def _memory(point: Point, role: str) -> Memory:
    """What the one phase holds in a pass."""
    device, held = point.machine.device, point.residence()
    is_decode = role == DECODE
    return Memory(
        fullest=role,
        weights_bytes=scalar(held.weight_bytes),
        decode_kv_bytes=scalar(held.kv_bytes) if is_decode else 0.0,
        prefill_kv_bytes=0.0 if is_decode else scalar(held.kv_bytes),
        written_kv_bytes=scalar(held.written_bytes) if is_decode else 0.0,
        activation_bytes=scalar(held.activation_bytes),
        gather_bytes=scalar(held.gather_bytes),
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
    )
