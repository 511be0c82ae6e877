"""Constants from rows: robust least squares of log(predicted / measured), judged on rows left out.

The sum of soft-L1 losses is minimised by `scipy.optimize.least_squares` inside the bounds that
physics sets. Nothing is drawn at random: the same rows give the same constants.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.equations.arrays import BoolArray, FloatArray, IntArray
from planner.equations.kernels.families import Family
from planner.errors import Problem, RequestError
from planner.quantities.units import show
from planner_workshop.calibration.tables import FITTED, Measured, Reading, RejectedRow

MOST_ROWS = 3_000
"""Rows that one fit looks at; of longer tables it takes every second, third, …"""

LOSS_SCALE = 0.1
"""Errors of ten percent count half by their square, half by their size."""

SIMPLER_UNLESS = 0.97
"""A form with more constants has to bring the left-out error below this share of the other's."""

FEWEST_FOR_HALVES = 12
"""Of fewer rows each is left out alone, not one half of them."""

_STARTS: tuple[Mapping[str, float], ...] = (
    {},
    {"exponent": 1.5},
    {"exponent": 8.0},
    *(
        {
            "short_latency_s": latency,
            "short_bytes_per_s": rate,
            "long_latency_s": 4.0 * latency,
            "long_bytes_per_s": faster * rate,
        }
        for latency, rate, faster in ((5e-6, 2e11, 1.7), (8e-6, 1e10, 20.0), (1e-4, 1e9, 3.0))
    ),
)
"""Where searches begin, of forms that have any of these constants."""
_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Of |predicted / measured − 1| over rows [1]."""

    n_rows: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A family's constants for one format, and what they are worth.

    Args:
        table: the rows.
        form: which of the family's forms describes rows best that it did not see.
        constants: keywords of the family's function.
        inside: errors on the rows fitted.
        outside: errors on shapes, or rows, that a fit on the others did not see.
        left_out: `shapes` or `rows`.
        predicted_s: of each row [s].
    """

    table: Measured
    form: str
    constants: Mapping[str, float]
    inside: Errors
    outside: Errors
    left_out: str
    predicted_s: FloatArray


def fit(table: Measured, rates: Mapping[str, float], *, n_sms: int = 0) -> Fitted:
    """Fit every form of a family, and keep the best.

    Args:
        table: rows that physics allows.
        rates: of the device.
        n_sms: multiprocessors; forms that count tiles are tried only if it is known.

    Raises:
        RequestError: scipy is not installed.
    """
    family = FITTED[table.family]
    folds, left_out = _folds(family, table)
    best: tuple[float, str, FloatArray] | None = None
    for form in _forms(family, n_sms, table.n_rows):
        unseen = np.empty(table.n_rows)
        for fold in range(int(folds.max()) + 1):
            constants = fit_form(table.taking(folds != fold), form, rates, n_sms=n_sms)
            rest = table.taking(folds == fold)
            unseen[folds == fold] = family.seconds(rest.columns, rates, constants)
        score = float(np.mean(np.abs(np.log(unseen / table.measured_s))))
        if best is None or score < SIMPLER_UNLESS * best[0]:
            best = score, form, unseen
    assert best is not None
    _, form, unseen = best
    constants = fit_form(table, form, rates, n_sms=n_sms)
    predicted = np.asarray(family.seconds(table.columns, rates, constants))
    return Fitted(
        table=table,
        form=form,
        constants=constants,
        inside=errors(predicted, table.measured_s),
        outside=errors(unseen, table.measured_s),
        left_out=left_out,
        predicted_s=predicted,
    )


def fit_form(
    table: Measured, form: str, rates: Mapping[str, float], *, n_sms: int = 0
) -> dict[str, float]:
    family = FITTED[table.family]
    names = family.forms[form]
    tiles = {"n_sms": float(n_sms)} if counts_tiles(family, form) else {}
    fixed = {**family.completing, **tiles}
    rows = table.taking(np.unique(np.linspace(0, table.n_rows - 1, MOST_ROWS).astype(int)))
    least_squares = _solver()
    bounds = [family.parameter(name) for name in names]
    scale = np.array([one.start for one in bounds])
    low = np.array([one.low for one in bounds]) / scale
    high = np.array([one.high for one in bounds]) / scale

    def residuals(unit: FloatArray) -> FloatArray:
        constants = dict(zip(names, (unit * scale).tolist(), strict=True))
        return np.log(family.seconds(rows.columns, rates, {**constants, **fixed}) / rows.measured_s)

    answers = [
        least_squares(
            residuals,
            np.clip([start.get(one.name, one.start) / one.start for one in bounds], low, high),
            bounds=(low, high),
            loss="soft_l1",
            f_scale=LOSS_SCALE,
        )
        for start in _STARTS
        if not start or start.keys() & set(names)
    ]
    best = min(answers, key=lambda answer: float(answer.cost))
    values = dict(zip(names, (best.x * scale).tolist(), strict=True))
    return {**{name: float(f"{value:.{_DIGITS}g}") for name, value in values.items()}, **fixed}


def errors(predicted_s: FloatArray, measured_s: FloatArray) -> Errors:
    """How far predictions are off."""
    off = np.abs(predicted_s / measured_s - 1)
    return Errors(n_rows=len(off), median=float(np.median(off)), p90=float(np.percentile(off, 90)))


def counts_tiles(family: Family, form: str) -> bool:
    """Whether a form needs to know the number of multiprocessors."""
    return "prologue_k" in family.forms[form]


def fewest_rows(family: Family) -> int:
    """Rows that the simplest form of a family can be fitted to and still be judged."""
    return min(map(len, family.forms.values())) + 1


def _forms(family: Family, n_sms: int, n_rows: int) -> Iterator[str]:
    for form, names in family.forms.items():
        if len(names) < n_rows and (n_sms or not counts_tiles(family, form)):
            yield form


def _folds(family: Family, table: Measured) -> tuple[IntArray, str]:
    """Two halves of the rows, shapes whole; rows by themselves where there are too few of them."""
    if table.n_rows < FEWEST_FOR_HALVES:
        return np.arange(table.n_rows), "rows"
    shapes = np.stack([table.columns[name] for name in family.shape], axis=1)
    _, index = np.unique(shapes, axis=0, return_inverse=True)
    if index.max() >= 3:
        return np.asarray(index.reshape(-1) % 2), "shapes"
    return np.arange(table.n_rows) % 2, "rows"


def _solver() -> Callable[..., Any]:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        remedy = "`pip install 'llm-serving-planner[calibrate]'`"
        fact = "needs the package scipy"
        raise RequestError([Problem(where="plan calibrate", fact=fact, remedy=remedy)]) from None
    return least_squares  # type: ignore[no-any-return]


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
            refusal = RejectedRow(file=table.file, line=0, reason=f"{_kind(table)}: {reason}")
            admitted += Reading(refused=(refusal,))
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
        return Reading(refused=(RejectedRow(file=table.file, line=0, reason=whole),))
    reasons = dict.fromkeys(np.flatnonzero(~timed), "has no time")
    for row in np.flatnonzero(impossible):
        reasons[row] = (
            f"{_kind(table)}: {show(table.measured_s[row], 's')} is less than the "
            f"{show(ideal_s[row], 's')} that the datasheet allows"
        )
    refused = tuple(
        RejectedRow(file=table.file, line=int(table.lines[row]), reason=reason)
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
