"""Ways and free devices as a placement program: counts of replicas, and where their parts lie.

    units     nodes of one leaf whose free devices are alike; a node whose free devices differ is
              a unit by itself
    pieces    parts of replicas that lie in one node: so many devices of one need, of one leaf or
              of any
    columns   first the pieces that each unit gives, then the stages that each leaf holds of
              replicas whose stages lie in a leaf each, then the replicas that take them

Rows of a unit say that pieces fit its nodes. Where all sizes divide each other, or are whole
nodes, and devices are alike, counting is exact: pieces of size g or more need no more places
than there are, Σ (t/g) n_t ≤ Σ_i ⌊free_i/g⌋ for each g, and whole nodes need nodes that are all
free. In a node whose devices differ, every set of devices that some pieces are confined to has
to hold them (Hall).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.placing.clusters import LEAF, NODE, POOL, SPANS, STAGE
from planner.placing.columns import Way, piece_sizes
from planner.programs.placement import UNLIMITED, PlacementLimit, PlacementProgram, Uses
from planner.topology.inventory import Ability, Inventory, Kind, Node

ANYWHERE = -1
KTOKEN = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Piece:
    """Devices of one node that a replica needs together; `leaf` is a number or `ANYWHERE`."""

    size: int
    kind: Kind
    need: Ability
    leaf: int


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
            return next(iter(self.abilities)).meets(piece.need)
        return meeting(first, piece.need) >= piece.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is wanted of one model: a demand [token/s], and a number of replicas."""

    name: str
    demand_tokens_per_s: float | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Posed:
    """A program, and what its columns are.

    Args:
        given: of each of the first columns, the unit and the piece that it gives.
        staged: of each of the next, the way and the leaf that holds one of its stages.
        taken: of each other column, the way, and the leaf it is bound to or `ANYWHERE`.
        sources: pieces that only one unit gives, which need no column; the unit's number.
    """

    program: PlacementProgram
    units: tuple[Unit, ...]
    given: tuple[tuple[int, Piece], ...]
    staged: tuple[tuple[Way, int], ...]
    taken: tuple[tuple[Way, int], ...]
    sources: dict[Piece, int]


def units_of(inventory: Inventory) -> tuple[Unit, ...]:
    """Nodes with free devices, those that are alike together, in the inventory's order."""
    alike: dict[object, list[Node]] = {}
    for number, node in enumerate(inventory.nodes):
        abilities = frozenset(ability for _, ability in node.free)
        if abilities:
            own = number if len(abilities) > 1 else None
            alike.setdefault((node.kind, node.leaf, abilities, own), []).append(node)
    return tuple(
        Unit(nodes=tuple(nodes), abilities=frozenset(ability for _, ability in nodes[0].free))
        for nodes in alike.values()
    )


def meeting(node: Node, need: Ability) -> int:
    """Free devices of a node that meet a need."""
    return sum(ability.meets(need) for _, ability in node.free)


def piece_of(way: Way, leaf: int) -> Piece:
    return Piece(kind=way.kind, need=way.need, size=way.piece, leaf=leaf)


