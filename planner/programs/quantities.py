"""What may be limited or minimised, worked out when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from planner.equations.arrays import FloatArray

Coefficients = tuple[FloatArray, FloatArray]
"""Of contexts, (K,), and of columns, (J,)."""


class Quantities(Mapping[str, Coefficients]):
    """Coefficients by name, worked out when they are first asked for.

    There are millions of columns, and a request limits or minimises few of the quantities.
    """

    def __init__(self, ways: Mapping[str, Callable[[], Coefficients]]) -> None:
        self._ways = dict(ways)
        self._known: dict[str, Coefficients] = {}

    def __getitem__(self, name: str) -> Coefficients:
        if name not in self._known:
            self._known[name] = self._ways[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ways)

    def __len__(self) -> int:
        return len(self._ways)

    def with_those(self, ways: Mapping[str, Callable[[], Coefficients]]) -> Quantities:
        """These and others; of equal names the others."""
        return Quantities(self._ways | dict(ways))
