"""What no placement of experts can beat, by counting; `solvers.experts.patterns` proves more.

    mean    the fullest rank has no less than the mean
    copies  within T an expert needs ⌈load / T⌉ copies, and there are only so many slots

Both hold however copies share their load.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.experts import ExpertProgram

_BISECTIONS = 80  # of a float: to the last bit
_SLACK = 1e-12  # a bound may not be too high by a rounding


def simple_bound(program: ExpertProgram) -> float:
    """The largest of the bounds by counting, in units of load."""
    return max(mean_bound(program), copies_bound(program))


def mean_bound(program: ExpertProgram) -> float:
    """The mean load of a rank; within groups, the load of a group on a whole node."""
    least = program.mean_load
    if program.group is not None:
        width = program.n_ranks // program.n_nodes
        by_group = np.bincount(program.group, weights=program.load)
        least = max(least, float(by_group.max()) / width)
    return least * (1.0 - _SLACK)


def copies_bound(program: ExpertProgram) -> float:
    """The least T for which Σ_e max(1, ⌈load_e / T⌉) copies find slots."""

    def fits(at_most: float) -> bool:
        return int(least_copies(program.load, at_most).sum()) <= program.n_all_slots

    return _least(fits, float(program.load.max(initial=0.0)))


def least_copies(load: FloatArray, at_most: float) -> IntArray:
    """Copies that each expert needs so that none of them exceeds a load [E]."""
    if at_most <= 0.0:
        return np.where(load > 0.0, np.iinfo(np.int32).max, 1).astype(np.int64)
    needed = np.ceil(load / at_most * (1.0 - _SLACK))
    return np.maximum(1, np.minimum(needed, np.iinfo(np.int32).max)).astype(np.int64)


def _least(fits: Callable[[float], bool], high: float) -> float:
    """The edge of a monotone test, from below."""
    low = 0.0
    if fits(low) or not fits(high):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if fits(middle):
            high = middle
        else:
            low = middle
    return low * (1.0 - _SLACK)
