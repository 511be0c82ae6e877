"""Repair on nodes: pieces that stay, pieces that are loaded anew, and replicas made of them.

A piece of a standing replica stays where its node still has room for it: its ranks whose
devices are gone take spare ones of the node, and only their shards move. A replica is made of
pieces of one sharding, one of each place in it, in whatever replica they stood before; pieces
that are missing are loaded on any node that has room.

    room      Σ size n ≤ devices of the node, for each set of devices that needs confine to
    pieces    pieces n ≤ stayed + loaded                            by offer, leaf and size
    places    stayed pieces of one place ≤ n                        by offer, leaf and place
    once      a rank stays once, however its replica is cut into pieces   by standing replica, rank
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations

import numpy as np

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.placing.fabrics.locating import LocatedOnNodes, Part
from planner.placing.fabrics.patterns import LEAF, STAGE, NodeConfiguration, NodePattern
from planner.placing.program import Aim, Columns, Rooms, placement_program
from planner.placing.standing import Sharding, Standing
from planner.programs.placement import Counts, PlacementProgram, Uses
from planner.topology.inventory import Ability, Inventory, Node

GIB = 2.0**-30
ANYWHERE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A configuration with its sharding; `is_new` where new pieces of it may be loaded."""

    configuration: NodeConfiguration
    sharding: Sharding
    shard_bytes: float
    is_new: bool

    @property
    def pattern(self) -> NodePattern:
        return self.configuration.pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An offer, and where its pieces may lie: a leaf, anywhere, or where a replica stands.

    Args:
        offer: its number.
        leaf: number, or `ANYWHERE`.
        standing: the replica whose pieces alone it is made of; -1 for any.
    """

    offer: int
    leaf: int
    standing: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stayed:
    """A piece that stays: which one it is, its node, and its devices by rank; "" are gone."""

    bound: Bound
    standing: int
    place: int
    node: int
    devices: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A piece of so many devices that is loaded anew on a node."""

    bound: Bound
    node: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairOnNodes:
    """A program and what its columns are: pieces that stay, that are loaded; then replicas."""

    program: PlacementProgram
    moved: FloatArray
    offers: tuple[Offer, ...]
    pieces: tuple[Stayed | Loaded, ...]
    taken: tuple[Bound, ...]
    standing: tuple[Standing, ...]
    inventory: Inventory

    def located(self, counts: Counts) -> tuple[LocatedOnNodes, ...]:
        """Devices of every replica.

        Raises:
            SolverError: what the counts promise does not fit the nodes.
        """
        return locate_repair(self, counts)


@dataclass(slots=True, kw_only=True)
class _Rows:
    names: list[str] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    entries: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    known: dict[object, int] = field(default_factory=dict)

    def row(self, key: object, name: str, free: int) -> int:
        if key not in self.known:
            self.known[key] = len(self.names)
            self.names.append(name)
            self.free.append(free)
        return self.known[key]


def pose_repair(
    inventory: Inventory, offers: Sequence[Offer], standing: Sequence[Standing], aim: Aim
) -> RepairOnNodes:
    """State the repair over what is free."""
    bounds = _bounds(inventory, offers, standing)
    stayed = [one for bound in bounds for one in _stayed(inventory, offers, bound, standing)]
    loaded = [
        Loaded(bound=bound, node=n, size=size)
        for bound in bounds
        if bound.standing < 0 and offers[bound.offer].is_new
        for size in offers[bound.offer].pattern.sizes
        for n, node in enumerate(inventory.nodes)
        if _may_lie(offers[bound.offer].pattern, node, bound)
        and _able(node, offers[bound.offer].pattern) >= size
    ]
    pieces: list[Stayed | Loaded] = [*stayed, *loaded]
    has = {piece.bound for piece in pieces}
    taken = [bound for bound in bounds if bound in has]
    rows = _Rows()
    _add_room(rows, inventory, offers, pieces)
    for j, piece in enumerate(pieces):
        rows.entries[_pool(rows, piece.bound, piece.size), j] -= 1
        if isinstance(piece, Stayed):
            place = rows.row((piece.bound, piece.place), f"place {piece.place} {piece.bound}", 0)
            rows.entries[place, j] += 1
            first = _firsts(offers[piece.bound.offer].pattern)[piece.place]
            for rank in range(first, first + piece.size):
                name = f"{standing[piece.standing].name} rank {rank}"
                rows.entries[rows.row((piece.standing, rank), name, 1), j] += 1
    everything = rows.row("devices", "free devices", inventory.n_free)
    for i, bound in enumerate(taken):
        j, pattern = len(pieces) + i, offers[bound.offer].pattern
        rows.entries[everything, j] += pattern.n_devices
        for size, n in pattern.sizes.items():
            rows.entries[_pool(rows, bound, size), j] += n
        for place in range(len(pattern.pieces)):
            if (bound, place) in rows.known:
                rows.entries[rows.known[bound, place], j] -= 1
    return RepairOnNodes(
        program=_program(aim, rows, offers, (pieces, taken)),
        moved=_moved(offers, pieces, len(taken)),
        offers=tuple(offers),
        pieces=tuple(pieces),
        taken=tuple(taken),
        standing=tuple(standing),
        inventory=inventory,
    )


