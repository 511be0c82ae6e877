"""Counts to devices: which nodes give which pieces, and which replica takes which.

Replica by replica first, those of the largest pieces before others: each takes as few nodes and
leaves as it can, and of these the fullest, so that whole nodes stay whole. Counts do not say which
nodes; where this does not come out, the nodes are those that the counts say. Those whose
devices are alike are filled with the largest pieces first, each into the fullest
node that still has room: exact, since sizes divide each other. In a node whose devices differ
pieces and devices are matched (Kuhn), the choosiest pieces first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.errors import SolverError
from planner.placing.fabrics.patterns import STAGE, NodeConfiguration, NodePattern
from planner.placing.fabrics.room import ANYWHERE, Piece, Unit, pieces_of
from planner.placing.program import Columns
from planner.programs.handover import Handover
from planner.programs.placement import UNLIMITED, Counts, PlacementProgram
from planner.topology.inventory import Node


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodesProgram:
    """A program, and what its columns are.

    Args:
        given: of each of the first columns, the unit and the piece that it gives.
        staged: of each of the next, the configuration and the leaf that holds one of its stages.
        taken: of each other column, the configuration, and its leaf or `ANYWHERE`.
        sources: pieces that only one unit gives, which need no column; the unit's number.
        network: who hands caches over to whom; None where nobody does.
    """

    program: PlacementProgram
    columns: Columns
    units: tuple[Unit, ...]
    given: tuple[tuple[int, Piece], ...]
    staged: tuple[tuple[NodeConfiguration, int], ...]
    taken: tuple[tuple[NodeConfiguration, int], ...]
    sources: dict[Piece, int]
    network: Handover | None = None

    def located(self, counts: Counts) -> tuple[LocatedOnNodes, ...]:
        """Devices for every replica, in the order of the program's columns.

        Raises:
            SolverError: what the counts promise does not fit the nodes.
        """
        taken = zip(self.taken, counts.copies[self.columns.n_parts :], strict=True)
        replicas = [one for one, n in taken for _ in range(n)]
        parts = _packed(self, replicas) or _given(self, counts, replicas)
        return tuple(
            LocatedOnNodes(configuration=config, parts=tuple(mine))
            for (config, _), mine in zip(replicas, parts, strict=True)
        )


def _packed(posed: NodesProgram, replicas: Sequence[Bound]) -> list[list[Part]] | None:
    """Parts of each replica on the fewest nodes; None where some has no room left."""
    patterns = [one.pattern for one, _ in replicas]
    if any(one.span == STAGE or len(one.sizes) > 1 for one in patterns):
        return None
    left = _Left([node for unit in posed.units for node in unit.nodes])
    largest = [(-max(one.pieces), -len(one.pieces)) for one in patterns]
    order = sorted(range(len(replicas)), key=largest.__getitem__)
    parts = {i: left.taken(patterns[i], replicas[i][1]) for i in order}
    return None if not all(parts.values()) else [parts[i] for i in range(len(replicas))]


class _Left:
    """Devices of nodes that no replica has yet, the least able first."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._free = [sorted(node.free, key=lambda pair: pair[1]) for node in nodes]

    def taken(self, pattern: NodePattern, leaf: int) -> list[Part]:
        """Parts of a replica, which has them from now on; none where there is no room."""
        able = [self._able(k, pattern, leaf) for k in range(len(self._nodes))]
        leaves, n_left = [node.leaf for node in self._nodes], list(map(len, self._free))
        chosen = _fullest(pattern, able, leaves, n_left)
        if len(chosen) < len(pattern.pieces):
            return []
        parts, size = [], pattern.pieces[0]
        for k in sorted(chosen):
            names, able[k] = able[k][:size], able[k][size:]
            self._free[k] = [one for one in self._free[k] if one[0] not in names]
            parts.append(Part(node=self._nodes[k], devices=tuple(names)))
        return parts

    def _able(self, k: int, pattern: NodePattern, leaf: int) -> list[str]:
        """Devices of a node that a replica may have."""
        node = self._nodes[k]
        if node.kind != pattern.kind or leaf not in (ANYWHERE, node.leaf):
            return []
        return [name for name, can in self._free[k] if can.meets(pattern.need)]


