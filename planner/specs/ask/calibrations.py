"""Constants of engines that a user's own serving runs gave: their file, read and written.

`plan calibrate RUNS --output mine.toml` writes it; by `--calibration mine.toml` engines and kernels
have its constants.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import Problem, RequestError
from planner.running import meanwhile
from planner.specs.files.finding import find
from planner.specs.files.places import Kind
from planner.specs.files.reading import record_of
from planner.specs.files.tables import read_table
from planner.specs.records.kernels import ENGINE_CONSTANTS, ServingCalibration
from planner.specs.validation.arguments import arguments_checked
from planner.specs.validation.layouts import key_of, layout_of
from planner.specs.validation.problems import Finding

_CALIBRATIONS: ContextVar[tuple[ServingCalibration, ...]] = ContextVar("calibrations", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFile:
    """A file of calibrations, each of another engine, device or model."""

    calibrations: tuple[ServingCalibration, ...]


@arguments_checked()
def load_calibrations(
    name_or_path: str, *, asked_by: str = "--calibration"
) -> tuple[ServingCalibration, ...]:
    """Calibrations of a file, by its path.

    Raises:
        SpecError: there is none, or it has faults; all are listed.
    """
    source = find(Kind.CALIBRATION, name_or_path, asked_by=asked_by)
    read = read_table(source.path, source.shown, use=source.use(Kind.CALIBRATION))
    file = record_of(CalibrationFile, *read, shown=source.shown, coherent=_twice)
    return tuple(replace(one, file=source.shown) for one in file.calibrations)


def _twice(said: Mapping[str, Any]) -> Iterator[Finding]:
    """Entries of an engine, device and model that another has."""
    names = list(map(_whose, said.get("calibrations", ())))
    for i, name in enumerate(names):
        if name in names[:i]:
            fact = f"is a second entry of {name}"
            yield Finding(f"calibrations[{i}]", fact, "leave one of them out", "")


def calibration_file(calibrations: Iterable[ServingCalibration], comment: str = "") -> str:
    """The text of a file, in TOML.

    Args:
        comment: its first lines, as they are.
    """
    lines = [comment.strip("\n")]
    for own in calibrations:
        said = ((key, getattr(own, it.field)) for key, it in layout_of(ServingCalibration).items())
        lines += ["", "[[calibration]]", *(_line(*it) for it in said if it[1] is not None)]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:  # noqa: ANN401 of a record
    """A key with its value, times in ms."""
    if isinstance(value, str | int):
        return f"{key} = {json.dumps(value, ensure_ascii=False)}"
    is_time = key in {key_of(name) for name in ENGINE_CONSTANTS}
    return f'{key} = "{1e3 * value:.6g} ms"' if is_time else f"{key} = {value:.4f}"


def calibrated(calibrations: Sequence[ServingCalibration]) -> AbstractContextManager[None]:
    """Engines and kernels that are loaded within have the constants of these."""
    return meanwhile(_CALIBRATIONS, tuple(calibrations))


def calibrations_said() -> tuple[ServingCalibration, ...]:
    """Those that engines have within a block; none outside."""
    return _CALIBRATIONS.get()


def calibrated_for(engine: str, device: str, models: Sequence[str]) -> ServingCalibration | None:
    """The calibration of an engine on a device for models; None where nothing is calibrated.

    Raises:
        RequestError: there are calibrations, and none of these; or models of one request have
            several.
    """
    known = calibrations_said()
    if not known or not models:
        return None
    of_pair = [it for it in known if (it.engine, it.device) == (engine, device)]
    by_model, fact, remedy = {it.model: it for it in of_pair}, "", "ask for one model"
    if lacking := [name for name in models if name not in by_model]:
        fact = f"has no entry for {lacking[0]} under {engine} on {device}"
        remedy = f"it has {'; '.join(map(_whose, known))}"
    elif len(set(models)) > 1:
        fact = f"is of one model each, and the request has {', '.join(models)}"
    where, value = "--calibration", known[0].file
    problem = Problem(where=where, value=value, fact=fact, remedy=remedy)
    RequestError.raise_if_any([problem] if fact else [])
    return by_model[models[0]]


def _whose(own: ServingCalibration) -> str:
    return f"{own.model} under {own.engine} on {own.device}"
