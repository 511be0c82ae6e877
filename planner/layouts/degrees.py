"""Degrees of layouts: over how many devices attention, stages, experts and copies are divided.

tensor × data    devices of one stage: `data` copies of attention, each cut `tensor` ways
pipeline         stages
expert           devices among which whole experts are divided
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.layouts.experts import expert_ways
from planner.layouts.geometry import geometry
from planner.layouts.naming import attention_name, expert_layout_name, layout_name
from planner.layouts.table import LayoutTable
from planner.specs.models import ModelSpec
from planner.specs.targets import Degrees, PhaseLayout
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


Names = Sequence[tuple[str, str]]
"""Of layouts: how FFN and projections are laid out, and what attention is cut over."""


def names_of(model: ModelSpec, layouts: LayoutTable, meshes: MeshTable) -> tuple[Names, IntArray]:
    """The names that layouts have, each once, and which of them is each layout's, (N,)."""
    keys = (
        layouts.mesh,
        layouts.stored,
        layouts.data,
        layouts.sliced,
        layouts.gathered,
        layouts.attention,
    )
    _, first, alike = np.unique(
        np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True
    )
    said = [(_name(model, layouts, meshes, row), attention_name(layouts, row)) for row in first]
    names = list(dict.fromkeys(said))
    number = np.array([names.index(one) for one in said], dtype=np.int64)
    return names, number[alike.reshape(-1)]


def have_name(
    model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, asked: PhaseLayout
) -> BoolArray:
    """Which layouts are the one that is asked for, (N,)."""
    if not asked.text or not len(layouts):
        return np.ones(len(layouts), dtype=np.bool_)
    names, number = names_of(model, layouts, meshes)
    named = np.array([asked.is_met(*name) for name in names], dtype=np.bool_)[number]
    if asked.n_microbatches is None:
        return named
    return np.asarray(named & (layouts.n_microbatches == asked.n_microbatches))


def _name(model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, row: int) -> str:
    if model.moe:
        return expert_layout_name(meshes, layouts, row, model.moe.n_experts)
    return layout_name(meshes, layouts, row)
