"""What the referee says of a plan: both phases recounted in plain scalar arithmetic.

The request's limits are compared with its count, not with ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.describe import chosen_draft
from planner.errors import SolverError
from planner.estimates import referee
from planner.estimates.candidates import CandidateTable
from planner.estimates.phases import NumberFormats, passes
from planner.estimates.steps import Machine
from planner.layouts.geometry import Pass
from planner.layouts.table import ATTENTION_NAMES, LayoutTable
from planner.programs.amounts import DECODE, REPLICAS
from planner.programs.layout import Assignment
from planner.programs.posed import PosedProgram
from planner.results import Deployment, PhasePlan, StepTime
from planner.specs.records import ModelSpec
from planner.specs.request import Request
from planner.topology.meshes import MeshTable

TOLERANCE = 1e-9
"""Relative, of a recount."""


def referee_verdict(
    table: CandidateTable,
    posed: PosedProgram,
    request: Request,
    assignment: Assignment,
    deployment: Deployment,
) -> tuple[str, ...]:
    """Recount a deployment by the referee; the names of the checks that it passed.

    Raises:
        SolverError: a figure differs from the referee's, or breaks a limit by its count.
    """
    work = passes(request.workload)
    before, after = (int(posed.arm[column]) for column in assignment.columns[:REPLICAS])
    draft = chosen_draft(table, posed, request, assignment.columns[DECODE])
    scored = work["decode"] if draft is None else draft.target_work

    def count(arm: int, phase: PhasePlan, tokens: Pass) -> _Count:
        formats = table.formats[int(table.arm_formats[arm])]
        layout = table.arms.take(np.array([arm]))
        return _recount(request, table.machine, request.model, layout, formats, phase.batch, tokens)

    prefill = count(before, deployment.prefill, work["prefill"])
    decode = count(after, deployment.decode, scored)
    wrong = _differences("prefill", deployment.prefill.step, prefill.time)
    wrong += _differences("decode", deployment.decode.step, decode.time)
    token_s, draft_bytes = decode.time.total_s, 0.0
    if draft is not None:
        point = draft.point
        own = _recount(
            request,
            table.machine,
            point.model,
            point.layout,
            point.formats,
            point.batch,
            point.work,
        )
        assert deployment.draft is not None
        wrong += _differences("draft", deployment.draft.step, own.time)
        token_s = (token_s + draft.n_drafted * own.time.total_s) / draft.n_yielded
        draft_bytes = own.all_bytes
    held_bytes = prefill.all_bytes + decode.held.kv_bytes + draft_bytes
    held_bytes += deployment.memory.reserve_bytes
    if not math.isclose(held_bytes, deployment.memory.used_bytes, rel_tol=TOLERANCE):
        wrong.append(f"memory {deployment.memory.used_bytes!r} is {held_bytes!r}")
    wrong += _beyond_capacity(held_bytes, deployment)
    # a decode pass has its working set beside its own cache alone
    peak_bytes = decode.all_bytes + draft_bytes + deployment.memory.reserve_bytes
    wrong += _beyond_capacity(peak_bytes, deployment)
    mesh = _referee_mesh(table.machine.meshes, int(table.arms.mesh[after]))
    request_s = _request_s(request, deployment, prefill.time.total_s, token_s)
    wrong += _wrong_fleet(request, deployment, mesh, request_s)
    wrong += _broken_targets(request, deployment, prefill.time.total_s, token_s)
    if wrong:
        raise SolverError("the referee disagrees with the plan: " + "; ".join(wrong))
    return (
        "every constraint of the unscreened program holds",
        *(
            ("every replica put in a place of its own, and the demand served by all of them",)
            if deployment.demand_tokens_per_s is not None
            else ()
        ),
        "seconds and bytes recounted by an independent scalar model",
        "targets hold by that recount",
    )


def _beyond_capacity(held_bytes: float, deployment: Deployment) -> list[str]:
    capacity_bytes = deployment.memory.capacity_bytes
    exceeds = held_bytes > capacity_bytes * (1 + TOLERANCE)
    return [f"memory {held_bytes!r} exceeds {capacity_bytes!r}"] if exceeds else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """The referee's seconds and bytes of one pass."""

    time: referee.RefereeTime
    held: referee.RefereeBytes

    @property
    def all_bytes(self) -> float:
        held = self.held
        return held.weights_bytes + held.kv_bytes + held.activation_bytes + held.gather_bytes


