"""`plan measure` and `plan calibrate`: kernels timed, and fitted, with errors and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer

if TYPE_CHECKING:
    from planner.specs.records.architecture import Architecture
    from planner.specs.records.devices import DeviceSpec
    from planner_workshop.calibration.calibrating import Calibration
    from planner_workshop.measuring.kernel_cases import Catalogue, KernelCase
    from planner_workshop.measuring.programs import Bench
    from planner_workshop.measuring.timing import Measurements


CPU_NAME = "cpu"
"""What a processor is called in the table where no device file describes it."""

MESSAGES_SHARE = 0.25
"""Of the budget, for collectives where there are several GPUs [1]."""


def measure(said: Said) -> Answer:
    """Times of this machine's kernels, for `plan calibrate` to fit."""
    from planner.specs.files.reading import load_architecture
    from planner_workshop.measuring import collectives, pytorch
    from planner_workshop.measuring.kernel_cases import wanted_kernels
    from planner_workshop.measuring.timing import joined

    device = _device(said)
    loaded = (said.collect(partial(load_architecture, name)) for name in said.model)
    models = [model for model in loaded if model is not None]
    _refuse_indivisible(said, models)
    said.check()
    bench = pytorch.open_bench(said.backend)
    chosen = _formats_on(bench, device, said)
    said.check()
    budget_s, n_gpus = said.budget, said.gpus
    catalogue = wanted_kernels(models, said.tp, chosen)
    apart_s = MESSAGES_SHARE * budget_s if n_gpus > 1 else 0.0
    answer = _timed(bench, catalogue, budget_s - apart_s)
    if n_gpus > 1:
        answer = joined(
            answer, collectives.measure_collectives(said.backend, n_gpus, budget_s=apart_s)
        )
    if not answer.timed:
        raise RequestError([_nothing(answer)])
    return _answer(said, bench, answer, catalogue, [one.name for one in models])


def _timed(bench: Bench, catalogue: Catalogue, budget_s: float) -> Measurements:
    from planner.running import begin
    from planner_workshop.measuring.timing import measure as time_kernels

    def tell(place: int, kernel: KernelCase) -> None:
        begin(f"timing {kernel.family}: {place} of {len(catalogue.kernels)}")

    return time_kernels(bench, catalogue.kernels, budget_s=budget_s, on_kernel=tell)


def _answer(
    said: Said, bench: Bench, answer: Measurements, catalogue: Catalogue, models: list[str]
) -> Answer:
    from planner_workshop.calibration.report import measured_document
    from planner_workshop.measuring.pytorch import table_text

    name = _called(said)
    output, table = said.output, table_text(answer, bench, device=name)
    return shown(
        said,
        lambda: measured_document(
            answer, bench, device=name, models=models, others=catalogue.others
        ),
        files=() if output is None else ((output, table),),
    )


def _called(said: Said) -> str:
    """What rows say that they were timed on: the device's name."""
    from planner.specs.files.reading import load_device

    return CPU_NAME if said.device is None else load_device(said.device).name


def _nothing(answer: Measurements) -> Problem:
    reasons = list(dict.fromkeys(one.reason for one in answer.untimed))
    fact = f"no kernel could be timed: {'; '.join(reasons[:3])}"
    return Problem(where="plan measure", fact=fact, remedy="give it more `--budget`")


def _device(said: Said) -> DeviceSpec | None:
    """The device asked for; a processor needs none, and is none of those that ship."""
    from planner.specs.files.reading import load_device
    from planner_workshop.measuring.pytorch import CPU

    name = said.device
    if name is None:
        if said.backend != CPU:
            said.refuse("--device", "is not given", "write `--device h200`, see `plan devices`")
        return None
    device = said.collect(lambda: load_device(name))
    if device is not None and said.backend == CPU and _is_shipped(name):
        fact, remedy = "is no processor", "leave it out, or name a device file of your own"
        said.refuse("--device", fact, remedy)
    return device


