"""Fit the attainable fractions to a few named rows, by least squares of log-residuals.

    python -m research.calibration        prints what the device files should say

The files round each constant to three digits; `test_timings.py` fits again and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.estimates.steps import Machine
from planner.specs.records.devices import DeviceSpec
from research import rows
from research.bench import Physics, machine_of
from research.rows import Row
from research.timing import predicted_s

TPU_CONSTANTS = ("compute_fraction", "hbm_fraction", "layer_overhead_s")
A100_CONSTANTS = ("compute_fraction", "layer_overhead_s")
"""Two only: D.2 cannot tell the fractions of HBM, NVLink and InfiniBand apart; they are assumed."""

START = {"compute_fraction": 0.5, "hbm_fraction": 0.5, "layer_overhead_s": 1e-4}


Predict = Callable[[Row, Physics], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Constants fitted on rows, and what remains of each row."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    rows: tuple[Row, ...]
    errors: tuple[float, ...]

    def constants(self) -> dict[str, float]:
        return dict(zip(self.names, self.values, strict=True))


def with_constants(**constants: float) -> Physics:
    """The same machine with other attainable fractions."""

    def change(machine: Machine) -> Machine:
        return replace(machine, device=replace(machine.device, **constants))

    return change


def fit(names: Sequence[str], chosen: Sequence[Row], *, predict: Predict = predicted_s) -> Fit:
    """Constants that predict the rows best: least Σ log²(predicted/measured).

    Levenberg and Marquardt's descent on the logarithms of the constants, from `START`,
    with a fixed number of steps: the same rows give the same digits on any machine.
    A fraction stays at or below one.
    """
    measured_s = np.array([row.judged_ms / 1e3 for row in chosen])

    def residuals(logs: np.ndarray) -> np.ndarray:
        constants = dict(zip(names, np.exp(logs).tolist(), strict=True))
        physics = with_constants(**constants)
        return np.log(np.array([predict(row, physics) for row in chosen]) / measured_s)

    start = np.log([START[name] for name in names])
    ceiling = np.array([0.0 if name.endswith("_fraction") else np.inf for name in names])
    logs = _least_squares(residuals, start, ceiling)
    return Fit(
        names=tuple(names),
        values=tuple(np.exp(logs).tolist()),
        rows=tuple(chosen),
        errors=tuple(np.expm1(residuals(logs)).tolist()),
    )


def _least_squares(
    residuals: Callable[[np.ndarray], np.ndarray],
    point: np.ndarray,
    ceiling: np.ndarray,
    n_steps: int = 20,
) -> np.ndarray:
    current, damping = residuals(point), 1e-3
    for _ in range(n_steps):
        slopes = _slopes(residuals, point, current)
        normal, downhill = slopes.T @ slopes, slopes.T @ current
        free = (point < ceiling) | (downhill > 0)  # what rests at its ceiling and pushes up stays
        damped = (normal + damping * np.diag(np.diag(normal)))[np.ix_(free, free)]
        move = np.zeros_like(point)
        move[free] = np.linalg.solve(damped, downhill[free])
        candidate = np.minimum(point - move, ceiling)
        attempt = residuals(candidate)
        if attempt @ attempt < current @ current:
            point, current, damping = candidate, attempt, damping / 10
        else:
            damping *= 10
    return point


def _slopes(
    residuals: Callable[[np.ndarray], np.ndarray], point: np.ndarray, current: np.ndarray
) -> np.ndarray:
    nudge = 1e-6
    columns = [(residuals(point + nudge * axis) - current) / nudge for axis in np.eye(len(point))]
    return np.stack(columns, axis=1)


@cache
def fitted_tpu() -> Fit:
    """Three constants on five rows."""
    return fit(TPU_CONSTANTS, rows.tpu_calibration())


@cache
def fitted_a100() -> Fit:
    """Two constants on the 27 rows of Table D.2."""
    return fit(A100_CONSTANTS, rows.a100_calibration())


@cache
def tpu_without_each() -> tuple[Fit, ...]:
    """Five fits on four rows each: how much each constant hangs on one row."""
    chosen = rows.tpu_calibration()
    return tuple(fit(TPU_CONSTANTS, [r for r in chosen if r is not left]) for left in chosen)


def tpu_device() -> DeviceSpec:
    """The device as its file has it."""
    return machine_of("tpu-v4-4x4x4", "4×4×4").device


def a100_device() -> DeviceSpec:
    """The device as its file has it."""
    return machine_of("dgx-a100-x2", "TP 16").device


def three_digits(value: float) -> float:
    """Rounded as the files are."""
    return float(f"{value:.3g}")


if __name__ == "__main__":
    for device, fitted in (("tpu-v4", fitted_tpu()), ("a100-80gb", fitted_a100())):
        for name, value in fitted.constants().items():
            print(f"{device}: {name} = {three_digits(value):g}   ({value:.6g})")
