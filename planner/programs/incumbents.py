"""Good assignments, fast: the incumbents that the bound screen measures everything against.

Contexts are searched in the order of their lower bounds, until a bound is beyond what has
been found. In each, every slot is thinned to its staircases (the columns that nothing
cheaper undercuts in some row), and all combinations of what remains are looked at. Where
only the objective and one row couple the slots, the context's true best is among them.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from planner.programs.layout import (
    Assignment,
    FloatArray,
    IntArray,
    LayoutProgram,
    ceiling,
    violations,
)
from planner.programs.rows import Row

MOST_VISITS = 128  # contexts searched
MOST_IN_GRID = 100_000  # assignments looked at in one of them


def incumbents(
    program: LayoutProgram,
    rows: tuple[Row, ...],
    left: tuple[IntArray, IntArray],
    *,
    lower: FloatArray,
    n_best: int,
) -> list[tuple[float, Assignment]]:
    """Verified assignments of different contexts, best first.

    Args:
        rows: the program's rows.
        left: the columns to look at and the group of each [J'].
        lower: lower bound of each context [K], inf where nothing can be chosen.
        n_best: the search ends when no other context can be among so many.
    """
    columns, group = left
    context = group // program.n_slots
    visits = np.argsort(lower, kind="stable")[:MOST_VISITS]
    if len(visits) < program.n_contexts:  # sorting the columns of the others would be in vain
        visited = np.zeros(program.n_contexts, dtype=np.bool_)
        visited[visits] = True
        here = np.flatnonzero(visited[context])
        columns, context = columns[here], context[here]
    if not (context[1:] >= context[:-1]).all():
        order = np.argsort(context, kind="stable")
        columns, context = columns[order], context[order]
    ends = np.searchsorted(context, np.arange(program.n_contexts + 1))
    found: list[tuple[float, Assignment]] = []
    for k in visits.tolist():
        if lower[k] > (ceiling(found[n_best - 1][0]) if len(found) >= n_best else np.inf):
            break
        here = columns[ends[k] : ends[k + 1]]
        slots = [here[program.column_slot[here] == s] for s in range(program.n_slots)]
        if all(len(slot) for slot in slots):
            found += _cheapest(program, rows, k, slots)
            found.sort()
    return found


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
