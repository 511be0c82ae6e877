"""The ranks of a replica on servers: stages, rows of a stage, pieces on a node, widths of links.

Links are added from the widest to the narrowest. The link that joins the last two parts of a group
is its bottleneck: all that is wider leaves the group in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, filterfalse, pairwise
from math import inf
from typing import NamedTuple

from planner.results.phase_deployments import LayoutDeployment, TableDeployment
from planner.results.placements import Channel, Replica, RunConfig
from planner.verifier.findings import TOLERANCE, Finding, Invalid, Path
from planner.verifier.layouts.meshes import in_nodes
from planner.verifier.placing.sites import Edge

NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A replica's ranks: `rows[stage][across][inside]`, and the sizes of each dimension.

    Args:
        pieces: devices that have to lie in one node together.
        names: of the axes along which devices talk: within a row, among rows, among stages.
        experts: devices that hold nothing else, behind all rows: both send to each other.
    """

    n_inside: int
    n_across: int
    n_stages: int
    rows: tuple[tuple[Group, ...], ...]
    pieces: tuple[Group, ...]
    names: tuple[str, str, str]
    experts: Group = ()

    @property
    def devices(self) -> Group:
        """All of them, in the order of ranks."""
        return (*chain.from_iterable(self.stages), *self.experts)

    def groups(self) -> Iterator[tuple[str, list[Group]]]:
        """Groups of more than one device by axis: rows, ranks of a stage, pairs of two stages.

        Layouts send among rows from each device to its like; engines gather from a whole stage. Of
        the pairs those are told that are in two pieces, where there are such.
        """
        inside, across, stages = self.names
        if self.n_inside > 1:
            yield inside, [*chain.from_iterable(self.rows)]
        if self.experts:
            yield "pools", [self.devices]
        elif self.n_across > 1:
            columns = [alike for stage in self.rows for alike in zip(*stage, strict=True)]
            yield across, self.stages if across == "stage" else columns
        if self.n_stages > 1:
            beside = pairwise(self.stages)
            pairs: list[Group] = [pair for two in beside for pair in zip(*two, strict=True)]
            yield stages, [*filterfalse(self.are_together, pairs)] or pairs

    @property
    def stages(self) -> list[Group]:
        """All devices of each stage, in the order of ranks."""
        return [tuple(chain.from_iterable(stage)) for stage in self.rows]

    def are_together(self, group: Group) -> bool:
        """Whether devices are in one piece."""
        return any({*group} <= {*piece} for piece in self.pieces)

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Stage, row and place of each rank, in order."""
        for stage in range(self.n_stages):
            for across in range(self.n_across):
                for inside in range(self.n_inside):
                    yield stage, across, inside
        yield from ((self.n_stages, 0, i) for i in range(len(self.experts)))


def sizes_of(recipe: RunConfig) -> tuple[int, int, int]:
    """Devices of a row, rows of a stage, and stages.

    Raises:
        Refused: a mesh of switches has no such axes, or degrees are below one.
    """
    layout = recipe.deployment
    if isinstance(layout, TableDeployment):
        if layout.n_devices < 1:
            raise Invalid("has no device", path=("deployment", "n_devices"), says=layout.n_devices)
        return layout.n_devices, 1, 1
    if not isinstance(layout, LayoutDeployment):
        degrees = layout.n_tensor, layout.n_data, layout.n_stages
        if min(degrees) < 1:
            raise Invalid("has a degree below one", path=("deployment",), says=layout.label)
        return degrees
    t, m = in_nodes(layout.mesh)
    if layout.mesh.is_torus or t < 1 or m < 1 or layout.mesh.n_stages < 1:
        raise Invalid("is no mesh of servers", path=("deployment", "mesh"), says=layout.mesh.label)
    return t, m, layout.mesh.n_stages


def pieces_of(recipe: RunConfig) -> tuple[int, ...]:
    """Devices that lie in one node together, in the order of ranks.

    A layout inside a node is one piece, any other has one for each row. An engine has an equal
    share on each node, and groups fill whole shares or lie in one; a node has attention or experts,
    unless it has all of a replica.

    Raises:
        Refused: an engine's cannot lie so.
    """
    t, m, p = sizes_of(recipe)
    if isinstance(recipe.deployment, LayoutDeployment):
        return (t * m * p,) if recipe.span == NODE else (t,) * (m * p)
    n_pool = recipe.n_expert_devices
    size, n_devices = max(recipe.pieces, default=0), t * m * p + n_pool
    if recipe.span == NODE:
        return (n_devices,)
    if not 0 < size < n_devices or not _parts_no_group(size, t, t * m, n_pool):
        raise Invalid("parts groups of devices", path=("pieces",), says=list(recipe.pieces))
    if n_devices % size:
        raise Invalid("are no equal shares", path=("pieces",), says=list(recipe.pieces))
    return (size,) * (n_devices // size)


def _parts_no_group(size: int, row: int, group: int, n_pool: int) -> bool:
    """Whether equal shares hold groups whole, or fill them; and none is of both pools."""
    if n_pool and (group % size or n_pool % size):
        return False
    return all(size % it == 0 or it % size == 0 for it in (row, group))


def parts_of(says: Replica, recipe: RunConfig) -> Parts:
    """The ranks stage by stage, row by row.

    Raises:
        Refused: they are more or fewer than the recipe has.
    """
    t, m, p = sizes_of(recipe)
    names = [rank.device for rank in says.ranks]
    n_devices = t * m * p + recipe.n_expert_devices
    if len(names) != n_devices:
        fact = f"are not the {n_devices} of the recipe"
        raise Invalid(fact, path=("ranks",), says=len(names))
    ends = [0, *accumulate(pieces_of(recipe))]
    is_layout = isinstance(recipe.deployment, LayoutDeployment)
    return Parts(
        n_inside=t,
        n_across=m,
        n_stages=p,
        rows=tuple(
            tuple(tuple(names[(s * m + a) * t : (s * m + a + 1) * t]) for a in range(m))
            for s in range(p)
        ),
        pieces=tuple(tuple(names[first:last]) for first, last in pairwise(ends)),
        names=("inside", "across", "stages") if is_layout else ("tensor", "stage", "stages"),
        experts=tuple(names[t * m * p :]),
    )


Group = tuple[str, ...]


class Forest:
    """Parts of a set of names, joined two by two.

    Smaller parts hang below larger ones, so that no name is deep. What hung a part below
    another is kept: the numbers of these rise on the way up.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._above: dict[str, str] = {}
        self._joined_by: dict[str, int] = {}
        self._size = dict.fromkeys(names, 1)
        self._n_joined = 0

    def root(self, name: str) -> str:
        """The name that stands for a part."""
        while name in self._above:
            name = self._above[name]
        return name

    def join(self, a: str, b: str) -> bool:
        """Join the parts of two names; False if they are one already."""
        small, large = sorted((self.root(a), self.root(b)), key=lambda root: self._size[root])
        if small == large:
            return False
        self._above[small], self._joined_by[small] = large, self._n_joined
        self._size[large] += self._size[small]
        self._n_joined += 1
        return True

    def when_joined(self, a: str, b: str) -> int | None:
        """The number of the join that made one part of two names; None if none did."""
        last = -1
        while a != b:
            first, second = self._joined_by.get(a), self._joined_by.get(b)
            if first is None and second is None:
                return None
            if second is None or (first is not None and first < second):
                a, last = self._above[a], max(last, first if first is not None else -1)
            else:
                b, last = self._above[b], max(last, second)
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """The bandwidth of a group, and its bottleneck; 0 where no links connect it."""

    bytes_per_s: float
    link: tuple[str, str] | None = None


