"""What is best in two quantities at once: screens on columns, and good assignments.

A *trade-off* is a layout program, whose objective is the *price*, and a *delay* that is linear
in contexts and columns too. An assignment is *dominated* when another one is no worse in both
and better in one; the others are the *frontier*, a staircase. `narrowing` says in which order
these screens go.
"""

from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.blocks import BlockProgram
from planner.programs.layout import RELATIVE_TOLERANCE, Assignment, LayoutProgram, Limit, objective
from planner.programs.rows import (
    Row,
    Stairs,
    dominated,
    first_least,
    merged,
    no_stairs,
    rest_of_context,
    stairs,
)
from planner.programs.screens import Field

MOST_IN_GRID = 2_000_000  # assignments of a context that are looked at together
MOST_ROUNDS = 5
DELAY = "delay"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tradeoff:
    """A program and a second quantity to keep small.

    Args:
        program: its objective is the price, which is positive.
        context_delay: the delay of each context [K], in a unit as harmless as the program's.
        column_delay: what each column adds to it [J], not negative.

    Raises:
        ValueError: columns of more than one slot add to the delay.
    """

    program: LayoutProgram
    context_delay: FloatArray
    column_delay: FloatArray

    def __post_init__(self) -> None:
        slots = self._slots()
        if len(slots) > 1:
            raise ValueError(f"columns of {len(slots)} slots add to the delay")

    @property
    def slot(self) -> int:
        """The one slot whose columns add to the delay."""
        return next(iter(self._slots()), 0)

    def _slots(self) -> list[int]:
        counts = np.bincount(self.program.column_slot[self.column_delay != 0])
        return [int(slot) for slot in np.flatnonzero(counts)]

    def price(self, assignment: Assignment) -> float:
        return objective(self.program, assignment)

    def delay(self, assignment: Assignment) -> float:
        columns = self.column_delay[list(assignment.columns)]
        return float(self.context_delay[assignment.context] + columns.sum())

    def within(self, at_most: float) -> LayoutProgram:
        """The program with the delay as a limit."""
        limit = Limit(
            name=DELAY, context=self.context_delay, column=self.column_delay, at_most=at_most
        )
        return replace(self.program, limits=(*self.program.limits, limit))


def tradeoff_of(posed: BlockProgram, delay: str) -> Tradeoff:
    """A posed program and one of its quantities as the delay."""
    context, column = posed.quantities[delay]
    return Tradeoff(program=posed.program, context_delay=context, column_delay=column)


def reject_dominated(field: Field, tradeoff: Tradeoff, coupling: list[Row]) -> None:
    """Slot by slot, since what says nothing about a slot would only hide what is exact."""
    program = tradeoff.program
    gone = np.zeros(len(field.columns), dtype=np.bool_)
    slot = field.group % program.n_slots
    for s in range(program.n_slots):
        here = np.flatnonzero(slot == s)
        if len(here):
            every = (tradeoff.column_delay, *(row.column for row in coupling))
            criteria = [field.of(values)[here] for values in every]
            told = [values for values in criteria if values.min() < values.max()]
            price = field.of(program.column_objective)[here]
            gone[here] = dominated([price, *told], field.group[here], field.n_groups)
    field.reject("dominated", gone)


