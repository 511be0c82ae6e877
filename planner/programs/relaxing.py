"""By how much limits have to yield: of each set of them the least sum of shares.

A limit is loosened by a share: a most that doubles by 1, and a least that is halved by 1, too. One
that a choice keeps is not loosened, whatever the choice leaves of it. What a choice comes
to is a sum over its columns, so of each slot only the columns are looked at that no other is as
good as in every limited quantity and in memory, and of these all combinations.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.amounts import REPLICA_SLOT
from planner.programs.blocks import BlockProgram, Objective, ProgramBlocks
from planner.programs.rows import dominated, least_by_group, rest_of_context, rows_of
from planner.programs.screens import Field, reject_over
from planner.quantities.table import MS, QUANTITIES
from planner.running.deadlines import is_over, out_of_time
from planner.specs.ask.targets import Targets

ROUNDING = 1e-9
"""Share by which a limit that is kept may be off: what rows tolerate."""

FIRST_AT_ONCE, MOST_AT_ONCE = 1 << 14, 1 << 20
"""Combinations of columns that are looked at together: few until something is known."""

Amounts = Mapping[str, FloatArray]
"""Of some choices what each comes to, by quantity."""

CREDITED = {"demand", "cost"}
"""Limits that are no sum over choices where replicas serve a demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What limits have to become so that there is a plan.

    Args:
        price: sum of the shares by which they are loosened [1].
        needed: of each limit that changes, SI.
    """

    price: float
    needed: Mapping[str, float]

    def rounded(self) -> dict[str, float]:
        """The limits in few digits, to the side that has the plan."""
        limits = {name: QUANTITIES[name].relaxed(value) for name, value in self.needed.items()}
        if limits.keys() >= CREDITED:  # the same rent for less that is served
            rent_per_s = self.needed["cost"] * self.needed["demand"]
            limits["cost"] = QUANTITIES["cost"].relaxed(rent_per_s / limits["demand"])
        return limits


Changes = dict[frozenset[str], Change]
"""Of sets of limits."""


def least_changes(source: Callable[[Objective], ProgramBlocks], targets: Targets) -> Changes:
    """The cheapest change of each set of limits in which all of the set, and no other, yield.

    Sets may be left out of which a part is as cheap.

    Args:
        source: the program of an aim.
        targets: that are asked for.

    Raises:
        OutOfTimeError: time ended before all of it was looked through.
    """
    without = tuple(name for name in targets.limits() if name != "demand")  # of many replicas
    program = source(Objective(objective="cost", without=without))
    best: Changes = {}
    for posed in program.blocks():
        _Looking(posed, targets, best).to_end()
    if program.is_cut:
        raise out_of_time()
    return best


class _Looking:
    """The columns of a block that may matter, and the best changes of all blocks."""

    def __init__(self, posed: BlockProgram, targets: Targets, best: Changes) -> None:
        self._posed, self._targets, self._best = posed, targets, best
        program = posed.program
        self._names, self._field = sorted(_counted(targets)), Field(program)
        self._rows = tuple(row for row in rows_of(program) if row.name != "demand")
        field = self._field
        if targets.n_replicas is not None:  # exactly so many are asked for, and more are no change
            is_number = program.column_slot == program.slots.index(REPLICA_SLOT)
            field.reject("replicas", is_number & (posed.batch > targets.n_replicas))
        for row in self._rows:
            reject_over(field, row, rest=None)
        columns = [posed.quantities[name][1] for name in self._names]
        criteria = [field.of(it) for it in (*columns, *(row.column for row in self._rows))]
        field.reject("dominated", dominated(criteria, field.group, field.n_groups))

    def to_end(self) -> None:
        """Look at all combinations that may be better than what is known, the likely ones first."""
        most = FIRST_AT_ONCE
        while len(self._field.columns):
            if is_over():
                raise out_of_time()
            price = self._without_hopeless()
            if len(price):
                looked_at, done = self._next(price, most)
                self._look_at(looked_at)
                self._field.reject("looked at", done)
            most = MOST_AT_ONCE

    def _without_hopeless(self) -> FloatArray:
        """The least price of each column that is left, without those that no set needs.

        A choice with a column yields no less, and no fewer limits, than the least of its context.
        """
        field, least = self._field, {}
        for name in self._names:
            context, column = self._posed.quantities[name]
            rest = rest_of_context(field.least(column), field.program.n_slots)
            least[name] = field.of(column) + rest[field.group]
            least[name] += context[field.group // field.program.n_slots]
        shares = _shares(_values(least, self._targets), self._targets)
        names, price = list(self._targets.limits()), shares.sum(axis=0)
        hopeless = np.zeros(len(price), dtype=np.bool_)
        for yielding, change in self._best.items():
            rows = [names.index(name) for name in yielding]
            hopeless |= (shares[rows] > 0.0).all(axis=0) & (price >= change.price)
        of_column = np.full(field.program.n_columns, np.inf)
        of_column[field.columns] = price
        field.reject("bound", hopeless)
        return of_column[field.columns]

    def _next(self, price: FloatArray, most: int) -> tuple[BoolArray, BoolArray]:
        """Columns to combine next, and those of which then all combinations were looked at."""
        field, n_slots = self._field, self._field.program.n_slots
        context = field.group // n_slots
        first = least_by_group(price, context, field.program.n_contexts)
        order = np.argsort(first, kind="stable")
        counts = np.bincount(field.group, minlength=field.n_groups).reshape(-1, n_slots)
        together = np.cumsum(counts[order].prod(axis=1))
        taken = order[: max(1, int(np.searchsorted(together, most, side="right")))]
        here = np.isin(context, taken)
        if together[0] <= most:
            return here, here
        largest = taken[0] * n_slots + counts[taken[0]].argmax()  # of one context some at a time
        places = np.flatnonzero(field.group == largest)
        n_some = max(1, most * len(places) // int(together[0]))
        done = np.zeros(len(price), dtype=np.bool_)
        done[places[np.argsort(price[places], kind="stable")[:n_some]]] = True
        return done | here & (field.group != largest), done

    def _look_at(self, looked_at: BoolArray) -> None:
        field = self._field
        context, columns = _combinations(
            field.columns[looked_at], field.group[looked_at], field.program.n_slots
        )
        fits = np.ones(len(context), dtype=np.bool_)
        for row in self._rows:
            fits &= row.column[columns].sum(axis=1) <= row.room[context]
        context, columns = context[fits], columns[fits]
        quantities = {name: self._posed.quantities[name] for name in self._names}
        amounts = {
            name: of_context[context] + of_column[columns].sum(axis=1)
            for name, (of_context, of_column) in quantities.items()
        }
        for names, change in _cheapest(_values(amounts, self._targets), self._targets):
            if names not in self._best or change.price < self._best[names].price:
                self._best[names] = change


def _cheapest(values: Amounts, targets: Targets) -> Iterator[tuple[frozenset[str], Change]]:
    """Of each set of limits that choices break the cheapest change."""
    names, shares = list(targets.limits()), _shares(values, targets)
    price, sets = shares.sum(axis=0), (shares > 0.0).T @ (1 << np.arange(len(names)))
    order = np.lexsort((price, sets))
    for place in order[np.unique(sets[order], return_index=True)[1]].tolist():
        yielding = [names[i] for i in np.flatnonzero(shares[:, place])]
        needed = {name: float(values[name][place]) for name in yielding}
        yield frozenset(yielding), Change(price=float(price[place]), needed=needed)


def _shares(values: Amounts, targets: Targets) -> FloatArray:
    """By which share each limit has to be loosened, (L, N); nothing where it is kept."""
    ratios = [
        limit / values[name] if QUANTITIES[name].is_least else values[name] / limit
        for name, limit in targets.limits().items()
    ]
    shares = np.stack(ratios) - 1.0
    return np.where(shares > ROUNDING, shares, 0.0)


def _values(amounts: Amounts, targets: Targets) -> Amounts:
    """What limits are put on, SI; of a demand what is served of it, by which rent is divided."""
    limits = targets.limits()
    credited = CREDITED if "demand" in limits else set()
    values = {
        name: amounts[of.program] * ((-1.0 if of.is_least else 1.0) / of.scale)
        for name, of in QUANTITIES.items()
        if name in limits and name not in credited
    }
    if credited:
        most_per_s = -amounts["replicas"] / amounts["throughput"] * MS * targets.max_utilisation
        values["demand"] = np.minimum(most_per_s, limits["demand"])
        values["cost"] = amounts["rent"] / 3600.0 / values["demand"]
    return values


def _counted(targets: Targets) -> set[str]:
    """Quantities of a program that decide whether limits hold; less of each is no worse."""
    names = {QUANTITIES[name].program for name in targets.limits()}
    if "demand" in names:
        names = names - CREDITED | {"replicas", "throughput", "rent"}
    return names


def _combinations(columns: IntArray, group: IntArray, n_slots: int) -> tuple[IntArray, IntArray]:
    """All combinations of columns within their contexts: contexts, (N,), and columns, (N, S)."""
    order = np.argsort(group, kind="stable")
    columns, group = columns[order], group[order]
    context = np.unique(group // n_slots)
    chosen = np.empty((len(context), 0), dtype=np.int64)
    for slot in range(n_slots):
        first = np.searchsorted(group, context * n_slots + slot)
        count = np.searchsorted(group, context * n_slots + slot, side="right") - first
        which = np.repeat(np.arange(len(context)), count)
        place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        context = context[which]
        chosen = np.column_stack([chosen[which], columns[first[which] + place]])
    return context, chosen
