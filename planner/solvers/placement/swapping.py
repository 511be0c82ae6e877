"""Better packings by swaps: a column goes in, whatever it meets goes out and stays out for a while.

Of packings in which no two columns share a row. The column that goes in is the one that gains most,
though it be a loss, of those that have not just gone out: so the search walks along packings that
are as good, and over hills [GloverLaguna1997]. What falls behind by the prices of the relaxation is
charged for it, which keeps the walk where good packings are: a hundred times as quick as without.
"""

from collections.abc import Callable

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.programs.mixed import MixedProgram
from planner.programs.placement import Counts

CHARGES = (4.0, 8.0, 16.0)
"""Of how far a column falls behind, taken off what it gains; one of these by chance."""
TENURES = (0.6, 1.2)
"""Swaps for which a column stays out, as shares of how many are in; by chance between these."""
MOST_IDLE = 6_000
"""Swaps without a better packing, after which the walk begins again at the best."""
MOST_LONGER = 10
"""Swaps that a column stays out beyond that, by chance."""
N_DRAWN = 1 << 16
"""Numbers by chance that columns of equal gain are parted by."""
_TIE, _OUT, _CLOSE, _EVERY = 1e-3, -1e30, 1e-9, 256
"""The last: swaps after which the time is looked at."""


def applies(relaxed: MixedProgram) -> bool:
    """Whether the rows say no more than that columns do not share them."""
    return bool(all((x == 1.0).all() for x in (relaxed.value, relaxed.high, relaxed.upper[:-1])))


class Swaps:
    """Walks through packings of some columns.

    Args:
        relaxed: rows that say that columns do not share them.
        columns: those that may be chosen, (K,) of J.
        behind: how far each falls behind, (K,).
    """

    def __init__(
        self,
        relaxed: MixedProgram,
        columns: IntArray,
        behind: FloatArray,
        draw: np.random.Generator,
    ) -> None:
        self._columns = columns
        self._gains, self._behind = -relaxed.cost[columns], np.maximum(behind, 0.0)
        self._draw, self._noise = draw, draw.random(N_DRAWN + len(columns))
        number = np.full(len(relaxed.upper), -1)
        number[columns] = np.arange(len(columns))
        stands = np.flatnonzero(number[relaxed.column] >= 0)
        row, column = relaxed.row[stands], number[relaxed.column[stands]]
        by_row, by_column = np.argsort(row, kind="stable"), np.argsort(column, kind="stable")
        ends = np.cumsum(np.bincount(row, minlength=relaxed.n_rows))
        self._columns_of = np.split(column[by_row], ends[:-1])
        ends = np.cumsum(np.bincount(column, minlength=len(columns)))
        self._rows_of = np.split(row[by_column], ends[:-1])
        self._met: dict[int, IntArray] = {}

    def _meets(self, column: int) -> IntArray:
        """Columns that share a row with one."""
        if column not in self._met:
            rows = self._rows_of[column].tolist()
            shared = [self._columns_of[r] for r in rows]
            met = np.unique(np.concatenate([np.zeros(0, np.int64), *shared]))
            self._met[column] = met[met != column]
        return self._met[column]

    def walked(self, counts: Counts, left_s: Callable[[], float]) -> Counts:
        """The best packing on one walk from another, within the time that is left."""
        chosen = np.array(counts.copies)[self._columns] > 0
        tie = _TIE * float(self._gains.max(initial=0.0))
        gains = self._gains - self._draw.choice(CHARGES) * self._behind
        tenure = int(self._draw.uniform(*TENURES) * np.count_nonzero(chosen))
        inside, gain = chosen.copy(), gains.copy()
        for column in np.flatnonzero(inside).tolist():
            gain[self._meets(column)] -= gains[column]
        until = np.where(inside, np.iinfo(np.int64).max, 0)
        best, value = chosen, float(self._gains[chosen].sum())
        most, last, swap = value, 0, 0
        while swap - last < MOST_IDLE and (swap % _EVERY or left_s() > 0):
            swap += 1
            at = int(self._draw.integers(N_DRAWN))
            drawn = self._noise[at : at + len(gain)]
            column = int(np.where(until <= swap, gain + tie * drawn, _OUT).argmax())
            if until[column] > swap:
                continue  # all are in, or have just gone out
            met = self._meets(column)
            gone = met[inside[met]]
            value += self._gains[column] - self._gains[gone].sum()
            inside[column], inside[gone] = True, False
            gain[met] -= gains[column]
            for other in gone.tolist():
                gain[self._meets(other)] += gains[other]
            until[gone] = swap + tenure + int(MOST_LONGER * drawn[0])
            until[column] = np.iinfo(np.int64).max
            if value > most * (1 + _CLOSE):
                best, most, last = inside.copy(), value, swap
        copies = np.zeros(len(counts.copies), np.int64)
        copies[self._columns[best]] = 1
        return Counts(copies=tuple(copies.tolist()))
