"""Replicas on slices of a torus: every line and ring of every slice, link by link.

A slice is a box of devices along the axes of the pool. Neighbours on a line of its mesh are joined
by a link of the pool, or by the switches, which join the faces of whole cubes over the links of
both ends. An axis that is counted as a ring closes in one of these ways.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd, prod

from planner.results.deployments import Mesh
from planner.results.phase_deployments import LayoutDeployment
from planner.results.placements import Channel, KindUse, Rank, Replica, RunConfig
from planner.specs.ask.placement import PlacementRequest, Serve
from planner.specs.files.state import FREE
from planner.specs.records.devices import ClusterSpec, Provenance, TorusFabric
from planner.verifier.certificates import ON_A_TORUS, RECOUNTED
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.layouts.deployments import Context as Standing
from planner.verifier.layouts.meshes import Opening, coordinates
from planner.verifier.placing.fabrics import slowed
from planner.verifier.placing.parts import GroupRead, channel_of, narrower_than_counted
from planner.verifier.placing.sites import Cell, Site, axes_of_box, cell_of, named_alike

AXES = ("x", "y", "z")
SPAN = "torus"
Line = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A slice as its ranks lie.

    Args:
        shape: devices along the axes of the mesh.
        names: of devices, by rank.
        cells: their coordinates in the pool.
        along: axis of the pool that each axis of the mesh lies on; None of one device.
    """

    shape: Cell
    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    along: tuple[int | None, ...]

    def lines(self, axis: int) -> Iterator[Line]:
        """Devices along one axis of the mesh, line by line."""
        step = prod(self.shape[axis + 1 :])
        for rank in range(len(self.names)):
            # the first of a line is at 0 along the axis, the others follow it in strides
            if rank // step % self.shape[axis] == 0:
                yield tuple(self.names[rank + k * step] for k in range(self.shape[axis]))