def undominated(ways: Sequence[Way], *, several: BoolArray, by_latency: bool) -> list[Way]:
    """Ways that no other can stand for, in whatever place, without loss.

    Way b stands for way a of the same model where the pieces of a hold k ≥ 1 copies of b that
    together serve as much; k is 1 where the number of replicas is limited, or latency counts.
    They take no more devices, no other places, and no better ones.

    Args:
        several: whether a model may have more replicas than asked for, by model.
        by_latency: whether the objective is of single replicas.
    """
    if not ways:
        return []
    model, piece, n_pieces, rate, tpot = _arrays(ways)
    kinds = {kind: i for i, kind in enumerate(dict.fromkeys(way.kind for way in ways))}
    kind = np.array([kinds[way.kind] for way in ways])
    span = np.array([SPANS.index(way.span) for way in ways])
    across = np.array([way.n_across for way in ways])
    alike = (piece[:, None] == piece) & (across[:, None] == across)
    needs = np.array(
        [
            (n.speed_fraction, n.scale_up_bytes_per_s, n.nic_bytes_per_s, n.spine_bytes_per_s)
            for n in (way.need for way in ways)
        ]
    )
    # [a, b]: b stands for a
    copies = (piece[:, None] // piece) * n_pieces[:, None] // n_pieces
    many = several[model][:, None]
    copies = np.where(many, copies, np.minimum(copies, 1))
    same = (model[:, None] == model) & (kind[:, None] == kind) & (copies >= 1)
    stage = SPANS.index(STAGE)  # of its stages each is in a leaf, as another's of its shape are
    both_staged = (span[:, None] == stage) & (span == stage) & alike
    same &= (
        (span == SPANS.index(NODE))
        | (span == SPANS.index(POOL))
        | both_staged
        | (span[:, None] <= SPANS.index(LEAF))
    )
    same &= (needs[:, None, :] >= needs[None, :, :]).all(axis=2)
    same &= (tpot[:, None] >= tpot) if by_latency else (copies * rate >= rate[:, None])
    np.fill_diagonal(same, val=False)
    index = np.arange(len(ways))
    both = same & same.T  # of equals the first stays
    beaten = (same & (~both | (index < index[:, None]))).any(axis=1)
    return [way for way, out in zip(ways, beaten.tolist(), strict=True) if not out]


def _arrays(ways: Sequence[Way]) -> tuple[FloatArray, ...]:
    return (
        np.array([way.model for way in ways]),
        np.array([way.piece for way in ways]),
        np.array([way.n_pieces for way in ways]),
        np.array([way.output_tokens_per_s for way in ways]),
        np.array([way.tpot_s for way in ways]),
    )


def pose_placement(
    ways: Sequence[Way],
    inventory: Inventory,
    wanted: Sequence[Wanted],
    *,
    objective: str,
    limits: dict[str, float],
) -> Posed:
    """State the placement of replicas on what is free.

    Args:
        ways: columns to choose from, already without those that others stand for.
        wanted: of each model, in the order in which ways number them.
        objective: `throughput`, `share`, `rent`, `devices` or `latency`.
        limits: on `rent` [USD/h] and `devices`, where asked for.
    """
    rows = _Rows(units=units_of(inventory), inventory=inventory)
    room = _Room(inventory)
    bound = [(way, leaf) for way in ways for leaf in room.leaves(way)]
    pieces = list(dict.fromkeys(piece_of(way, leaf) for way, leaf in bound))
    givers = {piece: rows.givers(piece) for piece in pieces}
    bound = [(way, leaf) for way, leaf in bound if givers[piece_of(way, leaf)]]
    pieces = [piece for piece in pieces if givers[piece]]
    sources = {piece: givers[piece][0] for piece in pieces if len(givers[piece]) == 1}
    given = [(u, piece) for piece in pieces if piece not in sources for u in givers[piece]]
    rows.add_units(given, sources)
    staged = [(way, leaf) for way, leaf in bound if way.span == STAGE]
    taken = [(way, leaf) for way, leaf in bound if way.span != STAGE]
    taken += [(way, ANYWHERE) for way in dict.fromkeys(way for way, _ in staged)]
    most = _fill(rows, givers, (given, staged, taken), sources)
    program = _program(rows, (given, staged, taken), wanted, (objective, limits))
    # without it a bound would be the sum of rows, which solvers do not see: HiGHS 1.13 has
    # returned a wrong optimum of variables with bounds of 2^40
    program = replace(program, column_most=np.array(most, dtype=np.int64))
    return Posed(
        program=program,
        units=rows.units,
        given=tuple(given),
        staged=tuple(staged),
        taken=tuple(taken),
        sources=sources,
    )


def _fill(
    rows: _Rows,
    givers: dict[Piece, list[int]],
    columns: _Columns,
    sources: dict[Piece, int],
) -> list[int]:
    """What each column takes of the rows; and how many copies of it there may be."""
    given, staged, taken = columns
    most = [rows.most(u, piece) for u, piece in given]
    for j, (u, piece) in enumerate(given):
        rows.take(j, u, piece, 1)
        rows.use(rows.pool(piece), j, -1)
    stages: Counter[Way] = Counter()
    for way, leaf in (*staged, *taken):
        j = len(most)
        if way.span == STAGE and leaf == ANYWHERE:  # it takes stages, they take the pieces
            rows.use(rows.stages(way), j, way.n_stages)
            most.append(stages[way] // way.n_stages)
            continue
        piece = piece_of(way, leaf)
        n_pieces = way.n_across if way.span == STAGE else way.n_pieces
        most.append(sum(rows.most(u, piece) for u in givers[piece]) // n_pieces)
        if way.span == STAGE:
            rows.use(rows.stages(way), j, -1)
            stages[way] += most[-1]
        if piece in sources:
            rows.take(j, sources[piece], piece, n_pieces)
        else:
            rows.use(rows.pool(piece), j, n_pieces)
    return most


class _Room:
    """Devices that meet a need, by node, counted once for each need."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._meeting: dict[tuple[Kind, Ability], list[tuple[int, int]]] = {}

    def leaves(self, way: Way) -> list[int]:
        """Leaves that a way, or each of its stages, may be bound to; `ANYWHERE` of others."""
        if way.span not in (LEAF, STAGE):
            return [ANYWHERE]
        n_together = way.n_across if way.span == STAGE else way.n_pieces
        key = (way.kind, way.need)
        if key not in self._meeting:
            self._meeting[key] = [
                (node.leaf, meeting(node, way.need))
                for node in self._inventory.nodes
                if node.kind == way.kind
            ]
        room: Counter[int] = Counter()
        for leaf, n_devices in self._meeting[key]:
            room[leaf] += n_devices // way.piece
        return [leaf for leaf in sorted(room) if room[leaf] >= n_together]


_Columns = tuple[list[tuple[int, Piece]], list[tuple[Way, int]], list[tuple[Way, int]]]
"""Pieces given, stages held, replicas taken: in the order of the program's columns."""


@dataclass(slots=True, kw_only=True)
class _Rows:
    """Resources and what columns take of them, as they are found."""

    units: tuple[Unit, ...]
    inventory: Inventory
    names: list[str] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    entries: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    _pools: dict[Piece, int] = field(default_factory=dict)
    _stages: dict[int, int] = field(default_factory=dict)
    _room: dict[tuple[int, Piece], list[tuple[int, int]]] = field(default_factory=dict)

    def givers(self, piece: Piece) -> list[int]:
        return [u for u, unit in enumerate(self.units) if unit.gives(piece)]

    def add(self, name: str, free: int) -> int:
        self.names.append(name)
        self.free.append(free)
        return len(self.names) - 1

    def use(self, row: int, column: int, amount: int) -> None:
        self.entries[row, column] += amount

    def take(self, column: int, unit: int, piece: Piece, n_pieces: int) -> None:
        """So many pieces of a unit, for each copy of a column."""
        for row, amount in self._room[unit, piece]:
            self.use(row, column, amount * n_pieces)

    def most(self, unit: int, piece: Piece) -> int:
        """Pieces that a unit could give if it gave no others."""
        return min(self.free[row] // amount for row, amount in self._room[unit, piece])

    def pool(self, piece: Piece) -> int:
        """The row that says that no more pieces are taken than are given."""
        if piece not in self._pools:
            where = "any" if piece.leaf == ANYWHERE else self.inventory.leaf_names[piece.leaf]
            name = f"pieces {len(self._pools)} of {piece.size} {piece.kind.name} in {where}"
            self._pools[piece] = self.add(name, 0)
        return self._pools[piece]

    def stages(self, way: Way) -> int:
        """The row that says that no more stages of a way are taken than leaves hold."""
        if id(way) not in self._stages:
            self._stages[id(way)] = self.add(f"stages {len(self._stages)} of {way.kind.name}", 0)
        return self._stages[id(way)]

    def add_units(self, given: Sequence[tuple[int, Piece]], sources: dict[Piece, int]) -> None:
        """The rows of each unit, for the pieces that it may give."""
        asked: dict[int, list[Piece]] = defaultdict(list)
        for u, piece in [*given, *((u, piece) for piece, u in sources.items())]:
            asked[u].append(piece)
        for u, pieces in sorted(asked.items()):
            if len(self.units[u].abilities) == 1:
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
        for g in chain:
            row = self.add(f"{place} by {g}", sum(len(n.free) // g for n in unit.nodes))
            for piece in pieces:
                if piece.size >= g:
                    self._room.setdefault((u, piece), []).append((row, piece.size // g))
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
        sets = list(dict.fromkeys(devices.values()))
        unions = dict.fromkeys(
            frozenset().union(*some)
            for n_sets in range(1, len(sets) + 1)
            for some in combinations(sets, n_sets)
        )
        for union in unions:
            row = self.add(f"{node.name} {len(union)} of {len(node.free)}", len(union))
            for piece in pieces:
                if devices[piece] <= union:
                    self._room.setdefault((u, piece), []).append((row, piece.size))


def _program(
    rows: _Rows,
    columns: _Columns,
    wanted: Sequence[Wanted],
    aim: tuple[str, dict[str, float]],
) -> PlacementProgram:
    """The arrays; pieces and stages are of a model of their own, of which nothing is asked."""
    (given, staged, taken), (objective, limits) = columns, aim
    n_given, n_models = len(given) + len(staged), len(wanted)
    nothing = np.zeros(n_given)

    def of_ways(values: Sequence[float]) -> FloatArray:
        return np.concatenate([nothing, np.array(values, dtype=float)])

    ways = [way for way, _ in taken]
    rate = of_ways([way.output_tokens_per_s * KTOKEN for way in ways])
    devices = of_ways([way.n_devices for way in ways])
    rent = of_ways([way.usd_per_hour for way in ways])
    quantity = {
        "throughput": -rate,
        "share": np.zeros(n_given + len(ways)),
        "rent": rent,
        "devices": devices,
        "latency": of_ways([way.tpot_s * 1e3 for way in ways]),
    }
    limited = {"rent": (rent, "USD/h"), "devices": (devices, "devices")}
    spans = of_ways([float(way.span in (STAGE, POOL)) for way in ways])
    first = [float(u) for u, _ in given] + [float(leaf) for _, leaf in staged]
    order = np.concatenate([first, np.arange(float(len(ways)))])
    entries = sorted((r, j, amount) for (r, j), amount in rows.entries.items() if amount)
    table = np.array(entries, dtype=np.int64).reshape(-1, 3)
    unlimited = [UNLIMITED if one.most is None else one.most for one in wanted]
    return PlacementProgram(
        resources=tuple(rows.names),
        free=np.array(rows.free, dtype=np.int64),
        uses=Uses(resource=table[:, 0], column=table[:, 1], amount=table[:, 2]),
        models=(*(one.name for one in wanted), "pieces"),
        column_model=np.array(
            [*[n_models] * n_given, *(way.model for way in ways)], dtype=np.int64
        ),
        objective=quantity[objective],
        rate=rate,
        demand=np.array([*((one.demand_tokens_per_s or 0.0) * KTOKEN for one in wanted), 0.0]),
        least=np.array([*(one.least for one in wanted), 0]),
        most=np.array([*unlimited, UNLIMITED]),
        limits=tuple(
            PlacementLimit(name=name, column=limited[name][0], at_most=value, unit=limited[name][1])
            for name, value in limits.items()
        ),
        is_for_share=objective == "share",
        ties=(spans, devices, order),
    )
