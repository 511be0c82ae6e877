"""Counts to devices: which nodes give which pieces, and which replica takes which.

Nodes whose devices are alike are filled with the largest pieces first, each into the fullest
node that still has room: exact, since sizes divide each other. In a node whose devices differ
pieces and devices are matched (Kuhn), the choosiest pieces first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import SolverError
from planner.placing.fabrics.patterns import STAGE, NodeConfiguration
from planner.placing.fabrics.room import Piece, Unit, pieces_of
from planner.programs.placement import Counts
from planner.topology.inventory import Node

if TYPE_CHECKING:
    from planner.placing.fabrics.posing import PosedOnNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Devices of one node, in the order of the node."""

    node: Node
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedOnNodes:
    """A replica and its devices, part by part in the order of its ranks."""

    configuration: NodeConfiguration
    parts: tuple[Part, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """By rank."""
        return tuple(name for part in self.parts for name in part.devices)

    def parts_of(self, group: tuple[str, ...]) -> int:
        """Parts that some of its devices are in."""
        return sum(not {*part.devices}.isdisjoint(group) for part in self.parts)

    @property
    def grid(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Names by stage, row of the stage, place in the row."""
        names, (t, m, p) = self.devices, self.configuration.pattern.shape
        return tuple(
            tuple(names[(s * m + row) * t : (s * m + row + 1) * t] for row in range(m))
            for s in range(p)
        )


def locate(posed: PosedOnNodes, counts: Counts) -> tuple[LocatedOnNodes, ...]:
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
    stages = [one for one, n in held for _ in range(n)]
    taken = zip(posed.taken, copies[n_given + n_staged :], strict=True)
    replicas = [one for one, n in taken for _ in range(n)]
    whole = [one for one in replicas if one[0].pattern.span != STAGE]
    for one, leaf in (*stages, *whole):
        for piece in _in_order(one, leaf):
            if piece in posed.sources:
                asked[posed.sources[piece]][piece] += 1
    ready = _ready(posed, asked)
    of_stage: dict[int, list[Part]] = defaultdict(list)
    for one, leaf in stages:
        of_stage[id(one)] += [_next(ready[piece]) for piece in _in_order(one, leaf)]
    located = []
    for one, leaf in replicas:
        if one.pattern.span == STAGE:
            parts = [_next(of_stage[id(one)]) for _ in one.pattern.pieces]
        else:
            parts = [_next(ready[piece]) for piece in _in_order(one, leaf)]
        located.append(LocatedOnNodes(configuration=one, parts=tuple(parts)))
    return tuple(located)


def _in_order(one: NodeConfiguration, leaf: int) -> list[Piece]:
    """The pieces that lie together, in the order of ranks."""
    of_size = {piece.size: piece for piece in pieces_of(one.pattern, leaf)}
    return [of_size[size] for size in one.pattern.pieces_together]


def _next(stock: list[Part]) -> Part:
    """The first part, taken out of the stock."""
    if not stock:
        raise SolverError("fewer pieces are given than replicas take")
    return stock.pop(0)


def _ready(posed: PosedOnNodes, asked: dict[int, dict[Piece, int]]) -> dict[Piece, list[Part]]:
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
        return matched(unit.nodes[0], asked)
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


def matched(node: Node, asked: dict[Piece, int]) -> list[tuple[Piece, Part]]:
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
