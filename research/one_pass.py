"""A pass of a model whose heads all devices share, as a roofline times it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.estimates.steps import Machine, peak_of
from planner.layouts.geometry import ALL_AXES, OVER_HEADS, LayoutTable, Pass, geometry
from planner.specs.records.models import ModelSpec
from tests.estimates.step_times import step_times


def pass_s(
    model: ModelSpec,
    machine: Machine,
    n_tensor: int,
    work: Pass,
    batches: Sequence[float],
    *,
    weight_bytes: float,
    multiplied: str,
    cuts_experts: bool = False,
) -> np.ndarray:
    """Seconds of a pass of each batch (B,).

    Args:
        n_tensor: devices that share the heads; a mesh of so many is one of the machine's.
        weight_bytes: of one weight.
        multiplied: format of the products.
        cuts_experts: whether they share each expert too; else each has experts of its own.
    """
    layouts = LayoutTable(
        mesh=np.array([machine.meshes.label.index(f"TP {n_tensor}")]),
        stored=np.array([0]),
        gathered=np.array([0]),
        attention=np.array([OVER_HEADS]),
        n_microbatches=np.array([1]),
        sliced=np.array([ALL_AXES if cuts_experts else 0]),
    )
    times = step_times(
        model,
        machine,
        layouts,
        geometry(layouts, machine.meshes),
        work=work,
        n_sequences=np.array(batches, dtype=float),
        weights_formats=np.array(weight_bytes),
        peak_flop_per_s=np.array(peak_of(machine.device, multiplied)),
    )
    return np.broadcast_to(np.squeeze(times.total_s), (len(batches),))
