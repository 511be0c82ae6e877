"""Six constants of one engine on one device for one model, fitted to serving runs.

Logarithms of TPOT and TTFT are linear enough in the constants that a few Gauss-Newton steps of a
maximum a posteriori fit find them. Before any run they are those of the files that ship, with the
deviations `PRIOR_SDS`; times of runs scatter by `RUN_SDS`, and runs beyond 1.5 of these count less
(Huber). All constants are then drawn back by one share, as far as constants of the other runs fail
to predict each run that is left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.equations.arrays import FloatArray, IntArray
from planner.specs.records.kernels import ENGINE_CONSTANTS

CONSTANTS = ("bytes_slowness", "flop_slowness", *ENGINE_CONSTANTS)
"""In the order of arrays: logarithms of factors, then what is added to the engine's [s]."""

N_FACTORS = 2
_TENTH = float(np.log(1.1))

PRIOR_SDS = np.array([2 * _TENTH, 4 * _TENTH, 2e-3, 40e-6, 20e-3, 40e-3])
"""Of constants before any run. Chosen among some twenty by half of the public sets of runs, five
rows of which predict the others, as `RUN_SDS`, `LEAST_GAIN` and `GAINS` are; the other half
agrees: `research.sets.calibrating`."""

RUN_SDS = np.array([0.05, 0.10])
"""Of TPOT and TTFT of a run, relative [1]."""

STEPS = np.array([_TENTH, _TENTH, 1e-3, 20e-6, 10e-3, 20e-3])
"""Over which slopes are taken."""

HUBER, N_REWEIGHTED, N_STEPS = 1.5, 4, 3

LEAST_GAIN, GAINS = 1.2, 0.3
"""Errors with constants of other runs, over errors without, from which on constants are left
alone; and less of which they count in full [1]."""

SHARE_OF_ONE = 0.5
"""Of constants that a single run gives, which no other run can judge."""

N_PRIOR_RUNS = 4.0
"""Runs that the packaged error of an engine counts for beside those that are left out."""

