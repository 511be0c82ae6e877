"""`plan calibrate`: tables of measured kernels to a kernel file, its errors and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.commands.options.said import Said
from planner.commands.reporting import shown
from planner.errors import Problem, RequestError
from planner.report.files import Answer

if TYPE_CHECKING:
    from planner.estimates.calibration.calibrating import Calibration
    from planner.specs.records import DeviceSpec


def calibrate(said: Said) -> Answer:
    """Closed forms of kernels, fitted to measured times."""
    from planner.estimates.calibration.calibrating import calibrate as fit
    from planner.report.answers.kernels import fitted_document
    from planner.running.phases import begin
    from planner.specs.reading import load_device

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
        programs=[name for name in said.kernels or () if name],
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
    from planner.estimates.calibration.kernel_files import sms_of

    name = device.name
    return said.collect(lambda: sms_of(name)) or (0, "")


def _check_outputs(said: Said, answer: Calibration) -> None:
    """Refuse files that nothing was fitted for.

    Raises:
        RequestError: with all of them.
    """
    n_kernels = len(answer.table.kernels)
    asked = (
        ("--output", said.output, n_kernels, "kernel"),
        ("--network", said.network, len(answer.fitted) - n_kernels, "collective"),
    )
    problems = [
        Problem(where=option, value=path, fact=f"no {what} is in the tables", remedy="leave it out")
        for option, path, n_fitted, what in asked
        if path is not None and not n_fitted
    ]
    if problems:
        raise RequestError(problems)


def _files(said: Said, answer: Calibration, n_sms_source: str) -> Iterator[tuple[str, str]]:
    if said.output is not None:
        from planner.estimates.calibration.kernel_schemas import kernel_file

        name = Path(said.output).stem
        yield said.output, kernel_file(answer.table, name=name, n_sms_source=n_sms_source)
    if said.network is not None:
        from planner.estimates.calibration.kernel_schemas import network_sections

        yield said.network, network_sections(answer.fitted, source=answer.source)
    if said.plot is not None:
        from planner.report.drawings.fits import fits_svg

        yield said.plot, fits_svg(answer)
