"""What layouts send and hold by the arrays of the search, beside what the account says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.candidates import machine_of
from planner.estimates.phases import passes
from planner.estimates.steps import Machine
from planner.layouts.degrees import axes_text
from planner.layouts.geometry import ALL_AXES, ATTENTION_NAMES, LayoutTable, Pass, geometry
from planner.layouts.layer import layer_work, residence
from planner.layouts.work import layer_kinds
from planner.results.audits import LayoutPrediction, Traffic
from planner.results.deployments import Deployment, PhasePlan
from planner.results.plans import Plan
from planner.specs.ask.request import Request
from planner.specs.records.devices import FORMAT_BYTES
from planner.topology.meshes import MeshTable

LONGEST = 2**40


def predicted(plan: Plan) -> LayoutPrediction:
    """A plan of layouts with what its passes send and the most tokens that fit."""
    request, deployment = plan.request, plan.deployment
    of = passes(request.workload)
    machine = machine_of(request.cluster, request.model)
    return LayoutPrediction(
        plan=plan,
        longest_context=_longest_context(request, deployment, machine, of["decode"]),
        prefill_traffic=_traffic(request, deployment, deployment.prefill, machine, of["prefill"]),
        decode_traffic=_traffic(request, deployment, deployment.decode, machine, of["decode"]),
    )


def _scalar(values: FloatArray) -> float:
    return float(np.asarray(values).flat[0])


def layout_of(deployment: Deployment, phase: PhasePlan, meshes: MeshTable) -> LayoutTable:
    """The layout of a phase, from the words of its deployment."""
    mesh = deployment.mesh
    alike = (meshes.axis_size == mesh.axes).all(axis=1) & (meshes.n_stages == mesh.n_stages)
    row = next(int(n) for n in np.flatnonzero(alike) if meshes.words(int(n)) == mesh.label)
    size = meshes.group_size[row]
    over_e = deployment.storage.split()[0].partition("_")[2]

    def mask(axes: str) -> int:
        return next(one for one in range(ALL_AXES + 1) if axes_text(size, one) == axes)

    def column(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([value])

    return LayoutTable(
        mesh=column(row),
        stored=column(mask(over_e)),
        gathered=column(mask(phase.gathered_axes)),
        attention=column(ATTENTION_NAMES.index(phase.attention)),
        n_microbatches=column(phase.n_microbatches),
        data=column(mask(deployment.copied_axes)),
        sliced=column(mask(deployment.sliced_axes)),
    )


def _traffic(
    request: Request, deployment: Deployment, phase: PhasePlan, machine: Machine, work: Pass
) -> tuple[Traffic, ...]:
    """What a pass sends, collectives of a kind over the same axes together."""
    layout = layout_of(deployment, phase, machine.meshes)
    sums: dict[tuple[str, str], float] = {}
    for kind, axes, n_bytes in _messages(request, deployment, phase, machine, layout, work):
        sums[kind, axes] = sums.get((kind, axes), 0.0) + n_bytes
    return tuple(
        Traffic(kind=kind, axes=axes, received_bytes=n_bytes)
        for (kind, axes), n_bytes in sorted(sums.items())
        if n_bytes
    )


def _messages(
    request: Request,
    deployment: Deployment,
    phase: PhasePlan,
    machine: Machine,
    layout: LayoutTable,
    work: Pass,
) -> Iterator[tuple[str, str, float]]:
    """Each collective of a layer: its kind, its axes, bytes of all layers and micro-batches."""
    shape = geometry(layout, machine.meshes)
    size = machine.meshes.group_size[int(layout.mesh[0])]
    for kind in layer_kinds(request.model, shape.n_stages):
        layer = layer_work(
            request.model,
            shape,
            kind.within(work),
            n_sequences=np.array([[float(phase.batch)]]),
            weight_bytes_per_number=np.array([[FORMAT_BYTES[deployment.weights_format]]]),
            kv_bytes_per_number=np.array([[FORMAT_BYTES[deployment.kv_format]]]),
            has_experts=kind.has_experts,
        )
        times = _scalar(kind.n_layers) * phase.n_microbatches
        for message in layer.messages:
            axes = axes_text(size, int(message.group.flat[0]))
            yield message.kind, axes, times * _scalar(message.received_bytes)


def _longest_context(request: Request, deployment: Deployment, machine: Machine, work: Pass) -> int:
    """Tokens of each sequence of the decode batch that memory holds while it decodes."""
    layout = layout_of(deployment, deployment.decode, machine.meshes)
    shape, device = geometry(layout, machine.meshes), machine.device
    room = device.hbm_bytes - device.reserve_bytes - deployment.memory.draft_bytes

    def fits(n_tokens: int) -> bool:
        held = residence(
            request.model,
            shape,
            replace(work, n_cached_tokens=float(n_tokens)),
            n_sequences=np.array([[float(deployment.decode.batch)]]),
            weight_bytes_per_number=np.array([[FORMAT_BYTES[deployment.weights_format]]]),
            kv_bytes_per_number=np.array([[FORMAT_BYTES[deployment.kv_format]]]),
        )
        parts = (held.weight_bytes, held.kv_bytes, held.activation_bytes, held.gather_bytes)
        return sum(_scalar(part) for part in parts) <= room

    low, high = 0, LONGEST  # what fits, and what does not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