def _is_shipped(name: str) -> bool:
    from planner.specs.files.finding import find
    from planner.specs.files.places import Kind, shipped_as

    return bool(shipped_as(find(Kind.DEVICE, name, asked_by="--device").path))


def _refuse_indivisible(said: Said, models: list[Architecture]) -> None:
    """Degrees by which no model can be cut."""
    from planner_workshop.measuring.kernel_cases import possible_degrees

    for degree in said.tp:
        if models and not any(possible_degrees(model, (degree,)) for model in models):
            names = ", ".join(model.name for model in models)
            said.refuse("--tp", f"divides none of {names}", "write `--tp 1,4`", value=str(degree))


def _formats_on(bench: Bench, device: DeviceSpec | None, said: Said) -> tuple[str, ...]:
    """Formats to time on a machine; that it is another device is a problem."""
    from planner_workshop.measuring.pytorch import formats_of, unlike

    if device is not None and bench.n_multiprocessors:
        said.problems += unlike(device, bench, by_name=_is_shipped(device.name))
    chosen, unknown = formats_of(said.weights, device, bench)
    said.problems += unknown
    return chosen


def calibrate(said: Said) -> Answer:
    """Closed forms of kernels, fitted to measured times; or engines, to serving runs."""
    from planner.commands.serving_runs import calibrate_runs, run_paths

    runs = run_paths(said)
    return calibrate_runs(said, runs) if runs else _calibrate_kernels(said)


def _calibrate_kernels(said: Said) -> Answer:
    from planner.running import begin
    from planner.specs.files.reading import load_device
    from planner_workshop.calibration.calibrating import calibrate as fit
    from planner_workshop.calibration.report import fitted_document

    for name, remedy in (
        ("--device", "write `--device h20`"),
        ("--engine", "write `--engine vllm`"),
    ):
        if not said.is_given(name):
            said.refuse(name, "is not given", remedy)
    device = said.load("--device", load_device)
    n_sms, n_sms_source = _n_sms(said, device)
    said.check()
    assert device is not None
    answer = fit(
        [Path(one) for one in said.table],
        device,
        engine=said.engine,
        version=said.engine_version,
        n_sms=n_sms,
        source=said.source,
        on_fit=lambda what, n_rows: begin(f"fitting {what} to {n_rows} rows"),
    )
    _check_outputs(said, answer)
    files = _files(said, answer, n_sms_source)
    return shown(said, lambda: fitted_document(answer, names_refused=said.refused), files=files)


def _n_sms(said: Said, device: DeviceSpec | None) -> tuple[int, str]:
    """Multiprocessors of the device, and who says so: the option, or its other kernel files."""
    if said.sms is not None:
        return int(said.sms), "as given to `plan calibrate`"
    if device is None:
        return 0, ""
    from planner.estimates.kernel_files import sms_of

    name = device.name
    return said.collect(lambda: sms_of(name)) or (0, "")


def _check_outputs(said: Said, answer: Calibration) -> None:
    """Refuse files that nothing was fitted for.

    Raises:
        RequestError: with all of them.
    """
    n_kernels = len(answer.table.kernels)
    outputs = (
        ("--output", said.output, n_kernels, "kernel"),
        ("--network", said.network, len(answer.fitted) - n_kernels, "collective"),
    )
    problems = [
        Problem(where=option, value=path, fact=f"no {what} is in the tables", remedy="leave it out")
        for option, path, n_fitted, what in outputs
        if path is not None and not n_fitted
    ]
    if problems:
        raise RequestError(problems)


def _files(said: Said, answer: Calibration, n_sms_source: str) -> Iterator[tuple[str, str]]:
    if said.output is not None:
        from planner_workshop.calibration.calibrating import kernel_file

        name = Path(said.output).stem
        yield said.output, kernel_file(answer.table, name=name, n_sms_source=n_sms_source)
    if said.network is not None:
        from planner_workshop.calibration.calibrating import network_sections

        yield said.network, network_sections(answer.fitted, source=answer.source)
    if said.plot is not None:
        from planner_workshop.calibration.report import fits_svg

        yield said.plot, fits_svg(answer)
