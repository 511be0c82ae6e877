"""What a repair on nodes counts: pieces, shards of ranks, and who has them already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from planner.placing.configurations import Sharding, Standing
from planner.placing.fabrics.patterns import NodeConfiguration, NodePattern
from planner.topology.inventory import Ability, Inventory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A configuration with its sharding."""

    configuration: NodeConfiguration
    sharding: Sharding
    shard_bytes: float

    @property
    def pattern(self) -> NodePattern:
        return self.configuration.pattern

    def ranks(self, place: int) -> range:
        """Ranks of the piece of a place."""
        first = [0, *accumulate(self.pattern.pieces)]
        return range(first[place], first[place + 1])


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


class StandingShards:
    """Shards that stand on free devices: by node, sharding and rank, the replica and the device."""

    def __init__(self, inventory: Inventory, standing: Sequence[Standing]) -> None:
        home = {
            name: (n, ability)
            for n, node in enumerate(inventory.nodes)
            for name, ability in node.free
        }
        self._shards: dict[tuple[int, Sharding], dict[int, list[tuple[int, str, Ability]]]] = {}
        for number, one in enumerate(standing):
            for rank, name in enumerate(one.devices):
                if name in home:
                    n, ability = home[name]
                    of_rank = self._shards.setdefault((n, one.sharding), defaultdict(list))
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
