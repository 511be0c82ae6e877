"""The ranks of a replica on servers: stages, rows of a stage, and the pieces that share a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from planner.results.phase_deployments import LayoutDeployment
from planner.results.placements import Recipe, Replica
from planner.results.table_deployments import TableDeployment
from planner.verifier.findings import Refused
from planner.verifier.meshes import in_nodes
from planner.verifier.widths import Group

NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A replica's ranks: `rows[stage][across][inside]`, and the sizes of each dimension.

    Args:
        pieces: devices that have to lie in one node together.
        names: of the axes along which devices talk: within a row, among rows, among stages.
    """

    n_inside: int
    n_across: int
    n_stages: int
    rows: tuple[tuple[Group, ...], ...]
    pieces: tuple[Group, ...]
    names: tuple[str, str, str]

    def groups(self) -> Iterator[tuple[str, list[Group]]]:
        """Groups of more than one device by axis: rows, ranks of a stage, pairs of two stages.

        Layouts send among rows from each device to its like; engines gather from a whole stage. Of
        the pairs those are told that are in two pieces, where there are such.
        """
        inside, across, stages = self.names
        if self.n_inside > 1:
            yield inside, [row for stage in self.rows for row in stage]
        if self.n_across > 1 and across == "stage":
            yield across, [tuple(name for row in stage for name in row) for stage in self.rows]
        elif self.n_across > 1:
            yield across, [tuple(c) for stage in self.rows for c in zip(*stage, strict=True)]
        if self.n_stages > 1:
            pairs: list[Group] = [
                (name, other)
                for here, there in pairwise(self.rows)
                for row, beside in zip(here, there, strict=True)
                for name, other in zip(row, beside, strict=True)
            ]
            yield stages, [pair for pair in pairs if not self.are_together(pair)] or pairs

    def are_together(self, group: Group) -> bool:
        """Whether devices are in one piece."""
        return any({*group} <= {*piece} for piece in self.pieces)

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Stage, row and place of each rank, in order."""
        for stage in range(self.n_stages):
            for across in range(self.n_across):
                for inside in range(self.n_inside):
                    yield stage, across, inside


def sizes_of(recipe: Recipe) -> tuple[int, int, int]:
    """Devices of a row, rows of a stage, and stages.

    Raises:
        Refused: a mesh of switches has no such axes, or degrees are below one.
    """
    one = recipe.deployment
    if isinstance(one, TableDeployment):
        if one.n_devices < 1:
            raise Refused("has no device", path=("deployment", "n_devices"), says=one.n_devices)
        return one.n_devices, 1, 1
    if not isinstance(one, LayoutDeployment):
        degrees = one.n_tensor, one.n_data, one.n_stages
        if min(degrees) < 1:
            raise Refused("has a degree below one", path=("deployment",), says=one.label)
        return degrees
    t, m = in_nodes(one.mesh)
    if one.mesh.is_torus or t < 1 or m < 1 or one.mesh.n_stages < 1:
        raise Refused("is no mesh of servers", path=("deployment", "mesh"), says=one.mesh.label)
    return t, m, one.mesh.n_stages


def pieces_of(recipe: Recipe) -> tuple[int, ...]:
    """Devices that lie in one node together, in the order of ranks.

    A layout inside a node is one piece, any other has one for each row. An engine has an equal
    share on each node, and groups fill whole shares or lie in one.

    Raises:
        Refused: an engine's cannot lie so.
    """
    t, m, p = sizes_of(recipe)
    if isinstance(recipe.deployment, LayoutDeployment):
        return (t * m * p,) if recipe.span == NODE else (t,) * (m * p)
    size, n_devices = max(recipe.pieces, default=0), t * m * p
    if recipe.span == NODE:
        return (n_devices,)
    straddles = any(size % group and group % size for group in (t, t * m)) if size else True
    if straddles or size >= n_devices:
        raise Refused("parts groups of devices", path=("pieces",), says=list(recipe.pieces))
    if n_devices % size:
        raise Refused("are no equal shares", path=("pieces",), says=list(recipe.pieces))
    return (size,) * (n_devices // size)


def parts_of(says: Replica, recipe: Recipe) -> Parts:
    """The ranks stage by stage, row by row.

    Raises:
        Refused: they are more or fewer than the recipe has.
    """
    t, m, p = sizes_of(recipe)
    names = [rank.device for rank in says.ranks]
    if len(names) != t * m * p:
        fact = f"are not the {t * m * p} of the recipe"
        raise Refused(fact, path=("ranks",), says=len(names))
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
    )
