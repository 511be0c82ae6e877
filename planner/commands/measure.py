"""`plan measure` and `plan calibrate`: kernels timed, and fitted, with errors and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.commands.serving_runs import calibrate_runs, run_paths
from planner.errors import Problem, RequestError
from planner.estimates.kernel_files import sms_of
from planner.report.files import Answer
from planner.running import begin
from planner.specs.files.finding import find
from planner.specs.files.places import Kind, shipped_as
from planner.specs.files.reading import load_architecture, load_device
from planner.specs.records.architecture import Architecture
from planner.specs.records.devices import DeviceSpec
from planner_workshop.calibration import calibrating
from planner_workshop.calibration.report import fits_svg, fitted_document, measured_document
from planner_workshop.measuring import collectives, pytorch, timing
from planner_workshop.measuring.kernel_cases import KernelCase, possible_degrees, wanted_kernels

CPU_NAME = "cpu"
"""What a processor is called in the table where no device file describes it."""

MESSAGES_SHARE = 0.25
"""Of the budget, for collectives where there are several GPUs [1]."""


def measure(said: Said) -> Answer:
    """Times of this machine's kernels, for `plan calibrate` to fit."""
    device = _device(said)
    models = said.each(load_architecture, said.model)
    _refuse_indivisible(said, models)
    said.check()
    bench = pytorch.open_bench(said.backend)
    if device is not None and bench.n_multiprocessors:
        said.problems += pytorch.unlike(device, bench, by_name=_is_shipped(device.name))
    formats, unknown = pytorch.formats_of(said.weights, device, bench)
    said.problems += unknown
    said.check()
    catalogue = wanted_kernels(models, said.tp, formats)

    def tell(place: int, kernel: KernelCase) -> None:
        begin(f"timing {kernel.family}: {place} of {len(catalogue.kernels)}")

    apart_s = MESSAGES_SHARE * said.budget if said.gpus > 1 else 0.0
    budget_s = said.budget - apart_s
    answer = timing.measure(bench, catalogue.kernels, budget_s=budget_s, on_kernel=tell)
    if said.gpus > 1:
        others = collectives.measure_collectives(said.backend, said.gpus, budget_s=apart_s)
        answer = timing.joined(answer, others)
    if not answer.timed:
        reasons = list(dict.fromkeys(it.reason for it in answer.untimed))
        fact = f"no kernel could be timed: {'; '.join(reasons[:3])}"
        remedy = "give it more `--budget`"
        raise RequestError([Problem(where="plan measure", fact=fact, remedy=remedy)])
    name = CPU_NAME if device is None else device.name
    about = {"models": [model.name for model in models], "others": catalogue.others}
    table = pytorch.table_text(answer, bench, device=name)
    return shown(
        said,
        lambda: measured_document(answer, bench, device=name, **about),
        files=() if said.output is None else ((said.output, table),),
    )


def _device(said: Said) -> DeviceSpec | None:
    """The device asked for; a processor needs none, and is none of those that ship."""
    if said.device is None and said.backend != pytorch.CPU:
        said.refuse("--device", "is not given", "write `--device h200`, see `plan devices`")
    device = said.load("--device", load_device)
    if device is not None and said.backend == pytorch.CPU and _is_shipped(said.device):
        fact, remedy = "is no processor", "leave it out, or name a device file of your own"
        said.refuse("--device", fact, remedy)
    return device


def _is_shipped(name: str) -> bool:
    return bool(shipped_as(find(Kind.DEVICE, name, asked_by="--device").path))


def _refuse_indivisible(said: Said, models: Sequence[Architecture]) -> None:
    """Degrees by which no model can be cut."""
    for degree in said.tp:
        if models and not any(possible_degrees(model, (degree,)) for model in models):
            names = ", ".join(model.name for model in models)
            said.refuse("--tp", f"divides none of {names}", "write `--tp 1,4`", value=str(degree))


def calibrate(said: Said) -> Answer:
    """Closed forms of kernels, fitted to measured times; or engines, to serving runs."""
    runs = run_paths(said)
    return calibrate_runs(said, runs) if runs else _calibrate_kernels(said)


def _calibrate_kernels(said: Said) -> Answer:
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
    answer = calibrating.calibrate(
        [Path(it) for it in said.table],
        device,
        engine=said.engine,
        version=said.engine_version,
        n_sms=n_sms,
        source=said.source,
        on_fit=lambda what, n_rows: begin(f"fitting {what} to {n_rows} rows"),
    )
    _refuse_unfitted(said, answer)
    files = _files(said, answer, n_sms_source)
    return shown(said, lambda: fitted_document(answer, names_refused=said.refused), files=files)


def _n_sms(said: Said, device: DeviceSpec | None) -> tuple[int, str]:
    """Multiprocessors of the device, and who says so: the option, or its other kernel files."""
    if said.sms is not None:
        return int(said.sms), "as given to `plan calibrate`"
    return (device and said.collect(lambda: sms_of(device.name))) or (0, "")


def _refuse_unfitted(said: Said, answer: calibrating.Calibration) -> None:
    """Go on only if something was fitted for each file.

    Raises:
        RequestError: with all of them.
    """
    n_kernels = len(answer.table.kernels)
    n_collectives = len(answer.fitted) - n_kernels
    for option, n_fitted, what in (
        ("--output", n_kernels, "kernel"),
        ("--network", n_collectives, "collective"),
    ):
        if said.is_given(option) and not n_fitted:
            said.refuse(option, f"no {what} is in the tables", "leave it out")
    said.check()


def _files(
    said: Said, answer: calibrating.Calibration, n_sms_source: str
) -> Iterator[tuple[str, str]]:
    if said.output is not None:
        name, table = Path(said.output).stem, answer.table
        yield said.output, calibrating.kernel_file(table, name=name, n_sms_source=n_sms_source)
    if said.network is not None:
        yield said.network, calibrating.network_sections(answer.fitted, source=answer.source)
    if said.plot is not None:
        yield said.plot, fits_svg(answer)
