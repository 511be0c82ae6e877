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
from planner_workshop.calibration.runs import TABLE, ServingRun
from planner_workshop.calibration.serving_fit import (
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

MOST_OFF = 10.0
"""Predicted over measured beyond which a run is of something else, or TPOT its inverse."""

DEGREES = ("--tp", "--pp", "--dp", "--ep")

Options = Mapping[str, str]
"""Of `plan predict`, by name."""

Read = Callable[[Options], GivenDeployment | None]
"""Options to the deployment that they give; None where it cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedRun:
    """A run, the options of `plan predict` that it is, and the deployment that they give."""

    run: ServingRun
    options: Options
    given: GivenDeployment

    @property
    def key(self) -> tuple[str, str, str]:
        """Engine, device and model, of which constants are."""
        machines = self.given.machines
        return machines.engine.name, machines.device.name, self.given.model.name

    @property
    def command(self) -> str:
        return predict_command(self.options)


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


def predict_command(options: Options) -> str:
    """`plan predict` of options."""
    return shlex.join(["plan", "predict", *(word for one in options.items() for word in one)])


def calibrate_serving(runs: Sequence[PredictedRun], *, read: Read, source: str) -> CalibratedRuns:
    """Fit the constants of one engine on one device for one model.

    Args:
        runs: of these, all.
        source: where the runs come from, for the file.
    """
    engine, kind = runs[0].given.machines.engine, kind_of(runs[0].given.model)

    def predict(constants: FloatArray) -> FloatArray:
        return np.array([log_times(it.given, constants, it.run.statistic) for it in runs])

    measured = np.log([[it.run.tpot_s, it.run.ttft_s] for it in runs])
    fitted = fit(measured, predict, least_constants(engine))
    left_out = fitted.left_out
    errors: dict[str, Any] = {}
    for i, name in enumerate(QUANTITIES):
        mine, others = name.lower(), None if left_out is None else left_out[:, i]
        errors[f"{mine}_off"] = mean_off(fitted.before[:, i])
        errors[f"{mine}_left_out"] = None if others is None else mean_off(others)
        packaged = engine_error(engine, kind, name)
        errors[f"{mine}_error"] = pooled_error(np.zeros(0) if others is None else others, packaged)
    statistics = {it.run.statistic for it in runs}
    own, device, model = runs[0].key
    return CalibratedRuns(
        runs=tuple(runs),
        fit=fitted,
        calibration=from_fields(
            ServingCalibration,
            changed(_tables(runs[0].given), fitted.constants).engine,
            engine=own,
            device=device,
            model=model,
            bytes_slowness=float(np.exp(fitted.constants[0])),
            flop_slowness=float(np.exp(fitted.constants[1])),
            n_runs=len(runs),
            statistic=statistics.pop() if len(statistics) == 1 else "mixed",
            source=source,
            **errors,
        ),
        cause=likeliest_cause(fitted.before, fitted.slopes),
        next_runs=tuple(_next_runs(runs, fitted, read)),
        engine=engine,
    )


def least_constants(engine: EngineSpec) -> FloatArray:
    """Constants below which an engine takes less than no time, or kernels no time worth it (6,)."""
    return np.array(
        [-np.log(MOST_OFF)] * N_FACTORS + [-getattr(engine, it) for it in ENGINE_CONSTANTS]
    )


def changed(tables: EngineTables, constants: FloatArray) -> EngineTables:
    """An engine and its kernels with constants of a fit (6,)."""
    bytes_factor, flop_factor = map(float, np.exp(constants[:N_FACTORS]))
    own: dict[str, Any] = {
        name: max(0.0, float(getattr(tables.engine, name) + seconds))
        for name, seconds in zip(ENGINE_CONSTANTS, constants[N_FACTORS:], strict=True)
    }
    return EngineTables(
        engine=replace(tables.engine, **own),
        kernels=slowed_table(tables.kernels, bytes_factor, flop_factor),
    )


def _tables(given: GivenDeployment) -> EngineTables:
    return EngineTables(engine=given.machines.engine, kernels=given.machines.kernels)


def misfit(run: PredictedRun) -> str:
    """Why a run cannot be of the deployment that it is said to be; empty of one that may."""
    measured, times = (run.run.tpot_s, run.run.ttft_s), run.given.times()
    shares = np.array([times.tpot_s[0], times.ttft_s[0] + times.queue_s[0]]) / measured
    slow = zip(QUANTITIES, shares, (1.0 / MOST_OFF, 0.0), strict=True)  # bursts wait for long
    return "; ".join(
        f"{name} is {1.0 / share:.3g} times what is predicted: is it this model, on these devices?"
        for name, share, least in slow
        if not least <= share <= MOST_OFF
    )


def log_times(
    given: GivenDeployment, constants: FloatArray, statistic: str = "mean"
) -> list[float]:
    """Logarithms of TPOT and TTFT of a deployment with constants of a fit.

    Args:
        statistic: of the requests: the first wave is in the mean, and not in the median.
    """
    tables = changed(_tables(given), constants)
    machines = replace(given.machines, engine=tables.engine, kernels=tables.kernels)
    times = replace(given, machines=machines).times()
    first_s = times.later_waves_s if statistic == "median" else times.ttft_s
    return [float(np.log(times.tpot_s[0])), float(np.log(first_s[0] + times.queue_s[0]))]


def _next_runs(runs: Sequence[PredictedRun], fitted: ServingFit, read: Read) -> Iterator[NextRun]:
    """Of a small grid, those that leave the least variance of what is predicted on it."""
    made = {_place(it.options) for it in runs}
    offered = [it for it in _grid(runs) if _place(it) not in made]
    pairs = [(it, given) for it in offered if (given := read(it)) is not None]
    if not pairs:
        return

    def predict(constants: FloatArray) -> FloatArray:
        return np.array([log_times(given, constants) for _, given in pairs])

    at, benches = np.zeros(len(CONSTANTS)), TABLE["bench"]
    for i in telling(fitted.slopes, slopes_of(predict, at, predict(at))):
        options, model = pairs[i][0], pairs[i][1].model
        bench = benches.get(runs[0].key[0], benches["others"]).format(
            model=model.repository or model.name,
            n_prompts=int(options["--in-flight"]) * int(options["--waves"]),
            **{
                name[2:].replace("-", "_"): text
                for name, text in options.items()
                if name != "--model"
            },
        )
        yield NextRun(command=predict_command(options), bench=bench)


def _place(options: Options) -> tuple[str, ...]:
    """Where in the grid a run is."""
    return tuple(options.get(it, "") for it in ("--in-flight", "--input", "--output", *DEGREES))


def _grid(runs: Sequence[PredictedRun]) -> Iterator[dict[str, str]]:
    """Runs that may be made, with the degrees of those that were."""
    ways = {tuple(it.options.get(name, "") for name in DEGREES): it.options for it in runs}
    own, grid = [(it.options["--input"], it.options["--output"]) for it in runs], TABLE["grid"]
    lengths = dict.fromkeys([*own, *(tuple(map(str, it)) for it in grid["lengths"])])
    few = list(lengths)[: grid["most_lengths"]]
    for options, (n_input, n_output), n in product(ways.values(), few, grid["in_flight"]):
        sent = {"--input": n_input, "--output": n_output, "--in-flight": str(n)}
        yield {**options, **sent, "--waves": str(grid["per_place"])}
