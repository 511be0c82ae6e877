"""Targets of a request as limits of its program, and how simple each cut of a replica is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.equations.arrays import FloatArray, IntArray, divisors
from planner.errors import RequestError
from planner.programs.layout import Limit
from planner.quantities.table import QUANTITIES, uncountable
from planner.specs.ask.targets import Targets


def target_limits(
    targets: Targets, quantities: Mapping[str, Coefficients], without: Collection[str]
) -> tuple[Limit, ...]:
    """A limit for each target that is asked for.

    Args:
        quantities: coefficients of contexts and columns by name.
        without: names of limits to leave out.

    Raises:
        RequestError: the program cannot count what a target limits.
    """
    limits = {name: value for name, value in targets.limits().items() if name not in without}
    problems = list(uncountable(limits, quantities, "this runtime", {}))
    if problems:  # requests are refused before: a limit that was left out here would not hold
        raise RequestError(problems)
    return tuple(
        Limit(
            name=name,
            context=quantities[QUANTITIES[name].program][0],
            column=quantities[QUANTITIES[name].program][1],
            at_most=QUANTITIES[name].at_most(value),
            is_signed=QUANTITIES[name].is_least,
        )
        for name, value in limits.items()
    )


def further(
    quantities: Mapping[str, Coefficients], name: str, at_most: float, *, row: str = ""
) -> Limit:
    """A limit on a quantity besides those of targets; its row is named like it, or otherwise."""
    context, column = quantities[name]
    return Limit(name=row or name, context=context, column=column, at_most=at_most)


SIMPLICITY = "simplicity"

Cut = tuple[int, ...]


def simplicity(n_devices: IntArray, *degrees: IntArray) -> FloatArray:
    """A number for each replica, the least of the simplest (K,).

    Fewest devices, then fewest of what they are cut into, one degree after the other. It is the
    number of devices, and of one number of devices a fraction: the place of the cut among all that
    there are. So the candidates of several runtimes are compared, and what solvers see is of one
    size.

    Args:
        n_devices: of each replica, (K,).
        degrees: what they are cut into, the one that complicates most first; their product
            divides the devices, (K,) each.
    """
    cuts = np.stack([n_devices, *degrees], axis=1)
    listed, which = np.unique(cuts, axis=0, return_inverse=True)
    numbers = [n + _places(n, len(cut))[tuple(cut)] for n, *cut in listed.tolist()]
    return np.array(numbers, dtype=float)[which.ravel()]


@cache
def _places(n: int, n_degrees: int) -> Mapping[Cut, float]:
    """The place of each cut of n devices, from 0 to below 1."""
    cuts = list(_cuts(n, n_degrees))
    return {cut: place / len(cuts) for place, cut in enumerate(cuts)}


def _cuts(n: int, n_degrees: int) -> Iterator[Cut]:
    """Degrees whose product divides n, in ascending order."""
    if n_degrees == 0:
        yield ()
        return
    for first in divisors(n):
        for others in _cuts(n // first, n_degrees - 1):
            yield (first, *others)


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


Amounts = Mapping[str, Callable[[Facts], Coefficients]]
"""How each quantity follows from facts."""


class Quantities(Mapping[str, Coefficients]):
    """Coefficients by name, worked out when they are first asked for.

    There are many columns, and a request limits or minimises few of the quantities.
    """

    def __init__(self, ways: Amounts, facts: Facts) -> None:
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
