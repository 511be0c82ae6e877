"""Counts of a repair to devices: shards that stay on their own, others on what is left."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.equations.arrays import FloatArray
from planner.errors import SolverError
from planner.placing.configurations import CurrentReplica, Sharding
from planner.placing.fabrics.locating import LocatedOnNodes, Part, matched
from planner.placing.fabrics.patterns import STAGE, NodePattern, Offer
from planner.placing.fabrics.room import ANYWHERE, Piece
from planner.programs.placement import Counts, PlacementProgram
from planner.topology.inventory import Ability, Inventory, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An offer, and the leaf in which a replica, or one stage of it, lies.

    Args:
        offer: its number.
        leaf: number, or `ANYWHERE`.
        stage: number; -1 is a whole replica.
    """

    offer: int
    leaf: int
    stage: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidPiece:
    """A piece of a replica on a node: of a place where shards of it stand; -1 is any other."""

    bound: Bound
    node: int
    size: int
    place: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Shards of ranks that pieces of one need take on a node: one of each rank.

    Args:
        pieces: columns of the pieces.
        ability: of the devices that have them and keep them; None where they are loaded.
    """

    node: int
    ranks: tuple[int, ...]
    pieces: tuple[int, ...]
    ability: Ability | None = None


class PlacedShards:
    """Shards that stand on free devices: by node, sharding and rank, the replica and the device."""

    def __init__(self, inventory: Inventory, standing: Sequence[CurrentReplica]) -> None:
        home = {
            name: (n, ability)
            for n, node in enumerate(inventory.nodes)
            for name, ability in node.free
        }
        self._shards: dict[tuple[int, Sharding], dict[int, list[tuple[int, str, Ability]]]] = {}
        for number, replica in enumerate(standing):
            for rank, name in enumerate(replica.devices):
                if name in home:
                    n, ability = home[name]
                    of_rank = self._shards.setdefault((n, replica.sharding), defaultdict(list))
                    of_rank[rank].append((number, name, ability))

    def __call__(self, node: int, sharding: Sharding) -> dict[int, list[tuple[int, str, Ability]]]:
        return self._shards.get((node, sharding), {})

    def abilities(self, node: int, sharding: Sharding, rank: int) -> Counter[Ability]:
        """What devices that have a rank can do, with how many of them."""
        return Counter(ability for _, _, ability in self(node, sharding).get(rank, ()))

    def any_of(self, node: int, sharding: Sharding, ranks: range, need: Ability) -> bool:
        """Whether a device that meets a need has one of some ranks."""
        stands = self(node, sharding)
        return any(ability.meets(need) for r in ranks for _, _, ability in stands.get(r, ()))


@dataclass(slots=True, kw_only=True, eq=False)
class _Laid:
    """A piece on its node.

    Args:
        first: rank of its first device, where its place is known.
        devices: by rank, "" where any will do.
        standing: replica whose shards it has before others; -1 is none.
    """

    piece: LaidPiece
    first: int
    devices: list[str]
    standing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _PieceStock:
    """Devices of one piece, its place, and the standing replica that it is most of."""

    standing: int
    place: int
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """Devices of a replica, or of one stage of it, and the standing one that it is most of."""

    standing: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepairOnNodes:
    """A program and what its columns are: pieces, shards, stages; then replicas."""

    program: PlacementProgram
    moved: FloatArray
    offers: tuple[Offer, ...]
    parts: tuple[LaidPiece | Shards | Bound, ...]
    taken: tuple[Bound, ...]
    has: PlacedShards
    inventory: Inventory

    def located(self, counts: Counts) -> tuple[LocatedOnNodes, ...]:
        """Devices of every replica.

        Raises:
            SolverError: what the counts promise does not fit the nodes.
        """
        stock = _stock(self, counts.copies[: len(self.parts)])
        stages: dict[tuple[int, int], list[_Whole]] = defaultdict(list)
        located: list[LocatedOnNodes] = []
        for bound, n in zip((*self.parts, *self.taken), counts.copies, strict=True):
            if not isinstance(bound, Bound) or not n:
                continue
            config = self.offers[bound.offer].configuration
            if bound.stage >= 0:
                stages[bound.offer, bound.stage] += _assembled(config.pattern, bound, n, stock)
                continue
            if config.pattern.span != STAGE:
                wholes = [it.parts for it in _assembled(config.pattern, bound, n, stock)]
            else:  # stages come before replicas
                held = (stages[bound.offer, k] for k in range(config.pattern.n_stages))
                wholes = [*_of_stages(held, n)]
            located += [LocatedOnNodes(configuration=config, parts=parts) for parts in wholes]
        return tuple(located)


def _of_stages(held: Iterable[list[_Whole]], n: int) -> Iterator[tuple[Part, ...]]:
    """Parts of so many replicas, whose stages are taken as they stand."""
    in_order = (sorted(some, key=lambda row: row.standing)[:n] for some in held)
    for whole in zip(*in_order, strict=True):
        yield tuple(part for row in whole for part in row.parts)


def _stock(posed: RepairOnNodes, copies: Sequence[int]) -> dict[Bound, list[_PieceStock]]:
    """The pieces with their devices, by where they are bound to."""
    of_column: dict[int, list[_Laid]] = {}
    n_met: Counter[object] = Counter()
    used: dict[int, set[str]] = defaultdict(set)
    for j, (part, n) in enumerate(zip(posed.parts, copies, strict=True)):
        if isinstance(part, LaidPiece):
            of_column[j] = [_laid(posed, part, n_met) for _ in range(n)]
        elif isinstance(part, Shards) and part.ability is not None and n:  # behind all pieces
            mine = [one for k in part.pieces for one in of_column[k]]
            _keep(posed, part, mine, n, used[part.node])
    laid: dict[int, list[_Laid]] = defaultdict(list)
    for one in (one for pieces in of_column.values() for one in pieces):
        laid[one.piece.node].append(one)
    stock: dict[Bound, list[_PieceStock]] = defaultdict(list)
    for n, pieces in sorted(laid.items()):
        node = posed.inventory.nodes[n]
        free = tuple(one for one in node.free if one[0] not in used[n])
        for piece, names in _filled(posed.offers, replace(node, free=free), pieces):
            laid_on = Part(node=node, devices=names)
            stocked = _PieceStock(standing=piece.standing, place=piece.piece.place, part=laid_on)
            stock[piece.piece.bound].append(stocked)
    return stock


def _laid(posed: RepairOnNodes, piece: LaidPiece, n_met: Counter[object]) -> _Laid:
    """A piece without devices; of those of a place the first is of whom most of it stands."""
    offer, standing, first = posed.offers[piece.bound.offer], -1, 0
    if piece.place >= 0:
        ranks = offer.ranks(piece.place)
        stands, key = posed.has(piece.node, offer.sharding), (piece.node, offer.sharding, ranks)
        most = Counter(who for rank in ranks for who, _, _ in stands.get(rank, ())).most_common()
        if n_met[key] < len(most):
            standing = most[n_met[key]][0]
        n_met[key] += 1
        first = ranks[0]
    return _Laid(piece=piece, first=first, devices=[""] * piece.size, standing=standing)


def _keep(
    posed: RepairOnNodes, shards: Shards, pieces: Sequence[_Laid], n: int, used: set[str]
) -> None:
    """Leave n shards of each rank where they are: first those whose replica a piece is of."""
    for rank in shards.ranks if pieces else ():
        sharding = posed.offers[pieces[0].piece.bound.offer].sharding
        stands = {
            standing: name
            for standing, name, ability in posed.has(shards.node, sharding)[rank]
            if ability == shards.ability and name not in used
        }
        free = [one for one in pieces if not one.devices[rank - one.first]]
        free.sort(key=lambda piece: piece.standing not in stands)
        for piece in free[:n]:
            standing = piece.standing if piece.standing in stands else next(iter(stands))
            piece.devices[rank - piece.first] = stands.pop(standing)
            used.add(piece.devices[rank - piece.first])


def _filled(
    offers: Sequence[Offer], node: Node, pieces: Sequence[_Laid]
) -> Iterator[tuple[_Laid, tuple[str, ...]]]:
    """The pieces of a node with all their devices, what they have not yet of its free ones."""

    def missing(piece: _Laid) -> Piece:
        need = offers[piece.piece.bound.offer].pattern.need
        return Piece(size=piece.devices.count(""), kind=node.kind, need=need, leaf=ANYWHERE)

    needs = Counter(one for one in map(missing, pieces) if one.size)
    ready: dict[Piece, list[Part]] = defaultdict(list)
    for piece, part in matched(node, needs):
        ready[piece].append(part)
    for laid in pieces:
        wanted = missing(laid)
        names = iter(ready[wanted].pop(0).devices if wanted.size else ())
        yield laid, tuple(name or next(names) for name in laid.devices)


def _assembled(
    pattern: NodePattern, bound: Bound, n: int, stock: dict[Bound, list[_PieceStock]]
) -> list[_Whole]:
    """Replicas, or stages, of pieces that leave the stock: those that stood together first."""
    sizes = pattern.pieces_together if bound.stage >= 0 else pattern.pieces
    first = max(bound.stage, 0) * len(sizes)
    home = stock[replace(bound, stage=-1)]
    placed = [it for it in home if 0 <= it.place - first < len(sizes)]
    home[:] = (it for it in home if it not in placed)
    n_of = Counter(it.standing for it in placed if it.standing >= 0)
    own = {standing: k for k, (standing, _) in enumerate(n_of.most_common(n))}
    slots: list[dict[int, Part]] = [{} for _ in range(n)]
    for it in sorted(placed, key=lambda it: it.standing not in own):
        order = [slots[own[it.standing]]] if it.standing in own else []
        slot = _slot_for(it, it.place - first, [*order, *slots], own_nodes=pattern.own_nodes)
        slot[it.place - first] = it.part
    for slot in slots:
        for place in {*range(len(sizes))} - {*slot}:
            slot[place] = _other(home, sizes[place], _nodes(slot) if pattern.own_nodes else ())
    whose = [*own, *[-1] * n][:n]
    return [
        _Whole(standing=who, parts=tuple(slot[place] for place in range(len(sizes))))
        for who, slot in zip(whose, slots, strict=True)
    ]


def _slot_for(
    it: _PieceStock, place: int, slots: Sequence[dict[int, Part]], *, own_nodes: bool
) -> dict[int, Part]:
    """The first replica without a piece at that place: with own nodes, one without the node."""
    fitting = [slot for slot in slots if place not in slot]
    if not fitting:
        raise SolverError("more pieces of a place are there than replicas take")
    if own_nodes:
        fitting.sort(key=lambda slot: it.part.node.name in _nodes(slot))
    return fitting[0]


def _nodes(slot: Mapping[int, Part]) -> set[str]:
    return {part.node.name for part in slot.values()}


def _other(stock: list[_PieceStock], size: int, taken: Collection[str]) -> Part:
    """A piece of a size that is of no place, of a node that is not taken; it leaves the stock."""
    spare = [it for it in stock if it.place < 0 and len(it.part.devices) == size]
    if not spare:
        raise SolverError("fewer pieces are there than replicas take")
    n_of = Counter(it.part.node.name for it in spare)
    if taken:
        spare.sort(key=lambda it: (it.part.node.name in taken, -n_of[it.part.node.name]))
    stock.remove(spare[0])
    return spare[0].part
