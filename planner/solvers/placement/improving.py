"""Better packings out of a packing: a part of it is freed, and packed again at its best.

Replicas that lie close to each other give up their places, the rest stays. What the rest leaves
room for is a program of some hundred columns, which HiGHS solves in a fraction of a second, with
the packing in hand to begin at. Parts grow as long as they are solved in time, and shrink where
they are not [Shaw1998]. Nothing is claimed of what comes out but that it is a packing.

How close two columns lie is read off the rows that columns share: from one row something spreads
over the columns that stand in it, over their rows, and on; near is where most of it arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.programs.layout import FloatArray, IntArray
from planner.programs.placement import Counts, PlacementProgram, placement_objective, violations
from planner.programs.relaxation import Priced, Relaxation
from planner.solvers.highs_run import options_of, run_highs, set_options
from planner.solvers.placement import swapping
from planner.solvers.placement.pricing import Columns, add_rows
from planner.solvers.placement.swapping import Swaps
from planner.solvers.solution import Effort

FIRST_PART = 20
"""Columns of a packing that are freed together, at first."""
GROWTH = 0.05
"""Of a part, where it is solved in time; and what it shrinks by where it is not."""
PART_S = 1.0
"""That a part may take [s]."""
MOST_COLUMNS = 1500
"""Of a part: those that fall behind least."""
MOST_WALKED = 5000
"""Columns that walks are through: those that fall behind least."""
N_WALKS = 2
"""Between two parts, from the best packing."""
N_SPREADS = 3
_CLOSE = 1e-9


class Improver:
    """Parts of one program's packings, packed again.

    Args:
        relaxed: the rows of the program.
        given: how far behind a choice falls that uses a column.
    """

    def __init__(
        self, program: PlacementProgram, relaxed: Relaxation, given: Priced, effort: Effort
    ) -> None:
        self._program, self._relaxed, self._given = program, relaxed, given
        self._effort, self._columns = effort, Columns(relaxed)
        self._draw = np.random.default_rng(effort.seed)
        self.is_interrupted = False

    def improved(self, counts: Counts, left_s: Callable[[], float]) -> Counts:
        """The best packing when time is over, or all of it is one part and that is solved.

        Args:
            left_s: time that is left [s].
        """
        value = placement_objective(self._program, counts)
        n_freed, walks = FIRST_PART, list(self._walks(value)) * N_WALKS
        while left_s() > 0 and not self.is_interrupted:
            for columns, swaps in walks:
                chosen = np.array(counts.copies)
                chosen[columns] = swaps.walked(chosen[columns] > 0, left_s)
                counts, value = self._better(chosen, counts, value)
            chosen = np.array(counts.copies)
            freed = self._near(chosen, n_freed)
            packed, is_solved = self._packed(chosen, freed, value, min(PART_S, left_s()))
            counts, value = self._better(packed, counts, value)
            if is_solved and len(freed) == np.count_nonzero(chosen):
                break
            step = max(1, int(GROWTH * n_freed))
            n_freed = n_freed + step if is_solved else max(1, n_freed - step)
        return counts

    def _walks(self, value: float) -> Iterator[tuple[IntArray, Swaps]]:
        """Columns that a better packing may use, and walks through packings of these, if any."""
        if not swapping.applies(self._relaxed):
            return
        behind = self._given.reduced
        columns = np.flatnonzero(behind <= value - self._given.bound)
        columns = np.sort(columns[np.argsort(behind[columns], kind="stable")[:MOST_WALKED]])
        yield columns, Swaps(self._relaxed, columns, behind[columns], self._draw)

    def _better(self, copies: IntArray, counts: Counts, value: float) -> tuple[Counts, float]:
        """What comes to less of two choices."""
        found = Counts(copies=tuple(copies.tolist()))
        worth = placement_objective(self._program, found)
        if worth < value and not violations(self._program, found):
            return found, worth
        return counts, value

    def _near(self, chosen: IntArray, n_freed: int) -> IntArray:
        """Columns of a packing that lie nearest to a row by chance."""
        relaxed, n = self._relaxed, len(chosen)
        seed = int(self._draw.integers(relaxed.n_rows))
        at_rows = np.asarray(np.arange(relaxed.n_rows) == seed, np.float64)
        for _ in range(N_SPREADS):
            at_columns = np.bincount(relaxed.column, at_rows[relaxed.row], n + 1)
            arrived = np.bincount(relaxed.row, at_columns[relaxed.column], relaxed.n_rows)
            at_rows = arrived / max(float(arrived.max()), _CLOSE)
        mine = np.flatnonzero(chosen)
        return mine[np.argsort(-at_columns[mine], kind="stable")[:n_freed]]

    def _packed(
        self, chosen: IntArray, freed: IntArray, value: float, limit_s: float
    ) -> tuple[IntArray, bool]:
        """Copies of all columns with a part packed again, and whether no other is better."""
        relaxed, held = self._relaxed, chosen.copy()
        held[freed] = 0
        right = relaxed.right - np.bincount(
            relaxed.row, relaxed.value * np.append(held, 0)[relaxed.column], relaxed.n_rows
        )
        kept = self._fitting(right, freed, value)
        highs = highspy.Highs()
        limited = replace(self._effort, time_limit_s=limit_s, gap=0.0, on_progress=None)
        set_options(highs, options_of(limited))
        add_rows(highs, right)
        self._columns.join(highs, kept)
        n = len(kept)
        whole = np.full(n, highspy.HighsVarType.kInteger)
        whole[-1] = highspy.HighsVarType.kContinuous
        highs.changeColsIntegrality(n, np.arange(n, dtype=np.int32), whole)
        start = highspy.HighsSolution()
        start.col_value = np.append(chosen - held, 0)[kept].astype(float)
        highs.setSolution(start)
        self.is_interrupted |= run_highs(highs)
        is_solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values = np.array(highs.getSolution().col_value)
        if len(values) != n:
            return chosen, is_solved
        packed = np.append(held, 0)
        packed[kept] += np.rint(values).astype(np.int64)
        return packed[:-1], is_solved

    def _fitting(self, right: FloatArray, freed: IntArray, value: float) -> IntArray:
        """Columns that there is room for and that a better packing may use, and the share."""
        relaxed, behind = self._relaxed, self._given.reduced
        is_over = (relaxed.value > 0) & (relaxed.value > right[relaxed.row] + _CLOSE)
        fits = np.bincount(relaxed.column, is_over, len(relaxed.most)) == 0
        fits[:-1] &= behind <= value - self._given.bound
        kept = np.flatnonzero(fits[:-1])
        kept = kept[np.argsort(behind[kept], kind="stable")[:MOST_COLUMNS]]
        return np.append(np.union1d(kept, freed), len(behind))
