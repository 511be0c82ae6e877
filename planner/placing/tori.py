"""Replicas on slices of a torus: the layout of each mesh at its best, and every place for it.

Within one mesh (dimensions, rings, link speeds) devices and rent are fixed, and targets hold
for each replica by itself, so the best layout of the mesh is all that a placement can want of
it: `programs.contexts.optima` finds it among the layouts that `planning.plan` would see.
A column is that way at one opening; `planner.topology.openings` lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.deadlines import is_over
from planner.errors import Problem, RequestError
from planner.estimates.networks import network_table
from planner.estimates.requested import table_of
from planner.estimates.steps import Machine
from planner.placing.clusters import slowed
from planner.placing.columns import Evaluated, evaluate
from planner.placing.posing import KTOKEN, Wanted
from planner.programs.cells import cell_rows
from planner.programs.layout import Assignment, FloatArray, IntArray
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementLimit,
    PlacementProgram,
)
from planner.specs.records import TorusFabric
from planner.specs.request import Request
from planner.specs.state import FREE
from planner.topology.opening_meshes import opening_meshes
from planner.topology.openings import MOST_ADDRESSES, Openings, TorusState, all_free
from planner.topology.slices import Shape, slice_wraps, torus_device

if TYPE_CHECKING:
    import networkx as nx

MOST_COLUMNS = 200_000
"""Places of all models together that one program may choose from."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TorusWay:
    """One way to run a replica on a mesh, at its best.

    Args:
        model: number of the model among those asked for.
        label: of the mesh, `4×4×8 open`.
        shape: devices along the axes of the mesh, ascending.
        closes: whether each axis of the mesh is a ring.
        link_bytes_per_s: of the links along each axis.
        speed_fraction: of the nominal speed of its devices.
        output_tokens_per_s, tpot_s, usd_per_hour: of the replica.
        evaluated, assignment: the layout, in its own program.
    """

    model: int
    label: str
    shape: Shape
    closes: tuple[bool, bool, bool]
    link_bytes_per_s: tuple[float, float, float]
    speed_fraction: float
    output_tokens_per_s: float
    tpot_s: float
    usd_per_hour: float
    evaluated: Evaluated
    assignment: Assignment

    @property
    def n_devices(self) -> int:
        a, b, c = self.shape
        return a * b * c


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosedTorus:
    """A program, and what its columns are: way and opening of each, int[J]."""

    program: PlacementProgram
    openings: Openings
    ways: tuple[TorusWay, ...]
    way: IntArray
    opening: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSlice:
    """A replica and its devices, in the order of ranks: the mesh's last axis the fastest.

    Args:
        orientation, offset: where the slice lies, along the axes of the pool.
        axes: axis of the pool that each axis of the mesh lies on.
    """

    way: TorusWay
    orientation: Shape
    offset: Shape
    axes: Shape
    devices: tuple[str, ...]


def torus_state(fabric: TorusFabric, graph: nx.Graph[str]) -> TorusState:
    """What a graph in its state leaves of a torus."""
    state = all_free(fabric)
    for name, at in graph.nodes(data=True):
        coordinate = at["coordinate"]
        state.is_free[coordinate] = at.get("state", FREE) == FREE
        state.speed_fraction[coordinate] = at.get("speed_fraction", 1.0)
        for axis in range(3):
            beside = list(coordinate)
            beside[axis] = (beside[axis] + 1) % fabric.shape[axis]
            edge = graph.get_edge_data(name, torus_device(*beside))
            # where the pool is not closed there is no link around it that could have failed
            is_last = beside[axis] <= coordinate[axis]
            if edge is not None:
                width = edge["bytes_per_s"] / fabric.link_bytes_per_s
                state.link_fraction[(axis, *coordinate)] = width
            elif not is_last or slice_wraps(fabric, fabric.shape)[axis]:
                state.link_fraction[(axis, *coordinate)] = 0.0
    return state