def companies(
    field: Field, tradeoff: Tradeoff, rows: tuple[Row, ...], coupling: list[Row]
) -> Stairs:
    """Each column with, in the other slots, the least in one quantity: of price, delay, a row."""
    program = tradeoff.program
    n_slots = program.n_slots
    staircases = [no_stairs(n_slots)]
    favourites = (program.column_objective, tradeoff.column_delay)
    for favourite in (*favourites, *(row.column for row in coupling)):
        first = first_least(field.of(favourite), field.group, field.n_groups)
        chosen = first.reshape(-1, n_slots)[field.group // n_slots]
        chosen[np.arange(len(chosen)), field.group % n_slots] = np.arange(len(chosen))
        staircases.append(_kept(field.columns[chosen], tradeoff, rows))
    return reduce(merged, staircases)


def _kept(columns: IntArray, tradeoff: Tradeoff, rows: tuple[Row, ...]) -> Stairs:
    """The staircase of those assignments that keep every row (P, S)."""
    program = tradeoff.program
    context = program.column_context[columns[:, 0]]
    fits = np.ones(len(columns), dtype=np.bool_)
    for row in rows:
        fits &= row.column[columns].sum(axis=1) <= row.room[context]
    columns, context = columns[fits], context[fits]
    price = program.context_objective[context] + program.column_objective[columns].sum(axis=1)
    delay = tradeoff.context_delay[context] + tradeoff.column_delay[columns].sum(axis=1)
    return stairs(delay, price, columns)


def grids(field: Field, tradeoff: Tradeoff, rows: tuple[Row, ...]) -> Stairs:
    """Every combination of the columns that are left, context by context."""
    program = tradeoff.program
    order = np.argsort(field.group, kind="stable")
    ends = np.searchsorted(field.group[order], np.arange(field.n_groups + 1))
    staircase = no_stairs(program.n_slots)
    for k in np.flatnonzero(field.contexts).tolist():
        groups = range(k * program.n_slots, (k + 1) * program.n_slots)
        slots = [field.columns[order[ends[g] : ends[g + 1]]] for g in groups]
        staircase = merged(staircase, _grid(k, _thinned(slots), tradeoff, rows))
    return staircase


def _thinned(slots: list[IntArray]) -> list[IntArray]:
    """Evenly thinned where the combinations would be too many: fewer in hand, none lost."""
    share = (MOST_IN_GRID / prod(len(slot) for slot in slots)) ** (1 / len(slots))
    if share >= 1:
        return slots
    sizes = [max(1, int(len(slot) * share)) for slot in slots]
    return [
        slot[np.linspace(0, len(slot) - 1, size).astype(np.int64)]
        for slot, size in zip(slots, sizes, strict=True)
    ]


def _grid(k: int, slots: list[IntArray], tradeoff: Tradeoff, rows: tuple[Row, ...]) -> Stairs:
    """The staircase of a context's combinations; first over the slots that add no delay."""
    program = tradeoff.program
    adds = [bool(np.ptp(tradeoff.column_delay[slot])) for slot in slots]
    slots_by_delay = sorted(range(len(slots)), key=lambda s: not adds[s])
    ordered = [slots[s] for s in slots_by_delay]

    def total(column: FloatArray) -> FloatArray:
        grid = reduce(np.add.outer, [column[slot] for slot in ordered])
        return np.asarray(grid).reshape(prod(len(slots[s]) for s in slots_by_delay if adds[s]), -1)

    price = total(program.column_objective)
    for row in rows:
        price = np.where(total(row.column) <= row.room[k], price, np.inf)
    best = price.argmin(axis=1)
    fits = np.flatnonzero(np.isfinite(price[np.arange(len(price)), best]))
    cells = np.unravel_index(fits * price.shape[1] + best[fits], [len(slot) for slot in ordered])
    columns = np.empty((len(fits), len(slots)), dtype=np.int64)
    for s, slot, cell in zip(slots_by_delay, ordered, cells, strict=True):
        columns[:, s] = slot[cell]
    return _kept(columns, tradeoff, rows)


def reject_beyond(field: Field, tradeoff: Tradeoff, in_hand: Stairs) -> None:
    """Until no column goes any more: those that go raise the least of the others."""
    program = tradeoff.program
    for _ in range(MOST_ROUNDS):
        price = field.of(program.column_objective) + _rest(
            field, program.column_objective, program.context_objective
        )
        delay = field.of(tradeoff.column_delay) + _rest(
            field, tradeoff.column_delay, tradeoff.context_delay
        )
        known = in_hand.price_at(delay)
        beyond = price > known + RELATIVE_TOLERANCE * np.abs(known)
        field.reject("bound", beyond)
        if not beyond.any():
            break


def _rest(field: Field, column: FloatArray, context: FloatArray) -> FloatArray:
    """For each column that is left, its context and the least of the other slots."""
    n_slots = field.program.n_slots
    rest = rest_of_context(field.least(column), n_slots) + np.repeat(context, n_slots)
    return np.asarray(rest[field.group])
