"""Degrees of layouts: over how many devices attention, stages, experts and copies are divided.

tensor × data    devices of one stage: `data` copies of attention, each cut `tensor` ways
pipeline         stages
expert           devices among which whole experts are divided
"""

from __future__ import annotations

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.layouts.experts import expert_ways
from planner.layouts.geometry import geometry
from planner.layouts.table import LayoutTable
from planner.specs.models import ModelSpec
from planner.specs.targets import Degrees
from planner.topology.meshes import MeshTable


def degrees_of(model: ModelSpec, layouts: LayoutTable, meshes: MeshTable) -> dict[str, IntArray]:
    """Degrees of each layout by name, (N,); `expert` only of models with experts."""
    shape = geometry(layouts, meshes)
    found = {
        "tensor": shape.n_tensor / shape.n_data,
        "pipeline": shape.n_stages,
        "data": shape.n_data,
    }
    if model.moe:
        found["expert"] = expert_ways(model, shape)
    return {name: np.rint(ways[:, 0]).astype(np.int64) for name, ways in found.items()}


def have_degrees(
    model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, degrees: Degrees
) -> BoolArray:
    """Which layouts have all the degrees that are fixed, (N,)."""
    fixed = degrees.fixed()
    kept = np.ones(len(layouts), dtype=np.bool_)
    if fixed:
        found = degrees_of(model, layouts, meshes)
        for name, degree in fixed.items():
            kept &= found[name] == degree
    return kept
