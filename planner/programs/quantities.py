"""What may be limited or minimised, worked out from a few facts when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.equations.arrays import FloatArray, IntArray

Coefficients = tuple[FloatArray, FloatArray]
"""Of contexts, (K,), and of columns, (J,)."""

Named = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """What is known of contexts and columns, by name.

    Args:
        context: of each column, (J,).
        of_context, of_column: arrays of shape (K,) and (J,).
    """

    context: IntArray
    of_context: Named
    of_column: Named

    @property
    def n_contexts(self) -> int:
        return len(next(iter(self.of_context.values())))

    def take(self, *, contexts: IntArray, columns: IntArray) -> Facts:
        """Some contexts and columns, renumbered in the given order."""
        number = np.full(self.n_contexts, -1, dtype=np.int64)
        number[contexts] = np.arange(len(contexts))
        return Facts(
            context=number[self.context[columns]],
            of_context={name: values[contexts] for name, values in self.of_context.items()},
            of_column={name: values[columns] for name, values in self.of_column.items()},
        )

    @staticmethod
    def joined(parts: Sequence[Facts]) -> Facts:
        """The contexts and columns of several, one after the other."""
        before = np.cumsum([0, *(part.n_contexts for part in parts)]).tolist()

        def together(named: list[Named]) -> Named:
            return {name: np.concatenate([one[name] for one in named]) for name in named[0]}

        return Facts(
            context=np.concatenate(
                [part.context + n for part, n in zip(parts, before[:-1], strict=True)]
            ),
            of_context=together([part.of_context for part in parts]),
            of_column=together([part.of_column for part in parts]),
        )


Ways = Mapping[str, Callable[[Facts], Coefficients]]
"""How each quantity follows from facts."""


class Quantities(Mapping[str, Coefficients]):
    """Coefficients by name, worked out when they are first asked for.

    There are many columns, and a request limits or minimises few of the quantities.
    """

    def __init__(self, ways: Ways, facts: Facts) -> None:
        self.ways, self.facts = dict(ways), facts
        self._known: dict[str, Coefficients] = {}

    def __getitem__(self, name: str) -> Coefficients:
        if name not in self._known:
            self._known[name] = self.ways[name](self.facts)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ways)

    def __len__(self) -> int:
        return len(self.ways)

    def take(self, *, contexts: IntArray, columns: IntArray) -> Quantities:
        """Those of some contexts and columns."""
        return Quantities(self.ways, self.facts.take(contexts=contexts, columns=columns))
