"""One phase by itself, on devices of its own: the columns of a slot that none outdoes.

A replica that does one phase holds what that phase holds, and keeps the limits of that phase. So
the columns of the other slot, the rows of the memory that both share, and the limits on the other
slot do not bind it: what is left of a program is its columns, each of which fits by itself.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from planner.programs.contexts import SHARED
from planner.programs.layout import FloatArray, IntArray, LayoutProgram, ceiling
from planner.programs.posed import PosedProgram, Source, joined
from planner.running.deadlines import is_over


class Choosing(Protocol):
    """Which of some columns no other of their group outdoes: places among them, ascending."""

    def __call__(self, posed: PosedProgram, columns: IntArray, group: IntArray) -> IntArray: ...


def chosen_of_slot(source: Source, slot: int, choosing: Choosing) -> PosedProgram:
    """Of each context the columns of one slot that are worth something, while there is time."""
    parts: list[PosedProgram] = []
    for posed in source.blocks():
        if parts and is_over():
            break
        columns = _keeping(posed.program, slot)
        context = posed.program.column_context[columns]
        columns = columns[choosing(posed, columns, context)]
        contexts = np.unique(posed.program.column_context[columns])
        parts.append(posed.take(contexts=contexts, columns=columns))
    return joined(parts)


def least(group: IntArray, *values: FloatArray) -> IntArray:
    """The place of the least of each group by the first value, of equals by the next; ascending.

    >>> least(np.array([0, 0, 1, 1]), np.array([2.0, 1.0, 1.0, 1.0]), np.array([0.0, 0, 5, 4]))
    array([1, 3])
    """
    order = np.lexsort([*reversed(values), group])
    sorted_groups = group[order]
    return np.sort(order[np.flatnonzero(np.diff(sorted_groups, prepend=-1))])


def pareto(group: IntArray, first: FloatArray, second: FloatArray) -> IntArray:
    """Places where none of the group is less in one value and no more in the other; ascending.

    Of equals in both the first stays.

    >>> pareto(np.array([0, 0, 0, 1]), np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 4, 9]))
    array([0, 2, 3])
    """
    order = np.lexsort([second, first, group])
    _, rank = np.unique(second[order], return_inverse=True)
    # every rank of a group is below all of the group before it, so that one pass does for all
    step = len(rank) + 1
    value = rank.reshape(-1) + (group[order].max(initial=0) - group[order]) * step
    before = np.minimum.accumulate(value)
    is_less = value[1:] < before[:-1]
    return np.sort(order[np.concatenate([[True] * (len(value) > 0), is_less]).astype(np.bool_)])


def _keeping(program: LayoutProgram, slot: int) -> IntArray:
    """Columns of a slot that keep the limits on it by themselves, ascending."""
    columns = np.flatnonzero(program.column_slot == slot)
    kept = np.ones(len(columns), dtype=np.bool_)
    context = program.column_context[columns]
    for limit in program.limits:
        mine = limit.column[columns]
        if limit.name in SHARED or not (mine.any() or limit.context.any()):
            continue
        kept &= limit.context[context] + mine <= ceiling(limit.at_most)
    return columns[kept]
