"""Counts to devices: which nodes give which pieces, and which replica takes which.

Nodes whose devices are alike are filled with the largest pieces first, each into the fullest
node that still has room: exact, since sizes divide each other. In a node whose devices differ
pieces and devices are matched (Kuhn), the choosiest pieces first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from planner.errors import SolverError
from planner.placing.clusters import NODE, STAGE
from planner.placing.columns import Way
from planner.placing.posing import Posed
from planner.placing.room import Piece, Unit, piece_of
from planner.programs.placement import Counts
from planner.topology.inventory import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Devices of one node, in the order of the node."""

    node: Node
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A replica and its devices: `devices[stage][across][inside]`."""

    way: Way
    parts: tuple[Part, ...]

    @property
    def grid(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Names by stage, place in the group of nodes, place in the node."""
        way = self.way
        if way.span == NODE:
            names, t = self.parts[0].devices, way.n_inside
            return tuple((names[s * t : (s + 1) * t],) for s in range(way.n_stages))
        rows = [part.devices for part in self.parts]
        m = way.n_across
        return tuple(tuple(rows[s * m : (s + 1) * m]) for s in range(way.n_stages))


def locate(posed: Posed, counts: Counts) -> tuple[Located, ...]:
    """Devices for every replica, in the order of the program's columns.

    Raises:
        SolverError: what the counts promise does not fit the nodes.
    """
    n_given, n_staged = len(posed.given), len(posed.staged)
    copies = counts.copies
    asked: dict[int, dict[Piece, int]] = defaultdict(lambda: defaultdict(int))
    for (u, piece), n in zip(posed.given, copies[:n_given], strict=True):
        asked[u][piece] += n
    held = zip(posed.staged, copies[n_given : n_given + n_staged], strict=True)
    stages = [(way, piece_of(way, leaf), way.n_across) for (way, leaf), n in held for _ in range(n)]
    taken = zip(posed.taken, copies[n_given + n_staged :], strict=True)
    replicas = [(way, leaf) for (way, leaf), n in taken for _ in range(n)]
    whole = [
        (way, piece_of(way, leaf), way.n_pieces) for way, leaf in replicas if way.span != STAGE
    ]
    for _, piece, n_pieces in (*stages, *whole):
        if piece in posed.sources:
            asked[posed.sources[piece]][piece] += n_pieces
    ready = _ready(posed, asked)
    of_stage: dict[int, list[Part]] = defaultdict(list)
    for way, piece, n_pieces in stages:
        of_stage[id(way)] += _some(ready[piece], n_pieces)
    located = []
    for way, leaf in replicas:
        stock = of_stage[id(way)] if way.span == STAGE else ready[piece_of(way, leaf)]
        located.append(Located(way=way, parts=tuple(_some(stock, way.n_pieces))))
    return tuple(located)


def _some(stock: list[Part], n_parts: int) -> list[Part]:
    """The first parts, taken out of the stock."""
    if len(stock) < n_parts:
        raise SolverError("fewer pieces are given than replicas take")
    taken, stock[:n_parts] = stock[:n_parts], []
    return taken


def _ready(posed: Posed, asked: dict[int, dict[Piece, int]]) -> dict[Piece, list[Part]]:
    """Pieces on devices, in the order of nodes."""
    ready: dict[Piece, list[Part]] = defaultdict(list)
    for u in sorted(asked):
        for piece, part in _parts(posed.units[u], asked[u]):
            ready[piece].append(part)
    order = {id(node): i for i, node in enumerate(n for u in posed.units for n in u.nodes)}
    for parts in ready.values():
        parts.sort(key=lambda part: order[id(part.node)])
    return ready


def _parts(unit: Unit, asked: dict[Piece, int]) -> list[tuple[Piece, Part]]:
    if len(unit.abilities) > 1:
        return _matched(unit.nodes[0], asked)
    left = {node.name: [name for name, _ in node.free] for node in unit.nodes}
    nodes = {node.name: node for node in unit.nodes}
    placed = []
    for piece in sorted(asked, key=lambda one: -one.size):
        for _ in range(asked[piece]):
            fitting = [name for name, names in left.items() if len(names) >= piece.size]
            if not fitting:
                raise SolverError(f"no node has room for a piece of {piece.size} devices")
            fullest = min(fitting, key=lambda name: len(left[name]))
            taken, left[fullest] = left[fullest][: piece.size], left[fullest][piece.size :]
            placed.append((piece, Part(node=nodes[fullest], devices=tuple(taken))))
    order = {node.name: i for i, node in enumerate(unit.nodes)}
    return sorted(placed, key=lambda one: order[one[1].node.name])


def _matched(node: Node, asked: dict[Piece, int]) -> list[tuple[Piece, Part]]:
    """Pieces of one node on devices that meet their needs."""
    pieces = [piece for piece, n in asked.items() for _ in range(n)]
    slots = [i for i, piece in enumerate(pieces) for _ in range(piece.size)]
    # the least able devices first, so that the able ones are left to those who need them
    able = sorted(range(len(node.free)), key=lambda d: node.free[d][1])
    fitting = [[d for d in able if node.free[d][1].meets(piece.need)] for piece in pieces]
    order = sorted(range(len(slots)), key=lambda s: len(fitting[slots[s]]))
    slot_of: dict[int, int] = {}

    def place(slot: int, seen: set[int]) -> bool:
        for d in fitting[slots[slot]]:
            if d not in seen:
                seen.add(d)
                if d not in slot_of or place(slot_of[d], seen):
                    slot_of[d] = slot
                    return True
        return False

    for slot in order:
        if not place(slot, set()):
            raise SolverError(f"`{node.name}` has no devices left for a piece of its own")
    devices: dict[int, list[int]] = defaultdict(list)
    for d, slot in slot_of.items():
        devices[slots[slot]].append(d)
    return [
        (piece, Part(node=node, devices=tuple(node.free[d][0] for d in sorted(devices[i]))))
        for i, piece in enumerate(pieces)
    ]
