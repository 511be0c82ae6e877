"""Pools of replicas, who of them gets a request, and what hands caches from one to another."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from planner.specs.records.roles import AT_RANDOM, LEAST_PRESENT, Station
from planner.specs.traffic.percentiles import GoodputTarget
from planner.specs.traffic.records import Arriving
from planner.verifier.simulation.log import Log
from planner.verifier.simulation.rank import Rank
from planner.verifier.simulation.retracting import Retracting


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Replicas that are alike, behind one router.

    Args:
        name: each once.
        station: one rank of a replica; `station.n_ranks` of them are behind the replica's own
            router, which gives the rank with the fewest requests the next.
        n_replicas: at least one.
        router: of `ROUTERS`.
    """

    name: str
    station: Station
    n_replicas: int
    router: str = LEAST_PRESENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """How caches go from a replica that reads prompts to one that decodes.

    Each pair of replicas has a link of its own, and each replica a wire to all others; who comes
    to a link or a wire in use waits for it, in the order of coming.

    Args:
        latency_s: of each, however little is moved; it occupies nothing.
        bytes_per_s: that a pair moves at most.
        wire_bytes_per_s: that one replica sends, or gets, of all pairs together.
        sequence_bytes, token_bytes: of a cache whatever its length, and of each token of it.
    """

    latency_s: float
    bytes_per_s: float = math.inf
    wire_bytes_per_s: float = math.inf
    sequence_bytes: float = 0.0
    token_bytes: float = 0.0


@dataclass(slots=True)
class Replica:
    """One of a pool: its ranks, by their numbers in the run, and how many requests they have."""

    ranks: list[int]
    n_present: int = 0


@dataclass(slots=True)
class Links:
    """When each pair of replicas, and each replica, is done with what it moves."""

    handover: Handover
    _pairs: dict[tuple[int, int], float] = field(default_factory=dict)
    _wires: dict[int, float] = field(default_factory=dict)

    def done_s(self, now_s: float, n_tokens: int, sender: int, receiver: int) -> float:
        """When a cache that is sent now is there."""
        handed = self.handover
        n_bytes = handed.sequence_bytes + handed.token_bytes * n_tokens
        pair, wires = (sender, receiver), self._wires
        begins = max(now_s, self._pairs.get(pair, 0.0))
        ends = self._pairs[pair] = begins + n_bytes / handed.bytes_per_s
        ours, theirs = 2 * sender, 2 * receiver + 1
        begins = max(begins, wires.get(ours, 0.0), wires.get(theirs, 0.0))
        wires[ours] = wires[theirs] = begins + n_bytes / handed.wire_bytes_per_s
        return max(ends, wires[ours]) + handed.latency_s


def rank_of(station: Station, log: Log) -> Rank:
    """A rank at rest, with the clauses of its engine."""
    return Retracting(station, log) if station.retracts else Rank(station, log)


class Ranks:
    """All ranks of a pool at work, and the router before them."""

    __slots__ = ("_counts", "_is_watched", "_next", "_source", "first", "pool", "ranks", "replicas")

    def __init__(self, pool: Pool, log: Log, first: int, source: random.Random) -> None:
        """A pool at rest: its first rank has a number in the run, its router a source of chance."""
        n = pool.station.n_ranks
        self.pool = pool
        self.first = first
        self.ranks = [rank_of(pool.station, log) for _ in range(pool.n_replicas * n)]
        self.replicas = [
            Replica(ranks=list(range(first + i * n, first + (i + 1) * n)))
            for i in range(pool.n_replicas)
        ]
        self._counts = [0] * len(self.ranks)
        self._next = 0
        self._source = source

    @property
    def numbers(self) -> range:
        """Of its ranks in the run."""
        return range(self.first, self.first + len(self.ranks))

    @property
    def looks(self) -> bool:
        """Whether who gets a request depends on how many others there are."""
        is_blind = self.pool.router != LEAST_PRESENT or self.pool.n_replicas == 1
        return not is_blind or self.pool.station.n_ranks > 1

    def choose(self) -> int:
        """The rank that gets the next request, by its number in the run."""
        replica = self._replica()
        chosen = self.replicas[replica]
        counts, first = self._counts, self.first
        rank = chosen.ranks[0]
        if len(chosen.ranks) > 1:
            rank = min(chosen.ranks, key=lambda rank: counts[rank - first])
        return rank

    def take(self, rank: int) -> None:
        """A request goes to a rank."""
        self._counts[rank - self.first] += 1
        self.replicas[self.replica_of(rank)].n_present += 1

    def leave(self, rank: int) -> None:
        """A request is done there."""
        self._counts[rank - self.first] -= 1
        self.replicas[self.replica_of(rank)].n_present -= 1

    def replica_of(self, rank: int) -> int:
        return (rank - self.first) // self.pool.station.n_ranks

    def _replica(self) -> int:
        n, router = len(self.replicas), self.pool.router
        if router == AT_RANDOM:
            return int(self._source.random() * n)
        chosen = self._next % n
        if router == LEAST_PRESENT:
            chosen = self._emptiest(self.replicas, chosen)
        self._next = chosen + 1
        return chosen

    @staticmethod
    def _emptiest(replicas: Sequence[Replica], start: int) -> int:
        """The one with the fewest requests, the first of these from a start on."""
        best, least = start, replicas[start].n_present
        for one in (*range(start + 1, len(replicas)), *range(start)):
            if replicas[one].n_present < least:
                best, least = one, replicas[one].n_present
        return best


class Requests(Protocol):
    """Requests in the order of arrival, with or without an end; a class of traffic is one."""

    def requests(self, seed: int) -> Iterator[Arriving]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRequests:
    """These and no others."""

    listed: Sequence[Arriving]

    def requests(self, seed: int) -> Iterator[Arriving]:
        return iter(self.listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where requests of a class go.

    Args:
        pool: that serves them, or reads their prompts.
        then: the pool that decodes them; None where the first does.
        handover: between the two.
        share: of those with such prompts, relative to that of other routes.
        above_tokens, upto_tokens: of the prompts.
    """

    pool: str
    then: str | None = None
    handover: Handover | None = None
    share: float = 1.0
    above_tokens: float = 0.0
    upto_tokens: float = math.inf

    def takes(self, n_input: int) -> bool:
        """Whether a prompt may go there."""
        return self.above_tokens < n_input <= self.upto_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLoad:
    """One class: its requests, its ways, and what is judged of it.

    Args:
        name: each once.
        source: of its requests.
        routes: of which every prompt has one at least.
        n_cached_tokens: that open every prompt, besides those drawn, and are always cached.
        goodput: limits that a share is to meet; None asks for none.
    """

    name: str
    source: Requests
    routes: tuple[Route, ...]
    n_cached_tokens: int = 0
    goodput: GoodputTarget | None = None
