"""Columns that another one of the same context and slot makes superfluous.

Column p dominates j when it is no worse in the objective and in every row that still couples
the slots: then any assignment with j stays within its rows, and no dearer, with p instead.
Of equal columns the one with the smallest index stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.programs.layout import BoolArray, FloatArray, IntArray
from planner.programs.rows import first_least

MANY = 20_000  # columns from which pivots go before the exact filter, which sorts


def dominated(criteria: list[FloatArray], group: IntArray, n_groups: int) -> BoolArray:
    """Which columns another one dominates [J].

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


def merged(one: Stairs, other: Stairs) -> Stairs:
    """The staircase of two."""
    return stairs(
        np.concatenate([one.delay, other.delay]),
        np.concatenate([one.price, other.price]),
        np.concatenate([one.columns, other.columns]),
    )


def no_stairs(n_slots: int) -> Stairs:
    """Nothing in hand."""
    return stairs(np.empty(0), np.empty(0), np.empty((0, n_slots), dtype=np.int64))