Predict = Callable[[FloatArray], FloatArray]
"""Constants (6,) to logarithms of TPOT and TTFT of runs (N, 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFit:
    """Constants and what they are worth; residuals are log(predicted / measured) (N, 2).

    Args:
        constants: in the order of `CONSTANTS` (6,).
        share: of what runs alone would say, that is kept [1].
        before, after: residuals without the constants, and with them.
        left_out: of each run by constants of the others; None of a single run.
        slopes: of the logarithms of times by constants, where the fit begins (N, 2, 6).
    """

    constants: FloatArray
    share: float
    before: FloatArray
    after: FloatArray
    left_out: FloatArray | None
    slopes: FloatArray


def fit(measured: FloatArray, predict: Predict, least: FloatArray) -> ServingFit:
    """Fit the constants.

    Args:
        measured: logarithms of TPOT and TTFT of runs, NaN of what is not known (N, 2).
        predict: the same as predicted.
        least: constants below which an engine would take less than no time (6,).
    """
    at, every = np.zeros(len(CONSTANTS)), np.arange(len(measured))
    slopes_by_step, before = [], predict(at) - measured
    for _ in range(N_STEPS):
        predicted = predict(at)
        slopes_by_step.append(slopes := slopes_of(predict, at, predicted))
        at_zero = predicted - measured - slopes @ at  # residuals, were all of it linear
        at = _solved(at_zero, slopes, every, least)
    left_out, share = None, SHARE_OF_ONE
    if len(measured) > 1:
        others = [_solved(at_zero, slopes, np.delete(every, i), least) for i in every]

        def by_others(share: float) -> FloatArray:
            return np.array([at_zero[i] + slopes[i] @ (share * others[i]) for i in every])

        gain = mean_off(by_others(1.0)) / max(mean_off(before), 1e-12)
        share = float(np.clip((LEAST_GAIN - gain) / GAINS, 0.0, 1.0))
        left_out = by_others(share)
    return ServingFit(
        constants=share * at,
        share=share,
        before=before,
        after=predict(share * at) - measured,
        left_out=left_out,
        slopes=slopes_by_step[0],
    )


def slopes_of(predict: Predict, at: FloatArray, predicted: FloatArray) -> FloatArray:
    """Differences of times over steps of each constant (N, 2, 6)."""
    return np.stack([(predict(at + h) - predicted) / h.sum() for h in np.diag(STEPS)], axis=-1)


def mean_off(residuals: FloatArray) -> float:
    """Mean of |predicted / measured - 1| [1]."""
    return float(np.nanmean(np.abs(np.expm1(residuals))))


def _solved(
    residuals: FloatArray, slopes: FloatArray, runs: IntArray, least: FloatArray
) -> FloatArray:
    """The most likely constants of some runs; those that would fall below the least are it (6,)."""
    constants, free = np.zeros(len(CONSTANTS)), np.arange(len(CONSTANTS))
    known = ~np.isnan(residuals[runs])
    targets = -(residuals[runs] / RUN_SDS)[known]
    matrix = (slopes[runs] / RUN_SDS[:, None])[known]
    while True:
        held = np.where(np.isin(np.arange(len(CONSTANTS)), free), 0.0, constants)
        constants = held.copy()
        constants[free] = _most_likely(targets - matrix @ held, matrix[:, free], PRIOR_SDS[free])
        below = free[constants[free] < least[free] - 1e-15]
        if not len(below):
            return constants
        constants[below] = least[below]
        free = np.setdiff1d(free, below)


def _most_likely(targets: FloatArray, matrix: FloatArray, sds: FloatArray) -> FloatArray:
    """Constants by least squares, their priors among them, and runs reweighted by Huber (K,)."""
    weights: FloatArray = np.ones(len(targets))
    constants: FloatArray = np.zeros(len(sds))
    for _ in range(N_REWEIGHTED):
        rows = np.vstack([matrix * weights[:, None], np.diag(1.0 / sds)])
        goal = np.r_[targets * weights, np.zeros(len(sds))]
        constants = np.asarray(np.linalg.lstsq(rows, goal, rcond=None)[0], dtype=float)
        off = np.maximum(np.abs(targets - matrix @ constants), 1e-9)
        weights = np.sqrt(np.minimum(1.0, HUBER / off))
    return constants


def pooled_error(left_out: FloatArray, packaged: float) -> float:
    """Relative standard deviation of a time, of runs left out and of the packaged one [1].

    Args:
        left_out: residuals of that time, none of a single run (N,).
        packaged: what the engine's error is without any run.
    """
    squares = N_PRIOR_RUNS * packaged**2 + float(np.nansum(left_out**2))
    return float(np.sqrt(squares / (N_PRIOR_RUNS + np.sum(~np.isnan(left_out)))))


def likeliest_cause(before: FloatArray, slopes: FloatArray) -> tuple[str, float, float]:
    """The one constant that alone explains most of what runs are off.

    Returns:
        Its name, its value, and the share of squared residuals that it explains [1].
    """
    known = ~np.isnan(before)
    off, each = (before / RUN_SDS)[known], (slopes / RUN_SDS[:, None])[known]
    squares = np.maximum(np.sum(each**2, axis=0), 1e-300)
    values = -(off @ each) / squares
    explained = values**2 * squares / max(float(off @ off), 1e-300)
    best = int(np.argmax(explained))
    return CONSTANTS[best], float(values[best]), float(explained[best])


def telling(slopes: FloatArray, offered: FloatArray, n: int = 3) -> Sequence[int]:
    """Runs that would tell most: those that leave the least variance of predictions on the grid.

    Args:
        slopes: of runs that are known (N, 2, 6).
        offered: of runs that may be made, and for which times are wanted (M, 2, 6).
        n: how many; each after those before it.
    """
    rows, grid = (slopes / RUN_SDS[:, None]).reshape(-1, len(CONSTANTS)), offered / RUN_SDS[:, None]
    information = np.diag(PRIOR_SDS**-2.0) + rows.T @ rows
    wanted, chosen = np.einsum("nqi,nqj->ij", grid, grid), list[int]()
    for _ in range(min(n, len(grid))):
        known = [information + it.T @ it for it in grid]
        left = [float(np.trace(np.linalg.solve(it, wanted))) for it in known]
        chosen.append(min(set(range(len(grid))) - {*chosen}, key=left.__getitem__))
        information = known[chosen[-1]]
    return chosen
