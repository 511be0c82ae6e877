"""The rows of a layout program as one kind of thing, and arrays by context and slot.

row     Σ context z + Σ column x ≤ at_most, where `at_most` may differ by context
group   a context and a slot, numbered context * n_slots + slot
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.estimates.serving.deployments import runs
from planner.programs.layout import (
    RELATIVE_TOLERANCE,
    FloatArray,
    IntArray,
    LayoutProgram,
)

_MOST_NUMBERS = 1 << 62
"""That a packed key may take."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A row of the program, `hbm` or a limit: context [K], column [J], at_most [K]."""

    name: str
    context: FloatArray
    column: FloatArray
    at_most: FloatArray
    is_signed: bool = False

    @property
    def room(self) -> FloatArray:
        """What a context leaves to its columns, rounding included [K]."""
        slack = RELATIVE_TOLERANCE * np.abs(self.at_most)
        return np.asarray(self.at_most + slack - self.context)


def rows_of(program: LayoutProgram) -> tuple[Row, ...]:
    """`hbm` and the limits; without those that nothing can break."""
    hbm = Row(
        name="hbm",
        context=program.context_bytes,
        column=program.column_bytes,
        at_most=program.capacity_bytes,
    )
    limits = (
        Row(
            name=limit.name,
            context=limit.context,
            column=limit.column,
            at_most=np.full(program.n_contexts, float(limit.at_most)),
            is_signed=limit.is_signed,
        )
        for limit in program.limits
    )
    return tuple(row for row in (hbm, *limits) if np.isfinite(row.at_most).any())


def least_by_group(values: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """The smallest value of each group [G]; inf where it is empty."""
    least = np.full(n_groups, np.inf)
    np.minimum.at(least, group, values)
    return least


def first_least(values: FloatArray, group: IntArray, n_groups: int) -> IntArray:
    """Position of the first smallest value of each group [G]; -1 where it is empty."""
    hits = np.flatnonzero(values == least_by_group(values, group, n_groups)[group])[::-1]
    first = np.full(n_groups, -1, dtype=np.int64)
    first[group[hits]] = hits  # the last assignment stays, hence the reversed order
    return first


def rest_of_context(least: FloatArray, n_slots: int) -> FloatArray:
    """For each group the sum of its context's other groups [G]."""
    table = least.reshape(-1, n_slots)
    with np.errstate(invalid="ignore"):  # a context with an empty slot has no rest
        return np.asarray((table.sum(axis=1, keepdims=True) - table).ravel())


def alike_rows(keys: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Groups of rows with equal keys: the first row of each (K,), and the group of each row (J,).

    Groups are in ascending order of the first key, then of the second and so on. Equal rows mostly
    follow each other, so that only the first of each run is sorted.

    Args:
        keys: whole numbers (J,) each.
    """
    starts, row = runs(*keys)
    if not len(starts):
        return starts, row
    heads = _packed([key[starts] for key in keys])
    _, first, group = np.unique(heads, return_index=True, return_inverse=True)
    return starts[first], group[row]


def _packed(keys: Sequence[IntArray]) -> IntArray:
    """One number for each row, in the order of its keys: sorting rows of a table is far slower."""
    packed = np.zeros(len(keys[0]), dtype=np.int64)
    n_numbers = 1
    for key in keys:
        least = int(key.min())
        span = int(key.max()) - least + 1
        if n_numbers * span >= _MOST_NUMBERS:  # the same order, without gaps
            packed = np.unique(packed, return_inverse=True)[1].astype(np.int64)
            n_numbers = int(packed.max()) + 1
        packed = packed * span + (key - least)
        n_numbers *= span
    return packed
