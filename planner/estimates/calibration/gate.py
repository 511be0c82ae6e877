"""Rows that cannot be: faster than the device's datasheet, or mostly the wait for a launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray
from planner.estimates.calibration.tables import FITTED, Measured, Reading, Refused
from planner.units import show

TOLERANCE = 1.05
"""Clocks and timers differ by so much; beyond it a row beats physics."""

BEYOND_CACHES_BYTES = 512e6
"""Traffic that no cache of a device holds: here a row that beats physics is no cache's doing."""

MOST_IMPOSSIBLE = 0.1
"""Share of rows beyond caches that beat physics, above which none of the table is believed."""

NO_WORK_S = 2e-6
LONGEST_LAUNCH_S = 50e-6
"""A kernel of hardly any work that takes longer was timed with its launch by the host."""

_FEWEST = 5  # rows that say something about a whole table

Rates = Mapping[str, float]


def admit(reading: Reading, peaks: Mapping[str, float], hbm_bytes_per_s: float) -> Reading:
    """The rows that physics allows; the others join those refused, each with its reason.

    Args:
        reading: rows as read.
        peaks: datasheet FLOP/s by number format.
        hbm_bytes_per_s: datasheet bandwidth of the memory [B/s].
    """
    admitted = Reading(refused=reading.refused, timed_on=reading.timed_on)
    for table in reading.tables:
        peak = peak_of(table, peaks)
        if peak is None:
            reason = f"the device has no peak for {table.peak_format}"
            one = Refused(file=table.file, line=0, reason=f"{_kind(table)}: {reason}")
            admitted += Reading(refused=(one,))
        else:
            rates = {"peak_flop_per_s": peak, "hbm_bytes_per_s": hbm_bytes_per_s}
            admitted += _admit(table, rates)
    return admitted


def peak_of(table: Measured, peaks: Mapping[str, float]) -> float | None:
    """FLOP/s that bound the rows of a table; None if the device has no such format."""
    names = {"nvfp4": ("nvfp4", "fp4", "mxfp4"), "mxfp4": ("mxfp4", "fp4", "nvfp4")}
    for name in names.get(table.peak_format, (table.peak_format,)):
        if name in peaks:
            return peaks[name]
    return None


def _admit(table: Measured, rates: Rates) -> Reading:
    family = FITTED[table.family]
    ideal_s = np.broadcast_to(family.roofline_s(table.columns, rates), table.measured_s.shape)
    timed = np.isfinite(table.measured_s) & (table.measured_s > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        impossible = timed & (ideal_s / table.measured_s > TOLERANCE)
    whole = "".join(_whole(table, impossible, ideal_s))
    if whole:
        return Reading(refused=(Refused(file=table.file, line=0, reason=whole),))
    reasons = dict.fromkeys(np.flatnonzero(~timed), "has no time")
    for row in np.flatnonzero(impossible):
        reasons[row] = (
            f"{_kind(table)}: {show(table.measured_s[row], 's')} is less than the "
            f"{show(ideal_s[row], 's')} that the datasheet allows"
        )
    refused = tuple(
        Refused(file=table.file, line=int(table.lines[row]), reason=reason)
        for row, reason in sorted(reasons.items())
    )
    kept = table.taking(timed & ~impossible)
    return Reading(tables=(kept,) if kept.n_rows else (), refused=refused)


def _whole(table: Measured, impossible: BoolArray, ideal_s: FloatArray) -> Iterator[str]:
    """Why none of a table is to be believed; nothing if it is."""
    _, traffic = FITTED[table.family].work(**table.columns)
    beyond = np.broadcast_to(traffic, table.measured_s.shape) > BEYOND_CACHES_BYTES
    if beyond.sum() >= _FEWEST and impossible[beyond].mean() > MOST_IMPOSSIBLE:
        share = f"{impossible[beyond].mean():.0%} of its rows beyond {BEYOND_CACHES_BYTES / 1e6:g}"
        yield f"{_kind(table)}: {share} MB are faster than the datasheet allows; none is believed"
        return
    idle = (ideal_s < NO_WORK_S) & np.isfinite(table.measured_s)
    if FITTED[table.family].rates and idle.sum() >= _FEWEST:
        usual_s = float(np.median(table.measured_s[idle]))
        if usual_s > LONGEST_LAUNCH_S:
            what = f"kernels with hardly any work take {show(usual_s, 's')}"
            yield f"{_kind(table)}: {what}, so launches by the host are in all of them"


def _kind(table: Measured) -> str:
    return f"{table.family} {table.format}"
