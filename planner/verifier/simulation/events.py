"""What is to happen, in the order of time."""

from __future__ import annotations

from heapq import heappop, heappush

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
