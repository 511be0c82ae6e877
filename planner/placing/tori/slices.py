"""Replicas on slices of a torus: the layout of each mesh at its best, and every place for it.

Within one mesh (dimensions, rings, link speeds) devices and rent are fixed, so the best layout of
the mesh is all that a placement can want of it. A column is that configuration at one opening;
`planner.topology.openings` lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import permutations
from math import ceil, prod
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, IntArray, divisors
from planner.errors import Problem, RequestError
from planner.estimates.networks import network_table
from planner.estimates.steps import Machine
from planner.placing.configurations import Configuration, Pattern
from planner.placing.fabrics.domains import slowed
from planner.placing.handing import Wire, handing_over, network_of
from planner.placing.layouts import best_of_roles
from planner.placing.program import Columns, Objective, Rooms, placement_program
from planner.programs.cells import cell_rows
from planner.programs.handover import Handover
from planner.programs.placement import Counts, PlacementProgram, Uses
from planner.running.deadlines import is_over
from planner.specs.ask.defaults import NEAR_SHARE
from planner.specs.ask.request import Request
from planner.specs.files.state import FREE
from planner.specs.records.devices import TorusFabric
from planner.specs.records.roles import TOGETHER, RoleOptions
from planner.topology.graph import Graph
from planner.topology.meshes import AXES, MeshTable
from planner.topology.openings import MOST_ADDRESSES, Openings, TorusState, all_free, opening_meshes
from planner.topology.slices import Shape, slice_wraps, torus_device

MOST_COLUMNS = 200_000
"""Places of all models together that one program may choose from."""

SPAN = "torus"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePattern:
    """A mesh that slices are.

    Args:
        kind_name: of the devices.
        label: of the mesh, `4×4×8 open`.
        dimensions: devices along the axes of the mesh, ascending.
        closes: whether each axis of the mesh is a ring.
        link_bytes_per_s: of the links along each axis.
        speed_fraction: of the nominal speed of its devices.
    """

    kind_name: str
    label: str
    dimensions: Shape
    closes: tuple[bool, bool, bool]
    link_bytes_per_s: tuple[float, float, float]
    speed_fraction: float

    @property
    def span(self) -> str:
        return SPAN

    @property
    def counted_bytes_per_s(self) -> Mapping[str, float]:
        return dict(zip(AXES, self.link_bytes_per_s, strict=True))

    @property
    def n_devices(self) -> int:
        return prod(self.dimensions)

    @property
    def pieces(self) -> tuple[int, ...]:
        return ()

    @property
    def shape(self) -> str:
        return self.label

    @property
    def simplicity(self) -> tuple[int, ...]:
        return (self.n_devices,)


SliceConfiguration = Configuration[SlicePattern]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorusOffers:
    """Configurations of one model, and each place where one of them runs.

    Args:
        which, opening: the configuration and the opening of each place, by opening, int[C] each.
    """

    configurations: tuple[SliceConfiguration, ...]
    which: IntArray
    opening: IntArray

    def where(self, is_kept: BoolArray) -> TorusOffers:
        return replace(self, which=self.which[is_kept], opening=self.opening[is_kept])

    @property
    def places(self) -> dict[Pattern, IntArray]:
        """Openings of each mesh."""
        configurations = self.configurations
        used = np.unique(self.which).tolist()
        return {configurations[i].pattern: self.opening[self.which == i] for i in used}

    def named(self, kind: str) -> TorusOffers:
        """The same on devices of a kind of that name."""
        every = [(config, config.pattern) for config in self.configurations]
        named = (replace(it, pattern=replace(of, kind_name=kind)) for it, of in every)
        return replace(self, configurations=tuple(named))

    def handing(self, roles: RoleOptions, wire: Wire, n_output_tokens: float) -> TorusOffers:
        """With what handing over takes of each; without those that are not asked for."""
        every = [handing_over(one, roles, wire, n_output_tokens) for one in self.configurations]
        is_asked = np.array([one is not None for one in every], np.bool_)
        number = np.cumsum(is_asked) - 1
        kept = self.where(is_asked[self.which])
        return replace(
            kept,
            configurations=tuple(one for one in every if one is not None),
            which=number[kept.which],
        )


def offers_at(configurations: Sequence[Any], places: Sequence[IntArray]) -> TorusOffers:
    """Configurations of one model, each at all of its openings."""
    none = np.zeros(0, np.int64)
    opening = np.concatenate([none, *places])
    which = np.repeat(np.arange(len(places)), [len(of) for of in places])
    order = np.lexsort([which, opening])
    return TorusOffers(
        configurations=tuple(configurations), which=which[order], opening=opening[order]
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorusProgram:
    """A program, and what its columns are: configuration and opening of each, int[J].

    Args:
        network: who hands caches over to whom; None where nobody does.
    """

    program: PlacementProgram
    columns: Columns
    openings: Openings
    configurations: tuple[SliceConfiguration, ...]
    opening: IntArray
    network: Handover | None = None

    @property
    def which(self) -> IntArray:
        return self.columns.which

    def located(self, counts: Counts) -> tuple[LocatedSlice, ...]:
        """Devices of every replica, in the order of the program's columns."""
        chosen = [j for j, n in counts.chosen for _ in range(n)]
        placed = self.openings.take(self.opening[chosen])
        order = placed.axis_order()
        return tuple(
            _locate(self.configurations[self.which[j]], placed, row, order[row])
            for row, j in enumerate(chosen)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSlice:
    """A replica and its devices, in the order of ranks: the mesh's last axis the fastest.

    Args:
        orientation, offset: where the slice lies, along the axes of the pool.
        axes: axis of the pool that each axis of the mesh lies on.
    """

    configuration: SliceConfiguration
    orientation: Shape
    offset: Shape
    axes: Shape
    devices: tuple[str, ...]


def torus_state(fabric: TorusFabric, graph: Graph) -> TorusState:
    """What a graph in its state leaves of a torus."""
    state = all_free(fabric)
    for name, at in graph.nodes(data=True):
        coordinate = at["coordinate"]
        state.is_free[coordinate] = at.get("state", FREE) == FREE
        state.speed_fraction[coordinate] = at.get("speed_fraction", 1.0)
        for axis in range(3):
            beside = list(coordinate)
            beside[axis] = (beside[axis] + 1) % fabric.shape[axis]
            # each link is met once, from the device before it along the axis
            edge = graph.get_edge_data(name, torus_device(*beside))
            # where the pool is not closed there is no link around it that could have failed
            is_last = beside[axis] <= coordinate[axis]
            if edge is not None:
                width = edge["bytes_per_s"] / fabric.link_bytes_per_s
                state.link_fraction[(axis, *coordinate)] = width
            elif not is_last or slice_wraps(fabric, fabric.shape)[axis]:
                state.link_fraction[(axis, *coordinate)] = 0.0
    return state


def slice_configurations(
    request: Request,
    model: int,
    openings: Openings,
    roles: Sequence[str] = (TOGETHER,),
    *,
    whole: bool = False,
) -> TorusOffers:
    """The configurations of one model, and at which openings they run.

    Out of time, those of slow devices are none.

    Args:
        request: the model, its targets and the cluster, all of it.
        model: number of the model.
        roles: that replicas may have.
        whole: of each sharding on a mesh the best, not only of the mesh.
    """
    configurations: list[SliceConfiguration] = []
    whiches, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    # fast devices first: when time is out, slow ones are what is done without
    for speed in np.unique(openings.speed_fraction)[::-1]:
        if configurations and is_over():
            break
        rows = np.flatnonzero(openings.speed_fraction == speed)
        some = _of_speed(request, model, openings.take(rows), float(speed), roles, whole)
        whiches.append(some.which + len(configurations))
        places.append(rows[some.opening])
        configurations += some.configurations
    which, opening = np.concatenate(whiches), np.concatenate(places)
    order = np.lexsort([which, opening])  # by opening, whatever speed each came by
    return TorusOffers(
        configurations=tuple(configurations), which=which[order], opening=opening[order]
    )


def _of_speed(
    request: Request,
    model: int,
    openings: Openings,
    speed: float,
    roles: Sequence[str],
    whole: bool,
) -> TorusOffers:
    fabric = request.cluster.fabric
    assert isinstance(fabric, TorusFabric)
    device = slowed(request.cluster.device, speed)
    here = replace(request, cluster=replace(request.cluster, device=device))
    meshes, mesh = opening_meshes(fabric, openings)
    machine = Machine(device=device, meshes=meshes, network=network_table(meshes, fabric))
    configurations: list[SliceConfiguration] = []
    rows: list[int] = []
    for row, quantities in best_of_roles(here, machine, range(len(meshes)), roles, whole=whole):
        pattern = _pattern(meshes, row, kind_name=device.name, speed=speed)
        configurations.append(Configuration(model=model, pattern=pattern, **quantities))
        rows.append(row)
    by_mesh = np.argsort(np.array(rows, np.int64), kind="stable")
    n_of_mesh = np.bincount(np.array(rows, np.int64), minlength=len(meshes))
    # each opening has all configurations of its mesh: a run of `by_mesh`, repeated
    first, n = (np.cumsum(n_of_mesh) - n_of_mesh)[mesh], n_of_mesh[mesh]
    inside = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return TorusOffers(
        configurations=tuple(configurations),
        which=by_mesh[np.repeat(first, n) + inside],
        opening=np.repeat(np.arange(len(mesh)), n),
    )


def _pattern(meshes: MeshTable, row: int, *, kind_name: str, speed: float) -> SlicePattern:
    (x, y, z), (rx, ry, rz), (lx, ly, lz) = (
        values[row].tolist()
        for values in (meshes.axis_size, meshes.axis_wraps, meshes.axis_bytes_per_s)
    )
    return SlicePattern(
        kind_name=kind_name,
        label=meshes.label[row],
        dimensions=(x, y, z),
        closes=(rx, ry, rz),
        link_bytes_per_s=(lx, ly, lz),
        speed_fraction=speed,
    )


def without_tiled(
    offered: TorusOffers,
    *,
    several: bool,
    loaded: Sequence[float] | None = None,
    by_latency: bool = False,
) -> TorusOffers:
    """Configurations of one model, none where copies of another fill and serve as much.

    Where a slice is cut into equal smaller ones, each has the links that it needs, open or not;
    so whatever the larger one serves, they serve too, on the same devices. Replicas of one phase
    stay: smaller ones have fewer links to hand caches over, or a first token later.

    Args:
        several: whether the model may have any number of replicas.
        loaded: bytes of the weights of each, where it is better to load few: of those on one mesh
            too one stands for another that serves no more, and no more bytes are loaded.
        by_latency: whether of those on one mesh the quickest is the best.
    """
    configurations = offered.configurations
    if not configurations or (not several and loaded is None):
        return offered
    n_bytes = [0.0] * len(configurations) if loaded is None else loaded
    on_mesh: dict[Shape, dict[SlicePattern, list[int]]] = {}
    for i, config in enumerate(configurations):
        if config.role == TOGETHER:
            of_shape = on_mesh.setdefault(config.pattern.dimensions, {})
            of_shape.setdefault(config.pattern, []).append(i)

    def does(i: int, k: int, n_most: int) -> bool:
        """Whether at most so many copies of k do for i."""
        n_copies = max(
            1, ceil(configurations[i].output_tokens_per_s / configurations[k].output_tokens_per_s)
        )
        if by_latency:  # no number of slow copies is quick: one does, or none
            n_copies = 1 if configurations[k].tpot_s <= configurations[i].tpot_s else n_most + 1
        return n_copies <= n_most and n_copies * n_bytes[k] <= n_bytes[i]

    def is_beaten(i: int) -> bool:
        """Whether another on its mesh does as much."""
        own = on_mesh[configurations[i].pattern.dimensions][configurations[i].pattern]
        # of two that do for each other the first stays
        return any(does(i, k, 1) and (k < i or not does(k, i, 1)) for k in own if k != i)

    def is_filled(i: int, shape: Shape) -> bool:
        """Whether copies on meshes of a shape do as much, whichever links these have."""
        n_most = configurations[i].n_devices // prod(shape)
        return all(any(does(i, k, n_most) for k in some) for some in on_mesh[shape].values())

    def is_left(i: int) -> bool:
        own = configurations[i].pattern.dimensions
        smaller = [shape for shape in on_mesh if shape != own and _tiles(shape, own)]
        return not (is_beaten(i) or (several and any(is_filled(i, shape) for shape in smaller)))

    stays = np.array([one.role != TOGETHER or is_left(i) for i, one in enumerate(configurations)])
    return offered.where(stays[offered.which])


def _tiles(small: Shape, large: Shape) -> bool:
    """Whether copies of a shape, all laid one way, fill another."""
    # enough to be sure: what is filled in mixed ways only is kept, and costs columns
    return any(
        all(b % a == 0 for a, b in zip(way, large, strict=True)) for way in permutations(small)
    )


def pose_on_torus(
    openings: Openings, offered: Sequence[TorusOffers], aim: Objective
) -> TorusProgram:
    """State the placement of replicas on the openings of a torus.

    Args:
        offered: of each model, its configurations and where they run.

    Raises:
        RequestError: there are more places than one program can hold.
    """
    configurations = [one for it in offered for one in it.configurations]
    firsts = np.cumsum([0, *(len(it.configurations) for it in offered)])[:-1]
    opening = np.concatenate([it.opening for it in offered])
    which = np.concatenate([it.which + first for it, first in zip(offered, firsts, strict=True)])
    if len(opening) > MOST_COLUMNS or openings.n_devices[opening].sum() > MOST_ADDRESSES:
        fact = f"there are {len(opening)} places for slices to choose from"
        remedy = "start slices at the cubes of the torus only: `--align`"
        raise RequestError([Problem(where="plan place", fact=fact, remedy=remedy)])
    cells = cell_rows(openings, opening)
    rooms = Rooms(
        names=tuple(
            torus_device(*map(int, np.unravel_index(cell, openings.pool)))
            for cell in cells.cell.tolist()
        ),
        free=np.ones(len(cells.cell), np.int64),
        uses=cells.uses,
    )
    columns = Columns(configurations=configurations, which=which)
    return TorusProgram(
        program=_program(rooms, columns, aim),
        columns=columns,
        openings=openings,
        configurations=tuple(configurations),
        opening=opening,
        network=network_of(columns, aim),
    )


def pose_anywhere(
    configurations: Sequence[SliceConfiguration], n_free: int, aim: Objective
) -> PlacementProgram:
    """The program of slices that lie nowhere: together they have no more devices than are free."""
    every = np.arange(len(configurations))
    n_devices = np.array([one.n_devices for one in configurations], np.int64)
    uses = Uses(resource=np.zeros_like(every), column=every, amount=n_devices)
    rooms = Rooms(names=("free",), free=np.array([n_free]), uses=uses)
    return _program(rooms, Columns(configurations=configurations, which=every), aim)


def _program(rooms: Rooms, columns: Columns, aim: Objective) -> PlacementProgram:
    """Of equal slices compact ones are preferred: they part the least of what is left."""
    shapes = [one.pattern.dimensions for one in columns.configurations]  # type: ignore[attr-defined]
    spread = np.array(list(map(_spread, shapes)), dtype=float)
    program = placement_program(rooms, columns, aim, ties=(spread[columns.which],))
    return replace(program, ties_within=NEAR_SHARE)


@cache
def _spread(shape: Shape) -> int:
    """Devices on the faces of a slice beyond those of the most compact box of as many."""
    n = prod(shape)
    boxes = ((a, b, n // a // b) for a in divisors(n) for b in divisors(n // a))
    return _faces(shape) - min(map(_faces, boxes))


def _faces(box: Shape) -> int:
    a, b, c = box
    return 2 * (a * b + b * c + c * a)


def _locate(config: SliceConfiguration, placed: Openings, row: int, axes: IntArray) -> LocatedSlice:
    inside = np.stack(
        np.meshgrid(*(np.arange(n) for n in config.pattern.dimensions), indexing="ij"), axis=-1
    ).reshape(-1, 3)
    at = np.zeros_like(inside)
    at[:, axes] = inside  # ranks keep the order of the mesh, whichever way it is turned
    at = (at + placed.first[row]) % placed.orientation[row]  # lines begin behind a failed link
    at = (at + placed.offset[row]) % np.array(placed.pool)
    return LocatedSlice(
        configuration=config,
        orientation=_shape(placed.orientation[row]),
        offset=_shape(placed.offset[row]),
        axes=_shape(axes),
        devices=tuple(torus_device(x, y, z) for x, y, z in at.tolist()),
    )


def _shape(values: IntArray) -> Shape:
    x, y, z = (int(value) for value in values)
    return x, y, z
