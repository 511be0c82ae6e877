"""All ranks of a fleet at work.

A rank runs by itself until something else depends on it: a router that counts its requests, a
cache that it hands over. Then it is next when a request of it may end.
"""

import math
import random
from collections.abc import Sequence
from heapq import heappop, heappush

from planner.specs.records.roles import PREFILL
from planner.verifier.simulation.log import Gaps, Log
from planner.verifier.simulation.pools import Pool, Ranks
from planner.verifier.simulation.rank import Rank

ARRIVES, STANDS, RUNS, ENDS = range(4)
"""A class has its next request; a request stands in line; a rank runs; a request is done where it
was."""


class Events:
    """A heap of (time, order of coming, kind, what)."""

    __slots__ = ("_heap", "_n")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, int]] = []
        self._n = 0

    def push(self, at_s: float, kind: int, what: int) -> None:
        self._n += 1
        heappush(self._heap, (at_s, self._n, kind, what))

    def pop(self) -> tuple[float, int, int]:
        """The earliest: when, its kind, and what."""
        at_s, _, kind, what = heappop(self._heap)
        return at_s, kind, what

    def __bool__(self) -> bool:
        return bool(self._heap)


class Workers:
    """Ranks, by their numbers, and the pools that they are of.

    `edge_s` and `busy_s` are when batches began, and how long each rank had been at work by then;
    `gaps` are those between tokens of each class, before the first batch, in each, and behind.
    """

    __slots__ = (
        "_events",
        "_next_edge",
        "_versions",
        "_watched",
        "behind",
        "busy_s",
        "edge_s",
        "edges",
        "gaps",
        "log",
        "pools",
        "rank_of",
        "ranks",
    )

    def __init__(self, pools: Sequence[Pool], events: Events, chance: random.Random) -> None:
        """Pools at rest.

        Args:
            pools: by their names.
            events: of the run.
            chance: that routers draw from.
        """
        self.log = Log(n_input=[], n_output=[], ready_s=[], first_s=[], last_s=[], gaps=Gaps())
        self.pools: dict[str, Ranks] = {}
        self.ranks: list[Rank] = []
        self.behind: list[Ranks] = []
        self.rank_of: list[int] = []
        for pool in pools:
            source = random.Random(chance.getrandbits(64))
            ranks = Ranks(pool, self.log, len(self.ranks), source)
            self.pools[pool.name] = ranks
            self.ranks += ranks.ranks
            self.behind += [ranks] * len(ranks.ranks)
        self._watched = [_is_watched(ranks) for ranks in self.behind]
        for rank, watched in zip(self.ranks, self._watched, strict=True):
            rank.ended = [] if watched else None
        self._events = events
        self._versions = [0] * len(self.ranks)
        self._next_edge = 0
        self.edges: Sequence[int] = ()
        self.edge_s: list[float] = []
        self.busy_s: list[list[float]] = []
        self.gaps: list[list[Gaps]] = []

    @property
    def duration_s(self) -> float:
        """To the end of the last request."""
        return max((t for t in self.log.last_s if math.isfinite(t)), default=0.0)

    def give(self, request: int, rank: int, now_s: float) -> None:
        """A rank gets a request, which stands in line there once it is ready."""
        self.rank_of[request] = rank
        self.behind[rank].take(rank)
        ready_s = self.log.ready_s[request]
        if ready_s > now_s:
            self._events.push(ready_s, STANDS, request)
        else:
            self.stand(request)

    def stand(self, request: int) -> None:
        """A request stands in line."""
        rank = self.rank_of[request]
        self.ranks[rank].arrive(request)
        if self._watched[rank]:
            self._schedule(rank, self.log.ready_s[request])

    def run(self, what: int, now_s: float) -> None:
        """A rank runs what begins until now, unless it has been found to be due at another time."""
        version, rank = divmod(what, len(self.ranks))
        if version == self._versions[rank]:
            self._advance(rank, math.nextafter(now_s, math.inf))
            self._schedule(rank, now_s)

    def finish(self) -> None:
        """Ranks that nobody waits for serve all that they have; batches that never began do."""
        for rank in self.ranks:
            rank.advance(math.inf)
        while self._next_edge < len(self.edges):
            self._pass_edge(self.duration_s)
        self._switch()

    def count(self, edges: Sequence[int], n_classes: int) -> None:
        """Batches are to begin with these requests, the last of them what is not counted."""
        self.edges = edges
        for rank in self.ranks:
            rank.gaps = [Gaps() for _ in range(n_classes)]

    def pass_edges(self, request: int, now_s: float) -> None:
        """Batches begin that begin with this request."""
        while self._next_edge < len(self.edges) and request == self.edges[self._next_edge]:
            self._pass_edge(now_s)

    def _pass_edge(self, now_s: float) -> None:
        """What ranks did until now is of the batch before."""
        for rank in range(len(self.ranks)):
            self._advance(rank, now_s)
        self.edge_s.append(now_s)
        self.busy_s.append([one.free_s - one.idle_s for one in self.ranks])
        self._next_edge += 1
        self._switch()

    def _switch(self) -> None:
        """Gaps until now are of the batch before: ranks have their own, so that sums do not depend
        on which of them was advanced first."""
        batch = [Gaps() for _ in self.ranks[0].gaps]
        for rank in self.ranks:
            rank.count_gaps()
            for whole, own in zip(batch, rank.gaps, strict=True):
                whole.take(own)
            rank.gaps = [Gaps() for _ in batch]
        self.gaps.append(batch)

    def _schedule(self, rank: int, now_s: float) -> None:
        """A rank is next when a request of it may end."""
        at_s = self.ranks[rank].none_ends_before_s()
        self._versions[rank] += 1
        if at_s < math.inf:
            what = self._versions[rank] * len(self.ranks) + rank
            self._events.push(max(at_s, now_s), RUNS, what)

    def _advance(self, rank: int, until_s: float) -> None:
        worker, last_s = self.ranks[rank], self.log.last_s
        worker.advance(until_s)
        if worker.ended:
            for request in worker.ended:
                self._events.push(last_s[request], ENDS, request)
            worker.ended.clear()


def _is_watched(ranks: Ranks) -> bool:
    """Whether something depends on when requests of a pool end."""
    return ranks.looks or ranks.pool.station.role == PREFILL
