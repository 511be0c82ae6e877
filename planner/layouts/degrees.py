"""Names and degrees of layouts: how far attention, stages, experts and copies are divided.

tensor × data    devices of one stage: `data` copies of attention, each cut `tensor` ways
pipeline         stages
expert           devices among which whole experts are divided
"""

from collections.abc import Sequence

import numpy as np

from planner.equations.arrays import BoolArray, IntArray
from planner.layouts.experts import expert_ways
from planner.layouts.geometry import ALL_AXES, ATTENTION_NAMES, LayoutTable, geometry
from planner.specs.ask.targets import Degrees, PhaseLayout
from planner.specs.records.models import ModelSpec
from planner.topology.meshes import MeshTable


def degrees_of(model: ModelSpec, layouts: LayoutTable, meshes: MeshTable) -> dict[str, IntArray]:
    """Degrees of each layout by name, (N,); `expert` only of models with experts."""
    shape = geometry(layouts, meshes)
    degrees = {
        "tensor": shape.n_tensor / shape.n_data,
        "pipeline": shape.n_stages,
        "data": shape.n_data,
    }
    if model.moe:
        degrees["expert"] = expert_ways(model, shape)
    return {name: np.rint(ways[:, 0]).astype(np.int64) for name, ways in degrees.items()}


def have_degrees(
    model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, degrees: Degrees
) -> BoolArray:
    """Which layouts have all the degrees that are fixed, (N,)."""
    fixed = degrees.fixed()
    kept = np.ones(len(layouts), dtype=np.bool_)
    if fixed:
        values = degrees_of(model, layouts, meshes)
        for name, degree in fixed.items():
            kept &= values[name] == degree
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
    model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, layout: PhaseLayout
) -> BoolArray:
    """Which layouts are the one that is asked for, (N,)."""
    if not layout.text or not len(layouts):
        return np.ones(len(layouts), dtype=np.bool_)
    names, number = names_of(model, layouts, meshes)
    named = np.array([layout.is_met(*name) for name in names], dtype=np.bool_)[number]
    if layout.n_microbatches is None:
        return named
    return np.asarray(named & (layouts.n_microbatches == layout.n_microbatches))


def _name(model: ModelSpec, layouts: LayoutTable, meshes: MeshTable, row: int) -> str:
    if model.moe:
        return expert_layout_name(meshes, layouts, row, model.moe.n_experts)
    return layout_name(meshes, layouts, row)


AXIS_NAMES = "xyz"


def layout_name(meshes: MeshTable, layouts: LayoutTable, row: int) -> str:
    """`WS 1D`, `WS 2D`, or `WG` with the number of axes gathered: `WG X`, `XY`, `XYZ`."""
    size = meshes.group_size[layouts.mesh[row]]
    gathered, stored = int(layouts.gathered[row]), int(layouts.stored[row])
    if size[gathered] > 1:
        covers = size[gathered] == size[ALL_AXES]
        n_axes = 3 if covers else len(axes_text(size, gathered))
        return "WG " + AXIS_NAMES[:n_axes].upper()
    if size[ALL_AXES] == 1:
        return "one device"
    return "WS 1D" if size[stored] == 1 else "WS 2D"


def expert_layout_name(meshes: MeshTable, layouts: LayoutTable, row: int, n_experts: int) -> str:
    """`TP 8, EP 8`; with data-parallel attention `DP 8, EP 8` or `DP 2 × TP 4, EP 8`.

    `WG 8` where the weights of attention are gathered instead of copied, `TP 8 2D` where E is
    cut too, `EP 8 × TP 9` where experts are cut along their FFN dimension.
    """
    size = meshes.group_size[layouts.mesh[row]]
    stored, data = int(layouts.stored[row]), int(layouts.data[row])
    gathered, sliced = int(layouts.gathered[row]), int(layouts.sliced[row])
    if size[ALL_AXES] == 1:
        return "one device"
    rest = ALL_AXES & ~(data | gathered)
    n_x, n_tensor = int(size[stored & rest]), int(size[rest])
    ways = max(
        int(size[group])
        for group in range(ALL_AXES + 1)
        if not group & (stored & rest | sliced) and size[group] <= n_experts
    )
    n_slices = int(size[ALL_AXES]) // (n_x * ways)
    parts = [
        f"{name} {n}" for name, n in (("DP", int(size[data])), ("WG", int(size[gathered]))) if n > 1
    ]
    parts += [f"TP {n_tensor}{' 2D' * (n_x > 1)}"] * (n_tensor > 1)
    return f"{' × '.join(parts)}, EP {ways}{f' × TP {n_slices}' * (n_slices > 1)}"


def notation(meshes: MeshTable, layouts: LayoutTable, row: int) -> str:
    """How weights rest, `E_x F_yz`: x stands for the axes that cut E."""
    size = meshes.group_size[layouts.mesh[row]]
    stored = int(layouts.stored[row])
    over_e = axes_text(size, stored)
    over_f = axes_text(size, ALL_AXES & ~stored)
    return " ".join(
        f"{letter}_{axes}" if axes else letter for letter, axes in (("E", over_e), ("F", over_f))
    )


def attention_name(layouts: LayoutTable, row: int) -> str:
    """`heads` or `batch`."""
    return ATTENTION_NAMES[int(layouts.attention[row])]


def axes_text(size: object, mask: int) -> str:
    """Names of the axes of a mask that have more than one device."""
    return "".join(
        name
        for axis, name in enumerate(AXIS_NAMES)
        if mask >> axis & 1 and size[1 << axis] > 1  # type: ignore[index]
    )
