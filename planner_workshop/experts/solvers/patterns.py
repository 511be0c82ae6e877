"""Bounds from patterns of ranks: a linear program over what a rank may hold within T.

Let an expert with n copies be n items of load_e / n. Within T, a rank holds a *pattern* of at
most `n_slots` items that add up to T or less. A fractional choice of counts and patterns,

    minimise   Σ_p y_p
    such that  slots of patterns hold the items, class by class, larger before smaller
               Σ_n λ_en = 1  ∀ e,   y, λ ≥ 0,

that needs more than G patterns proves that no placement is within T. Its dual is a value h of
each item, not falling with its load, of which no pattern has more than 1:

    Σ_e min_n n h(load_e / n) > G  refutes T.

This check alone is what is claimed: h is scaled by the best pattern found by a dynamic program
over the whole grid, so no tolerance of the LP's solver can spoil it. Loads are rounded down to
a grid of T / `n_steps` for bounds, up for patterns that are used. Patterns and counts come into
the program when their reduced costs call for them (column generation).

Two copies of an expert may share a rank, as in `planner_workshop.experts.program`.

Source: column generation for patterns of stock, [Gilmore1961].
"""

import math
import time
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.solvers.highs_run import run_highs
from planner_workshop.experts.program import ExpertProgram, least_copies

USUAL_STEPS = 2_000
MOST_ROUNDS = 200
_SLACK = 1e-9
_NEGLIGIBLE = 1e-12
_FIRST_COUNTS = 3  # counts of an expert that the program begins with

Pattern = tuple[int, ...]


class Verdict(Enum):
    """What the linear program says of a load T."""

    REFUTED = "no placement is within it"
    OPEN = "fractional patterns are within it"
    UNKNOWN = "the rounds ended before either"


@dataclass(slots=True, kw_only=True, eq=False)
class Items:
    """Copies of experts as items on a grid, at one T.

    Args:
        counts: counts that each expert may have, from the least [E, X].
        place: class of such a copy [E, X].
        steps: grid steps of each class, ascending [K].
        n_steps: grid steps of T.
    """

    counts: IntArray
    place: IntArray
    steps: IntArray
    n_steps: int

    @property
    def n_classes(self) -> int:
        return len(self.steps)


@dataclass(slots=True, kw_only=True, eq=False)
class Pool:
    """Columns that a linear program has come to."""

    items: Items
    patterns: dict[Pattern, None] = field(default_factory=dict)
    choices: dict[tuple[int, int], None] = field(default_factory=dict)  # expert, column of counts


def items_within(program: ExpertProgram, at_most: float, *, up: bool) -> Items | None:
    """Every count that an expert may have within a load T, as classes of items.

    Args:
        up: whether to round loads up, for patterns that are used; else down, for bounds.

    Returns:
        None where the least counts alone need more slots than there are.
    """
    load, n_steps = program.load, USUAL_STEPS
    least = least_copies(load, at_most)
    spare = program.n_all_slots - int(least.sum())
    if spare < 0:
        return None
    counts = least[:, None] + np.arange(spare + 1)
    exact = load[:, None] / counts / at_most * n_steps
    rounded = np.ceil(exact * (1 - _SLACK)) if up else np.floor(exact * (1 - _NEGLIGIBLE))
    steps, place = np.unique(np.minimum(rounded, n_steps).astype(np.int64), return_inverse=True)
    return Items(counts=counts, place=place.reshape(counts.shape), steps=steps, n_steps=n_steps)


