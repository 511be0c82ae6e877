"""Times of a pass part by part, as arrays have them; searches need their sum alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import FloatArray
from planner.equations.roofline import smooth_roofline_s
from planner.estimates.steps import Formats, Machine, in_formats, passed, peak_of, stage_work
from planner.layouts.geometry import Geometry, LayoutTable, Pass
from planner.specs.records.devices import FORMAT_BYTES, ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Time of one pass and its parts, broadcast to (N, B) [s]; the parts add up."""

    compute_s: FloatArray
    weights_s: FloatArray
    attention_s: FloatArray
    network_s: FloatArray
    overhead_s: FloatArray
    total_s: FloatArray


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
    formats = _formats(model, machine, weights_formats, kv_formats, peak_flop_per_s)
    batch = np.atleast_2d(np.asarray(n_sequences, dtype=float))
    stage = stage_work(model, machine, layouts, shape, work, batch)
    times = in_formats(machine, stage, formats)
    exponent = machine.device.roofline_exponent
    by_compute, by_weights = roofline_shares(times.compute_s, times.weights_s, exponent=exponent)
    total = by_compute + by_weights + times.attention_s + times.network_s + times.overhead_s
    return StepTimes(
        compute_s=passed(stage, by_compute),
        weights_s=passed(stage, by_weights),
        attention_s=passed(stage, times.attention_s),
        network_s=passed(stage, times.network_s),
        overhead_s=passed(stage, times.overhead_s),
        total_s=passed(stage, total),
    )


def _formats(
    model: ModelSpec,
    machine: Machine,
    weights_formats: FloatArray,
    kv_formats: FloatArray | None,
    peak_flop_per_s: FloatArray | None,
) -> Formats:
    kv = FORMAT_BYTES[model.kv_format] if kv_formats is None else kv_formats
    peak = peak_of(machine.device, model.activation_format)
    return Formats(
        weight_bytes=_column(weights_formats),
        kv_bytes=_column(kv),
        peak_flop_per_s=_column(peak if peak_flop_per_s is None else peak_flop_per_s),
    )


def _column(values: FloatArray | float) -> FloatArray:
    return np.asarray(values, dtype=float).reshape(-1, 1)


def roofline_shares(
    compute: ArrayLike, memory: ArrayLike, *, exponent: float
) -> tuple[FloatArray, FloatArray]:
    """Split `smooth_roofline_s` into a part due to compute and one due to memory [s].

    The norm is homogeneous of degree one, so by Euler's theorem it equals
    c ∂T/∂c + m ∂T/∂m: the two shares, cᵖ/Tᵖ⁻¹ and mᵖ/Tᵖ⁻¹, add up exactly.
    """
    total = smooth_roofline_s(compute, memory, exponent=exponent)
    scale = np.where(total > 0, total, 1.0)
    if np.isinf(exponent):
        binds = np.greater_equal(compute, memory)
        return np.where(binds, total, 0.0), np.where(binds, 0.0, total)
    by_compute = np.power(np.divide(compute, scale), exponent) * total
    by_memory = np.power(np.divide(memory, scale), exponent) * total
    return by_compute, by_memory
