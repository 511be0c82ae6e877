"""Repair on nodes: pieces that stay, pieces that are loaded anew, and replicas made of them.

A piece of a standing replica stays where its node still has room for it: its ranks whose
devices are gone take spare ones of the node, and only their shards move. A replica is made of
pieces of one sharding, one of each place in it, in whatever replica they stood before; pieces
that are missing are loaded on any node that has room.

    room      Σ size n ≤ devices of the node, for each set of devices that needs confine to
    pieces    n_pieces n_way ≤ stayed + loaded                      by way and leaf
    places    stayed pieces of one place ≤ n_way                    by way, leaf and place
    once      a piece stays once                                    by standing replica and place
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from planner.errors import SolverError
from planner.placing.clusters import LEAF, STAGE
from planner.placing.columns import Way
from planner.placing.decoding import Located, Part
from planner.placing.posing import KTOKEN
from planner.placing.searching import Asked
from planner.placing.standing import Sharding, Standing
from planner.programs.layout import FloatArray
from planner.programs.placement import (
    UNLIMITED,
    Counts,
    PlacementLimit,
    PlacementProgram,
    Uses,
)
from planner.topology.inventory import Ability, Inventory, Node

GIB = 2.0**-30
ANYWHERE = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A way with its sharding; `is_new` where new pieces of it may be loaded."""

    way: Way
    sharding: Sharding
    shard_bytes: float
    is_new: bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A piece that is loaded anew on a node."""

    bound: Bound
    node: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PosedRepair:
    """A program and what its columns are: pieces that stay, that are loaded; then replicas."""

    program: PlacementProgram
    moved: FloatArray
    offers: tuple[Offer, ...]
    pieces: tuple[Stayed | Loaded, ...]
    taken: tuple[Bound, ...]


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


def pose_repair(asked: Asked, offers: Sequence[Offer], standing: Sequence[Standing]) -> PosedRepair:
    """State the repair over what is free."""
    inventory = asked.site.ground.inventory
    bounds = _bounds(inventory, offers, standing)
    stayed = [one for bound in bounds for one in _stayed(inventory, offers, bound, standing)]
    loaded = [
        Loaded(bound=bound, node=n)
        for bound in bounds
        if bound.standing < 0 and offers[bound.offer].is_new
        for n, node in enumerate(inventory.nodes)
        if _may_lie(offers[bound.offer].way, node, bound)
        and _able(node, offers[bound.offer].way) >= offers[bound.offer].way.piece
    ]
    pieces: list[Stayed | Loaded] = [*stayed, *loaded]
    has = {piece.bound for piece in pieces}
    taken = [bound for bound in bounds if bound in has]
    rows = _Rows()
    _add_room(rows, inventory, offers, pieces)
    for j, piece in enumerate(pieces):
        pool = rows.row(piece.bound, f"pieces {piece.bound}", 0)
        rows.entries[pool, j] -= 1
        if isinstance(piece, Stayed):
            place = rows.row((piece.bound, piece.place), f"place {piece.place} {piece.bound}", 0)
            rows.entries[place, j] += 1
            once = (piece.standing, piece.place)
            name = f"{standing[piece.standing].name} piece {piece.place}"
            rows.entries[rows.row(once, name, 1), j] += 1
    everything = rows.row("devices", "free devices", inventory.n_free)
    for i, bound in enumerate(taken):
        j = len(pieces) + i
        rows.entries[everything, j] += offers[bound.offer].way.n_devices
        rows.entries[rows.known[bound], j] += offers[bound.offer].way.n_pieces
        for place in range(offers[bound.offer].way.n_pieces):
            if (bound, place) in rows.known:
                rows.entries[rows.known[bound, place], j] -= 1
    return PosedRepair(
        program=_program(asked, rows, offers, (pieces, taken)),
        moved=_moved(offers, pieces, len(taken)),
        offers=tuple(offers),
        pieces=tuple(pieces),
        taken=tuple(taken),
    )


def _moved(offers: Sequence[Offer], pieces: Sequence[Stayed | Loaded], n_taken: int) -> FloatArray:
    """GiB that each column moves."""
    moved = []
    for piece in pieces:
        offer = offers[piece.bound.offer]
        n_ranks = offer.way.piece
        if isinstance(piece, Stayed):
            n_ranks = sum(not name for name in piece.devices)
        moved.append(n_ranks * offer.shard_bytes * GIB)
    return np.array([*moved, *[0.0] * n_taken])


def _bounds(
    inventory: Inventory, offers: Sequence[Offer], standing: Sequence[Standing]
) -> list[Bound]:
    """Where the pieces of each offer may lie; groups of stages stay together or not at all."""
    bounds = []
    for number, offer in enumerate(offers):
        if offer.way.span == LEAF:
            leaves = sorted({n.leaf for n in inventory.nodes if n.kind == offer.way.kind})
            bounds += [Bound(offer=number, leaf=leaf) for leaf in leaves]
        elif offer.way.span == STAGE:
            bounds += [
                Bound(offer=number, leaf=ANYWHERE, standing=r)
                for r, one in enumerate(standing)
                if one.sharding == offer.sharding
            ]
        else:
            bounds.append(Bound(offer=number, leaf=ANYWHERE))
    return bounds


def _may_lie(way: Way, node: Node, bound: Bound) -> bool:
    return node.kind == way.kind and bound.leaf in (ANYWHERE, node.leaf)


def _able(node: Node, way: Way) -> int:
    return sum(ability.meets(way.need) for _, ability in node.free)


def _stayed(
    inventory: Inventory, offers: Sequence[Offer], bound: Bound, standing: Sequence[Standing]
) -> list[Stayed]:
    """Pieces of standing replicas that can stay, for one offer and place."""
    offer = offers[bound.offer]
    way, found = offer.way, []
    home = {
        name: (n, ability.meets(way.need))
        for n, node in enumerate(inventory.nodes)
        if _may_lie(way, node, bound)
        for name, ability in node.free
    }
    for r, one in enumerate(standing):
        if one.sharding != offer.sharding or bound.standing not in (-1, r):
            continue
        for place in range(way.n_pieces):
            names = one.devices[place * way.piece : (place + 1) * way.piece]
            left = tuple(name if home.get(name, (0, False))[1] else "" for name in names)
            nodes = {home[name][0] for name in left if name}
            if len(nodes) != 1 or (bound.standing >= 0 and "" in left):
                continue  # all gone, or it never was a piece of this way
            node = nodes.pop()
            if _able(inventory.nodes[node], way) >= way.piece:
                found.append(Stayed(bound=bound, standing=r, place=place, node=node, devices=left))
    return found


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
            for need in {offers[pieces[j].bound.offer].way.need for j in columns}
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
                way = offers[pieces[j].bound.offer].way
                if able[way.need] <= union:
                    rows.entries[row, j] += way.piece


def _program(
    asked: Asked,
    rows: _Rows,
    offers: Sequence[Offer],
    columns: tuple[Sequence[Stayed | Loaded], Sequence[Bound]],
) -> PlacementProgram:
    pieces, taken = columns
    ways = [offers[bound.offer].way for bound in taken]
    nothing = np.zeros(len(pieces))

    def of_ways(values: Sequence[float]) -> FloatArray:
        return np.concatenate([nothing, np.array(values, dtype=float)])

    rate = of_ways([way.output_tokens_per_s * KTOKEN for way in ways])
    devices = of_ways([float(way.n_devices) for way in ways])
    rent = of_ways([way.usd_per_hour for way in ways])
    quantity = {
        "throughput": -rate,
        "share": np.zeros(len(rate)),
        "rent": rent,
        "devices": devices,
        "latency": of_ways([way.tpot_s * 1e3 for way in ways]),
    }
    limited = {"rent": rent, "devices": devices}
    entries = sorted((r, j, amount) for (r, j), amount in rows.entries.items() if amount)
    table = np.array(entries, dtype=np.int64).reshape(-1, 3)
    n_models = len(asked.wanted)
    return PlacementProgram(
        resources=tuple(rows.names),
        free=np.array(rows.free, dtype=np.int64),
        uses=Uses(resource=table[:, 0], column=table[:, 1], amount=table[:, 2]),
        models=(*(one.model.name for one in asked.wanted), "pieces"),
        column_model=np.array([*[n_models] * len(pieces), *(way.model for way in ways)], np.int64),
        objective=quantity[asked.objective],
        rate=rate,
        demand=np.array(
            [*((one.demand_tokens_per_s or 0.0) * KTOKEN for one in asked.wanted), 0.0]
        ),
        least=np.array([*(one.replicas or 0 for one in asked.wanted), 0], np.int64),
        most=np.array(
            [
                *(UNLIMITED if one.replicas is None else one.replicas for one in asked.wanted),
                UNLIMITED,
            ],
            np.int64,
        ),
        limits=tuple(
            PlacementLimit(name=name, column=limited[name], at_most=value)
            for name, value in asked.limits.items()
        ),
        is_for_share=asked.objective == "share",
    )


def locate_repair(
    asked: Asked, posed: PosedRepair, counts: Counts, standing: Sequence[Standing]
) -> tuple[Located, ...]:
    """Devices of every replica: pieces that stay on their own, others on what is left.

    Raises:
        SolverError: what the counts promise does not fit the nodes.
    """
    inventory = asked.site.ground.inventory
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
        key=lambda job: _able(inventory.nodes[job[0].node], posed.offers[job[0].bound.offer].way)
    )
    for piece, n_copies in jobs:
        way = posed.offers[piece.bound.offer].way
        node = inventory.nodes[piece.node]
        for _ in range(n_copies):
            old = piece.devices if isinstance(piece, Stayed) else ("",) * way.piece
            names = tuple(name or _spare(left[piece.node], way, node) for name in old)
            part = Part(node=node, devices=names)
            whose = (piece.standing, piece.place) if isinstance(piece, Stayed) else (-1, -1)
            stock[piece.bound].append((*whose, part))
    located = []
    for bound, n in zip(posed.taken, counts.copies[len(posed.pieces) :], strict=True):
        located += _assembled(posed.offers[bound.offer].way, stock[bound], n, len(standing))
    return tuple(located)


def _spare(left: list[tuple[str, Ability]], way: Way, node: Node) -> str:
    able = [one for one in left if one[1].meets(way.need)]
    if not able:
        raise SolverError(f"`{node.name}` has no device left for a piece")
    worst = min(able, key=lambda one: one[1])
    left.remove(worst)
    return worst[0]


def _assembled(
    way: Way, stock: list[tuple[int, int, Part]], n_replicas: int, n_standing: int
) -> list[Located]:
    """Replicas of pieces: those that stood together first, then whatever is missing."""
    slots: list[list[Part | None]] = [[None] * way.n_pieces for _ in range(n_replicas)]
    by_standing: dict[int, list[tuple[int, Part]]] = defaultdict(list)
    loaded = []
    for standing, place, part in stock:
        if standing < 0:
            loaded.append(part)
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
                loaded.append(part)  # spare pieces that nobody needs
    if sum(part is None for slot in slots for part in slot) > len(loaded):
        raise SolverError("fewer pieces are there than replicas take")
    return [
        Located(way=way, parts=tuple(loaded.pop(0) if part is None else part for part in slot))
        for slot in slots
    ]