class PatternProgram:
    """The linear program at one T; rounds of pricing until it refutes or stays open.

    Args:
        items: of the experts.
        n_ranks: G.
        n_slots: of one rank.
    """

    def __init__(self, items: Items, *, n_ranks: int, n_slots: int) -> None:
        self.pool = Pool(items=items)
        self._n_ranks, self._n_slots = n_ranks, n_slots
        # nothing is taken more often than there are copies in all
        self._most = float(items.counts.sum())
        self._highs = _quiet_highs()
        self._add_rows()
        for e in range(len(items.counts)):
            for column in range(min(_FIRST_COUNTS, items.counts.shape[1])):
                self._add_choice(e, column)
        for pattern in self._first_patterns():
            self._add_pattern(pattern)

    @classmethod
    def within(cls, program: ExpertProgram, at_most: float, *, up: bool) -> Self | None:
        """Of a load T; None where the least counts of experts need more slots than there are."""
        items = items_within(program, at_most, up=up)
        if items is None:
            return None
        return cls(items, n_ranks=program.n_ranks, n_slots=program.n_slots)

    def decide(self, *, until_s: float = math.inf) -> Verdict:
        """Refute T, or find fractional patterns within it.

        Raises:
            SolverError: HiGHS failed.
        """
        for _ in range(MOST_ROUNDS):
            needed, worth, worth_of_expert = self._solve()
            if needed <= self._n_ranks * (1 + _SLACK):
                return Verdict.OPEN
            best, taken = self._price(worth)
            prices = self.pool.items.counts * worth[self.pool.items.place]
            most = max(float(best[-1, -1]), _NEGLIGIBLE)
            if float(prices.min(axis=1).sum()) > self._n_ranks * most * (1 + _SLACK):
                return Verdict.REFUTED
            added = self._add_priced(worth, taken)
            for e in np.flatnonzero(prices.min(axis=1) < worth_of_expert - _SLACK).tolist():
                added |= self._add_choice(e, int(np.argmin(prices[e])))
            if not added or time.perf_counter() >= until_s:
                return Verdict.UNKNOWN
        return Verdict.UNKNOWN

    def _add_rows(self) -> None:
        """A row for each class and each expert, and columns that use a slot for a smaller item."""
        n_classes = self.pool.items.n_classes
        nothing = np.array([], dtype=np.int32), np.array([])
        for _ in range(n_classes):
            self._highs.addRow(0.0, highspy.kHighsInf, 0, *nothing)
        for _ in range(len(self.pool.items.counts)):
            self._highs.addRow(1.0, 1.0, 0, *nothing)
        for k in range(1, n_classes):
            self._add_column(0.0, [k, k - 1], [-1.0, 1.0])

    def _add_column(self, cost: float, rows: list[int], values: list[float]) -> None:
        places, numbers = np.array(rows, dtype=np.int32), np.array(values)
        self._highs.addCol(cost, 0.0, self._most, len(rows), places, numbers)

    def _add_choice(self, e: int, column: int) -> bool:
        if (e, column) in self.pool.choices:
            return False
        self.pool.choices[e, column] = None
        items = self.pool.items
        rows = [int(items.place[e, column]), items.n_classes + e]
        self._add_column(0.0, rows, [-float(items.counts[e, column]), 1.0])
        return True

    def _add_pattern(self, pattern: Pattern) -> bool:
        pattern = tuple(sorted(pattern))
        if pattern in self.pool.patterns:
            return False
        self.pool.patterns[pattern] = None
        classes, often = np.unique(pattern, return_counts=True)
        self._add_column(1.0, classes.tolist(), often.astype(float).tolist())
        return True

    def _first_patterns(self) -> list[Pattern]:
        """Each class with equal company of what it leaves, and as often as it fits."""
        steps, whole, patterns = self.pool.items.steps, self.pool.items.n_steps, []
        for k, size in enumerate(steps.tolist()):
            company = self._n_slots - 1
            room = (whole - size) // company if company else 0
            beside = int(np.searchsorted(steps, room, side="right")) - 1
            patterns.append((k, *(beside,) * company) if beside >= 0 else (k,))
            patterns.append((k,) * min(self._n_slots, whole // max(size, 1)))
        return patterns

    def _solve(self) -> tuple[float, FloatArray, FloatArray]:
        """Patterns needed, the worth of an item of each class [K], and of each expert [E]."""
        run_highs(self._highs, is_linear=True)
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"highs ended with: {self._highs.getModelStatus()}")
        duals = np.array(self._highs.getSolution().row_dual)
        n_classes = self.pool.items.n_classes
        worth = np.maximum.accumulate(np.maximum(duals[:n_classes], 0.0))
        return self._highs.getInfo().objective_function_value, worth, duals[n_classes:]

    def _price(self, worth: FloatArray) -> tuple[FloatArray, list[IntArray]]:
        """The most that patterns are worth [S + 1, n_steps + 1], and the class taken last.

        Only classes at which the worth rises matter: a larger item is worth no more.
        """
        items = self.pool.items
        rises = np.flatnonzero(np.diff(worth, prepend=0.0) > _NEGLIGIBLE)
        best, taken = [np.zeros(items.n_steps + 1)], []
        for _ in range(self._n_slots):
            more, last = best[-1].copy(), np.full(items.n_steps + 1, -1, dtype=np.int64)
            for k in rises.tolist():
                size = int(items.steps[k])
                offered = best[-1][: items.n_steps + 1 - size] + worth[k]
                better = offered > more[size:]
                more[size:][better] = offered[better]
                last[size:][better] = k
            best.append(more)
            taken.append(last)
        return np.array(best), taken

    def _add_priced(self, worth: FloatArray, taken: list[IntArray]) -> bool:
        """Add, for each class at which the worth rises, the best pattern that has it."""
        items, added = self.pool.items, False
        for k in np.flatnonzero(np.diff(worth, prepend=0.0) > _NEGLIGIBLE)[::-1].tolist():
            pattern, room = [k], items.n_steps - int(items.steps[k])
            for last in taken[-2::-1]:
                if last[room] >= 0:
                    pattern.append(int(last[room]))
                    room -= int(items.steps[pattern[-1]])
            if worth[pattern].sum() > 1 + _SLACK:
                added |= self._add_pattern(tuple(pattern))
        return added


def _quiet_highs() -> highspy.Highs:
    highs = highspy.Highs()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("presolve", "off")  # columns come one by one: the basis is worth more
    highs.setOptionValue("solver", "simplex")
    return highs


def refutes(program: ExpertProgram, at_most: float, *, until_s: float = math.inf) -> bool:
    """Whether patterns prove that every placement has a rank above a load."""
    patterns = PatternProgram.within(program, at_most, up=False)
    return patterns is None or patterns.decide(until_s=until_s) is Verdict.REFUTED