class TorusStand:
    """A torus in the state of the request.

    Args:
        site: the same, in that state.
        kind: what its devices are called as one of several kinds; empty for their own name.
    """

    counts = ON_A_TORUS
    checks: tuple[str, ...] = (
        "every rank on a free device of its own",
        "every line and ring of every slice walked link by link on the graph",
        RECOUNTED,
        "demands, replicas and limits added up from the replicas",
    )

    def __init__(
        self, request: PlacementRequest, cluster: ClusterSpec, site: Site, *, kind: str = ""
    ) -> None:
        assert isinstance(cluster.fabric, TorusFabric)
        self._request, self._cluster, self._fabric = request, cluster, cluster.fabric
        self._site, self._kind = site, kind or cluster.device.name
        self.name, self.title = cluster.name, cluster.title

    @property
    def provenance(self) -> tuple[Provenance, ...]:
        return (*self._cluster.provenance, *self._cluster.device.provenance)

    def own_bytes_per_s(self, kind: str) -> float:
        """Of one link of a device; a slice has one for each of its devices."""
        return self._fabric.link_bytes_per_s

    def wire_bytes_per_s(self, kind: str) -> float:
        """The same, wherever the other slice lies."""
        return self._fabric.link_bytes_per_s

    def uplinks_bytes_per_s(self) -> dict[str, float]:
        """None: there are no leaves."""
        return {}

    def leaf_name(self, device: str) -> str:
        return ""

    def is_free(self, device: str) -> bool | None:
        at = self._site.vertices.get(device)
        return None if at is None else at.state == FREE

    def kind_name(self, device: str) -> str:
        return self._kind

    def loads_bytes_per_s(self, device: str) -> float:
        return self._fabric.link_bytes_per_s

    def kinds(self, used: Mapping[str, int]) -> tuple[KindUse, ...]:
        vertices = self._site.vertices
        return (
            KindUse(
                kind=self._kind,
                device=self._cluster.device.name,
                n_devices=len(vertices),
                n_free=sum(at.state == FREE for at in vertices.values()),
                n_used=used.get(self._kind, 0),
            ),
        )

    def cluster_of(self, recipe: RunConfig, demand: Serve) -> tuple[ClusterSpec, Standing]:
        """The pool with devices as fast as the slice counts on, and the slice's links."""
        if not isinstance(recipe.deployment, LayoutDeployment):
            raise Invalid("is of no torus", path=("engine",), says=recipe.engine)
        for name, says, true in (
            ("kind", recipe.kind, self._kind),
            ("span", recipe.span, SPAN),
            ("counted_bytes_per_s", tuple(recipe.counted_bytes_per_s), AXES),
        ):
            if says != true:
                raise Invalid(f"is not {true}", path=(name,), says=says)
        if not 0 < recipe.speed_fraction <= 1:
            fact = "is no share of a speed"
            raise Invalid(fact, path=("speed_fraction",), says=recipe.speed_fraction)
        x, y, z = (recipe.counted_bytes_per_s[axis] for axis in AXES)
        if min(x, y, z) <= 0:
            raise Invalid("is no bandwidth", path=("counted_bytes_per_s",), says=min(x, y, z))
        whole = self._fabric.link_bytes_per_s
        for axis, side, width in zip(AXES, recipe.deployment.mesh.axes, (x, y, z), strict=True):
            # an axis of one device has no link that could be slower
            if width > whole * (1 + TOLERANCE) or (side == 1 and width != whole):
                fact = f"is not what a link has, {whole!r}"
                raise Invalid(fact, path=("counted_bytes_per_s", axis), says=width)
        opening = Opening(closes=recipe.deployment.mesh.axes_wrap, link_bytes_per_s=(x, y, z))
        device = slowed(self._cluster.device, recipe.speed_fraction)
        return replace(self._cluster, device=device), Standing(opening=opening)

    def replica(
        self, says: Replica, recipe: RunConfig, name: str, wrong: list[Finding], path: Path
    ) -> Replica:
        """The replica with its channels walked link by link."""
        laid = self._laid(says, recipe)
        for j, device in enumerate(laid.names):
            if self._site.vertices[device].speed_fraction < recipe.speed_fraction:
                here = (*path, "ranks", str(j), "device")
                wrong.append(Finding(path=here, says=device, fact="is slower than counted on"))
        ranks = tuple(
            Rank(rank=rank, device=device, node="", leaf="", stage=0, axes=axes, coordinate=cell)
            for rank, (device, axes, cell) in enumerate(
                zip(laid.names, coordinates(laid.shape), laid.cells, strict=True)
            )
        )
        channels = tuple(self._channels(says, recipe, laid))
        wrong += narrower_than_counted(channels, path)
        return replace(
            says,
            name=name,
            nodes=(),
            leaves=(),
            ranks=ranks,
            channels=channels,
        )

    def _laid(self, says: Replica, recipe: RunConfig) -> Laid:
        """The slice that the ranks make.

        Raises:
            Refused: they make none, or one that may not start there.
        """
        shape = _mesh(recipe).axes
        names = tuple(rank.device for rank in says.ranks)
        if len(names) != prod(shape):
            fact = f"are not the {prod(shape)} of the recipe"
            raise Invalid(fact, path=("ranks",), says=len(names))
        cells = tuple(cell_of(name) for name in names)
        along = axes_of_box(shape, cells)
        if along is None:
            raise Invalid("make no box along the axes of the torus", path=("ranks",), says=names[0])
        laid = Laid(shape=shape, names=names, cells=cells, along=along)
        if self._request.aligned and not self._is_aligned(laid):
            raise Invalid("start at no cube of the torus", path=("ranks",), says=names[0])
        return laid

    def _is_aligned(self, laid: Laid) -> bool:
        """Whether it starts at multiples of what its sides and the cubes have in common."""
        for axis, pool_axis in enumerate(laid.along):
            if pool_axis is None:
                continue
            length = self._fabric.shape[pool_axis]
            met = {cell[pool_axis] for cell in laid.cells}
            # over the edge too it begins behind what is not its own; a whole axis begins anywhere
            starts = [at for at in met if (at - 1) % length not in met]
            step = gcd(laid.shape[axis], self._fabric.wrap_multiple)
            if len(met) < length and any(at % step for at in starts):
                return False
        return True

    def _channels(self, says: Replica, recipe: RunConfig, laid: Laid) -> Iterator[Channel]:
        """Of each axis the line with the narrowest link."""
        wraps = _mesh(recipe).axes_wrap
        claims = {channel.axis: channel for channel in says.channels}
        for axis, name in enumerate(AXES):
            if laid.shape[axis] == 1:  # nobody to talk to
                continue
            read = [
                GroupRead(line, link, self._width(link))
                for line in laid.lines(axis)
                for link in self._links(laid, axis, line, is_ring=wraps[axis])
            ]
            yield channel_of(name, read, recipe.counted_bytes_per_s[name], claims, _joins)

    def _width(self, link: tuple[str, str]) -> float:
        edge = self._site.links[link[0]].get(link[1])
        if edge is None:
            raise Invalid(f"talks over no link to `{link[1]}`", path=("ranks",), says=link[0])
        return edge.bytes_per_s

    def _links(
        self, laid: Laid, axis: int, line: Line, *, is_ring: bool
    ) -> Iterator[tuple[str, str]]:
        """The links of a line: to each neighbour, and around where it is a ring."""
        for a, b in [*pairwise(line), *([(line[-1], line[0])] if is_ring else [])]:
            # neighbours in the mesh that are none in the pool are joined by switches
            if b in self._site.links[a]:
                yield a, b
            else:
                yield from self._faces(laid, axis, line, (a, b))

    def _faces(
        self, laid: Laid, axis: int, line: Line, ends: tuple[str, str]
    ) -> list[tuple[str, str]]:
        """The links by which switches join two ends of a line: out of both faces of its cubes.

        Raises:
            Refused: the slice is not of whole cubes, or these are not its ends.
        """
        pool_axis = laid.along[axis]
        assert pool_axis is not None
        # switches that join whole cubes do so along all three axes or not at all
        axes = [pool_axis] if self._fabric.wraps_each_axis else [0, 1, 2]
        a, b = ends
        if not all(self._fills_cubes(laid, one) for one in axes):
            raise Invalid(f"has no link to its neighbour `{b}`", path=("ranks",), says=a)
        # what leads out of both faces is joined: an end inside the slice has no such link
        own = {cell_of(name)[pool_axis] for name in line}
        length = self._fabric.shape[pool_axis]
        faces = []
        for name in ends:
            for step in (1, -1):
                beside = list(cell_of(name))
                beside[pool_axis] = (beside[pool_axis] + step) % length
                if beside[pool_axis] not in own:
                    faces.append((name, named_alike(name, tuple(beside))))
        if {name for name, _ in faces} != {a, b}:
            raise Invalid(f"is on no face of the cubes of `{b}`", path=("ranks",), says=a)
        return faces

    def _fills_cubes(self, laid: Laid, axis: int) -> bool:
        """Whether the devices fill whole cubes along an axis of the pool."""
        cube = self._fabric.wrap_multiple
        met = {cell[axis] for cell in laid.cells}
        return all(met >= {*range(at // cube * cube, at // cube * cube + cube)} for at in met)


def _joins(claim: Channel, read: GroupRead) -> bool:
    """Whether a link is the one that was read, from either end."""
    return {*claim.link} == {*read.link}


def _mesh(recipe: RunConfig) -> Mesh:
    """The mesh of a recipe.

    Raises:
        Refused: it is of an engine, which has none.
    """
    if not isinstance(recipe.deployment, LayoutDeployment):
        raise Invalid("is of no torus", path=("recipe",), says=recipe.engine)
    return recipe.deployment.mesh
