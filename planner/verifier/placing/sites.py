"""A cluster in its state, vertex by vertex and link by link, from the request alone.

    node3/gpu5      device, linked to `node3/switch` and to its leaf switch
    leaf0/rail5     leaf switch of the devices 5, 5 + rails, … of its nodes; `leaf0` of one rail
    spine           joins the leaf switches
    0,3,7           device of a torus, linked to the next along each axis

Names begin with the group's where a pool has several, and with the torus's own beside servers.
Bandwidths are one way, as on the data sheets; of a leaf switch's links up all together, shared by
the devices below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from planner.specs.files.naming import DeviceStates, resolve_state
from planner.specs.files.pools import GroupSpec, MixedPoolSpec, PoolSpec, SiteSpec
from planner.specs.files.state import FREE, State
from planner.specs.records.devices import ClusterSpec, TorusFabric
from planner.specs.records.graphs import GraphSpec
from planner.specs.validation.hints import from_fields
from planner.verifier.layouts.meshes import closing, coordinates

DEVICE, SWITCH = "device", "switch"
SCALE_UP, ICI, LINK, SCALE_OUT, SPINE = "scale-up", "ici", "link", "scale-out", "spine"
INNER = (SCALE_UP, ICI, LINK)
"""Tiers of links inside a node."""

Cell = tuple[int, int, int]
"""Where a device of a torus is, along each axis."""


@dataclass(slots=True, kw_only=True)
class Vertex:
    """A device or a switch.

    Args:
        group: the group of a pool that a device is of.
        leaf: the leaf that a switch belongs to.
    """

    kind: str
    device: str = ""
    group: str = ""
    hbm_bytes: float = 0.0
    leaf: str = ""
    state: str = FREE
    speed_fraction: float = 1.0


@dataclass(slots=True, kw_only=True)
class Edge:
    """A link; `n_sharing` devices share it, None where that is not said."""

    bytes_per_s: float
    latency_s: float
    tier: str
    n_sharing: int | None = None


@dataclass(slots=True)
class Site:
    """Vertices by name, and the links of each by the vertex at the other end; in order."""

    vertices: dict[str, Vertex] = field(default_factory=dict)
    links: dict[str, dict[str, Edge]] = field(default_factory=dict)

    def add(self, name: str, vertex: Vertex) -> None:
        self.vertices[name] = vertex
        self.links.setdefault(name, {})

    def join(self, a: str, b: str, edge: Edge) -> None:
        """A link; a second one between the same takes its place."""
        for name in (a, b):
            if name not in self.vertices:
                self.add(name, Vertex(kind=""))
        self.links[a][b] = self.links[b][a] = edge

    def part(self, a: str, b: str) -> None:
        del self.links[a][b], self.links[b][a]

    @property
    def devices(self) -> list[str]:
        return [name for name, at in self.vertices.items() if at.kind == DEVICE]

    def edges(self) -> Iterator[tuple[str, str, Edge]]:
        """Each link once, in the order of vertices."""
        seen = set[str]()
        for a, beside in self.links.items():
            seen.add(a)
            for b, edge in beside.items():
                if b not in seen:
                    yield a, b, edge

    def up(self, name: str, tier: str) -> list[tuple[str, Edge]]:
        """The links of a vertex that are of a tier."""
        return [(other, edge) for other, edge in self.links[name].items() if edge.tier == tier]


def site_of(spec: SiteSpec, state: State | None) -> Site:
    """The cluster of a request in its state.

    Raises:
        SpecError: the state names what the cluster does not have.
    """
    if isinstance(spec, MixedPoolSpec):
        site = _of_pool(spec.servers)
        for torus in spec.tori:
            _add_torus(site, torus, f"{torus.name}/")
    elif isinstance(spec, PoolSpec):
        site = _of_pool(spec)
    elif isinstance(spec, GraphSpec):
        site = _of_graph(spec)
    else:
        site = Site()
        _add_torus(site, spec)
    if state is not None:
        _apply(state, site)
    return site


def _add_torus(site: Site, torus: ClusterSpec, before: str = "") -> None:
    fabric = torus.fabric
    assert isinstance(fabric, TorusFabric)
    rings = closing(fabric, fabric.shape)
    cells = list(product(*map(range, fabric.shape)))
    for cell in cells:
        site.add(before + cell_name(cell), Vertex(kind=DEVICE))
    for cell in cells:
        for axis, length in enumerate(fabric.shape):
            beside = list(cell)
            beside[axis] = (cell[axis] + 1) % length
            if cell[axis] + 1 < length or rings[axis]:
                edge = Edge(bytes_per_s=fabric.link_bytes_per_s, latency_s=fabric.hop_s, tier=ICI)
                site.join(before + cell_name(cell), before + cell_name(tuple(beside)), edge)


def cell_name(cell: tuple[int, ...]) -> str:
    return ",".join(map(str, cell))


def cell_of(name: str) -> Cell:
    x, y, z = map(int, name.rpartition("/")[2].split(","))
    return x, y, z


def named_alike(name: str, cell: tuple[int, ...]) -> str:
    """The device at a cell of the torus that a device of that name is of."""
    before, slash, _ = name.rpartition("/")
    return f"{before}{slash}{cell_name(cell)}"


def axes_of_box(shape: Cell, cells: Sequence[Cell]) -> tuple[int | None, ...] | None:
    """Axis of the pool that each axis of a mesh lies on; None where the cells make no box.

    A coordinate depends on the place along one axis of the mesh alone.
    """
    columns = list(zip(*cells, strict=True))
    along: list[int | None] = []
    for side, places in zip(shape, zip(*coordinates(shape), strict=True), strict=True):
        if side == 1:
            along.append(None)
            continue
        # one to one: as many pairs as places, and as coordinates
        fitting = [
            pool_axis
            for pool_axis, column in enumerate(columns)
            if len({*zip(places, column, strict=True)}) == side == len({*column})
        ]
        if len(fitting) != 1:
            return None
        along += fitting
    used = {*along} - {None}
    is_flat = all(axis in used or len({*column}) == 1 for axis, column in enumerate(columns))
    has_own = len(used) == sum(side > 1 for side in shape)
    return tuple(along) if is_flat and has_own else None


def _of_pool(pool: PoolSpec) -> Site:
    site = Site()
    site.add("spine", Vertex(kind=SWITCH))
    for group in pool.groups:
        prefix = f"{group.name}/" if len(pool.groups) > 1 else ""
        _add_leaves(site, group, prefix)
        for node in range(group.fabric.n_nodes):
            _add_node(site, group, prefix, node)
    return site


def _leaf_switch(group: GroupSpec, prefix: str, leaf: int, device: int) -> str:
    rail = f"/rail{device % group.n_rails}" if group.n_rails > 1 else ""
    return f"{prefix}leaf{leaf}{rail}"


def _add_leaves(site: Site, group: GroupSpec, prefix: str) -> None:
    """Leaf switches; their links up have the width of those down over the oversubscription."""
    fabric, per_leaf = group.fabric, group.n_nodes_per_leaf
    for leaf in range(-(-fabric.n_nodes // per_leaf)):
        n_nodes = min(per_leaf, fabric.n_nodes - leaf * per_leaf)
        for rail in range(group.n_rails):
            name = _leaf_switch(group, prefix, leaf, rail)
            site.add(name, Vertex(kind=SWITCH, leaf=f"{prefix}leaf{leaf}"))
            n_below = n_nodes * sum(
                device % group.n_rails == rail for device in range(fabric.n_devices_per_node)
            )
            if n_below:
                width = n_below * fabric.scale_out_bytes_per_s / group.oversubscription
                wait = group.spine_latency_s / 2
                edge = Edge(bytes_per_s=width, latency_s=wait, tier=SPINE, n_sharing=n_below)
                site.join(name, "spine", edge)


def _add_node(site: Site, group: GroupSpec, prefix: str, node: int) -> None:
    fabric, device = group.fabric, group.cluster.device
    switch = f"{prefix}node{node}/switch"
    site.add(switch, Vertex(kind=SWITCH))
    for index in range(fabric.n_devices_per_node):
        name = f"{prefix}node{node}/gpu{index}"
        vertex = Vertex(
            kind=DEVICE, device=device.name, group=group.name, hbm_bytes=device.hbm_bytes
        )
        site.add(name, vertex)
        inside, outside = (
            Edge(
                bytes_per_s=fabric.scale_up_bytes_per_s,
                latency_s=fabric.scale_up_latency_s / 2,
                tier=SCALE_UP,
            ),
            Edge(
                bytes_per_s=fabric.scale_out_bytes_per_s,
                latency_s=fabric.scale_out_latency_s / 2,
                tier=SCALE_OUT,
            ),
        )
        site.join(name, switch, inside)
        leaf = node // group.n_nodes_per_leaf
        site.join(name, _leaf_switch(group, prefix, leaf, index), outside)


def _of_graph(spec: GraphSpec) -> Site:
    site = Site()
    for at in spec.vertices:
        site.add(
            at.name,
            Vertex(
                kind=at.kind,
                device=at.device or "",
                group=at.kind_of or "",
                hbm_bytes=at.hbm_bytes or 0.0,
                leaf=at.leaf or "",
                state=at.state or FREE,
                speed_fraction=1.0 if at.speed_fraction is None else at.speed_fraction,
            ),
        )
    for one in spec.edges:
        site.join(one.a, one.b, from_fields(Edge, one, tier=one.tier or LINK))
    return site


def _apply(state: State, site: Site) -> None:
    """What is taken, slow, narrow and down."""
    switches = [name for name in site.vertices if site.vertices[name].kind != DEVICE]
    below: dict[str, list[str]] = {}
    for name in site.devices:
        for other, _ in site.up(name, SCALE_OUT):
            if site.vertices[other].leaf:
                below.setdefault(site.vertices[other].leaf, []).append(name)
    states = resolve_state(state, site.devices, switches, groups=below)
    for name, what in states.taken.items():
        site.vertices[name].state = what
    for name, fraction in states.speed_fraction.items():
        site.vertices[name].speed_fraction = fraction
    for (a, b), fraction in _narrowed(site, states).items():
        edge = site.links[a][b]
        if fraction > 0:
            narrow = replace(edge, bytes_per_s=edge.bytes_per_s * fraction)
            site.links[a][b] = site.links[b][a] = narrow
        else:
            site.part(a, b)


def _narrowed(site: Site, states: DeviceStates) -> dict[tuple[str, str], float]:
    """Links, and the fractions of their bandwidth that are left; of two words the last holds."""
    widths: dict[frozenset[str], float] = {}
    for fractions, tier in (
        (states.nic_fraction, SCALE_OUT),
        (states.scale_up_fraction, SCALE_UP),
        (states.uplink_fraction, SPINE),
    ):
        for name, fraction in fractions.items():
            for other, _ in site.up(name, tier):
                widths[frozenset((name, other))] = fraction
    for a, b, fraction in states.between:
        if b in site.links.get(a, {}):
            widths[frozenset((a, b))] = fraction
    return {(min(ends), max(ends)): fraction for ends, fraction in widths.items()}
