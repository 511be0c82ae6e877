"""The account of a replica of one phase, from the request and from what was chosen.

Chosen are its role, the axes and stages of the mesh, number formats, how weights rest, and the
batch, micro-batches, gathered axes and attention of the phase. What hands over to what is no
matter of one replica.
"""

from collections.abc import Iterator
from dataclasses import replace

from planner.results.deployments import LayoutChoice, Memory
from planner.results.phase_deployments import PhaseDeployment
from planner.specs.ask.request import Request
from planner.specs.records.roles import DECODE, PREFILL
from planner.specs.validation.hints import from_fields
from planner.verifier.findings import TOLERANCE, Finding, Invalid, refused_in
from planner.verifier.layouts import deployments
from planner.verifier.layouts.names import axes_text, storage_of
from planner.verifier.layouts.phases import (
    Counted,
    Resting,
    counted,
    phase_plan,
    planned_over_predicted,
    resting,
)
from planner.verifier.quantities import MEASURES, further_of, limits_of
from planner.verifier.scalar.memory import held_bytes
from planner.verifier.scalar.shapes import OVER_HEADS, Layout

OWN_TARGETS = {PREFILL: ("ttft",), DECODE: ("tpot", "batch")}
"""Targets that a replica keeps by itself. The TTFT has the hand-over too: it may take no more."""


def phase_deployment(
    request: Request, chosen: LayoutChoice, ground: deployments.Context
) -> tuple[PhaseDeployment, list[Finding]]:
    """The account of a replica of one phase, and what is wrong with the choice.

    Args:
        request: what was asked of the model that is served.
        ground: what it stands on.

    Raises:
        Refused: the choice cannot be, so that nothing of it can be counted.
    """
    ((role, way),) = chosen.phases.items()
    if role not in OWN_TARGETS:
        raise Invalid("does no phase by itself", path=("role",), says=role)
    mesh, record = deployments.ground_mesh(request, chosen.mesh, ground)
    formats = (chosen.weights_format, chosen.kv_format)
    rests = resting(request.model, request.cluster, mesh, formats, chosen)
    with refused_in("phase"):
        tokens = deployments.tokens_of(request)
        planned = planned_over_predicted(request, role, rests.mesh.n_devices)
        pass_ = counted(rests, way, tokens[role], planned)
    device, workload = request.cluster.device, request.workload
    phase = from_fields(
        PhaseDeployment,
        chosen,
        role=role,
        mesh=record,
        storage=storage_of(rests.stored, rests.mesh),
        phase=phase_plan(role, pass_, device),
        memory=_memory(request, role, pass_),
        usd_per_hour=record.n_devices * request.cluster.usd_per_hour,
        n_output_tokens=workload.n_output_tokens,
        n_passes=1 if role == PREFILL else workload.n_decode_steps,
        handed_bytes=_handed_bytes(request, rests),
        copied_axes=axes_text(rests.data, rests.mesh),
        sliced_axes=axes_text(rests.sliced, rests.mesh),
    )
    phase = replace(phase, further=further_of(limits_of(request.targets), phase, device))
    wrong = [*deployments.unoffered(request, chosen, request.prefill_batches_apart, ("phase",))]
    wrong += deployments.unfit(phase.memory)
    wrong += deployments.undivided(request, pass_.layout)
    wrong += deployments.unasked_layouts(request, {role: phase.phase}, ("phase",))
    wrong += _broken_targets(request, phase)
    return phase, wrong


def _memory(request: Request, role: str, pass_: Counted) -> Memory:
    """What the one phase holds: of a decode batch all of its cache, of prompts their own."""
    device, held = request.cluster.device, pass_.held
    cache = {role: held.kv_bytes}
    return from_fields(
        Memory,
        held,
        fullest=role,
        decode_kv_bytes=cache.get(DECODE, 0.0),
        prefill_kv_bytes=cache.get(PREFILL, 0.0),
        written_kv_bytes=held.written_bytes if role == DECODE else 0.0,
        reserve_bytes=device.reserve_bytes,
        capacity_bytes=device.hbm_bytes,
    )


def _handed_bytes(request: Request, rests: Resting) -> float:
    """The cache of one request at its input: what a single device would hold of it."""
    n_input = float(request.workload.n_input_tokens)
    one_device = replace(rests.mesh, axes=(1, 1, 1), n_stages=1)
    whole = dict.fromkeys(("stored", "gathered", "data", "sliced"), 0)
    layout = from_fields(
        Layout, rests, mesh=one_device, attention=OVER_HEADS, n_microbatches=1, **whole
    )
    return held_bytes(layout, batch=1, n_new_tokens=n_input, n_cached_tokens=n_input).kv_bytes


def _broken_targets(request: Request, phase: PhaseDeployment) -> Iterator[Finding]:
    """Targets of the phase that do not hold by the recount."""
    limits = limits_of(request.targets)
    for name in OWN_TARGETS[phase.role]:
        measure, limit = MEASURES[name], limits.get(name)
        if limit is None:
            continue
        value = measure.of(phase)
        if not measure.is_kept(value, limit, TOLERANCE):
            fact = f"has {name} {value!r}, beyond {limit!r}"
            yield Finding(path=(), says=phase.summary, fact=fact)
