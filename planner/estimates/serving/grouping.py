"""Deployments that an operation cannot tell apart: it is timed once for all of them.

Of some thousand deployments most operations see a few numbers only: a product its tokens and the
degree that cuts it, whatever the stages, the groups of experts and the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.estimates.serving.operations import Operation

WORTH = 0.5
"""Groups for each deployment beyond which nothing is gained."""

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
_APART = tuple(float(np.sqrt(n) * 10.0 ** (n % 4)) for n in _PRIMES)
"""Weights of columns in a key; if two groups share one, their operations are timed row by row."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """Groups of deployments.

    Args:
        first: a deployment of each group (G,).
        group: of each deployment (N,).
    """

    first: IntArray
    group: IntArray
    _even: dict[int, tuple[Any, bool]] = field(default_factory=dict)

    def one_of_each(self, operation: Operation) -> Operation | None:
        """The operation on a deployment of each group; None if some group differs in it."""
        if not all(map(self._is_even, operation.arguments.values())):
            return None
        taken = {name: self._taken(value) for name, value in operation.arguments.items()}
        return replace(operation, arguments=taken)

    def spread(self, values: FloatArray) -> FloatArray:
        """Values of the groups, to each deployment (N,)."""
        return np.broadcast_to(values, self.first.shape)[self.group]

    def _taken(self, value: Any) -> Any:  # noqa: ANN401 a number, a flag or an array
        return value[self.first] if np.shape(value) == self.group.shape else value

    def _is_even(self, value: Any) -> bool:  # noqa: ANN401
        """Whether a value is the same for all deployments of each group."""
        if np.ndim(value) == 0 or np.shape(value) == (1,):
            return True
        if np.shape(value) != self.group.shape:
            return False
        known = self._even.get(id(value))
        if known is None or known[0] is not value:
            known = (value, bool((value[self.first][self.group] == value).all()))
            self._even[id(value)] = known  # kept, so that nothing else has its id
        return known[1]


def grouping_of(columns: Sequence[Any]) -> Grouping | None:
    """Deployments with equal columns (N,) each, or numbers; None if few are.

    Args:
        columns: as many as there are weights in `_APART`, at most.
    """
    arrays = np.broadcast_arrays(*columns)
    if np.ndim(arrays[0]) == 0:
        return None
    first, group = _by_key(arrays)
    if len(first) > WORTH * len(group):
        return None
    return Grouping(first=first, group=group)


def alike(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Rows that are equal in all columns (N,): one of each group (G,), and the group of each.

    Args:
        columns: as many as there are weights in `_APART`, at most.
    """
    first, group = _by_key(columns)
    if all((one[first][group] == one).all() for one in columns):
        return first, group
    return np.arange(len(group)), np.arange(len(group))  # two groups share a key


def _by_key(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    key = sum(np.asarray(one, dtype=float) * w for one, w in zip(columns, _APART, strict=False))
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return first, group
