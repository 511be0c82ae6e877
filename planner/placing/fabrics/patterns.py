"""The devices of nodes that a replica needs: parts of nodes, and where these may lie.

node   all in one node
leaf   parts in any nodes of one leaf
stage  those of each stage in any nodes of one leaf, stages anywhere
pool   parts anywhere
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from planner.equations.arrays import FloatArray
from planner.placing.configurations import Configuration, Sharding
from planner.topology.inventory import Ability, Kind

NODE, LEAF, STAGE, POOL = "node", "leaf", "stage", "pool"
SPANS = (NODE, LEAF, STAGE, POOL)
"""Where the parts of a replica may lie: in one node, in one leaf, each stage in one leaf, or
anywhere."""

Shape = tuple[int, ...]
"""Devices of a group in a node, nodes of a group, stages; and of experts by themselves, if any."""


class Beaten(NamedTuple):
    """What other replicas of a model outdo on a domain, in the places of any replica there.

    Args:
        shapes: of layouts, at their speed within one leaf.
        rates: output tokens/s, by belief, of copies of fewer devices each in the pieces of one of n
            devices, at n (N,); none where copies may not take its place.
    """

    shapes: Collection[Shape] = ()
    rates: Mapping[str, FloatArray] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePattern:
    """Parts of nodes of one kind, and what their devices must at least be able to do.

    Args:
        kind: of the devices.
        span: one of `SPANS`.
        need: what each device must at least be able to do: a group runs at its slowest member.
        n_inside, n_across, n_stages: devices of a row of ranks, rows of a stage, stages.
        pieces: devices that lie in one node together, in the order of ranks.
        own_nodes: whether no two pieces share a node: an engine starts as many on each.
        n_pool: the last devices, which hold experts alone.
    """

    kind: Kind
    span: str
    need: Ability
    n_inside: int
    n_across: int
    n_stages: int
    pieces: tuple[int, ...]
    own_nodes: bool = False
    n_pool: int = 0

    @property
    def kind_name(self) -> str:
        return self.kind.name

    @property
    def speed_fraction(self) -> float:
        return self.need.speed_fraction

    @property
    def counted_bytes_per_s(self) -> Mapping[str, float]:
        return {
            "scale_up": self.need.scale_up_bytes_per_s,
            "nic": self.need.nic_bytes_per_s,
            "spine": self.need.spine_bytes_per_s,
        }

    @property
    def n_devices(self) -> int:
        return sum(self.pieces)

    @property
    def shape(self) -> Shape:
        whole = (self.n_inside, self.n_across, self.n_stages)
        return (*whole, self.n_pool) if self.n_pool else whole

    @property
    def simplicity(self) -> tuple[int, ...]:
        return self.n_devices, self.n_stages, self.n_across

    @property
    def sizes(self) -> Counter[int]:
        """Pieces of each size, in the order of ranks."""
        return Counter(self.pieces)

    @property
    def pieces_together(self) -> tuple[int, ...]:
        """Pieces that have to lie in one leaf: of a stage, or all."""
        return self.pieces[: self.n_across] if self.span == STAGE else self.pieces


NodeConfiguration = Configuration[NodePattern]


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
