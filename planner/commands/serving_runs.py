"""Serving runs of a user's own as requests of `plan predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.commands import RUN_OPTIONS, options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer

if TYPE_CHECKING:
    from planner.results.predictions import Prediction
    from planner.runtimes.predicting import GivenDeployment
    from planner.tools.calibration.runs import RunReading, ServingRun
    from planner.tools.calibration.serving import PredictedRun

NEEDED = {
    "--model": "write `--model qwen3-32b`, see `plan models`",
    "--device": "write `--device h200`, or `--topology h200-nvl8-x2` for its network",
    "--engine": "write `--engine vllm`",
    "--tp": "write `--tp 8`, or `--tp 1` of one device",
}
"""Options without which nobody knows what ran."""

OF_KERNELS = ("--network", "--plot", "--sms", "--engine-version")

MOST_REASONS = 5


def run_paths(said: Said) -> list[Path]:
    """Files of runs among tables; none where they are of kernels.

    Both together are a problem, as are options of the others.
    """
    from planner.tools.calibration.runs import run_files

    by_table = {name: run_files(Path(name)) for name in said.table}
    runs = [path for paths in by_table.values() for path in paths]
    for name, paths in by_table.items():
        if runs and not paths:
            said.refuse("--table", "is no serving run, as the others are", value=name)
    whose, others = ("kernels", OF_KERNELS) if runs else ("serving runs", RUN_OPTIONS)
    for option in others:
        if said.is_given(option) and (runs or option not in ("--device", "--engine")):
            said.refuse(option, f"is of {whose}, and these tables are not", "leave it out")
    return runs


def calibrate_runs(said: Said, paths: Sequence[Path]) -> Answer:
    """Constants of engines, fitted to serving runs."""
    from planner.running import begin
    from planner.specs.files.calibrations import calibration_file
    from planner.tools.calibration.serving import calibrate_serving
    from planner.tools.calibration.serving_report import COMMENT, runs_document
    from planner.tools.calibration.tables import RejectedRow

    reading = read_all(said, paths)
    refused = list(reading.refused)
    groups: dict[tuple[str, str, str], list[PredictedRun]] = {}
    for i, run in enumerate(reading.runs, 1):
        begin(f"predicting run {i} of {len(reading.runs)}")
        try:
            one = predicted_run(said, run)
            groups.setdefault(one.key, []).append(one)
        except RequestError as error:
            reasons = "; ".join(f"{it.where} {it.value}: {it.fact}" for it in error.problems)
            refused.append(RejectedRow(file=run.file, line=run.line, reason=reasons))
    if not groups:
        whole = Problem(where="plan calibrate", fact="no run is left to fit")
        rows = [Problem(where=it.place, fact=it.reason) for it in refused[:MOST_REASONS]]
        raise RequestError([whole, *rows])
    source = said.source or ", ".join(dict.fromkeys(path.name for path in paths))[:200]
    answers = []
    for key, runs in groups.items():
        begin(f"fitting {' '.join(key)} to {len(runs)} runs")
        answers.append(calibrate_serving(runs, read=_possible, source=source))
    calibrations = [one.calibration for one in answers]
    written = (
        [] if said.output is None else [(said.output, calibration_file(calibrations, COMMENT))]
    )
    return shown(
        said,
        lambda: runs_document(answers, refused, output=said.output, names_refused=said.refused),
        files=written,
    )


def read_all(said: Said, paths: Sequence[Path]) -> RunReading:
    """Runs of files, each of which says, with the options, what ran.

    Raises:
        RequestError: a file cannot be read, or nobody says what ran; all problems are listed.
    """
    from planner.tools.calibration.runs import RunReading, read_runs

    whole = RunReading()
    for path in paths:
        part = said.collect(partial(read_runs, path))
        if part is not None:
            whole.runs += part.runs
            whole.refused += part.refused
    for option, remedy in NEEDED.items():
        lacking = [one for one in whole.runs if option not in options_of_run(said, one)]
        if option == "--device":
            lacking = [one for one in lacking if "--topology" not in options_of_run(said, one)]
        if lacking:
            fact = f"is not given, and {lacking[0].place} does not say it"
            said.refuse(option, fact, remedy, value="")
    said.check()
    return whole


def options_of_run(said: Said, run: ServingRun) -> dict[str, str]:
    """Options of `plan predict` that a run is: what its file says, and what the command says.

    A model is called what the command says: servers call it anything.
    """
    texts = {name: said.text(name) for name in RUN_OPTIONS if said.is_given(name)}
    return {**run.options, **texts}


def predicted_run(said: Said, run: ServingRun) -> PredictedRun:
    """A run with the deployment that it is.

    Raises:
        RequestError: it cannot be, or the command contradicts it; all problems are listed.
    """
    from planner.tools.calibration.serving import PredictedRun

    options = options_of_run(said, run)
    unlike = [it for it in run.options if it != "--model" and run.options[it] != options[it]]
    if unlike:
        raise RequestError(
            [
                Problem(where=it, value=run.options[it], fact=f"is {options[it]} of the command")
                for it in unlike
            ]
        )
    order = {name: options[name] for name in (*RUN_OPTIONS, *options) if name in options}
    return PredictedRun(run=run, options=order, given=_given(order))


def _given(options: Mapping[str, str]) -> GivenDeployment:
    from planner.commands.predict import given_of

    said = parse(["predict", *(f"{name}={text}" for name, text in options.items())])
    return given_of(said)


def _possible(options: Mapping[str, str]) -> GivenDeployment | None:
    try:
        return _given(options)
    except RequestError:
        return None


def measured_run(said: Said) -> tuple[PredictedRun, Prediction] | tuple[()]:
    """The run that `--measured` names, predicted; what it says becomes options of the audit.

    What is wrong with it is a problem among the others.
    """
    from planner.runtimes.predicting import predict
    from planner.tools.calibration.runs import read_runs

    reading = said.collect(lambda: read_runs(Path(said.measured)))
    if reading is None:
        return ()
    if len(reading.runs) != 1:
        refused = "".join(f": {it}" for it in reading.refused[:1])
        remedy = "name a file of one run, or `plan calibrate` for several"
        said.refuse("--measured", f"has {len(reading.runs)} runs, not one{refused}", remedy)
        return ()
    (run,) = reading.runs
    for name in ("--speed", "--batch", "--input", "--output"):
        if said.is_given(name):
            said.refuse(name, "is what `--measured` says", "leave it out")
    one = said.collect(lambda: predicted_run(said, run))
    if one is None:
        return ()
    given = one.given
    batch = int(one.options["--in-flight"]) // int(given.table.n_data[0])
    told = {"--speed": f"{1.0 / run.tpot_s:.9g}tok/s", "--batch": str(batch), **run.options}
    for name, row in options_of(said.command).items():
        if name in told and not said.is_given(name):
            said.texts[name] = [told[name]]
            said.read_option(row)
    return one, predict(given.model, given.machines, given.table, given.traffic)
