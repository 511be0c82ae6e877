"""Serving runs of a user's own as requests of `plan predict`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.commands import RUN_OPTIONS, options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer
from planner.specs.files.ledger import remark
from planner.specs.huggingface.aliases import are_two_models, model_named

if TYPE_CHECKING:
    from planner.results.predictions import Prediction
    from planner.runtimes.predicting import GivenDeployment
    from planner_workshop.calibration.runs import ServingRun
    from planner_workshop.calibration.serving import PredictedRun

OF_KERNELS = ("--network", "--plot", "--sms", "--engine-version")
OF_RUNS = (*RUN_OPTIONS, "--replicas")
OF_BOTH = ("--device", "--engine")
OF_DRAFTS = ("--draft", "--acceptance", "--lookahead")
MOST_REASONS = 5


def run_paths(said: Said) -> list[Path]:
    """Files of runs among tables; none where they are of kernels.

    Both together are a problem, as are options of the others.
    """
    from planner_workshop.calibration.runs import run_files

    by_table = {name: run_files(Path(name)) for name in said.table}
    runs = [path for paths in by_table.values() for path in paths]
    for name in [name for name, paths in by_table.items() if runs and not paths]:
        said.refuse("--table", "is no serving run, as the others are", value=name)
    whose, others = ("kernels", OF_KERNELS) if runs else ("serving runs", OF_RUNS)
    for option in filter(said.is_given, others):
        if option not in OF_BOTH:
            said.refuse(option, f"is of {whose}, and these tables are not", "leave it out")
    return runs


def calibrate_runs(said: Said, paths: Sequence[Path]) -> Answer:
    """Constants of engines, fitted to serving runs."""
    from planner.running import begin
    from planner.specs.ask.calibrations import calibration_file
    from planner_workshop.calibration.runs import TABLE, read_runs
    from planner_workshop.calibration.serving import calibrate_serving
    from planner_workshop.calibration.serving_report import runs_document

    each = partial(read_runs, n_replicas=said.replicas)
    read = [part for path in paths if (part := said.collect(partial(each, path)))]
    runs = [run for part, _ in read for run in part]
    _refuse_unsaid(said, runs)
    said.check()
    refused = [str(row) for _, rows in read for row in rows]
    groups = _grouped(said, runs, refused)
    source = said.source or ", ".join(dict.fromkeys(path.name for path in paths))[:200]
    begin(f"fitting engines to {len(runs)} runs")
    fitted = partial(calibrate_serving, read=_possible, source=source)
    answers = list(map(fitted, groups))
    text = calibration_file([answer.calibration for answer in answers], TABLE["file"]["comment"])
    return shown(
        said,
        lambda: runs_document(answers, refused, output=said.output, names_refused=said.refused),
        files=() if said.output is None else ((said.output, text),),
    )


def _refuse_unsaid(said: Said, runs: Sequence[ServingRun]) -> None:
    """Options without which nobody knows what ran, where nobody has them."""
    from planner_workshop.calibration.runs import TABLE

    for option, remedy in TABLE["needed"].items():
        or_else = {option, "--topology"} if option == "--device" else {option}
        lacking = [run.place for run in runs if not or_else & options_of_run(said, run).keys()]
        if lacking:
            fact = f"is not given, and {lacking[0]} does not say it"
            said.refuse(option, fact, remedy, value="")


def _grouped(
    said: Said, runs: Sequence[ServingRun], refused: list[str]
) -> list[list[PredictedRun]]:
    """Runs of each engine, device and model; those that cannot be predicted are refused, too.

    Raises:
        RequestError: none is left.
    """
    from planner.running import begin
    from planner_workshop.calibration.serving import misfit

    groups: dict[tuple[str, str, str], list[PredictedRun]] = {}
    for i, run in enumerate(runs, 1):
        begin(f"predicting run {i} of {len(runs)}")
        try:
            predicted = predicted_run(said, run)
            if reason := misfit(predicted):
                refused.append(f"{run.place}  {reason}")
                continue
            groups.setdefault(predicted.key, []).append(predicted)
        except RequestError as error:
            reasons = "; ".join(f"{it.where} {it.value}: {it.fact}" for it in error.problems)
            refused.append(f"{run.place}  {reasons}")
    if not groups:
        whole = Problem(where="plan calibrate", fact="no run is left to fit")
        rows = (row.partition("  ") for row in refused[:MOST_REASONS])
        raise RequestError([whole, *(Problem(where=at, fact=why) for at, _, why in rows)])
    return list(groups.values())


def options_of_run(said: Said, run: ServingRun) -> dict[str, str]:
    """Options of `plan predict` that a run is: what its file says, and what the command says."""
    options = dict(run.options)
    options |= {it: said.text(it) for it in (*RUN_OPTIONS, *OF_DRAFTS) if said.is_given(it)}
    return {name: options[name] for name in (*RUN_OPTIONS, *options) if name in options}


def predicted_run(said: Said, run: ServingRun) -> PredictedRun:
    """A run with the deployment that it is.

    Raises:
        RequestError: it cannot be, or the command contradicts it; all problems are listed.
    """
    from planner_workshop.calibration.serving import PredictedRun

    options = options_of_run(said, run)
    RequestError.raise_if_any(_contradictions(run, options))
    return PredictedRun(run=run, options=options, given=_given(options))


def _contradictions(run: ServingRun, options: Mapping[str, str]) -> Iterator[Problem]:
    """What a file says otherwise than the command; but servers may call a model anything."""
    for name, text in run.options.items():
        said = options[name]
        if name == "--model" and are_two_models(text, said):
            fact = f"is not {text}, of which {run.place} is"
            remedy = "name the model that ran, or a file of this one"
            yield Problem(where=name, value=said, fact=fact, remedy=remedy)
        elif name != "--model" and text != said:
            yield Problem(where=name, value=text, fact=f"is {said} on the command line")


def _given(options: Mapping[str, str]) -> GivenDeployment:
    from planner.commands.predict import given_of

    return given_of(parse(["predict", *(f"{name}={text}" for name, text in options.items())]))


def _possible(options: Mapping[str, str]) -> GivenDeployment | None:
    try:
        return _given(options)
    except RequestError:
        return None


def measured_run(said: Said) -> tuple[PredictedRun, Prediction] | tuple[()]:
    """The run of `--measured` or of `--metrics`, predicted; what it says are options of the audit.

    What is wrong with it is a problem among the others.
    """
    from planner.runtimes.predicting import predict

    source = "--metrics" if said.metrics else "--measured"
    for name in ("--speed", "--batch", "--input", "--output"):
        if said.is_given(name):
            said.refuse(name, f"is what `{source}` says", "leave it out")
    run = _only_run(said)
    predicted = said.collect(lambda: predicted_run(said, run)) if run else None
    if run is None or predicted is None:
        return ()
    given, options = predicted.given, predicted.options
    _remark_name(run, options["--model"])
    batch = int(given.table.batch[0])
    if 0 < said.values.get("cap", 0) < batch:
        said.refuse(source, f"has {batch} sequences a rank, and `--flags` has {said.cap} at most")
    told = {"--speed": f"{1.0 / run.tpot_s:.9g}tok/s", "--batch": str(batch), **options}
    for name, row in options_of(said.command).items():
        if name in told and not said.is_given(name):
            said.texts[name] = [told[name]]
            said.read_option(row)
    whole = (given.model, given.machines, given.table, given.traffic)
    return predicted, predict(*whole, speculating=given.speculating)


def _remark_name(run: ServingRun, model: str) -> None:
    if model_named(named := run.options.get("--model", model)) != model_named(model):
        remark(Problem(where=run.place, fact=f"is of `{named}`, taken for `{model}`"))


def _only_run(said: Said) -> ServingRun | None:
    """The one run of the file that is named."""
    if said.metrics:
        from planner_workshop.importing.metrics import read_metrics

        return said.collect(lambda: read_metrics(said.metrics))
    from planner_workshop.calibration.runs import read_runs

    runs, refused = said.collect(lambda: read_runs(Path(said.measured), said.replicas)) or ([], [])
    if len(runs) == 1:
        return runs[0]
    fact = f"has {len(runs)} runs, not one{''.join(f': {it}' for it in refused[:1])}"
    said.refuse("--measured", fact, "name a file of one run, or `plan calibrate` for several")
    return None
