"""Blocks of caches: how many are held, and what of those that nobody holds can still be found.

A block that is full is found again by what is in it and before it, until it is handed out anew. Of
those that nobody holds, blocks with nothing in them go first, then those that were given back
earliest, of one request its last block first (vLLM 0.33, vllm/v1/core/block_pool.py:816-849;
vllm/v1/core/kv_cache_manager.py:629-638).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from planner.specs.stations import Station


@dataclass(slots=True)
class _Run:
    """Blocks from `first` to before `last` of a request, or of a family of prompts."""

    family: int | None
    first: int
    last: int


class Blocks:
    """The blocks of one rank; `n_held` are those that somebody holds.

    Requests of a family begin alike: what is full and lies within that is the family's.
    """

    def __init__(self, station: Station) -> None:
        self._station = station
        self._runs: deque[_Run] = deque()
        self._own: dict[int, _Run] = {}  # of requests that wait to go on
        self._idle: dict[int, list[_Run]] = {}  # of each family, those with its first blocks last
        self._holders: dict[int, list[int]] = {}  # of each block of a family
        self._n_known: dict[int, int] = {}  # first blocks of a family that can be found
        self._n_idle = 0  # that can be found, and that nobody holds
        self.n_held = 0
        self.n_sequences = 0

    def n_blocks(self, n_sequences: int = 0) -> float:
        """Blocks that there are, beside what so many sequences hold whatever their length."""
        one = self._station
        room = one.room_bytes - n_sequences * one.sequence_bytes
        if room == math.inf or one.token_bytes == 0.0:
            return math.inf if room >= 0.0 else -1.0
        return math.floor(room / (one.token_bytes * one.block_tokens)) - one.own_blocks

    def free(self, n_more: int = 0) -> float:
        """Blocks that nobody holds, beside so many sequences more."""
        return self.n_blocks(self.n_sequences + n_more) - self.n_held

    def known(self, request: int, family: int | None, n_shared: int, most: int) -> tuple[int, int]:
        """First blocks of a request that can be found, and how many of them nobody holds."""
        n, idle = 0, 0
        if family is not None:
            n = min(n_shared, most, self._n_known.get(family, 0))
            idle = sum(not it for it in self._holders.get(family, [])[:n])
        run = self._own.get(request)
        if run is not None and n == run.first < run.last:
            idle += run.last - n
            n = run.last
        return n, idle

    def begin(self, request: int, family: int | None, n_shared: int, n_known: int) -> None:
        """A request holds its first blocks, which were found."""
        run = self._own.pop(request, None)
        if run is not None and n_known > run.first:
            self._wake(run, run.last)
        if family is not None:
            n = min(n_known, n_shared)
            idle = self._idle.setdefault(family, [])
            while idle and idle[-1].first < n:
                self._wake(idle[-1], n)
                if idle[-1].first >= idle[-1].last:
                    idle.pop()
            self._hold(family, 0, n)

    def _wake(self, run: _Run, upto: int) -> None:
        n = max(0, min(run.last, upto) - run.first)
        run.first += n
        self._n_idle -= n
        self.n_held += n

    def _hold(self, family: int, first: int, last: int) -> None:
        holders = self._holders.setdefault(family, [])
        holders += [0] * (last - len(holders))
        for block in range(first, last):
            holders[block] += 1
        self._n_known[family] = max(last, self._n_known.get(family, 0))

    def fill(self, family: int | None, n_shared: int, before: int, tokens: int) -> None:
        """A request that had so many tokens cached has more: its new blocks are held."""
        size = self._station.block_tokens
        self.take(-(-tokens // size) + -before // size)
        if family is not None and self._station.caches_prefixes:
            first, last = min(n_shared, before // size), min(n_shared, tokens // size)
            if last > first:
                self._hold(family, first, last)

    def take(self, n: int) -> None:
        """So many blocks more are held; what was in them cannot be found any more."""
        self.n_held += n
        while self._n_idle > self.free():
            run = self._runs[0]
            n_lost = int(min(run.last - run.first, self._n_idle - self.free()))
            run.last -= n_lost
            self._n_idle -= n_lost
            if n_lost and run.family is not None:
                self._n_known[run.family] = run.last
            if run.last <= run.first:
                self._runs.popleft()

    def give_back(
        self,
        request: int,
        family: int | None,
        n_shared: int,
        n_tokens: int,
        n_full: int,
        *,
        returns: bool,
    ) -> None:
        """A request that has so many tokens cached loses them; `n_full` of its blocks are known."""
        size = self._station.block_tokens
        if not self._station.caches_prefixes:
            self.n_held -= -(-n_tokens // size)
            return
        self.n_held -= -(-n_tokens // size) - n_full
        n_shared = 0 if family is None else min(n_shared, n_full)
        run = self._lay(None, n_shared, n_full)
        if returns:
            self._own[request] = run
        if family is not None:
            holders = self._holders.setdefault(family, [])
            for block in range(n_shared):
                holders[block] -= 1
            first = n_shared
            while first and holders[first - 1] == 0:
                first -= 1
            if first < n_shared:
                self._idle.setdefault(family, []).append(self._lay(family, first, n_shared))

    def _lay(self, family: int | None, first: int, last: int) -> _Run:
        run = _Run(family, first, last)
        if last > first:
            self._runs.append(run)
            self._n_idle += last - first
            self.n_held -= last - first
        return run
