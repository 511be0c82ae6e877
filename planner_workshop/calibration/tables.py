"""Measured kernels as columns, whatever the file they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.equations.collectives import COLLECTIVES
from planner.equations.kernels import FAMILIES
from planner.equations.kernels.families import Family

FITTED: Mapping[str, Family] = {**FAMILIES, **COLLECTIVES}
"""What tables hold: kernels, and collectives, which no kernel file has."""

MOST_BYTES = 256 * 2**20
"""Of one table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Rows of one family and number format, of one file.

    Args:
        family: a key of `FITTED`.
        format: number format, as kernel files name it; of collectives the size of the groups.
        peak_format: format whose peak bounds the arithmetic.
        columns: dimensions of the family's function, one entry a row.
        measured_s: time of each row [s].
        file: where the rows are, as the user knows it.
        lines: line of each row in its file, the header being 1; of formats without lines, the
            number of the row, counted from 1.
    """

    family: str
    format: str
    peak_format: str
    columns: Mapping[str, FloatArray]
    measured_s: FloatArray
    file: str
    lines: IntArray

    @property
    def n_rows(self) -> int:
        return len(self.measured_s)

    def taking(self, kept: BoolArray | IntArray) -> Measured:
        index = np.flatnonzero(kept) if np.asarray(kept).dtype == bool else np.asarray(kept)
        return replace(
            self,
            columns={name: column[index] for name, column in self.columns.items()},
            measured_s=self.measured_s[index],
            lines=self.lines[index],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """A row, or a whole file, that no constant is fitted to.

    Args:
        file: where it is.
        line: its line; 0 for the whole file.
        reason: why, in words.
    """

    file: str
    line: int
    reason: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}  {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What tables hold: rows to fit, and rows that were refused with the reason.

    Args:
        timed_on: machines and software that tables say their rows were timed with.
    """

    tables: tuple[Measured, ...] = ()
    refused: tuple[RejectedRow, ...] = ()
    timed_on: tuple[str, ...] = ()

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            tables=self.tables + other.tables,
            refused=self.refused + other.refused,
            timed_on=tuple(dict.fromkeys(self.timed_on + other.timed_on)),
        )


def slower_than_larger(
    kind: Sequence[ArrayLike], size: ArrayLike, seconds: FloatArray, *, factor: float = 1.5
) -> BoolArray:
    """Which rows took more than `factor` of the time of some row that only does more (N,).

    >>> slower_than_larger([[0, 0, 0]], [1, 2, 3], np.array([9.0, 2.0, 3.0])).tolist()
    [True, False, False]
    """
    codes = [np.unique(np.asarray(one), return_inverse=True)[1].reshape(-1) for one in kind]
    order = np.lexsort((-np.asarray(size, dtype=float), *codes))
    sorted_codes = np.stack([code[order] for code in codes])
    starts = np.flatnonzero(np.any(np.diff(sorted_codes, axis=1) != 0, axis=0)) + 1
    least = np.concatenate(
        [np.minimum.accumulate(part) for part in np.split(seconds[order], starts)]
    )
    is_slower = np.zeros(len(order), dtype=bool)
    is_slower[order] = seconds[order] > factor * least
    return is_slower
