"""Large packings: parts of a packing are packed again, of the columns that can matter.

HiGHS prices the rows of the relaxation; `programs.relaxation.priced` says what the prices
prove: a bound, and for every column how much a choice that uses it falls behind that bound at
least. With a packing in hand only columns matter that fall behind less than it does.

A packing is improved by walks of swaps (`swapping.py`), and by parts: replicas that lie close to
each other give up their places, the rest stays. What the rest leaves room for is a program of some
hundred columns, which HiGHS solves in a fraction of a second [Shaw1998]. Parts grow as long as they
are solved in time; at last all of the packing is a part, and what HiGHS proves of that holds of
all, but for the columns that matter and were too many to be looked at.

How close two columns lie is read off the rows that columns share: from one row something spreads
over the columns that stand in it, over their rows, and on; near is where most of it arrives.
"""

import math
from dataclasses import replace

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.programs.mixed import MixedProgram, Priced, priced
from planner.programs.placement import Counts, PlacementProgram, placement_objective, violations
from planner.programs.proofs import MULTIPLIERS, is_closed, refusal
from planner.programs.relaxation import relaxation
from planner.solvers.highs_run import version
from planner.solvers.mixed import highs
from planner.solvers.placement import formulation, swapping
from planner.solvers.placement.pricing import prices_of
from planner.solvers.placement.starting import greedy
from planner.solvers.recording import notes_of_run
from planner.solvers.solution import Clock, Effort, Stop, Word
from planner.specs.records.certificates import Outcome, Proof

FIRST_COLUMNS = 300
"""Columns that a first packing is looked for among; doubled while there is none."""
MOST_COLUMNS = 1500
"""Of a part, those that fall behind least; doubled where all of the packing is the part."""
FIRST_PART = 20
"""Columns of a packing that are freed together, at first."""
GROWTH = 0.05
"""Of a part, where it is solved in time; and what it shrinks by where it is not."""
FIRST_SLICE_S = 1.0
"""Time of a part; doubled where that is not enough for all of the packing."""
LEAST_S = 0.01
MOST_WALKED = 5000
"""Columns that walks are through, those that fall behind least."""
N_WALKS = 2
"""Between two parts, from the best packing."""
N_SPREADS = 3
_CLOSE = 1e-9


def solve(program: PlacementProgram, effort: Effort) -> Word[Counts]:
    """What HiGHS says of the columns that can matter, and multipliers of all others.

    Raises:
        SolverError: a solver failed.
    """
    clock = Clock()
    relaxed = relaxation(program)
    prices = prices_of(relaxed, effort, clock)
    if prices is None:
        proof = refusal(f"highs {version()}", "", clock.elapsed_s())
        proof = replace(proof, outcome="infeasible", bound=math.inf)
        return Word(answer=None, proof=proof)
    if (notes := notes_of_run()) is not None:
        notes.price(relaxed, -prices)
    search = _Search(program, relaxed, priced(relaxed, -prices), effort, clock)
    search.take(greedy(program, first=-np.maximum(search.behind, 0.0)), greedy(program))
    search.run()
    return search.word()


