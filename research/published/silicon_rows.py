"""Rows of a table of `aiconfigurator-core`: chosen once, and met with larger ones of their kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner_workshop.calibration.tables import Measured, RejectedRow, slower_than_larger

Table = Mapping[str, np.ndarray]
TableRows = Iterator[Measured | RejectedRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Whose table it is.

    Args:
        file: as the user knows it.
        engine: whose kernels.
        peaks: datasheet FLOP/s by number format, of the device.
        programs: names of the engine's kernels to read of tables that hold several; all that are
            not rare if empty.
    """

    file: str
    engine: str
    peaks: Mapping[str, float]
    programs: frozenset[str] = frozenset()


MILLI = 1e-3
"""Times are in milliseconds."""


def peak_in(origin: Origin, formats: Sequence[str]) -> float:
    """Datasheet peak of the first format that the device has; infinite of none [FLOP/s]."""
    return next((origin.peaks[name] for name in formats if name in origin.peaks), np.inf)


def first_rows(table: Table, chosen: BoolArray, *keys: str) -> np.ndarray:
    """Chosen rows; of equal ones, which differ in what no form knows, the first."""
    rows = np.flatnonzero(chosen)
    codes = [np.unique(table[key][rows].astype(str), return_inverse=True)[1] for key in keys]
    _, first = np.unique(np.stack(codes, axis=1), axis=0, return_index=True)
    return rows[np.sort(first)]


def kept_rows(
    table: Table,
    rows: np.ndarray,
    origin: Origin,
    named: tuple[str, str, str],
    columns: dict[str, FloatArray],
    orders: tuple[tuple[tuple[str, ...], str, int], ...],
    seconds: FloatArray | None = None,
) -> TableRows:
    """The rows that no larger one contradicts, and how many one does."""
    if not len(rows):
        return
    family, form, peak = named
    measured = table["latency"][rows].astype(float) * MILLI if seconds is None else seconds
    against = np.zeros(len(rows), dtype=bool)
    for same, larger, sign in orders:
        kind = [table[key][rows].astype(str) for key in same]
        against |= slower_than_larger(kind, sign * table[larger][rows], measured)
    if against.any():
        rows_said = f"{against.sum()} row{'s' * int(against.sum() > 1)}"
        reason = f"{family} {form}: {rows_said} took half as long again as larger ones"
        yield RejectedRow(file=origin.file, line=0, reason=reason)
    kept = Measured(
        family=family,
        format=form,
        peak_format=peak,
        columns=columns,
        measured_s=measured,
        file=origin.file,
        lines=rows + 1,
    )
    yield kept.taking(~against)


def columns_of(n_rows: int, **columns: object) -> dict[str, FloatArray]:
    """Columns of one length; numbers are repeated."""
    return {
        name: np.ascontiguousarray(np.broadcast_to(np.asarray(column, dtype=float), (n_rows,)))
        for name, column in columns.items()
    }
