"""Large packings: only the columns that can matter, by the prices of the linear relaxation.

HiGHS prices the rows of the relaxation; `programs.relaxation.priced` says what the prices
prove: a bound, and for every column how much a choice that uses it falls behind that bound at
least. CP-SAT chooses among the columns that fall behind the least; what it finds says how far
behind a column may be to matter, and the choice is made again among these. It is the optimum
of all columns as soon as every column left out falls behind further than the choice does.

With time short, or where the relaxation is far from any choice, the bound that is reached
stands beside the choice in hand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from ortools.sat.python import cp_model

from planner.programs.layout import FloatArray, IntArray
from planner.programs.placement import (
    Counts,
    PlacementProgram,
    columns_of,
    placement_objective,
)
from planner.programs.proofs import MULTIPLIERS, is_closed
from planner.programs.relaxation import Priced, Relaxation, priced, relaxation
from planner.solvers.answers import Clock
from planner.solvers.cpsat import outcome_of, prover, run, set_parameters
from planner.solvers.highs_run import version
from planner.solvers.placement.answers import judged
from planner.solvers.placement.cpsat import build
from planner.solvers.placement.greedy import greedy
from planner.solvers.placement.improving import Improver
from planner.solvers.placement.pricing import prices_of
from planner.solvers.proving import Word
from planner.solvers.solution import Effort, Stop, relative_gap
from planner.specs.certificates import Outcome, Proof

FIRST_COLUMNS = 300
"""Columns that the first choice is made among; doubled while there is none."""
MOST_STATED = 300_000
"""Uses of resources of the columns that a choice is made among: of more of them, stating it takes
seconds that nothing can interrupt."""
IMPROVING_SHARE = 0.9
"""Of the time, for packing parts of a choice again."""
FIRST_SLICE_S = 2.0
"""Time of the first choice; doubled each time that it is not enough."""
_CLOSE = 1e-9


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What CP-SAT says of the columns that can matter, and multipliers of all others.

    Raises:
        SolverError: a solver failed.
    """
    clock = Clock()
    relaxed = relaxation(program)
    prices = prices_of(relaxed, effort, clock)
    if prices is None:
        proof = Proof(
            prover=f"highs {version()}",
            outcome="infeasible",
            value=math.inf,
            bound=math.inf,
            wall_s=clock.elapsed_s(),
        )
        return Word(answer=None, proof=proof)
    given = priced(relaxed, prices)
    search = _Search(program, given, effort, clock)
    search.begin(greedy(program, first=-np.maximum(given.reduced, 0.0)), greedy(program))
    search.improve(relaxed)
    search.run()
    return search.word()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A choice among some columns: its counts over all, and what is proved of these columns."""

    counts: Counts | None
    bound: float
    outcome: Outcome
    n_branches: int


class _Search:
    """Choices among more and more columns, until no column left out can matter."""

    def __init__(
        self, program: PlacementProgram, given: Priced, effort: Effort, clock: Clock
    ) -> None:
        self._program, self._given, self._effort, self._clock = program, given, effort, clock
        self._bound, self._value = given.bound, math.inf
        self._slice_s = FIRST_SLICE_S
        self._stopped_by: Stop = ""
        self._is_infeasible = False
        self._n_branches = 0
        self.counts: Counts | None = None

    def begin(self, *choices: Counts | None) -> None:
        """With the best of some choices in hand."""
        for counts in choices:
            value = math.inf if counts is None else placement_objective(self._program, counts)
            if value < self._value:
                self.counts, self._value = counts, value

    def improve(self, relaxed: Relaxation) -> None:
        """Pack parts of the choice in hand again, within its share of the time."""
        if self.counts is None or self._is_closed() or self._effort.time_limit_s is None:
            return
        end_s = self._clock.elapsed_s() + IMPROVING_SHARE * self._left_s()
        improver = Improver(self._program, relaxed, self._given, self._effort)
        self.begin(improver.improved(self.counts, lambda: end_s - self._clock.elapsed_s()))
        self._stopped_by = "interrupt" if improver.is_interrupted else ""

    def run(self) -> None:
        falls_behind = np.sort(self._given.reduced)
        n = min(FIRST_COLUMNS, len(falls_behind))
        while True:
            kept = np.flatnonzero(self._given.reduced <= falls_behind[n - 1])
            if n > FIRST_COLUMNS and self._n_entries(kept) > MOST_STATED:
                return
            n = len(kept)
            ahead = falls_behind[n] if n < len(falls_behind) else math.inf
            found = self._choose(kept)
            self._take(found, self._given.bound + ahead)
            if self._is_closed() or self._stopped_by:
                return
            n = self._next(found, falls_behind, n)

    def _n_entries(self, columns: IntArray) -> int:
        """Uses of resources of some columns."""
        is_kept = np.zeros(self._program.n_columns, np.bool_)
        is_kept[columns] = True
        return int(np.count_nonzero(is_kept[self._program.uses.column]))

    def word(self) -> Word[Counts]:
        """What came of it."""
        outcome: Outcome = "stopped"
        if self._is_infeasible:
            outcome = "infeasible"
        elif self.counts is not None and self._is_closed():
            outcome = "optimal"
        stopped_by: Stop = self._stopped_by if outcome == "stopped" else ""
        proof = Proof(
            prover=f"{prover()} on the columns that multipliers leave",
            outcome=outcome,
            value=math.inf,
            bound=math.inf if self._is_infeasible else min(self._bound, self._value),
            wall_s=self._clock.elapsed_s(),
            note="out of time" if stopped_by == "time limit" else stopped_by,
        )
        is_exact = is_closed(self._value, self._given.bound, 0.0)  # but for rounding of its sum
        priced_out = replace(
            proof,
            prover=f"{MULTIPLIERS} of all columns",
            outcome="optimal" if is_exact else "stopped",
            value=self._value,
            bound=self._value if is_exact else self._given.bound,
            note="",
        )
        word = Word(
            answer=self.counts,
            proof=proof,
            n_nodes=self._n_branches,
            stopped_by=stopped_by,
            besides=(priced_out,),
        )
        return judged(self._program, word, self.counts, wall_s=proof.wall_s)

    def _take(self, found: _Choice, outside: float) -> None:
        """Keep a better choice, and a better bound: of these columns, and of those outside."""
        self._n_branches += found.n_branches
        if found.counts is not None:
            value = placement_objective(self._program, found.counts)
            if value < self._value:
                self._value, self.counts = value, found.counts
        if found.outcome == "infeasible":
            self._is_infeasible = math.isinf(outside) and self.counts is None
        self._bound = max(self._bound, min(found.bound, outside))

    def _is_closed(self) -> bool:
        if self._is_infeasible:
            return True
        if self.counts is None:
            return False
        slack = max(self._effort.gap, _CLOSE) * max(abs(self._value), _CLOSE)
        return self._value - self._bound <= slack

    def _next(self, found: _Choice, falls_behind: FloatArray, n: int) -> int:
        """How many columns the next choice is made among, those that fall behind least first."""
        behind = self._value - self._given.bound
        n_matter = int(np.searchsorted(falls_behind, behind * (1 + _CLOSE) + _CLOSE, side="right"))
        if found.outcome != "stopped":
            return min(2 * n, n_matter) if n_matter > n else len(falls_behind)
        self._slice_s *= 2
        return max(min(n, n_matter), 1) if self.counts is not None else n

    def _choose(self, kept: IntArray) -> _Choice:
        """The best among some columns, within a slice of time, from the choice in hand."""
        program = columns_of(self._program, kept)
        model, variables, scale = build(program)
        if self.counts is not None:
            for j, variable in zip(kept.tolist(), variables, strict=True):
                model.add_hint(variable, self.counts.copies[j])
        solver = cp_model.CpSolver()
        left_s = self._left_s()
        is_all = len(kept) == self._program.n_columns and self._effort.time_limit_s is None
        slice_s = None if is_all else min(self._slice_s, left_s)
        set_parameters(solver, replace(self._effort, time_limit_s=slice_s, gap=0.0), spent_s=0.0)
        effort = replace(self._effort, on_progress=None)
        word, interrupted = run(solver, model, effort, scale=scale, clock=Clock())
        outcome, _ = outcome_of(word, interrupted=interrupted)
        if interrupted:
            self._stopped_by = "interrupt"
        elif self._left_s() <= 0:
            self._stopped_by = "time limit"
        counts, bound = None, -math.inf
        if word in ("OPTIMAL", "FEASIBLE"):
            copies = np.zeros(self._program.n_columns, np.int64)
            copies[kept] = [solver.value(variable) for variable in variables]
            counts = Counts(copies=tuple(copies.tolist()))
            bound = solver.best_objective_bound / scale
            if outcome == "optimal":
                value = placement_objective(self._program, counts)
                near = relative_gap(value, bound) <= 10 * _CLOSE if value else bound == value
                bound = value if near else min(value, bound)
        elif outcome == "infeasible":
            bound = math.inf
        return _Choice(
            counts=counts, bound=bound, outcome=outcome, n_branches=int(solver.num_branches)
        )

    def _left_s(self) -> float:
        limit_s = self._effort.time_limit_s
        return math.inf if limit_s is None else limit_s - self._clock.elapsed_s()