def _recount(
    request: Request,
    machine: Machine,
    model: ModelSpec,
    layout: LayoutTable,
    formats: NumberFormats,
    batch: int,
    work: Pass,
) -> _Count:
    mesh = _referee_mesh(machine.meshes, int(layout.mesh[0]))
    time = referee.step_time(
        model,
        request.cluster.device,
        request.cluster.fabric,
        mesh,
        stored=int(layout.stored[0]),
        gathered=int(layout.gathered[0]),
        data=int(layout.data[0]),
        sliced=int(layout.sliced[0]),
        attention=ATTENTION_NAMES[int(layout.attention[0])],
        n_microbatches=int(layout.n_microbatches[0]),
        batch=batch,
        n_new_tokens=work.n_new_tokens,
        n_context_tokens=work.n_context_tokens,
        weights_format=formats.weights,
        kv_format=formats.kv,
    )
    held = referee.held_bytes(
        model,
        mesh,
        stored=int(layout.stored[0]),
        gathered=int(layout.gathered[0]),
        data=int(layout.data[0]),
        sliced=int(layout.sliced[0]),
        attention=ATTENTION_NAMES[int(layout.attention[0])],
        n_microbatches=int(layout.n_microbatches[0]),
        batch=batch,
        n_new_tokens=work.n_new_tokens,
        n_cached_tokens=work.n_cached_tokens,
        weights_format=formats.weights,
        kv_format=formats.kv,
    )
    return _Count(time=time, held=held)


def _referee_mesh(meshes: MeshTable, row: int) -> referee.RefereeMesh:
    x, y, z = (int(size) for size in meshes.axis_size[row])
    wraps = [bool(wrap) for wrap in meshes.axis_wraps[row]]
    rates = [float(rate) for rate in meshes.axis_bytes_per_s[row]]
    hops = [float(hop) for hop in meshes.axis_hop_s[row]]
    tiers = meshes.axis_tier[row]
    return referee.RefereeMesh(
        axes=(x, y, z),
        wraps=(wraps[0], wraps[1], wraps[2]),
        is_switch=bool(meshes.axis_is_switch[row].any()),
        axis_bytes_per_s=(rates[0], rates[1], rates[2]),
        axis_hop_s=(hops[0], hops[1], hops[2]),
        n_stages=int(meshes.n_stages[row]),
        stage_bytes_per_s=float(meshes.stage_bytes_per_s[row]),
        stage_hop_s=float(meshes.stage_hop_s[row]),
        tiers=(int(tiers[0]), int(tiers[1]), int(tiers[2])),
    )


def _differences(name: str, step: StepTime, time: referee.RefereeTime) -> list[str]:
    return [
        f"{name} {part} {seconds!r} is {getattr(time, part + '_s')!r}"
        for part, seconds in step.parts()
        if not math.isclose(seconds, getattr(time, part + "_s"), rel_tol=TOLERANCE, abs_tol=1e-15)
    ]


def _request_s(request: Request, deployment: Deployment, ttft_s: float, tpot_s: float) -> float:
    """Device time of one request, by the referee's times [s]."""
    decode_s = request.workload.n_decode_steps * tpot_s / deployment.decode.batch
    return ttft_s / deployment.prefill.batch + decode_s


def _wrong_fleet(
    request: Request, deployment: Deployment, mesh: referee.RefereeMesh, request_s: float
) -> list[str]:
    """What is wrong with the replicas: their places, what they serve, and what they cost."""
    wrong, n_replicas = [], deployment.n_replicas
    n_devices_each = mesh.n_devices * mesh.n_stages
    found = referee.places(request.cluster.fabric, mesh) if n_replicas > 1 else []
    taken = [device for place in found[:n_replicas] for device in place]
    if n_replicas > 1 and not len(taken) == len({*taken}) == n_replicas * n_devices_each:
        wrong.append(f"{n_replicas} replicas have {len(found)} places")
    demand, n_output = request.targets.demand_tokens_per_s, request.workload.n_output_tokens
    served = n_replicas * n_output / request_s
    if demand is not None and served < demand * (1 - TOLERANCE):
        wrong.append(f"demand {demand!r} exceeds {served!r}")
    usd_per_token = referee.fleet_usd_per_token(
        n_replicas=n_replicas,
        n_devices_each=n_devices_each,
        usd_per_device_hour=request.cluster.usd_per_hour,
        request_s=request_s,
        n_output_tokens=n_output,
        demand_tokens_per_s=demand,
    )
    if not math.isclose(usd_per_token, deployment.usd_per_token, rel_tol=TOLERANCE):
        wrong.append(f"cost {deployment.usd_per_token!r} is {usd_per_token!r}")
    limit = request.targets.usd_per_token
    if limit is not None and usd_per_token > limit * (1 + TOLERANCE):
        wrong.append(f"cost {usd_per_token!r} exceeds {limit!r}")
    return wrong


def _broken_targets(
    request: Request, deployment: Deployment, ttft_s: float, tpot_s: float
) -> list[str]:
    """Targets that do not hold when they are computed from the referee's times."""
    targets = request.targets
    reached = (
        ("tpot", tpot_s, targets.tpot_s),
        ("ttft", ttft_s, targets.ttft_s),
        ("devices", deployment.n_replicas * deployment.mesh.n_devices, targets.n_devices),
    )
    broken = [
        f"{name} {value!r} exceeds {limit!r}"
        for name, value, limit in reached
        if limit is not None and value > limit * (1 + TOLERANCE)
    ]
    if targets.min_batch is not None and deployment.decode.batch < targets.min_batch:
        broken.append(f"batch {deployment.decode.batch} is below {targets.min_batch}")
    return broken
