"""Blocks of caches: how many are held, and what of those that nobody holds can still be found.

A block that is full is found again by what is in it and before it, until it is handed out anew. Of
those that nobody holds, blocks with nothing in them go first, then those that were given back
earliest, of one request its last block first (vLLM 0.33, vllm/v1/core/block_pool.py:816-849;
vllm/v1/core/kv_cache_manager.py:629-638).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from planner.specs.records.roles import Station


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
        station = self._station
        room = station.room_bytes - n_sequences * station.sequence_bytes
        if room == math.inf or station.token_bytes == 0.0:
            return math.inf if room >= 0.0 else -1.0
        return math.floor(room / (station.token_bytes * station.block_tokens)) - station.own_blocks

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


Family = Callable[[int], tuple[int | None, int]]


@dataclass(slots=True, eq=False)
class Node:
    """Pages of `owner` up to `stop`, from where its parent stops; `locks` is who holds them."""

    parent: Node | None
    owner: int
    stop: int
    locks: int = 0
    touched: int = 0
    children: dict[tuple[bool, int], Node] = field(default_factory=dict)


class Radix:
    """A radix tree of prompts, as SGLang 0.5.23 keeps them: `n_idle` pages that nobody holds.

    A node has pages that follow each other in a request; what begins alike shares nodes. They go by
    whole leaves, the one that was looked at longest ago first, and none that a request holds
    (sglang/srt/mem_cache/unified_cache/components/full.py:209-244).

    Args:
        blocks: of the rank, that count what is held.
        family: of a request its family, if it has one, and how many pages it shares with it.
    """

    def __init__(self, blocks: Blocks, family: Family) -> None:
        self.root = Node(None, -1, 0, locks=1)
        self.n_idle = 0
        self._blocks = blocks
        self._family = family
        self._leaves: set[Node] = set()
        self._now = 0

    def _key(self, request: int, page: int) -> tuple[bool, int]:
        """What page of a request it is: its family's or its own."""
        family, n_shared = self._family(request)
        return (True, family) if family is not None and page < n_shared else (False, request)

    def _touch(self, node: Node) -> None:
        self._now += 1
        node.touched = self._now

    def match(self, request: int, n_pages: int) -> Node:
        """The last node that has the first pages of a request; it is cut where they end.

        What is on the way is looked at (unified_tree_core.py:1024-1028, 1282-1292, 1507-1516).
        """
        node = self.root
        while child := node.children.get(self._key(request, node.stop)):
            alike = n_pages
            if child.owner != request:
                alike = min(alike, self._family(request)[1], self._family(child.owner)[1])
            if alike <= node.stop:
                break
            self._touch(child)
            node = child if child.stop <= alike else self._split(child, alike)
        return node

    def _split(self, child: Node, stop: int) -> Node:
        assert child.parent is not None
        upper = Node(child.parent, child.owner, stop, child.locks)
        self._touch(upper)
        child.parent.children[self._key(child.owner, child.parent.stop)] = upper
        upper.children = {self._key(child.owner, stop): child}
        child.parent = upper
        return upper

    def insert(self, request: int, n_pages: int) -> Node:
        """Keep the first pages of a request; those that are there already are not kept twice."""
        node = self.match(request, n_pages)
        if node.stop < n_pages:
            child = Node(node, request, n_pages)
            self._touch(child)
            node.children[self._key(request, node.stop)] = child
            self._leaves.discard(node)
            self._leaves.add(child)
            self.n_idle += n_pages - node.stop
            node = child
        return node

    def hold(self, node: Node, by: int) -> None:
        """A request more, or one less, holds a node and all before it."""
        while node.parent is not None:
            n = node.stop - node.parent.stop
            if node.locks == max(0, -by):  # nobody did, or nobody does now
                self._blocks.n_held += by * n
                self.n_idle -= by * n
            node.locks += by
            if node.locks:
                self._leaves.discard(node)
            elif not node.children:
                self._leaves.add(node)
            node = node.parent

    def lose(self) -> bool:
        """The pages of one leaf are free, if there is one."""
        if not self._leaves:
            return False
        leaf = min(self._leaves, key=lambda it: it.touched)
        parent = leaf.parent
        assert parent is not None
        self._leaves.remove(leaf)
        self.n_idle -= leaf.stop - parent.stop
        del parent.children[self._key(leaf.owner, parent.stop)]
        if not parent.children and not parent.locks:
            self._leaves.add(parent)
        return True
