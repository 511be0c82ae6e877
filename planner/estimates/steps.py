"""Seconds of a pass, term by term, for all layouts and batches at once.

    stage = roofline(compute, weights) + max(attention FLOP, KV traffic) + network + overhead
    pass  = (M + S − 1) stage

Nothing of the network is hidden: measured prefill at 45 % MFU beside 76 % with gathered
weights rejects that it could be (`docs/decisions/0003-time-model.md`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.equations import collectives, pipelines, roofline
from planner.equations.arrays import FloatArray
from planner.estimates.networks import NetworkTable
from planner.layouts.geometry import Geometry, Pass
from planner.layouts.layer import head_work, layer_work, microbatch
from planner.layouts.table import LayoutTable
from planner.layouts.work import ALL_TO_ALL, WEIGHT_GATHER, Message
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

    Source: [Pope2022] §2-3; the form of the roofline and the overhead are fitted.
    """
    stage = _stage(model, machine, layouts, shape, work, n_sequences, weights_formats)
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
) -> FloatArray:
    """`step_times(...).total_s` alone, in half the time, (N, B) [s]."""
    stage = _stage(model, machine, layouts, shape, work, n_sequences, weights_formats)
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


def _stage(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    work: Pass,
    n_sequences: FloatArray,
    weights_formats: FloatArray,
) -> _Stage:
    batch = np.atleast_2d(np.asarray(n_sequences, dtype=float))
    weight_bytes = np.asarray(weights_formats, dtype=float).reshape(-1, 1)
    layer = layer_work(model, shape, work, n_sequences=batch, weight_bytes_per_number=weight_bytes)
    head = head_work(model, shape, n_sequences=batch, weight_bytes_per_number=weight_bytes)
    n_layers = np.ceil(model.n_layers / shape.n_stages)
    device = machine.device
    peak, share = device.peak_flop_per_s[model.activation_format], device.compute_fraction
    rate = device.hbm_bytes_per_s

    def arithmetic(flop: FloatArray) -> FloatArray:
        return roofline.compute_s(flop, peak_flop_per_s=peak, fraction=share)

    def traffic(n_bytes: FloatArray) -> FloatArray:
        return roofline.transfer_s(n_bytes, bytes_per_s=rate, fraction=device.hbm_fraction)

    transfers, hops = _network(machine.network, layouts, layer.messages)
    handover = _stage_handover_s(model, machine, layouts, shape, work, batch)
    return _Stage(
        compute_s=arithmetic(n_layers * layer.matmul_flop + head.matmul_flop),
        weights_s=traffic(n_layers * layer.weight_bytes + head.weight_bytes),
        attention_s=n_layers
        * roofline.sharp_roofline_s(arithmetic(layer.attention_flop), traffic(layer.kv_bytes)),
        network_s=n_layers * transfers + handover,
        overhead_s=n_layers * (device.layer_overhead_s + hops),
    )


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
        group = message.group
        hops = hops + np.where(message.n_devices > 1, network.hop_s[mesh, group], 0.0)
        if message.kind == ALL_TO_ALL:
            transfers = transfers + message.n_bytes * network.all_to_all_s_per_byte[mesh, group]
            continue
        rates = (
            network.bulk_bytes_per_s
            if message.kind == WEIGHT_GATHER
            else network.activation_bytes_per_s
        )
        # a reduce-scatter moves what an all-gather does, the other way
        transfers = transfers + collectives.all_gather_s(
            message.n_bytes, message.n_devices, bytes_per_s=rates[mesh, group]
        )
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
    handed = collectives.point_to_point_s(
        share,
        bytes_per_s=machine.meshes.stage_bytes_per_s[mesh],
        hop_s=machine.meshes.stage_hop_s[mesh],
    )
    return np.where(shape.n_stages > 1, handed, 0.0)
