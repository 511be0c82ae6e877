"""Screens: what cannot be in the best plans goes before a solver sees it, and nothing else.

In this order, for speed: each pass runs on what the ones before it left.

    hbm, <limit>   the column breaks the row even with the least of the other slots
    empty          the context has no column left in some slot
    bound          context or column cannot be in an assignment as good as the incumbents
    dominated      another column of the same context and slot is no worse in all that matters

Lossless means: each of the `n_best` best contexts keeps an assignment as good as its best one,
and when nothing satisfies the program, nothing satisfies what is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.incumbents import Incumbents
from planner.programs.layout import Assignment, LayoutProgram, ceiling, restrict
from planner.programs.rows import Row, dominated, least_by_group, rest_of_context, rows_of

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
        self._largest: float | None = None

    @property
    def rounding(self) -> float:
        """What sums of objectives may be off by: not nothing where they cancel."""
        if self._largest is None:
            terms = (self.program.context_objective, self.program.column_objective)
            self._largest = max(float(np.abs(values).max(initial=0.0)) for values in terms)
        return 8 * float(np.finfo(np.float64).eps) * self._largest

    @property
    def rejecting(self) -> set[str]:
        """The screens that rejected anything."""
        return {name for name, counts in self.rejected.items() if any(counts)}

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


class Sieve:
    """The screens on a program that comes block by block, each context in one of the blocks.

    What is decided within a context is decided as its block goes by. Then what is good may still
    be far from the best and dominance is still to come, so a block leaves more than is left in the
    end; `settle` does the rest over all that the blocks left.

    Args:
        incumbents: what is good so far.
        known: the objective of a plan that is known elsewhere: only better ones are kept, or as
            good ones, and there may be none.
        searches: whether better incumbents are looked for in what goes by.
    """

    def __init__(
        self, incumbents: Incumbents, *, known: float = np.inf, searches: bool = True
    ) -> None:
        self.rejected: dict[str, tuple[int, int]] = {}
        self.bound = np.inf
        self._incumbents, self._known, self._searches = incumbents, known, searches

    def sift(self, program: LayoutProgram) -> tuple[Field, Assignment | None]:
        """What a block leaves, and its best assignment, if it is the best of all blocks so far."""
        field, rows = self._within_rows(program)
        best = None
        if self._searches:
            left = field.columns, field.group
            best = self._incumbents.search(program, rows, left, lower=_lower(field))
        self.prune(field)
        return field, best

    def prune(self, field: Field) -> None:
        """Reject what is dearer than what is good by now."""
        self.bound = min(self.bound, _reject_beyond(field, self._incumbents.good))

    def settle(self, field: Field) -> None:
        """Reject what only all blocks together show."""
        rows = rows_of(field.program)
        for _ in range(MOST_ROUNDS):  # each screen sharpens the least values of the other
            n_columns = len(field.columns)
            self.prune(field)
            for row in rows:
                reject_over(field, row, rest=None)
            if len(field.columns) == n_columns:
                break
        coupling = [row.column for row in rows if not is_idle(field, row)]
        criteria = [field.of(values) for values in (field.program.column_objective, *coupling)]
        field.reject("dominated", dominated(criteria, field.group, field.n_groups))

    def count(self, field: Field) -> None:
        """Add what was rejected in a field to the account."""
        for name, (n_columns, n_contexts) in field.rejected.items():
            columns, contexts = self.rejected.get(name, (0, 0))
            self.rejected[name] = columns + n_columns, contexts + n_contexts

    def _within_rows(self, program: LayoutProgram) -> tuple[Field, tuple[Row, ...]]:
        """Without what an empty slot, the plan known elsewhere or a row by itself rejects."""
        field, rows = Field(program), rows_of(program)
        field.reject("empty", np.zeros(program.n_columns, dtype=np.bool_))
        if np.isfinite(self._known):  # first, so that the others have little to look at
            _reject_beyond(field, ceiling(self._known))
        for row in sorted(rows, key=lambda row: bool(row.column.any())):  # whole contexts first
            alone = not row.is_signed and row.column.min(initial=0.0) >= 0.0
            reject_over(field, row, rest=np.zeros(field.n_groups) if alone else None)
        return field, rows


def screen(program: LayoutProgram, *, n_best: int = 1, known: float = np.inf) -> Screening:
    """Reduce a program without losing the best assignment of any of its `n_best` best contexts.

    Args:
        program: all its values finite, capacities and limits aside.
        n_best: how many contexts must survive with their best, for runners-up.
        known: see `Sieve`.
    """
    sieve = Sieve(Incumbents(n_best), known=known)
    field, incumbent = sieve.sift(program)
    sieve.settle(field)
    sieve.count(field)
    contexts = np.flatnonzero(field.contexts)
    return Screening(
        program=restrict(program, contexts=contexts, columns=field.columns),
        contexts=contexts,
        columns=field.columns,
        rejected=sieve.rejected,
        bound=float(sieve.bound),
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
    # the most that any combination comes to; a row that holds then couples nothing
    most = -field.least(-row.column).reshape(-1, field.program.n_slots).sum(axis=1)
    return bool((most <= row.room)[field.contexts].all())


def _lower(field: Field) -> FloatArray:
    """No assignment of a context is better than this [K]."""
    least = field.least(field.program.column_objective).reshape(-1, field.program.n_slots)
    return np.asarray(field.program.context_objective + least.sum(axis=1))


def _reject_beyond(field: Field, good: float) -> float:
    """Reject columns whose best assignment is dearer than `good`; the cheapest of those."""
    program = field.program
    rest = rest_of_context(field.least(program.column_objective), program.n_slots)
    rest += np.repeat(program.context_objective, program.n_slots)
    reach = field.of(program.column_objective) + rest[field.group]
    beyond = reach > good + field.rounding
    cheapest = float(reach[beyond].min(initial=np.inf))
    field.reject("bound", beyond)
    return cheapest
