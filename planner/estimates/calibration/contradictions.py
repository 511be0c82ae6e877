"""Rows that took longer than larger ones of the same kind: they timed something besides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import BoolArray, FloatArray


def slower_than_larger(
    kind: Sequence[ArrayLike], size: ArrayLike, seconds: FloatArray, *, factor: float = 1.5
) -> BoolArray:
    """Which rows took more than `factor` of the time of some row that only does more (N,).

    >>> slower_than_larger([[0, 0, 0]], [1, 2, 3], np.array([9.0, 2.0, 3.0])).tolist()
    [True, False, False]
    """
    codes = [np.unique(np.asarray(one), return_inverse=True)[1].reshape(-1) for one in kind]
    order = np.lexsort((-np.asarray(size, dtype=float), *codes))
    sorted_codes = np.stack([code[order] for code in codes])
    starts = np.flatnonzero(np.any(np.diff(sorted_codes, axis=1) != 0, axis=0)) + 1
    least = np.concatenate(
        [np.minimum.accumulate(part) for part in np.split(seconds[order], starts)]
    )
    found = np.zeros(len(order), dtype=bool)
    found[order] = seconds[order] > factor * least
    return found
