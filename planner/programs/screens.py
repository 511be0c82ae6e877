"""Screens: what cannot be in the best plans goes before a solver sees it, and nothing else.

In this order, for speed: each pass runs on what the ones before it left.

    hbm, <limit>   the column breaks the row even with the least of the other slots
    empty          the context has no column left in some slot
    bound          context or column cannot be in an assignment as good as the incumbents
    dominated      another column of the same context and slot is no worse in all that matters

Lossless means: each of the `n_best` best contexts keeps an assignment as good as its best one,
and when nothing satisfies the program, nothing satisfies what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.programs.dominance import dominated
from planner.programs.incumbents import incumbents
from planner.programs.layout import (
    Assignment,
    BoolArray,
    FloatArray,
    IntArray,
    LayoutProgram,
    ceiling,
    restrict,
)
from planner.programs.rows import Row, least_by_group, rest_of_context, rows_of

MOST_ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Screening:
    """What is left of a program, and the account of what is not.

    Args:
        program: the reduced program.
        contexts, columns: original index of each that is left [K'], [J'].
        rejected: for each screen the columns and the contexts it rejected; together with
            what is left they add up to the original.
        bound: no assignment that the bound screen rejected is better; inf if it rejected none.
            What the other screens rejected breaks a row, or has an equal that stayed.
        incumbent: the best assignment met on the way, in original indices, verified.
    """

    program: LayoutProgram
    contexts: IntArray
    columns: IntArray
    rejected: Mapping[str, tuple[int, int]]
    bound: float
    incumbent: Assignment | None

    def original(self, assignment: Assignment) -> Assignment:
        """An assignment of the reduced program in the original's indices."""
        return Assignment(
            context=int(self.contexts[assignment.context]),
            columns=tuple(int(self.columns[j]) for j in assignment.columns),
        )


class Field:
    """The columns and contexts that are left, and the tally of those that are not."""

    def __init__(self, program: LayoutProgram) -> None:
        self.program = program
        self.columns: IntArray = np.arange(program.n_columns)
        self.group = program.column_context * program.n_slots + program.column_slot
        self.n_groups = program.n_contexts * program.n_slots
        self.contexts: BoolArray = np.ones(program.n_contexts, dtype=np.bool_)
        self.rejected: dict[str, tuple[int, int]] = {}

    def of(self, values: FloatArray) -> FloatArray:
        """A column array on the columns that are left."""
        whole = len(self.columns) == len(values)
        return values if whole else np.asarray(values[self.columns])

    def least(self, values: FloatArray) -> FloatArray:
        """The smallest value of each group [G] among the columns that are left."""
        return least_by_group(self.of(values), self.group, self.n_groups)

    def reject(self, screen: str, gone: BoolArray) -> None:
        """Drop columns [of those left], and every context that lacks a slot then."""
        stay = np.flatnonzero(~gone)
        group = self.group[stay]
        table = np.bincount(group, minlength=self.n_groups).reshape(-1, self.program.n_slots)
        whole = np.asarray((table > 0).all(axis=1))
        if table[~whole].any():
            kept = np.flatnonzero(np.repeat(whole, self.program.n_slots)[group])
            stay, group = stay[kept], group[kept]
        n_columns, n_contexts = self.rejected.get(screen, (0, 0))
        n_columns += len(gone) - len(stay)
        n_contexts += int(np.count_nonzero(self.contexts)) - int(np.count_nonzero(whole))
        self.rejected[screen] = n_columns, n_contexts
        self.contexts = whole
        if len(stay) < len(gone):
            first = len(gone) == self.program.n_columns
            self.columns, self.group = (stay if first else self.columns[stay]), group


