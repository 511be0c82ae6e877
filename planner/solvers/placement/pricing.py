"""Prices of the rows of a relaxation, by HiGHS: on few columns first, then on those that matter.

A packing has many more columns than a vertex of its relaxation uses, and all of them together
take HiGHS minutes. So it prices the rows of some columns, and the prices say which others would
be better than that: they join, until none is. Prices of any round prove a bound; those of the
best one are kept, so that running out of time costs sharpness and no validity.
"""

import math
from dataclasses import replace
from operator import itemgetter

import highspy  # type: ignore[import-untyped]
import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.errors import SolverError
from planner.programs.mixed import MixedProgram, priced
from planner.solvers.highs_run import options_of, run_highs, set_options
from planner.solvers.solution import Clock, Effort

AT_ONCE = 2500
"""Columns that are priced together; of more, the most promising first."""
MOST_AT_ONCE = 200_000
"""Entries up to which more are priced together all the same, by interior points."""
JOINING = 1000
"""Columns that join in a round at most."""
MOST_ITERATIONS = 20_000
"""Of the simplex method in one round: degenerate packings take it a hundred times as many."""
MOST_TOGETHER = 1_000_000
"""Entries of a relaxation that HiGHS is given all at once; with more, the best prices stand."""
MOST_ROUNDS = 40
"""Rounds after which all columns are priced at once: with few rounds to go, they are quicker."""
_CLOSE = 1e-9


def prices_of(relaxed: MixedProgram, effort: Effort, clock: Clock) -> FloatArray | None:
    """Prices of the rows, (R,), the best in half the time; None where the rows cannot hold.

    Raises:
        SolverError: HiGHS failed.
    """
    by_column = np.lexsort((relaxed.row, relaxed.column))
    starts = np.searchsorted(relaxed.column[by_column], np.arange(len(relaxed.upper) + 1))
    known = _promising(relaxed)
    highs = _empty(relaxed, effort, clock)
    _add(highs, relaxed, (by_column, starts), known)
    if len(known) > AT_ONCE:
        highs.setOptionValue("solver", "ipm")
    even = (np.zeros(relaxed.n_rows), _scaled(relaxed, np.ones(relaxed.n_rows)))
    best_bound, best = max(((priced(relaxed, -one).bound, one) for one in even), key=itemgetter(0))
    is_known = np.zeros(len(relaxed.upper), np.bool_)
    is_known[known] = True
    is_last, n_rounds = False, 0
    while True:
        word, prices = _solve(highs, relaxed)
        if word == "infeasible":
            if is_known.all():
                return None
            joining = np.flatnonzero(~is_known)
        else:
            for candidate in (prices, _scaled(relaxed, prices)):
                bound = priced(relaxed, -candidate).bound
                if bound > best_bound:
                    best, best_bound = candidate, bound
            reduced = priced(relaxed, -prices).reduced[:-1]
            better = np.flatnonzero(~is_known[:-1] & (reduced < -_CLOSE))
            n_rounds += 1
            is_slow = word == "slow" or n_rounds == MOST_ROUNDS
            if is_slow and len(relaxed.column) > MOST_TOGETHER:
                return best
            if is_last or (not is_slow and (word != "optimal" or not len(better))):
                return best
            is_last = is_slow
            joining = better[np.argsort(reduced[better], kind="stable")][:JOINING]
        if is_last:  # vertices are slow to settle: the interior of all of them, then
            joining = np.flatnonzero(~is_known)
            highs.setOptionValue("solver", "ipm")
            highs.setOptionValue("run_crossover", "off")
            highs.clearSolver()
        if len(joining):
            _add(highs, relaxed, (by_column, starts), joining)
        is_known[joining] = True


class Vertices:
    """HiGHS on all columns of a relaxation, solved again where some columns are left out.

    Presolve is off, since each solve begins at the vertex of the one before; what HiGHS says is
    believed of nothing but prices, which prove what they prove.
    """

    def __init__(self, relaxed: MixedProgram, effort: Effort, clock: Clock) -> None:
        by_column = np.lexsort((relaxed.row, relaxed.column))
        starts = np.searchsorted(relaxed.column[by_column], np.arange(len(relaxed.upper) + 1))
        self.is_interrupted = False
        self._relaxed, self._columns = relaxed, np.arange(len(relaxed.upper))
        self._highs = _empty(relaxed, replace(effort, threads=1), clock)
        _add(self._highs, relaxed, (by_column, starts), self._columns)

    def at(self, most: FloatArray, left_s: float) -> tuple[FloatArray, FloatArray] | None:
        """Prices of the rows, (R,), and the columns' values, (J + 1,); None without a vertex.

        Args:
            most: the largest value of each column, 0 of those that are left out, (J + 1,).
            left_s: time that is left [s].
        """
        if math.isfinite(left_s):  # HiGHS counts the time of all its runs
            spent_s = float(self._highs.getRunTime())
            self._highs.setOptionValue("time_limit", spent_s + max(left_s, 0.0))
        low, columns = np.zeros(len(most)), self._columns.astype(np.int32)
        self._highs.changeColsBounds(len(most), columns, low, most)
        word, prices = _solve(self._highs, self._relaxed)
        self.is_interrupted |= word == "interrupt"
        if word != "optimal":
            return None
        return prices, np.array(self._highs.getSolution().col_value)


