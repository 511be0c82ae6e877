"""Assignments that are best in two quantities at once, in order: a staircase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.programs.layout import FloatArray, IntArray


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