def _pool(rows: _Rows, bound: Bound, size: int) -> int:
    """The row that says that no more pieces of a size are taken than stay and are loaded."""
    return rows.row((bound, "of", size), f"pieces of {size} {bound}", 0)


def _moved(offers: Sequence[Offer], pieces: Sequence[Stayed | Loaded], n_taken: int) -> FloatArray:
    """GiB that each column moves."""
    moved = []
    for piece in pieces:
        n_ranks = piece.size
        if isinstance(piece, Stayed):
            n_ranks = sum(not name for name in piece.devices)
        moved.append(n_ranks * offers[piece.bound.offer].shard_bytes * GIB)
    return np.array([*moved, *[0.0] * n_taken])


def _bounds(
    inventory: Inventory, offers: Sequence[Offer], standing: Sequence[Standing]
) -> list[Bound]:
    """Where the pieces of each offer may lie; groups of stages stay together or not at all."""
    bounds = []
    for number, offer in enumerate(offers):
        if offer.pattern.span == LEAF:
            leaves = sorted({n.leaf for n in inventory.nodes if n.kind == offer.pattern.kind})
            bounds += [Bound(offer=number, leaf=leaf) for leaf in leaves]
        elif offer.pattern.span == STAGE:
            bounds += [
                Bound(offer=number, leaf=ANYWHERE, standing=r)
                for r, one in enumerate(standing)
                if one.sharding == offer.sharding
            ]
        else:
            bounds.append(Bound(offer=number, leaf=ANYWHERE))
    return bounds


def _may_lie(pattern: NodePattern, node: Node, bound: Bound) -> bool:
    return node.kind == pattern.kind and bound.leaf in (ANYWHERE, node.leaf)


def _able(node: Node, pattern: NodePattern) -> int:
    return sum(ability.meets(pattern.need) for _, ability in node.free)


def _stayed(
    inventory: Inventory, offers: Sequence[Offer], bound: Bound, standing: Sequence[Standing]
) -> list[Stayed]:
    """Pieces of standing replicas that can stay, for one offer and place."""
    offer = offers[bound.offer]
    pattern, found = offer.pattern, []
    home = {
        name: (n, ability.meets(pattern.need))
        for n, node in enumerate(inventory.nodes)
        if _may_lie(pattern, node, bound)
        for name, ability in node.free
    }
    for r, one in enumerate(standing):
        if one.sharding != offer.sharding or bound.standing not in (-1, r):
            continue
        for place, (first, size) in enumerate(zip(_firsts(pattern), pattern.pieces, strict=True)):
            names = one.devices[first : first + size]
            left = tuple(name if home.get(name, (0, False))[1] else "" for name in names)
            nodes = {home[name][0] for name in left if name}
            if len(nodes) != 1 or (bound.standing >= 0 and "" in left):
                continue  # all gone, or it never was a piece of this way
            node = nodes.pop()
            if _able(inventory.nodes[node], pattern) >= size:
                found.append(Stayed(bound=bound, standing=r, place=place, node=node, devices=left))
    return found


def _firsts(pattern: NodePattern) -> list[int]:
    """The first rank of each piece."""
    return [0, *accumulate(pattern.pieces[:-1])]


def _add_room(
    rows: _Rows, inventory: Inventory, offers: Sequence[Offer], pieces: Sequence[Stayed | Loaded]
) -> None:
    """Rows of each node: every set of devices that pieces may be confined to holds them (Hall)."""
    of_node: dict[int, list[int]] = defaultdict(list)
    for j, piece in enumerate(pieces):
        of_node[piece.node].append(j)
    for n, columns in sorted(of_node.items()):
        node = inventory.nodes[n]
        able = {
            need: frozenset(name for name, one in node.free if one.meets(need))
            for need in {offers[pieces[j].bound.offer].pattern.need for j in columns}
        }
        sets = list(dict.fromkeys(able.values()))
        unions = dict.fromkeys(
            frozenset[str]().union(*some)
            for count in range(1, len(sets) + 1)
            for some in combinations(sets, count)
        )
        for union in unions:
            row = rows.row((n, union), f"{node.name} {len(union)} devices", len(union))
            for j in columns:
                if able[offers[pieces[j].bound.offer].pattern.need] <= union:
                    rows.entries[row, j] += pieces[j].size


