"""What layouts are called, from the axes that cut, gather and copy their weights.

Axes are bits of a mask, x the first; in a text they are the letters of those that have more than
one device.
"""

from planner.specs.records.devices import ModelSpec
from planner.verifier.findings import Invalid
from planner.verifier.scalar.parts import expert_ways, n_slices
from planner.verifier.scalar.shapes import N_AXES, Layout, ScalarMesh

LETTERS = "xyz"
ALL = (1 << N_AXES) - 1


def mask_of(text: str, mesh: ScalarMesh) -> int:
    """The axes of a text like `xz`.

    Raises:
        Refused: it is no list of axes of more than one device, in their order.
    """
    mask = sum(1 << LETTERS.index(letter) for letter in LETTERS if letter in text)
    if text != axes_text(mask, mesh):
        raise Invalid("names no axes of the mesh in their order", says=text)
    return mask


def axes_text(mask: int, mesh: ScalarMesh) -> str:
    """The letters of the axes of a mask that have more than one device."""
    return "".join(LETTERS[axis] for axis in mesh.members(mask))


def storage_of(mask: int, mesh: ScalarMesh) -> str:
    """How weights rest: `E_x F_yz`, the axes that cut E and those that cut F."""
    cut, rest = axes_text(mask, mesh), axes_text(~mask & ALL, mesh)
    return f"E{'_' * bool(cut)}{cut} F{'_' * bool(rest)}{rest}"


def stored_axes(storage: str, mesh: ScalarMesh) -> int:
    """The axes that cut E, from how weights rest.

    Raises:
        Refused: the mesh has no such way.
    """
    for mask in range(ALL + 1):
        if storage_of(mask, mesh) == storage:
            return mask
    raise Invalid("is no way to cut weights over the axes of the mesh", says=storage)


def layout_name(model: ModelSpec, layout: Layout) -> str:
    """`WS 2D`, `WG XY`; of experts `DP 2 × TP 4, EP 8`."""
    mesh = layout.mesh
    if mesh.n_devices == 1:
        return "one device"
    return _with_experts(layout) if model.moe else _dense(layout)


def _dense(layout: Layout) -> str:
    """Weights that stay, cut in one dimension or two; or gathered, over so many axes."""
    mesh, n_gathered = layout.mesh, layout.mesh.size(layout.gathered)
    if n_gathered == 1:
        return "WS 1D" if mesh.size(layout.stored) == 1 else "WS 2D"
    n_axes = N_AXES if n_gathered == mesh.n_devices else len(mesh.members(layout.gathered))
    return f"WG {'XYZ'[:n_axes]}"


def _with_experts(layout: Layout) -> str:
    """Degrees of copies, of gathering and of cutting attention; then those of experts."""
    size = layout.mesh.size
    degrees = [("DP", size(layout.data), ""), ("WG", size(layout.gathered), "")]
    degrees.append(("TP", size(layout.rest), " 2D" if size(layout.e_axes) > 1 else ""))
    attention = " × ".join(f"{name} {n}{more}" for name, n, more in degrees if n > 1)
    sliced = n_slices(layout)
    experts = f"EP {expert_ways(layout)}" + (f" × TP {sliced}" if sliced > 1 else "")
    return f"{attention}, {experts}"