def _promising(relaxed: MixedProgram) -> IntArray:
    """The share, and the columns that are worth most for what they use."""
    n_columns = len(relaxed.upper) - 1
    if n_columns <= AT_ONCE or len(relaxed.column) <= MOST_AT_ONCE:
        return np.arange(n_columns + 1)
    used = np.zeros(n_columns + 1)
    np.add.at(used, relaxed.column, np.abs(relaxed.value))
    worth = relaxed.cost[:-1] / np.maximum(used[:-1], 1.0)
    first = np.argsort(worth, kind="stable")[:AT_ONCE]
    return np.append(np.sort(first), n_columns)


def _empty(relaxed: MixedProgram, effort: Effort, clock: Clock) -> highspy.Highs:
    """The rows without columns."""
    highs = highspy.Highs()
    limit_s = effort.time_limit_s
    half = replace(effort, time_limit_s=None if limit_s is None else limit_s / 2)
    spent = {} if limit_s is None else {"time_limit": max(0.0, limit_s / 2 - clock.elapsed_s())}
    # columns come in rounds, and each begins at the last one's vertex, which presolve would lose
    rounds = {"presolve": "off", "simplex_iteration_limit": MOST_ITERATIONS}
    set_options(highs, {**options_of(half), **rounds, **spent})
    nothing = np.zeros(relaxed.n_rows, np.int32)
    low = np.full(relaxed.n_rows, -highspy.kHighsInf)
    highs.addRows(relaxed.n_rows, low, relaxed.high, 0, nothing, np.zeros(0, np.int32), np.zeros(0))
    return highs


def _add(
    highs: highspy.Highs, relaxed: MixedProgram, by: tuple[IntArray, IntArray], columns: IntArray
) -> None:
    order, starts = by
    sizes = starts[columns + 1] - starts[columns]
    first = np.cumsum(sizes) - sizes
    entries = order[np.repeat(starts[columns] - first, sizes) + np.arange(sizes.sum())]
    status = highs.addCols(
        len(columns),
        relaxed.cost[columns],
        np.zeros(len(columns)),
        relaxed.upper[columns],
        len(entries),
        first.astype(np.int32),
        relaxed.row[entries].astype(np.int32),
        relaxed.value[entries],
    )
    if status == highspy.HighsStatus.kError:
        raise SolverError("highs does not take columns of a linear relaxation")


def _solve(highs: highspy.Highs, relaxed: MixedProgram) -> tuple[str, FloatArray]:
    """How it ended, and the prices that it has."""
    if run_highs(highs, is_linear=True):
        return "interrupt", np.zeros(relaxed.n_rows)
    ends, status = highspy.HighsModelStatus, highs.getModelStatus()
    if status in (ends.kInfeasible, ends.kUnboundedOrInfeasible):  # bounded, so never unbounded
        return "infeasible", np.zeros(relaxed.n_rows)
    duals = np.array(highs.getSolution().row_dual)
    if len(duals) != relaxed.n_rows:
        return "stopped", np.zeros(relaxed.n_rows)
    words = {ends.kOptimal: "optimal", ends.kIterationLimit: "slow"}
    word = words.get(status, "stopped")
    return word, np.maximum(-duals, 0.0)


def _scaled(relaxed: MixedProgram, prices: FloatArray) -> FloatArray:
    """Prices raised until no column is better than they say (Farley): of packings, a bound."""
    paid = np.zeros(len(relaxed.upper))
    np.add.at(paid, relaxed.column, relaxed.value * prices[relaxed.row])
    gains = (relaxed.cost < 0) & (paid > 0)
    if not gains.any() or (paid < -_CLOSE).any():
        return prices
    return prices * max(1.0, float((-relaxed.cost[gains] / paid[gains]).max()))