def screen(program: LayoutProgram, *, n_best: int = 1, known: float = np.inf) -> Screening:
    """Reduce a program without losing the best assignment of any of its `n_best` best contexts.

    Args:
        program: all its values finite, capacities and limits aside.
        n_best: how many contexts must survive with their best, for runners-up.
        known: the objective of a plan that is known elsewhere: only better ones are kept, or as
            good ones, and there may be none.
    """
    field = Field(program)
    rows = rows_of(program)
    field.reject("empty", np.zeros(program.n_columns, dtype=np.bool_))
    if np.isfinite(known):  # first, so that the others have little to look at
        _reject_beyond(field, ceiling(known))
    for row in sorted(rows, key=lambda row: bool(row.column.any())):  # whole contexts first
        alone = row.column.min(initial=0.0) >= 0.0
        reject_over(field, row, rest=np.zeros(field.n_groups) if alone else None)
    incumbent, good = _good(field, rows, n_best)
    bound = np.inf
    for _ in range(MOST_ROUNDS):  # each screen sharpens the least values of the other
        n_columns = len(field.columns)
        bound = min(bound, _reject_beyond(field, good))
        for row in rows:
            reject_over(field, row, rest=None)
        if len(field.columns) == n_columns:
            break
    criteria = [program.column_objective, *(r.column for r in rows if not is_idle(field, r))]
    gone = dominated([field.of(values) for values in criteria], field.group, field.n_groups)
    field.reject("dominated", gone)
    contexts = np.flatnonzero(field.contexts)
    return Screening(
        program=restrict(program, contexts=contexts, columns=field.columns),
        contexts=contexts,
        columns=field.columns,
        rejected=field.rejected,
        bound=float(bound),
        incumbent=incumbent,
    )


def reject_over(field: Field, row: Row, *, rest: FloatArray | None) -> None:
    """Columns that break the row together with the least of the other slots.

    Args:
        rest: that least [G], where a smaller one is known without looking: zero, where
            nothing is negative.
    """
    if rest is None:
        rest = rest_of_context(field.least(row.column), field.program.n_slots)
    with np.errstate(invalid="ignore"):  # a context without columns has no rest
        room = np.repeat(row.room, field.program.n_slots) - rest
    if room.size and room.min() == room.max():
        field.reject(row.name, field.of(row.column) > room[0])
    else:
        field.reject(row.name, field.of(row.column) > room[field.group])


def is_idle(field: Field, row: Row) -> bool:
    """Whether nothing that is left can break the row, whatever is combined."""
    most = -field.least(-row.column).reshape(-1, field.program.n_slots).sum(axis=1)
    return bool((most <= row.room)[field.contexts].all())


def _good(field: Field, rows: tuple[Row, ...], n_best: int) -> tuple[Assignment | None, float]:
    """The best assignment of a quick search, and what the `n_best` best are no dearer than."""
    left = field.columns, field.group
    found = incumbents(field.program, rows, left, lower=_lower(field), n_best=n_best)
    good = ceiling(found[n_best - 1][0]) if len(found) >= n_best else np.inf
    return (found[0][1] if found else None), good


def _lower(field: Field) -> FloatArray:
    """No assignment of a context is better than this [K]."""
    least = field.least(field.program.column_objective).reshape(-1, field.program.n_slots)
    return np.asarray(field.program.context_objective + least.sum(axis=1))


def _rounding(program: LayoutProgram) -> float:
    """What sums of objectives may be off by: not nothing where they cancel."""
    terms = (program.context_objective, program.column_objective)
    largest = max(float(np.abs(values).max(initial=0.0)) for values in terms)
    return 8 * float(np.finfo(np.float64).eps) * largest


def _reject_beyond(field: Field, good: float) -> float:
    """Reject columns whose best assignment is dearer than `good`; the cheapest of those."""
    program = field.program
    rest = rest_of_context(field.least(program.column_objective), program.n_slots)
    rest += np.repeat(program.context_objective, program.n_slots)
    reach = field.of(program.column_objective) + rest[field.group]
    beyond = reach > good + _rounding(program)
    cheapest = float(reach[beyond].min(initial=np.inf))
    field.reject("bound", beyond)
    return cheapest
