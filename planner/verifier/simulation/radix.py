"""A radix tree of cached prompts, as SGLang 0.5.23 keeps them.

A node has pages that follow each other in a request; what begins alike shares nodes. They go by
whole leaves, the one that was looked at longest ago first, and none that a request holds
(sglang/srt/mem_cache/unified_cache/components/full.py:209-244).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from planner.verifier.simulation.blocks import Blocks

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
    """The tree of one rank, which has `n_idle` pages that nobody holds.

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
