"""What nodes have room for, as rows of a placement program.

    units     nodes of one leaf whose free devices are alike; a node whose free devices differ is
              a unit by itself
    pieces    parts of replicas that lie in one node: so many devices of one need, of one leaf or
              of any

Rows of a unit say that pieces fit its nodes. Where all sizes divide each other, or are whole
nodes, and devices are alike, counting is exact: pieces of size g or more need no more places
than there are, Σ (t/g) n_t ≤ Σ_i ⌊free_i/g⌋ for each g, and whole nodes need nodes that are all
free. In a node by itself every set of devices that some pieces are confined to has to hold them
(Hall): so it is in a node whose devices differ, and in all nodes of a kind of which pieces are
wanted whose sizes do not divide each other, or that need nodes of their own.

Of pieces that need nodes of their own, n of a replica, a node gives no more than there are such
replicas. That is enough to deal them out [Gale1957]: each replica takes one of each of the n nodes
that have most left.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeVar

import numpy as np

from planner.placing.fabrics.domains import piece_sizes
from planner.placing.fabrics.patterns import LEAF, NODE, STAGE, NodeConfiguration, NodePattern
from planner.placing.program import Rooms
from planner.programs.placement import Uses
from planner.topology.inventory import Ability, Inventory, Kind, Node

ANYWHERE = -1
_Device = TypeVar("_Device")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Piece:
    """Devices of one node that a replica needs together.

    Args:
        leaf: its number, or `ANYWHERE`.
        n_apart: pieces of a replica each of which needs a node of its own; 0 where none does.
    """

    size: int
    kind: Kind
    need: Ability
    leaf: int
    n_apart: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Nodes that give pieces.

    Args:
        nodes: of the inventory, all of one kind and leaf; one where abilities differ.
        abilities: that free devices of a node have.
    """

    nodes: tuple[Node, ...]
    abilities: frozenset[Ability]

    def gives(self, piece: Piece) -> bool:
        """Whether a node of it may have the piece's devices."""
        first = self.nodes[0]
        if piece.kind != first.kind or piece.leaf not in (ANYWHERE, first.leaf):
            return False
        if len(self.abilities) == 1:
            # whether there are enough of them is for the rows to say
            return next(iter(self.abilities)).meets(piece.need)
        return meeting(first, piece.need) >= piece.size


def units_of(inventory: Inventory, uneven: Collection[Kind] = ()) -> tuple[Unit, ...]:
    """Nodes with free devices, those that are alike together, in the inventory's order.

    Args:
        uneven: kinds of which pieces are wanted that do not divide each other.
    """
    alike: dict[object, list[Node]] = {}
    for number, node in enumerate(inventory.nodes):
        abilities = frozenset(ability for _, ability in node.free)
        if abilities:
            # Hall is of the devices of one node: sums over several would let pieces straddle them
            own = number if len(abilities) > 1 or node.kind in uneven else None
            alike.setdefault((node.kind, node.leaf, abilities, own), []).append(node)
    return tuple(
        Unit(nodes=tuple(nodes), abilities=frozenset(ability for _, ability in nodes[0].free))
        for nodes in alike.values()
    )


def uneven_kinds(inventory: Inventory, patterns: Iterable[NodePattern]) -> frozenset[Kind]:
    """Kinds of which some pieces are neither powers of two nor whole nodes, or need own nodes."""
    even = {kind: {*piece_sizes(inventory, kind)} for kind in inventory.kinds}
    return frozenset(
        one.kind for one in patterns if one.own_nodes or not even[one.kind].issuperset(one.pieces)
    )


def meeting(node: Node, need: Ability) -> int:
    """Free devices of a node that meet a need."""
    return sum(ability.meets(need) for _, ability in node.free)