def _fullest(
    pattern: NodePattern, able: list[list[str]], leaves: list[int], n_left: list[int]
) -> list[int]:
    """The node of each piece: the fewest leaves, the fewest nodes, the fullest of them."""
    missing = len(pattern.pieces)
    most = 1 if pattern.own_nodes else missing
    room = [min(len(names) // pattern.pieces[0], most) for names in able]
    of_leaf: Counter[int] = Counter()
    for leaf, n in zip(leaves, room, strict=True):
        of_leaf[leaf] += n

    def order(k: int) -> tuple[int, int, int]:
        n = of_leaf[leaves[k]]
        leaf = 0 if missing == 1 else n if n >= missing else UNLIMITED - n
        return leaf, -room[k], n_left[k]

    ordered = sorted((k for k, n in enumerate(room) if n), key=order)
    return [k for k in ordered for _ in range(room[k])][:missing]


def _dealt(stock: list[Part], n: int, *, own_nodes: bool) -> list[Part]:
    """Parts taken out of the stock: of the nodes that have most, in their order.

    Args:
        own_nodes: one of each node, which leaves enough of others for others.
    """
    if len(stock) < n:
        raise SolverError("fewer pieces are given than replicas take")
    n_of = Counter(part.node.name for part in stock)
    place = {id(part): i for i, part in enumerate(stock)}
    ordered = sorted(stock, key=lambda part: -n_of[part.node.name])
    if own_nodes:
        ordered = list({part.node.name: part for part in reversed(ordered)}.values())[::-1]
    chosen = sorted(ordered[:n], key=lambda part: place[id(part)])
    stock[:] = [part for part in stock if all(part is not one for one in chosen)]
    return chosen


Bound = tuple[NodeConfiguration, int]
"""A replica, and the leaf that it is bound to, or `ANYWHERE`."""


def _given(posed: NodesProgram, counts: Counts, replicas: Sequence[Bound]) -> Iterator[list[Part]]:
    """Parts of each replica, of the nodes that give pieces as the counts say."""
    n_given = len(posed.given)
    held = zip(posed.staged, counts.copies[n_given : n_given + len(posed.staged)], strict=True)
    stages = [one for one, n in held for _ in range(n)]
    whole = [one for one in replicas if one[0].pattern.span != STAGE]
    needs: dict[int, dict[Piece, int]] = defaultdict(lambda: defaultdict(int))
    given = zip(posed.given, counts.copies[:n_given], strict=True)
    for u, piece, n in (*((u, it, n) for (u, it), n in given), *_of_one(posed, (*stages, *whole))):
        needs[u][piece] += n
    ready = _ready(posed, needs)
    of_stage: dict[int, list[Part]] = defaultdict(list)
    for one, leaf in stages:
        of_stage[id(one)] += _of_pieces(one, leaf, ready)
    for config, leaf in replicas:
        if config.pattern.span == STAGE:
            yield [of_stage[id(config)].pop(0) for _ in config.pattern.pieces]
        else:
            yield _of_pieces(config, leaf, ready)


def _of_one(posed: NodesProgram, bound: Sequence[Bound]) -> Iterator[tuple[int, Piece, int]]:
    """Pieces that only one unit gives, which have no column: its number, and how many."""
    for config, leaf in bound:
        for piece, n in _together(config, leaf):
            if piece in posed.sources:
                yield posed.sources[piece], piece, n


def _of_pieces(config: NodeConfiguration, leaf: int, ready: dict[Piece, list[Part]]) -> list[Part]:
    """Parts for the pieces that lie together, taken out of those that are ready."""
    dealt = (
        _dealt(ready[piece], n, own_nodes=config.pattern.own_nodes)
        for piece, n in _together(config, leaf)
    )
    return [part for parts in dealt for part in parts]


def _together(config: NodeConfiguration, leaf: int) -> list[tuple[Piece, int]]:
    """The pieces that lie together, in the order of ranks, with how many of each."""
    n_of = Counter(config.pattern.pieces_together)
    return [(piece, n_of[piece.size]) for piece in pieces_of(config.pattern, leaf)]


def _ready(posed: NodesProgram, needs: dict[int, dict[Piece, int]]) -> dict[Piece, list[Part]]:
    """Pieces on devices, in the order of nodes."""
    ready: dict[Piece, list[Part]] = defaultdict(list)
    for u in sorted(needs):
        for piece, part in _parts(posed.units[u], needs[u]):
            ready[piece].append(part)
    order = {id(node): i for i, node in enumerate(n for u in posed.units for n in u.nodes)}
    for parts in ready.values():
        parts.sort(key=lambda part: order[id(part.node)])
    return ready


def _parts(unit: Unit, needs: dict[Piece, int]) -> list[tuple[Piece, Part]]:
    if len(unit.abilities) > 1:
        return matched(unit.nodes[0], needs)
    left = {node.name: [name for name, _ in node.free] for node in unit.nodes}
    nodes = {node.name: node for node in unit.nodes}
    placed = []
    for piece in sorted(needs, key=lambda pair: -pair.size):
        for _ in range(needs[piece]):
            fitting = [name for name, names in left.items() if len(names) >= piece.size]
            if not fitting:
                raise SolverError(f"no node has room for a piece of {piece.size} devices")
            fullest = min(fitting, key=lambda name: len(left[name]))
            taken, left[fullest] = left[fullest][: piece.size], left[fullest][piece.size :]
            placed.append((piece, Part(node=nodes[fullest], devices=tuple(taken))))
    order = {node.name: i for i, node in enumerate(unit.nodes)}
    return sorted(placed, key=lambda pair: order[pair[1].node.name])


def matched(node: Node, needs: dict[Piece, int]) -> list[tuple[Piece, Part]]:
    """Pieces of one node on devices that meet their needs."""
    pieces = [piece for piece, n in needs.items() for _ in range(n)]
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
