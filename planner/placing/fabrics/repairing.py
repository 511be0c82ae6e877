"""Repair on nodes: shards that stay, shards that are loaded, and replicas made of them.

A shard stays where a device that has it takes the same rank of a replica of the same sharding, in
whatever replica it stood before. A replica is made of pieces, one of each place in it; its pieces
on a node on which shards of their place stand are counted place by place, all others by size.

    room      Σ size n ≤ devices of the node, for each set of devices that needs confine to; shards
              that stay on devices of the set for pieces that others would do count too
    pieces    pieces n ≤ those that lie on nodes                    by offer, leaf and size
    places    pieces of one place ≤ n                               by offer, leaf and place
    shards    pieces of the place ≤ shards that stay + loaded       by node, ranks and need
    stands    shards that stay ≤ devices that have them             by node and ranks
    stages    n ≤ stages that lie in some leaf                      by offer and stage
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.placing.configurations import CurrentReplica, Sharding
from planner.placing.fabrics.patterns import LEAF, STAGE, NodePattern, Offer
from planner.placing.fabrics.relocating import Bound, LaidPiece, PlacedShards, RepairOnNodes, Shards
from planner.placing.fabrics.room import ANYWHERE, Resources, meeting, unions
from planner.placing.program import Columns, Objective, placement_program
from planner.topology.inventory import Ability, Inventory, Node

GIB = 2.0**-30


@dataclass(slots=True, kw_only=True)
class _Rows(Resources):
    known: dict[object, int] = field(default_factory=dict)

    def row(self, key: object, name: str, free: int = 0) -> int:
        if key not in self.known:
            self.known[key] = self.add(name, free)
        return self.known[key]

    def pool(self, bound: Bound, size: int) -> int:
        """That no more pieces of a size are taken than lie on nodes."""
        return self.row((bound, "of", size), f"pieces of {size} {bound}")

    def stage(self, offer: int, stage: int) -> int:
        """That no more replicas are taken than there are stages."""
        return self.row((offer, "stage", stage), f"stage {stage} of {offer}")


def pose_repair(
    inventory: Inventory,
    offers: Sequence[Offer],
    standing: Sequence[CurrentReplica],
    aim: Objective,
) -> RepairOnNodes:
    """State the repair over what is free."""
    has = PlacedShards(inventory, standing)
    pieces = tuple(_pieces(inventory, offers, has))
    posing = _Posing(inventory=inventory, offers=offers, has=has, pieces=pieces)
    n_of = Counter(piece.bound for piece in pieces)
    staged = [bound for bound in n_of if posing.pattern(bound).span == STAGE]
    stages = [
        replace(bound, stage=stage)
        for bound in staged
        for stage in range(posing.pattern(bound).n_stages)
    ]
    taken = [bound for bound in n_of if bound not in {*staged}]
    taken += dict.fromkeys(replace(bound, leaf=ANYWHERE) for bound in staged)
    shards = posing.add_shards()
    posing.add_room(shards)
    posing.add_takers([*stages, *taken])
    n_takers = [inventory.n_free // posing.pattern(one).n_devices for one in (*stages, *taken)]
    columns = Columns(
        configurations=[one.configuration for one in offers],
        which=np.array([bound.offer for bound in taken], np.int64),
        n_parts=len(pieces) + len(shards) + len(stages),
    )
    return RepairOnNodes(
        # without bounds of columns that are only added to, solvers see none: `pose_on_nodes`
        program=replace(
            placement_program(posing.rows.rooms(), columns, aim),
            column_most=np.array([*posing.most, *n_takers], dtype=np.int64),
        ),
        moved=np.array([*posing.loaded, *[0.0] * len(n_takers)]) * GIB,
        offers=tuple(offers),
        parts=(*pieces, *shards, *stages),
        taken=tuple(taken),
        has=has,
        inventory=inventory,
    )


def _pieces(
    inventory: Inventory, offers: Sequence[Offer], has: PlacedShards
) -> Iterator[LaidPiece]:
    """Pieces that nodes have room for, of each offer and leaf."""
    for number, offer in enumerate(offers):
        pattern = offer.pattern
        for n, node in enumerate(inventory.nodes):
            n_able = meeting(node, pattern.need) if node.kind == pattern.kind else 0
            leaf = node.leaf if pattern.span in (LEAF, STAGE) else ANYWHERE
            places = [(-1, size) for size in pattern.sizes]
            places += [
                (place, size)
                for place, size in enumerate(pattern.pieces)
                if has.any_of(n, offer.sharding, offer.ranks(place), pattern.need)
            ]
            for place, size in places:
                if size <= n_able:
                    bound = Bound(offer=number, leaf=leaf)
                    yield LaidPiece(bound=bound, node=n, size=size, place=place)


@dataclass(slots=True, kw_only=True)
class _Posing:
    """Rows, column by column.

    Args:
        most: how many copies of each column there may be, pieces first.
        loaded: bytes that a copy of each loads.
    """

    inventory: Inventory
    offers: Sequence[Offer]
    has: PlacedShards
    pieces: tuple[LaidPiece, ...]
    rows: _Rows = field(default_factory=_Rows)
    most: list[int] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for piece in self.pieces:
            node = self.inventory.nodes[piece.node]
            self.most.append(meeting(node, self.need(piece)) // piece.size)
            shard_bytes = self.offers[piece.bound.offer].shard_bytes
            self.loaded.append(shard_bytes * piece.size if piece.place < 0 else 0.0)

    def pattern(self, bound: Bound) -> NodePattern:
        return self.offers[bound.offer].pattern

    def need(self, piece: LaidPiece) -> Ability:
        return self.pattern(piece.bound).need

    def add_shards(self) -> list[Shards]:
        """Rows and columns of shards that stay, and of those that are loaded beside them."""
        added: list[Shards] = []
        for shards, offer in self._shards():
            node, columns = self.inventory.nodes[shards.node], shards.pieces
            abilities = self.has.abilities(shards.node, offer.sharding, shards.ranks[0])
            for ability in (None, *(a for a in abilities if a.meets(offer.pattern.need))):
                j, text = len(self.most), f"{node.name} ranks {shards.ranks} of {columns}"
                row = self.rows.row((columns, shards.ranks), f"shards {text}")
                self.rows.entries[row, j] -= 1
                if ability is None:
                    self.most.append(sum(self.most[k] for k in columns))
                    self.loaded.append(offer.shard_bytes * len(shards.ranks))
                else:
                    key = (shards.node, offer.sharding, shards.ranks, ability)
                    stands = self.rows.row(key, f"stands {text}", abilities[ability])
                    self.rows.entries[stands, j] += 1
                    self.most.append(abilities[ability])
                    self.loaded.append(0.0)
                added.append(replace(shards, ability=ability))
            for k in columns:
                self.rows.entries[row, k] += 1
        return added

    def _shards(self) -> Iterator[tuple[Shards, Offer]]:
        """Ranks that are alike: pieces of one need that take them on a node, and of whom."""
        covering: dict[tuple[int, Sharding, int], list[int]] = defaultdict(list)
        for j, piece in enumerate(self.pieces):
            offer = self.offers[piece.bound.offer]
            for rank in offer.ranks(piece.place) if piece.place >= 0 else ():
                covering[piece.node, offer.sharding, rank].append(j)
        alike: dict[_Alike, list[int]] = defaultdict(list)
        for (n, sharding, rank), columns in covering.items():
            stands = sorted(self.has.abilities(n, sharding, rank).items())
            alike[n, tuple(columns), tuple(stands)].append(rank)
        for (n, covered, _), ranks in alike.items():
            by_need: dict[tuple[Ability, float], list[int]] = defaultdict(list)
            for j in covered:
                offer = self.offers[self.pieces[j].bound.offer]
                by_need[offer.pattern.need, offer.shard_bytes].append(j)
            for mine in by_need.values():
                offer = self.offers[self.pieces[mine[0]].bound.offer]
                yield Shards(node=n, ranks=tuple(ranks), pieces=tuple(mine)), offer

    def add_takers(self, takers: Sequence[Bound]) -> None:
        """Rows of pieces and stages that lie somewhere: replicas take them."""
        rows = self.rows
        everything = rows.row("devices", "free devices", self.inventory.n_free)
        for j, piece in enumerate(self.pieces):
            rows.entries[rows.pool(piece.bound, piece.size), j] -= 1
            if self.pattern(piece.bound).own_nodes:  # a replica has one piece of a node, or none
                rows.entries[rows.row((piece.bound, "on", piece.node), f"apart {j}"), j] += 1
            if piece.place >= 0:
                place = rows.row((piece.bound, piece.place), f"place {piece.place} {piece.bound}")
                rows.entries[place, j] += 1
        for j, bound in enumerate(takers, len(self.most)):
            pattern = self.pattern(bound)
            if bound.stage >= 0:
                rows.entries[rows.stage(bound.offer, bound.stage), j] -= 1
                first = bound.stage * pattern.n_across
                self._take(j, replace(bound, stage=-1), range(first, first + pattern.n_across))
                continue
            rows.entries[everything, j] += pattern.n_devices
            if pattern.span == STAGE:  # it takes stages, they take the pieces
                for stage in range(pattern.n_stages):
                    rows.entries[rows.stage(bound.offer, stage), j] += 1
            else:
                self._take(j, bound, range(len(pattern.pieces)))
                for n in range(len(self.inventory.nodes)):
                    if (bound, "on", n) in rows.known:
                        rows.entries[rows.known[bound, "on", n], j] -= 1

    def _take(self, column: int, bound: Bound, places: range) -> None:
        """That a column takes a piece of each place."""
        for place in places:
            size = self.pattern(bound).pieces[place]
            self.rows.entries[self.rows.pool(bound, size), column] += 1
            if (bound, place) in self.rows.known:
                self.rows.entries[self.rows.known[bound, place], column] -= 1

    def add_room(self, shards: Sequence[Shards]) -> None:
        """Rows of each node: sets of devices that pieces may be confined to hold them (Hall)."""
        of_node: dict[int, list[int]] = defaultdict(list)
        staying: dict[int, list[int]] = defaultdict(list)
        for j, piece in enumerate(self.pieces):
            of_node[piece.node].append(j)
        for j, one in enumerate(shards):
            staying[one.node].append(j)
        for n, columns in sorted(of_node.items()):
            node = self.inventory.nodes[n]
            needs = {self.need(self.pieces[j]) for j in columns}
            # by what devices can do, of which several are alike
            for union in unions(_able(node, need) for need in needs):
                n_devices = sum(ability in union for _, ability in node.free)
                row = self.rows.row((n, union), f"{node.name} {n_devices} devices", n_devices)
                for j in columns:
                    if _able(node, self.need(self.pieces[j])) <= union:
                        self.rows.entries[row, j] += self.pieces[j].size
                for j in staying[n]:
                    need = self.need(self.pieces[shards[j].pieces[0]])
                    is_outside = not _able(node, need) <= union
                    if shards[j].ability in union and is_outside:
                        self.rows.entries[row, len(self.pieces) + j] += len(shards[j].ranks)


def _able(node: Node, need: Ability) -> frozenset[Ability]:
    """What free devices of a node can do that meet a need."""
    return frozenset(ability for _, ability in node.free if ability.meets(need))


_Alike = tuple[int, tuple[int, ...], tuple[tuple[Ability, int], ...]]
"""A node, pieces that take the ranks there, and how many devices have them, by what they can do."""
