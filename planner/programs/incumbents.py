"""Good assignments, fast: the incumbents that the bound screen measures everything against.

Contexts are searched in the order of their lower bounds, block by block, until a bound is beyond
what has been found. In each, every slot is thinned to its staircases (the columns that nothing
cheaper undercuts in some row), and all combinations of what remains are looked at. Where
only the objective and one row couple the slots, the context's true best is among them.
"""

from functools import reduce

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.layout import Assignment, LayoutProgram, ceiling, violations
from planner.programs.rows import Row

MOST_VISITS = 128  # contexts searched
MOST_IN_GRID = 100_000  # assignments looked at in one of them


class Incumbents:
    """The best assignments met so far, of different contexts.

    Args:
        n_best: how many of them matter.
    """

    def __init__(self, n_best: int) -> None:
        self._n_best = n_best
        self._values: list[float] = []
        self._lowest = np.empty(0)

    @property
    def good(self) -> float:
        """What the `n_best` best are no dearer than; inf while there are fewer."""
        enough = len(self._values) == self._n_best
        return ceiling(self._values[-1]) if enough else np.inf

    def search(
        self,
        program: LayoutProgram,
        rows: tuple[Row, ...],
        left: tuple[IntArray, IntArray],
        *,
        lower: FloatArray,
    ) -> Assignment | None:
        """Look through contexts that were not seen before: the best, if it is the best so far.

        Contexts are left out that cannot be among the `n_best` best, and those beyond the
        `MOST_VISITS` lowest bounds seen.

        Args:
            rows: the program's rows.
            left: the columns to look at and the group of each [J'].
            lower: lower bound of each context [K], inf where nothing can be chosen.
        """
        visits = np.argsort(lower, kind="stable")[:MOST_VISITS]
        self._lowest = np.sort(np.append(self._lowest, lower[visits]))[:MOST_VISITS]
        within = (lower[visits] <= self._lowest[-1:]) & (lower[visits] < self._worst)
        visits = visits[within]
        columns, ends = _of_contexts(program, left, visits)
        best = None
        for k in visits.tolist():
            if lower[k] >= self._worst:
                break
            here = columns[ends[k] : ends[k + 1]]
            slots = [here[program.column_slot[here] == s] for s in range(program.n_slots)]
            if not all(len(slot) for slot in slots):
                continue
            for value, assignment in _cheapest(program, rows, k, slots):
                if not self._values or value < self._values[0]:
                    best = assignment
                self._values = sorted([*self._values, value])[: self._n_best]
        return best

    @property
    def _worst(self) -> float:
        return self._values[-1] if len(self._values) == self._n_best else np.inf


def _of_contexts(
    program: LayoutProgram, left: tuple[IntArray, IntArray], visits: IntArray
) -> tuple[IntArray, IntArray]:
    """The columns of some contexts, context by context, and where those of each begin [K + 1]."""
    columns, group = left
    context = group // program.n_slots
    if len(visits) < program.n_contexts:  # sorting the columns of the others would be in vain
        visited = np.zeros(program.n_contexts, dtype=np.bool_)
        visited[visits] = True
        here = np.flatnonzero(visited[context])
        columns, context = columns[here], context[here]
    if not (context[1:] >= context[:-1]).all():
        order = np.argsort(context, kind="stable")
        columns, context = columns[order], context[order]
    return columns, np.searchsorted(context, np.arange(program.n_contexts + 1))


def _cheapest(
    program: LayoutProgram, rows: tuple[Row, ...], k: int, slots: list[IntArray]
) -> list[tuple[float, Assignment]]:
    """The cheapest combination of a context's staircases that keeps every row, if any does."""
    tight = [row for row in rows if sum(row.column[s].max() for s in slots) > row.room[k]]
    most = int(MOST_IN_GRID ** (1 / len(slots)))
    slots = [_staircases(program.column_objective, tight, slot, most) for slot in slots]

    def total(column: FloatArray) -> FloatArray:
        return np.asarray(reduce(np.add.outer, [column[slot] for slot in slots]))

    values = program.context_objective[k] + total(program.column_objective)
    for row in tight:
        values = np.where(total(row.column) <= row.room[k], values, np.inf)
    cell = np.unravel_index(int(np.argmin(values)), values.shape)
    chosen = tuple(int(slot[i]) for slot, i in zip(slots, cell, strict=True))
    best = Assignment(context=k, columns=chosen)
    if not np.isfinite(values[cell]) or violations(program, best):
        return []
    return [(float(values[cell]), best)]


def _staircases(cost: FloatArray, rows: list[Row], slot: IntArray, most: int) -> IntArray:
    """The columns that nothing cheaper undercuts in some row; every n-th of too many."""
    steps = [slot[[int(np.argmin(cost[slot]))]]]
    for row in rows:
        order = slot[np.lexsort((cost[slot], row.column[slot]))]
        before = np.minimum.accumulate(cost[order])
        steps.append(order[np.append(True, cost[order][1:] < before[:-1])])
    stair = np.unique(np.concatenate(steps))
    if len(stair) > most:
        by_cost = stair[np.argsort(cost[stair], kind="stable")]
        stair = by_cost[np.linspace(0, len(stair) - 1, most).astype(np.int64)]
    return stair
