"""A maximum flow of whole numbers: levels from the source, then ways from one to the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class Network:
    """Capacities between nodes, and what of them is left; each node is known by any name.

    Args:
        edges: tail, head and capacity, whole and not negative.
    """

    def __init__(self, edges: Iterable[tuple[Hashable, Hashable, int]]) -> None:
        self._index: dict[Hashable, int] = {}
        self._head: list[int] = []
        self._left: list[int] = []
        self._of: list[list[int]] = []
        for tail, head, capacity in edges:
            a, b = self._node(tail), self._node(head)
            for start, end, n in ((a, b, capacity), (b, a, 0)):  # the way back is the next one
                self._of[start].append(len(self._head))
                self._head.append(end)
                self._left.append(n)

    def _node(self, name: Hashable) -> int:
        if name not in self._index:
            self._index[name] = len(self._of)
            self._of.append([])
        return self._index[name]

    def most(self, source: Hashable, sink: Hashable) -> int:
        """The maximum flow from one node to another; 0 where one of them has no edge."""
        if source not in self._index or sink not in self._index:
            return 0
        start, end, total = self._index[source], self._index[sink], 0
        while level := self._levels(start, end):
            tried = [0] * len(self._of)
            while sent := self._along(start, end, level, tried):
                total += sent
        return total

    def _levels(self, start: int, end: int) -> list[int]:
        """Steps from the source to each node where something is left; empty if it has no end."""
        level, found = [-1] * len(self._of), [start]
        level[start] = 0
        for node in found:
            for edge in self._of[node]:
                there = self._head[edge]
                if self._left[edge] and level[there] < 0:
                    level[there] = level[node] + 1
                    found.append(there)
        return level if level[end] >= 0 else []

    def _along(self, start: int, end: int, level: list[int], tried: list[int]) -> int:
        """Send along one way, a level further with each edge; 0 where none is left.

        Args:
            tried: edges of each node that lead nowhere any more; more of them afterwards.
        """
        way: list[int] = []
        node = start
        while node != end:
            edge = self._open(node, level, tried)
            if edge is not None:
                way.append(edge)
                node = self._head[edge]
            elif way:
                node = self._head[way.pop() ^ 1]
                tried[node] += 1
            else:
                return 0
        sent = min(self._left[edge] for edge in way)
        for edge in way:
            self._left[edge] -= sent
            self._left[edge ^ 1] += sent
        return sent

    def _open(self, node: int, level: list[int], tried: list[int]) -> int | None:
        """The first edge of a node that something is left of, one level on."""
        mine = self._of[node]
        while tried[node] < len(mine):
            edge = mine[tried[node]]
            if self._left[edge] and level[self._head[edge]] == level[node] + 1:
                return edge
            tried[node] += 1
        return None