def _program(
    aim: Aim,
    rows: _Rows,
    offers: Sequence[Offer],
    listed: tuple[Sequence[Stayed | Loaded], Sequence[Bound]],
) -> PlacementProgram:
    pieces, taken = listed
    columns = Columns(
        configurations=[one.configuration for one in offers],
        which=np.array([bound.offer for bound in taken], np.int64),
        n_parts=len(pieces),
    )
    entries = sorted((r, j, amount) for (r, j), amount in rows.entries.items() if amount)
    table = np.array(entries, dtype=np.int64).reshape(-1, 3)
    rooms = Rooms(
        names=tuple(rows.names),
        free=np.array(rows.free, dtype=np.int64),
        uses=Uses(resource=table[:, 0], column=table[:, 1], amount=table[:, 2]),
    )
    return placement_program(rooms, columns, aim)


def locate_repair(posed: RepairOnNodes, counts: Counts) -> tuple[LocatedOnNodes, ...]:
    """Devices of every replica: pieces that stay on their own, others on what is left.

    Raises:
        SolverError: what the counts promise does not fit the nodes.
    """
    inventory = posed.inventory
    left = [list(node.free) for node in inventory.nodes]
    stayed = [
        p for p, n in zip(posed.pieces, counts.copies, strict=False) if n and isinstance(p, Stayed)
    ]
    stock: dict[Bound, list[tuple[int, int, Part]]] = defaultdict(list)
    kept = {name for piece in stayed for name in piece.devices if name}
    for n in range(len(left)):
        left[n] = [one for one in left[n] if one[0] not in kept]
    jobs: list[tuple[Stayed | Loaded, int]] = [(piece, 1) for piece in stayed]
    jobs += [
        (piece, n)
        for piece, n in zip(posed.pieces, counts.copies, strict=False)
        if n and isinstance(piece, Loaded)
    ]
    # choosy pieces first, each on the least able devices that will do
    jobs.sort(
        key=lambda job: _able(
            inventory.nodes[job[0].node], posed.offers[job[0].bound.offer].pattern
        )
    )
    for piece, n_copies in jobs:
        pattern = posed.offers[piece.bound.offer].pattern
        node = inventory.nodes[piece.node]
        for _ in range(n_copies):
            old = piece.devices if isinstance(piece, Stayed) else ("",) * piece.size
            names = tuple(name or _spare(left[piece.node], pattern, node) for name in old)
            part = Part(node=node, devices=names)
            whose = (piece.standing, piece.place) if isinstance(piece, Stayed) else (-1, -1)
            stock[piece.bound].append((*whose, part))
    located = []
    for bound, n in zip(posed.taken, counts.copies[len(posed.pieces) :], strict=True):
        located += _assembled(posed.offers[bound.offer].configuration, stock[bound], n)
    return tuple(located)


def _spare(left: list[tuple[str, Ability]], pattern: NodePattern, node: Node) -> str:
    able = [one for one in left if one[1].meets(pattern.need)]
    if not able:
        raise SolverError(f"`{node.name}` has no device left for a piece")
    worst = min(able, key=lambda one: one[1])
    left.remove(worst)
    return worst[0]


def _assembled(
    one: NodeConfiguration, stock: list[tuple[int, int, Part]], n_replicas: int
) -> list[LocatedOnNodes]:
    """Replicas of pieces: those that stood together first, then whatever is missing."""
    sizes = one.pattern.pieces
    slots: list[list[Part | None]] = [[None] * len(sizes) for _ in range(n_replicas)]
    by_standing: dict[int, list[tuple[int, Part]]] = defaultdict(list)
    loaded: dict[int, list[Part]] = defaultdict(list)
    for standing, place, part in stock:
        if standing < 0:
            loaded[len(part.devices)].append(part)
        else:
            by_standing[standing].append((place, part))
    groups = sorted(by_standing.items(), key=lambda group: (-len(group[1]), group[0]))
    for number, (_, parts) in enumerate(groups):
        for place, part in parts:
            own = [slots[number]] if number < n_replicas else []
            free = [s for s in (*own, *slots) if s[place] is None]
            if free:
                free[0][place] = part
            else:
                loaded[len(part.devices)].append(part)  # spare pieces that nobody needs

    def whole(part: Part | None, size: int) -> Part:
        if part is None and not loaded[size]:
            raise SolverError("fewer pieces are there than replicas take")
        return loaded[size].pop(0) if part is None else part

    return [
        LocatedOnNodes(configuration=one, parts=tuple(map(whole, slot, sizes))) for slot in slots
    ]
