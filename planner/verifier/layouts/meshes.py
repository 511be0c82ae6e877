"""The mesh of a deployment, built anew from its pool and the shape that was chosen.

A slice of a torus closes where its dimensions are whole cubes. Tensor groups behind switches
take devices of one node, or whole nodes; stages fill a node before the next. Links that are
listed one by one give the widest group of each size.
"""

from dataclasses import dataclass
from itertools import permutations, product
from math import gcd, prod

from planner.results.deployments import Mesh
from planner.specs.records.devices import ClusterSpec, LinkedFabric, NodesFabric, TorusFabric
from planner.verifier.findings import Invalid
from planner.verifier.layouts.places import widest_group
from planner.verifier.scalar.shapes import ScalarMesh
from planner.verifier.scalar.tiers import group_bytes_per_s

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where a slice lies in a torus that others use in part, as a placement counts on it.

    Args:
        closes: whether each axis is a ring.
        link_bytes_per_s: of the links along each axis.
    """

    closes: tuple[bool, bool, bool]
    link_bytes_per_s: tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """What stages hand over by, where that is not what the nodes have."""

    bytes_per_s: float
    hop_s: float


def mesh_of(
    cluster: ClusterSpec,
    chosen: Mesh,
    *,
    opening: Opening | None = None,
    handing: Handing | None = None,
) -> tuple[ScalarMesh, Mesh]:
    """The mesh with its links, and the record that describes it.

    Args:
        cluster: the pool.
        chosen: the record that is judged: its axes and stages are the choice.
        opening: of a slice beside others.
        handing: of stages in several leaves.

    Raises:
        Refused: the pool has no such mesh.
    """
    if min(chosen.axes) < 1 or chosen.n_stages < 1:
        raise Invalid("has an axis or stages of no device", path=("axes",), says=chosen.axes)
    if isinstance(cluster.fabric, TorusFabric):
        return _slice(cluster.fabric, chosen, opening)
    if isinstance(cluster.fabric, NodesFabric):
        return _in_nodes(cluster.fabric, chosen, handing)
    return _linked(cluster.fabric, chosen)


def _record(mesh: ScalarMesh, label: str, n_positions: int) -> Mesh:
    return Mesh(
        label=label,
        axes=mesh.axes,
        axes_wrap=mesh.wraps,
        is_torus=not mesh.is_switch,
        n_stages=mesh.n_stages,
        n_devices=mesh.n_devices * mesh.n_stages,
        n_positions=n_positions,
    )


def _slice(fabric: TorusFabric, chosen: Mesh, opening: Opening | None) -> tuple[ScalarMesh, Mesh]:
    x, y, z = sorted(chosen.axes)
    shape = (x, y, z)
    fits = all(a <= b for a, b in zip(shape, sorted(fabric.shape), strict=True))
    if not fits or not {*shape} <= {*fabric.slice_dims}:
        raise Invalid("is no slice of the torus", path=("axes",), says=chosen.axes)
    if chosen.n_stages != 1:
        raise Invalid("cannot be on a torus", path=("n_stages",), says=chosen.n_stages)
    link = fabric.link_bytes_per_s
    lies = opening or Opening(closes=closing(fabric, shape), link_bytes_per_s=(link, link, link))
    (a, b, c), links = lies.closes, lies.link_bytes_per_s
    wraps = (a and x > 2, b and y > 2, c and z > 2)  # two devices make no ring
    mesh = ScalarMesh(
        axes=shape,
        wraps=wraps,
        is_switch=False,
        axis_bytes_per_s=links,
        axis_hop_s=(fabric.hop_s, fabric.hop_s, fabric.hop_s),
        n_stages=1,
        stage_bytes_per_s=min(links),
        stage_hop_s=fabric.hop_s,
    )
    label = "×".join(map(str, shape))
    if opening:
        label = _open_label(label, shape, wraps, tuple(width / link for width in links))
        return mesh, _record(mesh, label, 0)
    return mesh, _record(mesh, label, _n_slices(fabric, shape))


def closing(fabric: TorusFabric, shape: Shape) -> tuple[bool, bool, bool]:
    """Axes of a slice that are rings: switches join the faces of whole cubes, of three or more."""
    whole = [side % fabric.wrap_multiple == 0 for side in shape]
    joined = whole if fabric.wraps_each_axis else [all(whole)] * 3
    a, b, c = (is_joined and side > 2 for is_joined, side in zip(joined, shape, strict=True))
    return a, b, c


def _n_slices(fabric: TorusFabric, shape: Shape) -> int:
    """Corners where a slice may start, in every way to turn it.

    It starts at multiples of what its side and the cube have in common; over the edge of the
    pool only where the pool is a ring.
    """
    rings = closing(fabric, fabric.shape)

    def starts(axis: int, side: int) -> int:
        length = fabric.shape[axis]
        if side >= length:
            return int(side == length)
        last = length if rings[axis] else length - side + 1
        return len(range(0, last, gcd(side, fabric.wrap_multiple)))

    return sum(
        prod(starts(axis, side) for axis, side in enumerate(turned))
        for turned in set(permutations(shape))
    )


def _open_label(
    label: str, shape: Shape, wraps: tuple[bool, ...], shares: tuple[float, ...]
) -> str:
    """`4×4×8 open`, `4×8×16 closed along 16, links along 8 at 50 %`."""
    rings = [(side, wrap) for side, wrap in zip(shape, wraps, strict=True) if side > 2]
    closed = [str(side) for side, wrap in rings if wrap]
    if rings and not closed:
        label += " open"
    elif len(closed) < len(rings):
        label += f" closed along {', '.join(closed)}"
    slow = [
        f"{side} at {100 * share:.3g} %"
        for side, share in zip(shape, shares, strict=True)
        if share < 1.0
    ]
    return label + (f", links along {', '.join(slow)}" if slow else "")


def _in_nodes(
    fabric: NodesFabric, chosen: Mesh, handing: Handing | None
) -> tuple[ScalarMesh, Mesh]:
    """Devices of one node, or of several whole ones; counted off along two axes, or one."""
    meshes = [
        _of_nodes(fabric, (t, m, chosen.n_stages), first, handing)
        for t, m, first in _readings(chosen.axes)
        if _fits_nodes(fabric, (t, m, chosen.n_stages), first)
    ]
    if not meshes:
        fact = f"has no room in {fabric.n_nodes} nodes of {fabric.n_devices_per_node} devices"
        raise Invalid(fact, path=("axes",), says=(*chosen.axes, chosen.n_stages))
    return next((one for one in meshes if one[1].label == chosen.label), meshes[0])


def _readings(axes: Shape) -> list[tuple[int, int, int]]:
    """Devices in a node, nodes, and the first of two axes in the node, 0 for one axis."""
    a, b, c = axes
    plain = [(a, b, 0)] if c == 1 else []
    return [*plain, (a * b, c, a)]


def _fits_nodes(fabric: NodesFabric, size: Shape, first: int) -> bool:
    (t, m, p), per_node = size, fabric.n_devices_per_node
    if t > per_node:
        return False
    fits = [
        t == per_node or _is_power(t),
        m == 1 or (t == per_node and _is_power(m)),
        p <= fabric.n_nodes // m * (per_node // t),
    ]
    if first:  # one switch joins all; a mesh of pairs has less for a part of its devices
        in_pairs = fabric.scale_up_pair_bytes_per_s is not None
        fits += [1 < first <= t // first, p == 1, not in_pairs]
    return all(fits)


def _is_power(n: int) -> bool:
    """Whether a number is a power of two."""
    return n & (n - 1) == 0


def _of_nodes(
    fabric: NodesFabric, size: Shape, first: int, handing: Handing | None
) -> tuple[ScalarMesh, Mesh]:
    (t, m, p), per_node = size, fabric.n_devices_per_node
    up = group_bytes_per_s(fabric, t) * fabric.scale_up_fraction
    out = fabric.scale_out_bytes_per_s * fabric.scale_out_fraction
    near, far = fabric.scale_up_latency_s, fabric.scale_out_latency_s
    stays = m == 1 and p * t <= per_node
    hands = (group_bytes_per_s(fabric, 2) * fabric.scale_up_fraction, near)
    if p > 1 and not stays:
        hands = (out, far)
    if handing is not None:
        hands = (handing.bytes_per_s, handing.hop_s)
    mesh = ScalarMesh(
        axes=(first, t // first, m) if first else (t, m, 1),
        wraps=(False, False, False),
        is_switch=True,
        tiers=(0, 0, 1) if first else (0, 1, 2),
        axis_bytes_per_s=(up, up, out) if first else (up, out, out),
        axis_hop_s=(near, near, far) if first else (near, far, far),
        n_stages=p,
        stage_bytes_per_s=hands[0],
        stage_hop_s=hands[1],
    )
    # stages that fit one node have shares of nodes, others runs of neighbouring nodes
    n_used = m * -(-p // (per_node // t))
    shares = fabric.n_nodes * (per_node // (p * t)) if stays else 0
    return mesh, _record(mesh, _words(mesh, m), shares or fabric.n_nodes - n_used + 1)


def _words(mesh: ScalarMesh, n_nodes: int) -> str:
    """What is said after the number of devices: `in one group`, `in 3 stages of 8`."""
    over = f"over {n_nodes} nodes" if n_nodes > 1 else ""
    if mesh.n_stages > 1:
        return " ".join(filter(None, (f"in {mesh.n_stages} stages of {mesh.n_devices}", over)))
    if mesh.n_devices == 1:
        return "alone"
    cut = "×".join(str(n) for n in mesh.axes if n > 1) if mesh.tiers[:2] == (0, 0) else ""
    return ", ".join(filter(None, (over or "in one group", cut)))


def _linked(fabric: LinkedFabric, chosen: Mesh) -> tuple[ScalarMesh, Mesh]:
    """The widest group of 1, 2, 4, … devices that the links connect."""
    size = prod(chosen.axes)
    link = widest_group(fabric, size) if chosen.axes == (size, 1, 1) else None
    if link is None or chosen.n_stages != 1:
        raise Invalid("is no group that the links connect", path=("axes",), says=chosen.axes)
    width, wait = link
    mesh = ScalarMesh(
        axes=(size, 1, 1),
        wraps=(False, False, False),
        is_switch=True,
        axis_bytes_per_s=(width, width, width),
        axis_hop_s=(wait, wait, wait),
        n_stages=1,
        stage_bytes_per_s=width,
        stage_hop_s=wait,
    )
    return mesh, _record(mesh, _words(mesh, 1), 1)


def in_nodes(mesh: Mesh) -> tuple[int, int]:
    """Devices of a group of servers in a node, and nodes of it, by its axes and its label."""
    a, b, c = mesh.axes
    return (a * b, c) if is_counted_off_twice(mesh) else (a, b)


def is_counted_off_twice(mesh: Mesh) -> bool:
    """Whether devices behind one switch are along two axes, by its axes and its label."""
    _, b, c = mesh.axes
    return not mesh.is_torus and (c > 1 or (b > 1 and f"over {b} nodes" not in mesh.label))


def coordinates(shape: Shape) -> list[Shape]:
    """Places of a mesh in the order of ranks: the last axis the fastest."""
    x, y, z = shape
    return list(product(range(x), range(y), range(z)))