def torus_ways(request: Request, model: int, openings: Openings) -> tuple[list[TorusWay], IntArray]:
    """The ways of one model, and which of them runs at each opening, int[C]; -1 for none.

    Out of time, the ways of slow devices are none.

    Args:
        request: the model, its targets and the cluster, all of it.
        model: number of the model.
    """
    ways: list[TorusWay] = []
    of_opening = np.full(len(openings), -1, dtype=np.int64)
    for speed in np.unique(openings.speed_fraction)[::-1]:
        if ways and is_over():
            break
        rows = np.flatnonzero(openings.speed_fraction == speed)
        found, way = _ways_of_speed(request, model, openings.take(rows), float(speed))
        of_opening[rows] = np.where(way >= 0, way + len(ways), -1)
        ways += found
    return ways, of_opening


def _ways_of_speed(
    request: Request, model: int, openings: Openings, speed: float
) -> tuple[list[TorusWay], IntArray]:
    fabric = request.cluster.fabric
    assert isinstance(fabric, TorusFabric)
    device = slowed(request.cluster.device, speed)
    asked = replace(request, cluster=replace(request.cluster, device=device))
    meshes, mesh = opening_meshes(fabric, openings)
    machine = Machine(device=device, meshes=meshes, network=network_table(meshes, fabric))
    number = np.full(len(meshes), -1, dtype=np.int64)
    table = table_of(asked, machine)
    if not len(table.contexts):
        return [], number[mesh]
    evaluated, best = evaluate(asked, table)
    mesh_of_context = table.contexts.mesh[best.posed.number]
    ways: list[TorusWay] = []
    for row in range(len(meshes)):
        here = np.flatnonzero(mesh_of_context == row)
        if len(here):
            k = int(here[np.argmin(best.value[here])])
            number[row] = len(ways)
            ways.append(_way(evaluated, best.assignment(k), model, speed))
    return ways, number[mesh]


def _way(evaluated: Evaluated, best: Assignment, model: int, speed: float) -> TorusWay:
    quantities, columns = evaluated.posed.quantities, list(best.columns)
    table, number = evaluated.table, evaluated.posed.number[best.context]
    meshes, row = table.machine.meshes, table.contexts.mesh[number]
    (x, y, z), (rx, ry, rz), (lx, ly, lz) = (
        values[row].tolist()
        for values in (meshes.axis_size, meshes.axis_wraps, meshes.axis_bytes_per_s)
    )
    return TorusWay(
        model=model,
        label=meshes.label[row],
        shape=(x, y, z),
        closes=(rx, ry, rz),
        link_bytes_per_s=(lx, ly, lz),
        speed_fraction=speed,
        output_tokens_per_s=1e3 / float(quantities["throughput"][1][columns].sum()),
        tpot_s=float(quantities["latency"][1][columns].sum()) / 1e3,
        usd_per_hour=float(quantities["rent"][0][best.context]),
        evaluated=evaluated,
        assignment=best,
    )


def without_tiled(
    offered: tuple[list[TorusWay], IntArray], *, several: bool
) -> tuple[list[TorusWay], IntArray]:
    """Ways of one model, none at openings that copies of another fill and serve as much from.

    Where a slice is cut into equal smaller ones, each has the links that it needs, open or not;
    so whatever the larger one serves, they serve too, on the same devices.

    Args:
        several: whether the model may have any number of replicas.
    """
    ways, of_opening = offered
    if not several or not ways:
        return offered
    least: dict[Shape, float] = {}
    for way in ways:
        least[way.shape] = min(least.get(way.shape, np.inf), way.output_tokens_per_s)
    is_filled = np.array(
        [
            any(
                way.n_devices // prod(shape) * rate >= way.output_tokens_per_s
                for shape, rate in least.items()
                if shape != way.shape and _tiles(shape, way.shape)
            )
            for way in ways
        ]
    )
    return ways, np.where((of_opening >= 0) & ~is_filled[of_opening], of_opening, -1)


def _tiles(small: Shape, large: Shape) -> bool:
    """Whether copies of a shape, all laid one way, fill another."""
    return any(
        all(b % a == 0 for a, b in zip(way, large, strict=True)) for way in permutations(small)
    )