def pieces_of(pattern: NodePattern, leaf: int) -> dict[Piece, int]:
    """The pieces of a replica that is bound to a leaf, or lies anywhere, with how many of each."""
    return {
        Piece(
            kind=pattern.kind,
            need=pattern.need,
            size=size,
            leaf=leaf,
            n_apart=n if pattern.own_nodes else 0,
        ): n
        for size, n in pattern.sizes.items()
    }


def unions(sets: Iterable[frozenset[_Device]]) -> list[frozenset[_Device]]:
    """Every union of one of the sets or of several, each once."""
    each = list(dict.fromkeys(sets))
    several = (some for n in range(1, len(each) + 1) for some in combinations(each, n))
    return list(dict.fromkeys(frozenset[_Device]().union(*some) for some in several))


class Room:
    """Devices that meet a need, by node, counted once for each need."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._meeting: dict[tuple[Kind, Ability], list[tuple[int, int]]] = {}

    def leaves(self, pattern: NodePattern, *, is_bound: bool = False) -> list[int]:
        """Leaves that a replica, or each of its stages, may be bound to; `ANYWHERE` of others.

        Args:
            is_bound: whether it has to lie in one leaf; none does that lies in several.
        """
        # inside a node the leaf matters only where links of leaves do: else one column is enough
        if pattern.span not in ((NODE, LEAF) if is_bound else (LEAF, STAGE)):
            return [] if is_bound else [ANYWHERE]
        key = (pattern.kind, pattern.need)
        if key not in self._meeting:
            self._meeting[key] = [
                (node.leaf, meeting(node, pattern.need))
                for node in self._inventory.nodes
                if node.kind == pattern.kind
            ]
        together = Counter(pattern.pieces_together)
        leaves = sorted({leaf for leaf, _ in self._meeting[key]})
        return [
            leaf
            for leaf in leaves
            if all(
                self._n_pieces(key, leaf, size, own_nodes=pattern.own_nodes) >= n
                for size, n in together.items()
            )
        ]

    def _n_pieces(self, key: tuple[Kind, Ability], leaf: int, size: int, *, own_nodes: bool) -> int:
        """Pieces that nodes of a leaf have; nodes that have one."""
        # a node of its own gives a replica one piece, whatever else it has room for
        each = [n // size for other, n in self._meeting[key] if other == leaf]
        return sum(map(bool, each)) if own_nodes else sum(each)


@dataclass(slots=True, kw_only=True)
class Resources:
    """Rows of a program and what its columns take of them, as they are met.

    Args:
        free: of each row, what there is of it.
        entries: by row and column, what a copy of the column takes.
    """

    names: list[str] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    entries: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, name: str, free: int) -> int:
        self.names.append(name)
        self.free.append(free)
        return len(self.names) - 1

    def rooms(self) -> Rooms:
        """The same as arrays, without entries that cancelled out."""
        entries = sorted((r, j, amount) for (r, j), amount in self.entries.items() if amount)
        table = np.array(entries, dtype=np.int64).reshape(-1, 3)
        return Rooms(
            names=tuple(self.names),
            free=np.array(self.free, dtype=np.int64),
            uses=Uses(resource=table[:, 0], column=table[:, 1], amount=table[:, 2]),
        )


@dataclass(slots=True, kw_only=True)
class Rows(Resources):
    """Resources of units, and of pieces, stages and replicas that are made of them."""

    units: tuple[Unit, ...]
    inventory: Inventory
    uneven: frozenset[Kind] = frozenset()
    _pools: dict[Piece, int] = field(default_factory=dict)
    _stages: dict[int, int] = field(default_factory=dict)
    _apart: dict[int, int] = field(default_factory=dict)
    _room: dict[tuple[int, Piece], list[tuple[int, int]]] = field(default_factory=dict)

    def givers(self, piece: Piece) -> list[int]:
        return [u for u, unit in enumerate(self.units) if unit.gives(piece)]

    def take(self, column: int, unit: int, piece: Piece, n_pieces: int) -> None:
        """So many pieces of a unit, for each copy of a column."""
        for row, amount in self._room[unit, piece]:
            self.entries[row, column] += amount * n_pieces

    def most(self, unit: int, piece: Piece) -> int:
        """Pieces that a unit could give if it gave no others."""
        return min(self.free[row] // amount for row, amount in self._room[unit, piece])

    def pool(self, piece: Piece) -> int:
        """The row that says that no more pieces are taken than are given."""
        if piece not in self._pools:
            # nothing is there before units give: they enter with −1, who takes a piece with +1
            where = "any" if piece.leaf == ANYWHERE else self.inventory.leaf_names[piece.leaf]
            name = f"pieces {len(self._pools)} of {piece.size} {piece.kind.name} in {where}"
            self._pools[piece] = self.add(name, 0)
        return self._pools[piece]

    def apart(self, given: int) -> int:
        """The row that says that a node gives each replica one piece of these, no more."""
        if given not in self._apart:
            # what a node gives enters with +1, replicas that take such pieces with −1
            self._apart[given] = self.add(f"apart {given}", 0)
        return self._apart[given]

    def stages(self, config: NodeConfiguration) -> int:
        """The row that says that no more stages of a replica are taken than leaves hold."""
        if id(config) not in self._stages:
            name = f"stages {len(self._stages)} of {config.pattern.kind_name}"
            self._stages[id(config)] = self.add(name, 0)
        return self._stages[id(config)]

    def add_units(self, given: Sequence[tuple[int, Piece]], sources: dict[Piece, int]) -> None:
        """The rows of each unit, for the pieces that it may give."""
        wanted: dict[int, list[Piece]] = defaultdict(list)
        for u, piece in [*given, *((u, piece) for piece, u in sources.items())]:
            wanted[u].append(piece)
        for u, pieces in sorted(wanted.items()):
            unit = self.units[u]
            if len(unit.abilities) == 1 and unit.nodes[0].kind not in self.uneven:
                self._add_alike(u, pieces)
            else:
                self._add_mixed(u, pieces)

    def _add_alike(self, u: int, pieces: list[Piece]) -> None:
        unit = self.units[u]
        first = unit.nodes[0]
        whole = piece_sizes(self.inventory, first.kind)[-1]
        largest = max(piece.size for piece in pieces)
        is_power = whole & (whole - 1) == 0
        chain = [1 << k for k in range(whole.bit_length()) if 1 << k <= largest]
        place = f"{first.kind.name} {self.inventory.leaf_names[first.leaf]} unit {u}"
        # each size divides the next: a piece of g or more takes size / g of the ⌊free / g⌋ places
        # that a node has, and the largest laid first leave whole places to all others
        for g in chain:
            row = self.add(f"{place} by {g}", sum(len(n.free) // g for n in unit.nodes))
            for piece in pieces:
                if piece.size >= g:
                    self._room.setdefault((u, piece), []).append((row, piece.size // g))
        # ⌊whole / g⌋ places of g may be met by nodes that are not all free
        if not is_power and largest == whole:
            n_whole = sum(len(node.free) >= whole for node in unit.nodes)
            row = self.add(f"{place} whole", n_whole)
            for piece in pieces:
                if piece.size == whole:
                    self._room[u, piece].append((row, 1))

    def _add_mixed(self, u: int, pieces: list[Piece]) -> None:
        """One node whose devices differ: a row for every set that pieces may be confined to."""
        node = self.units[u].nodes[0]
        devices = {
            piece: frozenset(name for name, one in node.free if one.meets(piece.need))
            for piece in pieces
        }
        # a set of pieces is confined to the union of what each may have: no other set is short
        for union in unions(devices.values()):
            row = self.add(f"{node.name} {len(union)} of {len(node.free)}", len(union))
            for piece in pieces:
                if devices[piece] <= union:
                    self._room.setdefault((u, piece), []).append((row, piece.size))
