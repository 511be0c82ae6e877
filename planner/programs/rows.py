"""Rows of a layout program as one kind of thing, and columns that others make superfluous.

row     Σ context z + Σ column x ≤ at_most, where `at_most` may differ by context
group   a context and a slot, numbered context * n_slots + slot
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.estimates.serving.deployments import runs
from planner.programs.layout import RELATIVE_TOLERANCE, LayoutProgram

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


MANY = 20_000  # columns from which pivots go before the exact filter, which sorts


def dominated(criteria: list[FloatArray], group: IntArray, n_groups: int) -> BoolArray:
    """Which columns another one dominates [J].

    Column p dominates j when it is no worse in the objective and in every row that still couples
    the slots: then any assignment with j stays within its rows, and no dearer, with p instead. Of
    equal columns the one with the smallest index stays.

    Exact for one criterion and for two; with more, a column may stay although it is
    dominated, but none goes that is not.

    Args:
        criteria: arrays [J], smaller is better; the objective first.
        group: context and slot of each column [J].
    """
    if len(criteria) == 1:
        first = first_least(criteria[0], group, n_groups)
        return np.asarray(np.arange(len(group)) != first[group])
    if len(criteria) > 2 or len(group) > MANY:
        gone = _behind_pivots(criteria, group, n_groups)
    else:
        gone = np.zeros(len(group), dtype=np.bool_)
    if len(criteria) == 2:
        stay = np.flatnonzero(~gone)
        gone[stay] = _behind_staircase(criteria[0][stay], criteria[1][stay], group[stay])
    return gone


def _behind_staircase(first: FloatArray, second: FloatArray, group: IntArray) -> BoolArray:
    """Exact for two criteria: walk each group by the second, remember the least of the first.

    Ranks in place of values make one running minimum serve all groups: a later group's
    numbers are below every earlier one's.
    """
    order = np.lexsort((first, second, group))  # stable: equal columns keep their order
    rank = np.unique(first, return_inverse=True)[1].astype(np.int64)
    walk = (rank - group.astype(np.int64) * (len(first) + 1))[order]
    best_before = np.full(len(walk), np.iinfo(np.int64).max)
    best_before[1:] = np.minimum.accumulate(walk)[:-1]
    gone = np.empty(len(walk), dtype=np.bool_)
    gone[order] = best_before <= walk
    return gone


def _behind_pivots(criteria: list[FloatArray], group: IntArray, n_groups: int) -> BoolArray:
    """Compare each column with a few good ones of its group: fast, in any number of criteria."""
    stay = np.arange(len(group))
    scales = [float(np.abs(values).mean()) or 1.0 for values in criteria]
    for favourite in range(-1, len(criteria)):
        here = group[stay]
        values = [array[stay] for array in criteria]
        score = np.zeros(len(stay))
        for d, (array, scale) in enumerate(zip(values, scales, strict=True)):
            score += array * ((10.0 if d == favourite else 1.0) / scale)
        pivot = first_least(score, here, n_groups)[here]
        behind = pivot != np.arange(len(stay))
        for array in values:
            behind &= array >= array[pivot]
        stay = stay[~behind]
    gone = np.ones(len(group), dtype=np.bool_)
    gone[stay] = False
    return gone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stairs:
    """Assignments, none of which dominates another: later ones take longer and cost less.

    Args:
        delay, price: of each, (P,).
        columns: their columns, one for each slot, (P, S).
    """

    delay: FloatArray
    price: FloatArray
    columns: IntArray

    def price_at(self, delay: FloatArray) -> FloatArray:
        """The least price in hand within each delay; inf where there is none."""
        step = np.searchsorted(self.delay, delay, side="right")
        return np.asarray(np.append(np.inf, self.price)[step])


def stairs(delay: FloatArray, price: FloatArray, columns: IntArray) -> Stairs:
    """The staircase of some assignments; of equals the first in order."""
    order = np.lexsort((price, delay))
    before = np.minimum.accumulate(np.append(np.inf, price[order]))[:-1]
    kept = order[price[order] < before]
    return Stairs(delay=delay[kept], price=price[kept], columns=columns[kept])


def merged(staircase: Stairs, other: Stairs) -> Stairs:
    """The staircase of two."""
    return stairs(
        np.concatenate([staircase.delay, other.delay]),
        np.concatenate([staircase.price, other.price]),
        np.concatenate([staircase.columns, other.columns]),
    )


def no_stairs(n_slots: int) -> Stairs:
    """Nothing in hand."""
    return stairs(np.empty(0), np.empty(0), np.empty((0, n_slots), dtype=np.int64))
