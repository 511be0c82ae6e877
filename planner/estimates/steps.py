"""Seconds of a pass, term by term, for all layouts and batches at once.

    stage = roofline(compute, weights) + max(attention FLOP, KV traffic) + network + overhead
    pass  = (M + S − 1) stage

Nothing of the network is hidden: measured prefill at 45 % MFU beside 76 % with gathered
weights rejects that it could be (`docs/decisions/0003-time-model.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations import pipelines, roofline
from planner.equations.arrays import FloatArray
from planner.estimates.networks import NetworkTable
from planner.layouts.geometry import Geometry, Pass
from planner.layouts.kinds import layer_kinds
from planner.layouts.layer import head_work, layer_work, microbatch
from planner.layouts.table import LayoutTable
from planner.layouts.work import Message
from planner.specs.records import FORMAT_BYTES, DeviceSpec, ModelSpec
from planner.topology.meshes import MeshTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Time of one pass and its parts, broadcast to (N, B) [s]; the parts add up."""

    compute_s: FloatArray
    weights_s: FloatArray
    attention_s: FloatArray
    network_s: FloatArray
    overhead_s: FloatArray
    total_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a pass runs on: the device, its meshes and their network."""

    device: DeviceSpec
    meshes: MeshTable
    network: NetworkTable


def step_times(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    *,
    work: Pass,
    n_sequences: FloatArray,
    weights_formats: FloatArray,
    kv_formats: FloatArray | None = None,
    peak_flop_per_s: FloatArray | None = None,
) -> StepTimes:
    """Time of one pass of every layout at every batch, and its parts.

    Args:
        model: the model.
        machine: device, meshes, network.
        layouts: N layouts.
        shape: their `geometry`.
        work: tokens of the pass, for each sequence.
        n_sequences: batches, shape (B,), or (N, B) to differ by layout.
        weights_formats: bytes of one weight, shape (N,) or a scalar.
        kv_formats: bytes of one cached number, likewise; the model's own format without it.
        peak_flop_per_s: of the matrix products, likewise; that of activations without it.

    Source: [Pope2022] §2-3; the form of the roofline and the overhead are fitted.
    """
    formats = _Formats(
        weight_bytes=_column(weights_formats),
        kv_bytes=None if kv_formats is None else _column(kv_formats),
        peak_flop_per_s=None if peak_flop_per_s is None else _column(peak_flop_per_s),
    )
    stage = _stage(model, machine, layouts, shape, work, n_sequences, formats)
    exponent = machine.device.roofline_exponent
    by_compute, by_weights = roofline.roofline_shares(
        stage.compute_s, stage.weights_s, exponent=exponent
    )
    total = by_compute + by_weights + stage.attention_s + stage.network_s + stage.overhead_s
    return StepTimes(
        compute_s=_passed(shape, by_compute),
        weights_s=_passed(shape, by_weights),
        attention_s=_passed(shape, stage.attention_s),
        network_s=_passed(shape, stage.network_s),
        overhead_s=_passed(shape, stage.overhead_s),
        total_s=_passed(shape, total),
    )


def pass_times(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    *,
    work: Pass,
    n_sequences: FloatArray,
    weights_formats: FloatArray,
    kv_formats: FloatArray | None = None,
    peak_flop_per_s: FloatArray | None = None,
) -> FloatArray:
    """`step_times(...).total_s` alone, in half the time, (N, B) [s]."""
    formats = _Formats(
        weight_bytes=_column(weights_formats),
        kv_bytes=None if kv_formats is None else _column(kv_formats),
        peak_flop_per_s=None if peak_flop_per_s is None else _column(peak_flop_per_s),
    )
    stage = _stage(model, machine, layouts, shape, work, n_sequences, formats)
    norm = roofline.smooth_roofline_s(
        stage.compute_s, stage.weights_s, exponent=machine.device.roofline_exponent
    )
    return _passed(shape, norm + stage.attention_s + stage.network_s + stage.overhead_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Times of one stage for one micro-batch; compute and weights before they overlap [s]."""

    compute_s: FloatArray
    weights_s: FloatArray
    attention_s: FloatArray
    network_s: FloatArray
    overhead_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formats:
    """What number formats cost, each (N, 1) or (1, 1)."""

    weight_bytes: FloatArray
    kv_bytes: FloatArray | None
    peak_flop_per_s: FloatArray | None