class _Search:
    """Parts of a packing packed again, larger and larger ones, until all of it is one."""

    def __init__(
        self,
        program: PlacementProgram,
        relaxed: MixedProgram,
        given: Priced,
        effort: Effort,
        clock: Clock,
    ) -> None:
        self._program, self._relaxed, self._given = program, relaxed, given
        self._effort, self._clock = effort, clock
        self._draw = np.random.default_rng(effort.seed)
        self.behind = given.reduced[:-1]
        self._order = np.argsort(self.behind, kind="stable")
        self._bound, self._value = given.bound, math.inf
        self._slice_s, self._n_freed, self._n_columns = FIRST_SLICE_S, FIRST_PART, FIRST_COLUMNS
        self._is_ended, self._n_nodes = False, 0
        self._stopped_by: Stop = ""
        self.counts: Counts | None = None

    def take(self, *choices: Counts | None) -> None:
        """Keep the best of some choices, if it is better."""
        for counts in choices:
            value = math.inf if counts is None else placement_objective(self._program, counts)
            if counts and value < self._value and not violations(self._program, counts):
                self.counts, self._value = counts, value
                self._effort.tell(self._value, self._bound, self._clock, self._n_nodes)

    def run(self) -> None:
        """Improve until nothing is left to prove, or time is over."""
        chosen, walks = np.zeros(self._program.n_columns, np.int64), None
        while not (self._is_ended or self._is_closed or self._stopped_by):
            if self.counts is not None:
                walks = self._walks() * N_WALKS if walks is None else walks
                for swaps in walks:
                    self.take(swaps.walked(self.counts, self._left_s))
                chosen = np.array(self.counts.copies)
            self._pack(chosen, self._near(chosen))

    def _walks(self) -> list[swapping.Swaps]:
        """Walks through packings of the columns that matter, if the program is of such."""
        if not swapping.applies(self._relaxed):
            return []
        columns = np.sort(self._mattering(MOST_WALKED))
        return [swapping.Swaps(self._relaxed, columns, self.behind[columns], self._draw)]

    def _mattering(self, most: int) -> IntArray:
        """Columns that a better choice may use, those first that fall behind least."""
        behind = self._value - self._given.bound
        # who uses a column pays its reduced cost beyond the bound: a dearer one is in no better
        # choice
        slack = behind * (1 + _CLOSE) + _CLOSE
        n = np.searchsorted(self.behind[self._order], slack, side="right")
        return self._order[: min(int(n), most)]

    def _near(self, chosen: IntArray) -> IntArray:
        """Columns of a packing that lie nearest to a row by chance."""
        relaxed, n = self._relaxed, len(chosen)
        seed = int(self._draw.integers(max(relaxed.n_rows, 1)))
        # steps of a walk at random between rows and columns that share an entry: near is where
        # most of it arrives
        at_rows = np.asarray(np.arange(relaxed.n_rows) == seed, np.float64)
        for _ in range(N_SPREADS):
            at_columns = np.bincount(relaxed.column, at_rows[relaxed.row], n + 1)
            arrived = np.bincount(relaxed.row, at_columns[relaxed.column], relaxed.n_rows)
            at_rows = arrived / arrived.max(initial=_CLOSE)
        mine = np.flatnonzero(chosen)
        return mine[np.argsort(-at_columns[mine], kind="stable")[: self._n_freed]]

    def _pack(self, chosen: IntArray, freed: IntArray) -> None:
        """Free some columns of a choice, and choose again at its best in a slice of time."""
        held = np.append(chosen, 0)
        held[freed] = 0
        most = self._n_columns if self.counts is None else max(self._n_columns, MOST_COLUMNS)
        relaxed = self._relaxed
        terms = relaxed.value * held[relaxed.column]
        right = relaxed.high - np.bincount(relaxed.row, terms, relaxed.n_rows)
        matter = self._mattering(self._program.n_columns)
        matter = matter[self._fits(right)[matter]]
        kept = np.append(np.union1d(matter[:most], freed), len(chosen))
        limit_s = max(min(self._slice_s, self._left_s()), LEAST_S)
        effort = replace(self._effort, time_limit_s=limit_s, on_progress=None)
        part = self._part(held, kept, right)
        if self.counts is not None:
            begin = (np.append(chosen, 0) - held)[kept]
            part = replace(part, hints={"highs": {"start": begin}})
        word = highs.solve(part, effort)
        self._n_nodes += word.n_nodes
        if word.answer is not None:
            held[kept] += np.rint(word.answer).astype(np.int64)
            self.take(Counts(copies=tuple(held[:-1].tolist())))
        if word.stopped_by == "interrupt" or self._left_s() <= 0:
            self._stopped_by = word.stopped_by or "time limit"
        if len(freed) == np.count_nonzero(chosen):
            self._learn(word.proof, matter[most:])
        else:
            self._resize(is_solved=word.proof.outcome == "optimal")

    def _resize(self, *, is_solved: bool) -> None:
        """Larger parts as long as they are solved in time, smaller ones where they are not."""
        step = max(1, int(GROWTH * self._n_freed))
        if is_solved:
            self._n_freed += step
        elif self._effort.time_limit_s is None:
            self._slice_s *= 2
        else:
            self._n_freed = max(1, self._n_freed - step)

    def _learn(self, proof: Proof, outside: IntArray) -> None:
        """What a choice among all that can matter proves, but for some columns outside."""
        behind = self.behind[outside].min(initial=math.inf)
        # a better choice is among the columns that were looked at, or it uses one of the others
        self._bound = max(self._bound, min(proof.bound, self._given.bound + behind))
        self._effort.tell(self._value, self._bound, self._clock, self._n_nodes)
        if proof.outcome == "stopped":
            self._slice_s *= 2
        elif len(outside) and proof.outcome != "refused":
            self._n_columns = 2 * max(self._n_columns, self.counts is not None and MOST_COLUMNS)
        else:
            self._is_ended = True

    def _part(self, held: IntArray, kept: IntArray, right: FloatArray) -> MixedProgram:
        """The program over some columns and the share, beside copies that stay."""
        relaxed = self._relaxed
        number = np.full(len(relaxed.upper), -1)
        number[kept] = np.arange(len(kept))
        stands = number[relaxed.column] >= 0
        return replace(
            relaxed,
            name="part",
            cost=relaxed.cost[kept],
            row=relaxed.row[stands],
            column=number[relaxed.column[stands]],
            value=relaxed.value[stands],
            high=right,
            lower=np.zeros(len(kept)),
            upper=relaxed.upper[kept] - held[kept],
            is_whole=relaxed.is_whole[kept],
            offset=float(relaxed.cost @ held),
        )

    def _fits(self, right: FloatArray) -> BoolArray:
        """Columns that rows leave room for, (J + 1,)."""
        relaxed = self._relaxed
        is_over = (relaxed.value > 0) & (relaxed.value > right[relaxed.row] + _CLOSE)
        return np.asarray(np.bincount(relaxed.column, is_over, len(relaxed.upper)) == 0)

    def word(self) -> Word[Counts]:
        outcome: Outcome = "stopped"
        if self._is_closed:
            outcome = "infeasible" if self.counts is None else "optimal"
        stopped_by: Stop = self._stopped_by if outcome == "stopped" else ""
        proof = Proof(
            prover=f"highs {version()} on the columns that multipliers leave",
            outcome=outcome,
            value=math.inf,
            bound=min(self._bound, self._value),
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
            n_nodes=self._n_nodes,
            stopped_by=stopped_by,
            besides=(priced_out,),
        )
        return formulation(self._program).judged(word, self.counts, wall_s=proof.wall_s)

    @property
    def _is_closed(self) -> bool:
        return is_closed(self._value, self._bound, max(self._effort.gap, _CLOSE))

    def _left_s(self) -> float:
        limit_s = self._effort.time_limit_s
        return math.inf if limit_s is None else limit_s - self._clock.elapsed_s()
