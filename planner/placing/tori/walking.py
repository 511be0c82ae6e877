"""The channels of slices on a torus: every line and ring, walked link by link on the graph.

An axis that is counted as a ring closes by a link of the pool, or by the switches, which join the
faces of whole cubes by the links of both of its ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.errors import SolverError
from planner.placing.tori.slices import LocatedSlice
from planner.results.placements import Channel
from planner.specs.records import TorusFabric
from planner.topology.meshes import AXES
from planner.topology.slices import torus_device

if TYPE_CHECKING:
    import networkx as nx

Line = tuple[str, ...]


def walked(graph: nx.Graph[str], fabric: TorusFabric, one: LocatedSlice) -> tuple[Channel, ...]:
    """The channels of a replica, one for each axis along which devices talk.

    Raises:
        SolverError: an axis has no links, or is no ring.
    """
    at = _Slice(
        one=one, fabric=fabric, fills=tuple(_fills_cubes(fabric, one, axis) for axis in range(3))
    )
    return tuple(
        _channel(graph, at, axis)
        for axis in range(3)
        if one.configuration.pattern.dimensions[axis] > 1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """A slice of a pool, and along which axes of it its devices fill whole cubes."""

    one: LocatedSlice
    fabric: TorusFabric
    fills: tuple[bool, ...]


def _channel(graph: nx.Graph[str], at: _Slice, axis: int) -> Channel:
    one, pattern = at.one, at.one.configuration.pattern
    counted, is_ring = pattern.link_bytes_per_s[axis], pattern.closes[axis]
    lines = list(_lines(one, axis))
    narrowest = (float("inf"), ("", ""), lines[0])
    for line in lines:
        pairs = [*pairwise(line), *([(line[-1], line[0])] if is_ring else [])]
        links = [link for a, b in pairs for link in _joining(graph, at, (axis, line), a, b)]
        for a, b in links:
            edge = graph.get_edge_data(a, b)
            if edge is None:
                raise SolverError(f"no link joins `{a}` and `{b}`, which talk to each other")
            if edge["bytes_per_s"] < narrowest[0]:
                narrowest = (float(edge["bytes_per_s"]), (a, b), line)
    width, link, line = narrowest
    return Channel(
        axis=AXES[axis],
        n_groups=len(lines),
        n_devices=len(line),
        devices=line,
        link=link,
        bytes_per_s=width,
        counted_bytes_per_s=counted,
    )


def _lines(one: LocatedSlice, axis: int) -> Iterator[Line]:
    """Devices along one axis of the mesh, line by line."""
    dimensions = one.configuration.pattern.dimensions
    _, y, z = dimensions
    step = (y * z, z, 1)[axis]
    for rank in range(len(one.devices)):
        if (rank // step) % dimensions[axis] == 0:
            yield tuple(one.devices[rank + k * step] for k in range(dimensions[axis]))


def _joining(
    graph: nx.Graph[str], at: _Slice, where: tuple[int, Line], *ends: str
) -> list[tuple[str, str]]:
    """The links by which two devices of a line talk: one, or those of the faces of its cubes.

    Raises:
        SolverError: there are none.
    """
    a, b = ends
    axis, line = where
    if graph.has_edge(a, b):
        return [(a, b)]
    along = at.one.axes[axis]
    if not (at.fills[along] if at.fabric.wraps_each_axis else all(at.fills)):
        raise SolverError(f"no link joins `{a}` and `{b}`, which talk to each other")
    own = {_at(name)[along] for name in line}
    n = at.fabric.shape[along]
    faces = []
    for name, step in ((a, 1), (a, -1), (b, 1), (b, -1)):
        beside = list(_at(name))
        beside[along] = (beside[along] + step) % n
        if beside[along] not in own:
            faces.append((name, torus_device(*beside)))
    if {name for name, _ in faces} != {a, b}:
        raise SolverError(f"`{a}` and `{b}` are not on two faces of the same cubes")
    return faces


def _fills_cubes(fabric: TorusFabric, one: LocatedSlice, axis: int) -> bool:
    """Whether the devices fill whole cubes along an axis of the pool."""
    cube = fabric.wrap_multiple
    of_cube: dict[int, set[int]] = {}
    for name in one.devices:
        at = _at(name)[axis]
        of_cube.setdefault(at // cube, set()).add(at)
    return all(len(found) == cube for found in of_cube.values())


def _at(name: str) -> tuple[int, int, int]:
    x, y, z = map(int, name.split(","))
    return x, y, z
