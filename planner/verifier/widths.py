"""Bandwidths of groups of devices: the widest links that connect all of a group.

Links are added from the widest to the narrowest. The link that joins the last two parts of a
group is its bottleneck: all that is wider leaves the group in parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from planner.verifier.sites import Edge

Group = tuple[str, ...]


class Forest:
    """Parts of a set of names, joined two by two.

    Smaller parts hang below larger ones, so that no name is deep. What hung a part below
    another is kept: the numbers of these rise on the way up.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._above: dict[str, str] = {}
        self._joined_by: dict[str, int] = {}
        self._size = dict.fromkeys(names, 1)
        self._n_joined = 0

    def root(self, name: str) -> str:
        """The name that stands for a part."""
        while name in self._above:
            name = self._above[name]
        return name

    def join(self, a: str, b: str) -> bool:
        """Join the parts of two names; False if they are one already."""
        small, large = sorted((self.root(a), self.root(b)), key=lambda one: self._size[one])
        if small == large:
            return False
        self._above[small], self._joined_by[small] = large, self._n_joined
        self._size[large] += self._size[small]
        self._n_joined += 1
        return True

    def when_joined(self, a: str, b: str) -> int | None:
        """The number of the join that made one part of two names; None if none did."""
        last = -1
        while a != b:
            first, second = self._joined_by.get(a), self._joined_by.get(b)
            if first is None and second is None:
                return None
            if second is None or (first is not None and first < second):
                a, last = self._above[a], max(last, first if first is not None else -1)
            else:
                b, last = self._above[b], max(last, second)
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """The bandwidth of a group, and its bottleneck; 0 where no links connect it."""

    bytes_per_s: float
    link: tuple[str, str] | None = None


class Widths:
    """Links, read once, by which the bandwidth of any group is known."""

    def __init__(self, names: Iterable[str], edges: Iterable[tuple[str, str, Edge]]) -> None:
        self._forest = Forest(names)
        self._rates: dict[frozenset[str], float] = {}
        self._joins: list[Width] = []
        for a, b, edge in sorted(edges, key=lambda one: -one[2].bytes_per_s):
            self._rates[frozenset((a, b))] = edge.bytes_per_s
            if self._forest.join(a, b):
                self._joins.append(Width(bytes_per_s=edge.bytes_per_s, link=(a, b)))

    def of(self, group: Group) -> Width:
        """The bandwidth of a group; infinite of one device."""
        last = -1
        for name in group[1:]:
            when = self._forest.when_joined(group[0], name)
            if when is None:
                return Width(bytes_per_s=0.0)
            last = max(last, when)
        return self._joins[last] if last >= 0 else Width(bytes_per_s=inf)

    def may_be(self, link: tuple[str, str], group: Group) -> bool:
        """Whether a link may be called the bottleneck of a group, beside others as narrow.

        It is as narrow as the group is wide, no wider way leads around it, and the group
        reaches it by links that are no narrower.
        """
        width = self._rates.get(frozenset(link))
        if width is None or width != self.of(group).bytes_per_s:
            return False
        return self.of(link).bytes_per_s == width <= self.of((group[0], link[0])).bytes_per_s
