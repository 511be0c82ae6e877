"""A user's own serving runs, predicted as `plan predict` does, and what they say of an engine."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray
from planner.estimates.calibrated import slowed_table
from planner.estimates.serving.deployments import kind_of
from planner.runtimes.predicting import GivenDeployment
from planner.specs.records.kernels import (
    ENGINE_CONSTANTS,
    EngineSpec,
    EngineTables,
    ServingCalibration,
)
from planner.specs.records.model_errors import QUANTITIES, engine_error
from planner.specs.validation.hints import from_fields
from planner.tools.calibration.runs import ServingRun, known_formats
from planner.tools.calibration.serving_fit import (
    CONSTANTS,
    N_FACTORS,
    ServingFit,
    fit,
    likeliest_cause,
    mean_off,
    pooled_error,
    slopes_of,
    telling,
)

MEAN, MEDIAN, MIXED = "mean", "median", "mixed"

IN_FLIGHT = (1, 8, 64, 256)
LENGTHS = ((1024, 1024), (8192, 1024), (1024, 128))
"""Of runs that may be made, beside lengths of those that were."""

MOST_LENGTHS = 4
N_PER_PLACE = 10
"""Requests of each place of such a run: its first wave is then a tenth of it."""

DEGREES = ("--tp", "--pp", "--dp", "--ep")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRun:
    """A run, the options of `plan predict` that it is, and the deployment that they give."""

    run: ServingRun
    options: Mapping[str, str]
    given: GivenDeployment

    @property
    def key(self) -> tuple[str, str, str]:
        """Engine, device and model, of which constants are."""
        machines = self.given.machines
        return machines.engine.name, machines.device.name, self.given.model.name

    @property
    def command(self) -> str:
        return predict_command(self.options)

    @property
    def measured(self) -> list[float]:
        """Logarithms of TPOT and TTFT."""
        return [float(np.log(self.run.tpot_s)), float(np.log(self.run.ttft_s))]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """A run that would tell much: what it is to the planner, and how it is made."""

    command: str
    bench: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRuns:
    """What the runs of one engine, device and model say.

    Args:
        runs: in the order of the fit.
        cause: the constant that alone explains most, its value and the share that it explains.
        next_runs: that would tell most, the first first.
        engine: as it is without them.
    """

    runs: tuple[PredictedRun, ...]
    fit: ServingFit
    calibration: ServingCalibration
    cause: tuple[str, float, float]
    next_runs: tuple[NextRun, ...]
    engine: EngineSpec


def predict_command(options: Mapping[str, str]) -> str:
    """`plan predict` of options."""
    return shlex.join(["plan", "predict", *(word for one in options.items() for word in one)])


def calibrate_serving(
    runs: Sequence[PredictedRun],
    *,
    read: Callable[[Mapping[str, str]], GivenDeployment | None],
    source: str,
) -> CalibratedRuns:
    """Fit the constants of one engine on one device for one model.

    Args:
        runs: of these, all.
        read: the deployment that options of `plan predict` give; None where it cannot be.
        source: where the runs come from, for the file.
    """
    engine, kind = runs[0].given.machines.engine, kind_of(runs[0].given.model)

    def predict(constants: FloatArray) -> FloatArray:
        return np.array([log_times(one.given, constants, one.run.statistic) for one in runs])

    least = np.array([-np.inf] * N_FACTORS + [-getattr(engine, it) for it in ENGINE_CONSTANTS])
    fitted = fit(np.array([one.measured for one in runs]), predict, least)
    left_out = fitted.left_out
    errors: dict[str, Any] = {
        f"{name.lower()}_error": pooled_error(
            None if left_out is None else left_out[:, i], engine_error(engine, kind, name)
        )
        for i, name in enumerate(QUANTITIES)
    }
    errors |= {
        f"{name.lower()}_off": mean_off(fitted.before[:, i]) for i, name in enumerate(QUANTITIES)
    }
    if left_out is not None:
        errors |= {
            f"{name.lower()}_left_out": mean_off(left_out[:, i])
            for i, name in enumerate(QUANTITIES)
        }
    calibration = _calibration(runs, fitted.constants, {**errors, "source": source})
    return CalibratedRuns(
        runs=tuple(runs),
        fit=fitted,
        calibration=calibration,
        cause=likeliest_cause(fitted.before, fitted.slopes),
        next_runs=tuple(_next_runs(runs, fitted, read)),
        engine=engine,
    )


def changed(tables: EngineTables, constants: FloatArray) -> EngineTables:
    """An engine and its kernels with constants of a fit (6,)."""
    bytes_factor, flop_factor = np.exp(constants[:N_FACTORS])
    added = zip(ENGINE_CONSTANTS, constants[N_FACTORS:], strict=True)
    own: dict[str, Any] = {
        name: max(0.0, float(getattr(tables.engine, name) + seconds)) for name, seconds in added
    }
    return EngineTables(
        engine=replace(tables.engine, **own),
        kernels=slowed_table(tables.kernels, float(bytes_factor), float(flop_factor)),
    )


def _calibration(
    runs: Sequence[PredictedRun], constants: FloatArray, errors: Mapping[str, float | str]
) -> ServingCalibration:
    """What a file says of constants of a fit."""
    engine, device, model = runs[0].key
    statistics = {one.run.statistic for one in runs}
    factors = [float(factor) for factor in np.exp(constants[:N_FACTORS])]
    return from_fields(
        ServingCalibration,
        changed(_tables(runs[0].given), constants).engine,
        engine=engine,
        device=device,
        model=model,
        bytes_slowness=factors[0],
        flop_slowness=factors[1],
        n_runs=len(runs),
        statistic=statistics.pop() if len(statistics) == 1 else MIXED,
        **errors,
    )


def _tables(given: GivenDeployment) -> EngineTables:
    return EngineTables(engine=given.machines.engine, kernels=given.machines.kernels)


def log_times(given: GivenDeployment, constants: FloatArray, statistic: str = MEAN) -> list[float]:
    """Logarithms of TPOT and TTFT of a deployment with constants of a fit.

    Args:
        statistic: of the requests: the first wave is in the mean, and not in the median.
    """
    tables = changed(_tables(given), constants)
    machines = replace(given.machines, engine=tables.engine, kernels=tables.kernels)
    times = replace(given, machines=machines).times()
    first_s = times.later_waves_s if statistic == MEDIAN else times.ttft_s
    return [float(np.log(times.tpot_s[0])), float(np.log(first_s[0] + times.queue_s[0]))]


def _next_runs(
    runs: Sequence[PredictedRun],
    fitted: ServingFit,
    read: Callable[[Mapping[str, str]], GivenDeployment | None],
) -> Iterator[NextRun]:
    """Of a small grid, those that leave the least variance of what is predicted on it."""
    engine, made = runs[0].given.machines.engine, {_place(one.options) for one in runs}
    offered = [it for it in _grid(runs) if _place(it) not in made]
    pairs = [(it, given) for it in offered if (given := read(it)) is not None]
    if not pairs:
        return

    def predict(constants: FloatArray) -> FloatArray:
        return np.array([log_times(given, constants) for _, given in pairs])

    at = np.zeros(len(CONSTANTS))
    slopes = slopes_of(predict, at, predict(at))
    templates = known_formats()["bench"]
    for i in telling(fitted.slopes, slopes):
        options, given = pairs[i]
        n_prompts = int(options["--in-flight"]) * N_PER_PLACE
        bench = templates.get(engine.name, templates["others"]).format(
            model=given.model.repository or given.model.name,
            input=options["--input"],
            output=options["--output"],
            in_flight=options["--in-flight"],
            n_prompts=n_prompts,
        )
        yield NextRun(command=predict_command(options), bench=bench)


def _place(options: Mapping[str, str]) -> tuple[str, ...]:
    """Where in the grid a run is."""
    return tuple(options.get(it, "") for it in ("--in-flight", "--input", "--output", *DEGREES))


def _grid(runs: Sequence[PredictedRun]) -> Iterator[dict[str, str]]:
    """Runs that may be made, with the degrees of those that were."""
    ways: dict[tuple[str, ...], Mapping[str, str]] = {}
    for one in runs:
        ways.setdefault(tuple(one.options.get(it, "") for it in DEGREES), one.options)
    own = ((int(one.options["--input"]), int(one.options["--output"])) for one in runs)
    lengths = list(dict.fromkeys([*own, *LENGTHS]))[:MOST_LENGTHS]
    for options, (n_input, n_output), n in product(ways.values(), lengths, IN_FLIGHT):
        sent = {"--input": str(n_input), "--output": str(n_output)}
        loop = {"--in-flight": str(n), "--waves": str(N_PER_PLACE)}
        yield {**options, **sent, **loop}
