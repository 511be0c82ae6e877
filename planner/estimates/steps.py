"""Seconds of a pass, term by term, for all layouts and batches at once.

    stage = roofline(compute, weights) + max(attention FLOP, KV traffic) + network + overhead
    pass  = (M + S − 1) stage

Nothing of the network is hidden: measured prefill at 45 % MFU beside 76 % with gathered
weights rejects that it could be (`docs/decisions/0003-time-model.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.equations import roofline
from planner.equations.arrays import FloatArray, IntArray, each_array
from planner.estimates.networks import NetworkTable
from planner.layouts.geometry import Geometry, LayoutTable, Pass
from planner.layouts.layer import head_work, layer_work, microbatch
from planner.layouts.work import WEIGHT_GATHER, Message, layer_kinds
from planner.specs.records.devices import FORMAT_BYTES, DeviceSpec, ModelSpec
from planner.specs.records.served_formats import NUMBER_FORMATS
from planner.topology.meshes import MeshTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a pass runs on: the device, its meshes and their network."""

    device: DeviceSpec
    meshes: MeshTable
    network: NetworkTable


def pass_times(machine: Machine, stage: StageWork, formats: Formats) -> FloatArray:
    """Time of one pass of every layout at every batch, (N, B) [s].

    Source: [Pope2022] §2-3; the form of the roofline and the overhead are fitted.
    """
    times = in_formats(machine, stage, formats)
    norm = roofline.smooth_roofline_s(
        times.compute_s, times.weights_s, exponent=machine.device.roofline_exponent
    )
    return passed(stage, norm + times.attention_s + times.network_s + times.overhead_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """Times of one stage for one micro-batch; compute and weights before they overlap [s]."""

    compute_s: FloatArray
    weights_s: FloatArray
    attention_s: FloatArray
    network_s: FloatArray
    overhead_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """What number formats cost, each (N, 1) or (1, 1).

    Args:
        weight_bytes, kv_bytes: of one number.
        peak_flop_per_s: of the matrix products.
    """

    weight_bytes: FloatArray
    kv_bytes: FloatArray
    peak_flop_per_s: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class KindWork:
    """What a stage does in its layers of one kind, whatever the number formats.

    Args:
        n_layers: of the kind.
        matmul_flop: of one layer.
        attention_s: arithmetic of attention in one layer.
        kv_s_per_byte: traffic of one layer's cache, at one byte a number.
        fixed_s: traffic of its states and of an indexer's keys.
        gathers: gathers of one layer's weights, at one byte a number.
    """

    n_layers: FloatArray
    matmul_flop: FloatArray
    attention_s: FloatArray
    kv_s_per_byte: FloatArray
    fixed_s: FloatArray
    gathers: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """One stage and one micro-batch of N layouts, before their number formats are said.

    Formats change what bytes and products take, never what is done: this is worked out once
    for all of them.

    Args:
        mesh, n_stages, n_microbatches: of each layout, (N, 1).
        kinds: the layers; what is there is of shape (N, 1), (1, B) or (N, B).
        head_flop: of the logits.
        weights_s_per_byte: traffic of all weights, at one byte a number.
        network_s: all messages but the gathers of weights.
        overhead_s: of layers, hops of messages included.
    """

    mesh: IntArray
    n_stages: FloatArray
    n_microbatches: IntArray
    kinds: tuple[KindWork, ...]
    head_flop: FloatArray
    weights_s_per_byte: FloatArray
    network_s: FloatArray
    overhead_s: FloatArray

    def take(self, rows: IntArray) -> StageWork:
        if len(rows) == len(self.mesh):
            return self

        def of(values: FloatArray) -> FloatArray:
            return values if len(values) == 1 else values[rows]

        kinds = (
            replace(each_array(kind, of), gathers=tuple(it.take(rows) for it in kind.gathers))
            for kind in self.kinds
        )
        return replace(
            each_array(self, of),
            mesh=self.mesh[rows],
            n_stages=self.n_stages[rows],
            n_microbatches=self.n_microbatches[rows],
            kinds=tuple(kinds),
        )


ONE_BYTE = np.ones((1, 1))


def stage_work(
    model: ModelSpec,
    machine: Machine,
    layouts: LayoutTable,
    shape: Geometry,
    work: Pass,
    batch: FloatArray,
    attention_format: str = "",
) -> StageWork:
    """What a stage does for a micro-batch, (1, B) or (N, B); scores in `attention_format`."""
    device = machine.device
    peak = peak_of(device, attention_format or model.activation_format)
    head = head_work(model, shape, n_sequences=batch, weight_bytes_per_number=ONE_BYTE)
    weights = _traffic_s(device, head.weight_bytes)
    network = _stage_handover_s(model, machine, layouts, shape, work, batch)
    overhead: FloatArray = np.zeros((1, 1))
    kinds = []
    for kind in layer_kinds(model, shape.n_stages):
        layer = layer_work(
            kind.model,
            shape,
            kind.within(work),
            n_sequences=batch,
            weight_bytes_per_number=ONE_BYTE,
            kv_bytes_per_number=ONE_BYTE,
            has_experts=kind.has_experts,
        )
        gathers = tuple(each for each in layer.messages if each.kind == WEIGHT_GATHER)
        others = tuple(each for each in layer.messages if each.kind != WEIGHT_GATHER)
        transfers, hops = _network(machine.network, layouts.mesh[:, None], others)
        _, first_hops = _network(machine.network, layouts.mesh[:, None], gathers)
        weights = weights + kind.n_layers * _traffic_s(device, layer.weight_bytes)
        network = network + kind.n_layers * transfers
        overhead = overhead + kind.n_layers * (device.layer_overhead_s + (first_hops + hops))
        kinds.append(
            KindWork(
                n_layers=kind.n_layers,
                matmul_flop=layer.matmul_flop,
                attention_s=_arithmetic_s(device, layer.attention_flop, peak)
                + _arithmetic_s(device, layer.index_flop, peak_of(device, "fp8")),
                fixed_s=_traffic_s(device, layer.fixed_bytes),
                kv_s_per_byte=_traffic_s(device, layer.kv_bytes),
                gathers=gathers,
            )
        )
    return StageWork(
        mesh=layouts.mesh[:, None],
        n_stages=shape.n_stages,
        n_microbatches=shape.n_microbatches,
        kinds=tuple(kinds),
        head_flop=head.matmul_flop * work.n_logits,
        weights_s_per_byte=weights,
        network_s=network,
        overhead_s=overhead,
    )


def in_formats(machine: Machine, stage: StageWork, formats: Formats) -> _Stage:
    """The times of a stage in number formats."""
    device, peak = machine.device, formats.peak_flop_per_s
    compute = _arithmetic_s(device, stage.head_flop, peak)
    attention: FloatArray = np.zeros((1, 1))
    network = stage.network_s
    for kind in stage.kinds:
        compute = compute + kind.n_layers * _arithmetic_s(device, kind.matmul_flop, peak)
        attention = attention + kind.n_layers * roofline.sharp_roofline_s(
            kind.attention_s, kind.kv_s_per_byte * formats.kv_bytes + kind.fixed_s
        )
        if any((message.n_devices > 1).any() for message in kind.gathers):
            priced = tuple(
                replace(message, n_bytes=message.n_bytes * formats.weight_bytes)
                for message in kind.gathers
            )
            network = network + kind.n_layers * _network(machine.network, stage.mesh, priced)[0]
    return _Stage(
        compute_s=compute,
        weights_s=stage.weights_s_per_byte * formats.weight_bytes,
        attention_s=attention,
        network_s=network,
        overhead_s=stage.overhead_s,
    )


def _arithmetic_s(device: DeviceSpec, flop: FloatArray, peak: FloatArray | float) -> FloatArray:
    return roofline.compute_s(flop, peak_flop_per_s=peak, fraction=device.compute_fraction)


def _traffic_s(device: DeviceSpec, n_bytes: FloatArray) -> FloatArray:
    return roofline.transfer_s(
        n_bytes, bytes_per_s=device.hbm_bytes_per_s, fraction=device.hbm_fraction
    )


def peak_of(device: DeviceSpec, number_format: str) -> float:
    """Peak of products with weights in a format, as multiplied; outliers in 16 bits [FLOP/s]."""
    name = device.multiplies(number_format)
    assert name is not None, "requests of such formats are refused"
    peak, share = device.peak_flop_per_s[name], NUMBER_FORMATS[number_format].outlier_fraction
    return 1.0 / ((1.0 - share) / peak + share / peak_of(device, "bf16")) if share else peak


def passed(stage: StageWork, stage_s: FloatArray) -> FloatArray:
    """A stage's time to the pass's; without a pipeline they are the same."""
    if (stage.n_stages * stage.n_microbatches == 1).all():
        return stage_s
    return roofline.flushed_pipeline_s(
        stage_s, n_stages=stage.n_stages, n_microbatches=stage.n_microbatches
    )


def _network(
    network: NetworkTable, mesh: IntArray, messages: tuple[Message, ...]
) -> tuple[FloatArray, FloatArray]:
    """Seconds of all transfers of a layer, and of all their hops.

    Only layouts in which several devices meet are looked at: most messages are of a few.
    """
    n_batches = max(message.n_bytes.shape[1] for message in messages)
    transfers = np.zeros((len(mesh), n_batches))
    hops = np.zeros((len(mesh), max(message.n_devices.shape[1] for message in messages)))
    for message in messages:
        rows = np.flatnonzero((message.n_devices > 1).any(axis=1))
        if len(rows) == len(mesh):
            transfer, latency = network.message_s(message, mesh)
            transfers += transfer
            hops += latency
        elif len(rows):
            transfer, latency = network.message_s(message.take(rows), mesh[rows])
            transfers[rows] += transfer
            hops[rows] += latency
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