def _column(values: FloatArray) -> FloatArray:
    return np.asarray(values, dtype=float).reshape(-1, 1)


def _stage(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    work: Pass,
    n_sequences: FloatArray,
    formats: _Formats,
) -> _Stage:
    batch = np.atleast_2d(np.asarray(n_sequences, dtype=float))
    device = machine.device
    activation_peak = np.array([[peak_of(device, model.activation_format)]])
    matmul_peak = activation_peak if formats.peak_flop_per_s is None else formats.peak_flop_per_s

    def arithmetic(flop: FloatArray, peak: FloatArray) -> FloatArray:
        return roofline.compute_s(flop, peak_flop_per_s=peak, fraction=device.compute_fraction)

    def traffic(n_bytes: FloatArray) -> FloatArray:
        return roofline.transfer_s(
            n_bytes, bytes_per_s=device.hbm_bytes_per_s, fraction=device.hbm_fraction
        )

    head = head_work(model, shape, n_sequences=batch, weight_bytes_per_number=formats.weight_bytes)
    compute = arithmetic(head.matmul_flop, matmul_peak)
    weights = traffic(head.weight_bytes)
    attention: FloatArray = np.zeros((1, 1))
    network = _stage_handover_s(model, machine, layouts, shape, work, batch)
    overhead: FloatArray = np.zeros((1, 1))
    for kind in layer_kinds(model, shape.n_stages):
        layer = layer_work(
            model,
            shape,
            kind.within(work),
            n_sequences=batch,
            weight_bytes_per_number=formats.weight_bytes,
            kv_bytes_per_number=formats.kv_bytes,
            has_experts=kind.has_experts,
        )
        transfers, hops = _network(machine.network, layouts, layer.messages)
        compute = compute + kind.n_layers * arithmetic(layer.matmul_flop, matmul_peak)
        weights = weights + kind.n_layers * traffic(layer.weight_bytes)
        attention = attention + kind.n_layers * roofline.sharp_roofline_s(
            arithmetic(layer.attention_flop, activation_peak), traffic(layer.kv_bytes)
        )
        network = network + kind.n_layers * transfers
        overhead = overhead + kind.n_layers * (device.layer_overhead_s + hops)
    return _Stage(
        compute_s=compute,
        weights_s=weights,
        attention_s=attention,
        network_s=network,
        overhead_s=overhead,
    )


def peak_of(device: DeviceSpec, number_format: str) -> float:
    """Peak of products in a format; of 16 bits either way, when the device has only one [FLOP/s].

    Weights in a format that the device does not multiply are converted to 16 bits.
    """
    peaks = device.peak_flop_per_s
    return next(peaks[name] for name in (number_format, "bf16", "fp16") if name in peaks)


def _passed(shape: Geometry, stage_s: FloatArray) -> FloatArray:
    """A stage's time to the pass's; without a pipeline they are the same."""
    if (shape.n_stages * shape.n_microbatches == 1).all():
        return stage_s
    return pipelines.flushed_pipeline_s(
        stage_s, n_stages=shape.n_stages, n_microbatches=shape.n_microbatches
    )


def _network(
    network: NetworkTable, layouts: LayoutTable, messages: tuple[Message, ...]
) -> tuple[FloatArray, FloatArray]:
    """Seconds of all transfers of a layer, and of all their hops."""
    mesh = layouts.mesh[:, None]
    transfers = np.zeros((len(layouts), 1))
    hops = np.zeros((len(layouts), 1))
    for message in messages:
        if not (message.n_devices > 1).any():
            continue
        transfer, latency = network.message_s(message, mesh)
        transfers, hops = transfers + transfer, hops + latency
    return transfers, hops


def _stage_handover_s(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    work: Pass,
    batch: FloatArray,
) -> FloatArray:
    """Hand one micro-batch's activations to the next stage, each device its own share [s]."""
    if not (shape.n_stages > 1).any():
        return np.zeros((len(layouts), 1))
    mesh = layouts.mesh[:, None]
    token_bytes = model.d_model * FORMAT_BYTES[model.activation_format]
    share = microbatch(shape, batch) * (work.n_new_tokens * token_bytes) / shape.n_tensor
    handed = machine.network.handover_s(share, mesh)
    return np.where(shape.n_stages > 1, handed, 0.0)
