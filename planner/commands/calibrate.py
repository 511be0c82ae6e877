"""`plan calibrate`: tables of measured kernels to a kernel file, its errors and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from planner.commands.options.arguments import Arguments
from planner.commands.options.written_measurements import WrittenCalibration
from planner.errors import Problem, RequestError
from planner.report.delivery import Answer
from planner.report.paint import width

if TYPE_CHECKING:
    from planner.estimates.calibration.calibrating import Calibration
    from planner.specs.records import DeviceSpec

_NOTHING_ASKED = WrittenCalibration()


def calibrate(
    written: Annotated[WrittenCalibration, Parameter(name="*")] = _NOTHING_ASKED,
    *,
    said: Annotated[Arguments, Parameter(parse=False)],
) -> Answer:
    """Fit the closed forms of kernels to measured times, and say how far to trust them."""
    from planner.estimates.calibration.calibrating import calibrate as fit
    from planner.report.calibration import calibration_text
    from planner.running.phases import begin
    from planner.specs.reading import load_device

    found = Arguments(problems=[*said.problems, *_missing(written)], hints=said.hints)
    device = found.collect(lambda: load_device(str(written.device))) if written.device else None
    n_sms, n_sms_source = _n_sms(written, device, found)
    found.check()
    assert device is not None
    answer = fit(
        [Path(one) for one in written.table],
        device,
        engine=str(written.engine),
        version=written.engine_version,
        n_sms=n_sms,
        source=written.source,
        programs=[one.strip() for one in (written.kernels or "").split(",") if one.strip()],
        on_fit=lambda what, n_rows: begin(f"fitting {what} to {n_rows} rows"),
    )
    _check_outputs(written, answer)
    text = calibration_text(answer, width(), names_refused=written.refused)
    return Answer(text=text, files=tuple(_files(written, answer, n_sms_source)))


def _missing(written: WrittenCalibration) -> Iterator[Problem]:
    if not written.table:
        remedy = "name a file or a folder"
        yield Problem(where="plan calibrate", fact="no table is given", remedy=remedy)
    for option, value, example in (
        ("--device", written.device, "h20"),
        ("--engine", written.engine, "vllm"),
    ):
        if not value:
            yield Problem(where=option, fact="is not given", remedy=f"write `{option} {example}`")


def _n_sms(
    written: WrittenCalibration, device: DeviceSpec | None, found: Arguments
) -> tuple[int, str]:
    """Multiprocessors of the device, and who says so: the option, or its other kernel files."""
    from planner.commands.options.counts import count
    from planner.commands.options.reading import Faults

    faults = Faults()
    given = faults.read("--sms", written.sms, count)
    found.problems += faults.problems
    if given is not None:
        return int(given), "as given to `plan calibrate`"
    if device is None:
        return 0, ""
    from planner.estimates.calibration.kernel_files import sms_of

    name = device.name
    return found.collect(lambda: sms_of(name)) or (0, "")


def _check_outputs(written: WrittenCalibration, answer: Calibration) -> None:
    """Refuse files that nothing was fitted for.

    Raises:
        RequestError: with all of them.
    """
    n_kernels = len(answer.table.kernels)
    asked = (
        ("--output", written.output, n_kernels, "kernel"),
        ("--network", written.network, len(answer.fitted) - n_kernels, "collective"),
    )
    problems = [
        Problem(where=option, value=path, fact=f"no {what} is in the tables", remedy="leave it out")
        for option, path, n_fitted, what in asked
        if path is not None and not n_fitted
    ]
    if problems:
        raise RequestError(problems)


def _files(
    written: WrittenCalibration, answer: Calibration, n_sms_source: str
) -> Iterator[tuple[str, str]]:
    if written.output is not None:
        from planner.estimates.calibration.writing import kernel_file

        name = Path(written.output).stem
        yield written.output, kernel_file(answer.table, name=name, n_sms_source=n_sms_source)
    if written.network is not None:
        from planner.estimates.calibration.writing import network_sections

        yield written.network, network_sections(answer.fitted, source=answer.source)
    if written.plot is not None:
        from planner.report.fits import fits_svg

        yield written.plot, fits_svg(answer)