class GroupRead(NamedTuple):
    """A group of devices that talk along an axis, with a bottleneck that was read off the graph."""

    devices: Group
    link: tuple[str, str]
    bytes_per_s: float


def channel_of(
    axis: str,
    groups: Sequence[GroupRead],
    counted_bytes_per_s: float,
    claims: Mapping[str, Channel],
    may_be: Callable[[Channel, GroupRead], bool],
) -> Channel:
    """The group of an axis with the narrowest link; of equals, the one that is said.

    Args:
        groups: each once for each of its bottlenecks.
        claims: channels that are said, by axis.
        may_be: whether what is said of a group that is as narrow is true of it.
    """
    least = min(group.bytes_per_s for group in groups)
    narrowest = [group for group in groups if group.bytes_per_s <= least * (1 + TOLERANCE)]
    chosen, claim = narrowest[0], claims.get(axis)
    for group in narrowest if claim else ():
        if claim and claim.devices == group.devices and may_be(claim, group):
            chosen = group._replace(link=claim.link)
            break
    return Channel(
        axis=axis,
        n_groups=len({group.devices for group in groups}),
        n_devices=len(chosen.devices),
        devices=chosen.devices,
        link=chosen.link,
        bytes_per_s=least,
        counted_bytes_per_s=counted_bytes_per_s,
    )


def narrower_than_counted(channels: Iterable[Channel], path: Path) -> Iterator[Finding]:
    """Channels of a replica that are narrower than its recipe counts on."""
    for number, channel in enumerate(channels):
        least, counted = channel.bytes_per_s, channel.counted_bytes_per_s
        if least < counted * (1 - TOLERANCE):
            fact = f"is less than the {counted!r} bytes/s that are counted on"
            at = (*path, "channels", str(number), "bytes_per_s")
            yield Finding(path=at, says=least, fact=fact)


class Widths:
    """Links, read once, by which the bandwidth of any group is known."""

    def __init__(self, names: Iterable[str], edges: Iterable[tuple[str, str, Edge]]) -> None:
        self._forest = Forest(names)
        self._rates: dict[frozenset[str], float] = {}
        self._joins: list[Width] = []
        for a, b, edge in sorted(edges, key=lambda link: -link[2].bytes_per_s):
            self._rates[frozenset((a, b))] = edge.bytes_per_s
            if self._forest.join(a, b):
                self._joins.append(Width(bytes_per_s=edge.bytes_per_s, link=(a, b)))

    def of(self, group: Group) -> Width:
        """The bandwidth of a group; infinite of one device."""
        last = -1
        for name in group[1:]:
            when = self._forest.when_joined(group[0], name)
            if when is None:
                return Width(bytes_per_s=0.0)
            last = max(last, when)
        return self._joins[last] if last >= 0 else Width(bytes_per_s=inf)

    def may_be(self, link: tuple[str, str], group: Group) -> bool:
        """Whether a link may be called the bottleneck of a group, beside others as narrow.

        It is as narrow as the group is wide, no wider way leads around it, and the group
        reaches it by links that are no narrower.
        """
        width = self._rates.get(frozenset(link))
        if width is None or width != self.of(group).bytes_per_s:
            return False
        return self.of(link).bytes_per_s == width <= self.of((group[0], link[0])).bytes_per_s