def pose_torus(
    openings: Openings,
    offered: Sequence[tuple[list[TorusWay], IntArray]],
    wanted: Sequence[Wanted],
    *,
    objective: str,
    limits: Mapping[str, float],
) -> PosedTorus:
    """State the placement of replicas on the openings of a torus.

    Args:
        offered: of each model, its ways and which of them runs at each opening.
        wanted: of each model, in the same order.
        objective: `throughput`, `share`, `rent`, `devices` or `latency`.
        limits: on `rent` [USD/h] and `devices`, where asked for.

    Raises:
        RequestError: there are more places than one program can hold.
    """
    ways = [way for found, _ in offered for way in found]
    firsts = np.cumsum([0, *(len(found) for found, _ in offered)])
    places = [np.flatnonzero(way_of >= 0) for _, way_of in offered]
    opening = np.concatenate(places)
    way = np.concatenate(
        [
            way_of[place] + first
            for (_, way_of), place, first in zip(offered, places, firsts[:-1], strict=True)
        ]
    )
    if len(opening) > MOST_COLUMNS or openings.n_devices[opening].sum() > MOST_ADDRESSES:
        fact = f"there are {len(opening)} places for slices to choose from"
        remedy = "start slices at the cubes of the torus only: `--align`"
        raise RequestError([Problem(where="plan place", fact=fact, remedy=remedy)])
    rows = cell_rows(openings, opening)
    rate, tpot, rent = (
        np.array([getattr(one, name) for one in ways])[way]
        for name in ("output_tokens_per_s", "tpot_s", "usd_per_hour")
    )
    devices = openings.n_devices[opening].astype(float)
    quantity = {
        "throughput": -rate * KTOKEN,
        "share": np.zeros(len(way)),
        "rent": rent,
        "devices": devices,
        "latency": tpot * 1e3,
    }
    columns = {"rent": (rent, "USD/h"), "devices": (devices, "devices")}
    program = PlacementProgram(
        resources=tuple(
            torus_device(*map(int, np.unravel_index(cell, openings.pool)))
            for cell in rows.cell.tolist()
        ),
        free=np.ones(len(rows.cell), np.int64),
        uses=rows.uses,
        models=tuple(one.name for one in wanted),
        column_model=np.array([one.model for one in ways], np.int64)[way],
        objective=quantity[objective],
        rate=rate * KTOKEN,
        demand=np.array([(one.demand_tokens_per_s or 0.0) * KTOKEN for one in wanted]),
        least=np.array([one.least for one in wanted], np.int64),
        most=np.array([UNLIMITED if one.most is None else one.most for one in wanted], np.int64),
        limits=tuple(
            PlacementLimit(name=name, column=columns[name][0], at_most=value, unit=columns[name][1])
            for name, value in limits.items()
        ),
        is_for_share=objective == "share",
    )
    return PosedTorus(
        program=program, openings=openings, ways=tuple(ways), way=way, opening=opening
    )


def locate_slices(posed: PosedTorus, counts: Counts) -> tuple[LocatedSlice, ...]:
    """Devices of every replica, in the order of the program's columns."""
    chosen = [j for j, n in counts.chosen for _ in range(n)]
    placed = posed.openings.take(posed.opening[chosen])
    order = placed.axis_order()
    return tuple(
        _located(posed.ways[posed.way[j]], placed, row, order[row]) for row, j in enumerate(chosen)
    )


def _located(way: TorusWay, placed: Openings, row: int, axes: IntArray) -> LocatedSlice:
    inside = np.stack(
        np.meshgrid(*(np.arange(n) for n in way.shape), indexing="ij"), axis=-1
    ).reshape(-1, 3)
    at = np.zeros_like(inside)
    at[:, axes] = inside
    at = (at + placed.first[row]) % placed.orientation[row]  # lines begin behind a failed link
    at = (at + placed.offset[row]) % np.array(placed.pool)
    return LocatedSlice(
        way=way,
        orientation=_shape(placed.orientation[row]),
        offset=_shape(placed.offset[row]),
        axes=_shape(axes),
        devices=tuple(torus_device(x, y, z) for x, y, z in at.tolist()),
    )


def _shape(values: IntArray | FloatArray) -> Shape:
    x, y, z = (int(value) for value in values)
    return x, y, z
