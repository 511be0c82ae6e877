"""Constants of engines that a user's own serving runs gave: their file, read and written.

`plan calibrate RUNS --output mine.toml` writes it; by `--calibration mine.toml` engines and kernels
have its constants.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import Problem, RequestError
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
    seen = set()
    for i, one in enumerate(said.get("calibrations", ())):
        whose = one.engine, one.device, one.model
        if whose in seen:
            fact = f"is a second entry of {_of(one)}"
            yield Finding(f"calibrations[{i}]", fact, "leave one of them out", one.model)
        seen.add(whose)


def calibration_file(calibrations: Iterable[ServingCalibration], comment: str = "") -> str:
    """The text of a file, in TOML.

    Args:
        comment: its first lines, as they are.
    """
    lines = [comment.strip("\n")]
    for one in calibrations:
        said = (
            (key, getattr(one, place.field)) for key, place in layout_of(ServingCalibration).items()
        )
        lines += ["", "[[calibration]]", *(_line(*it) for it in said if it[1] is not None)]
    return "\n".join(lines) + "\n"


def _line(key: str, value: Any) -> str:  # noqa: ANN401 of a record
    """A key with its value, times in ms."""
    if isinstance(value, str | int):
        return f"{key} = {json.dumps(value, ensure_ascii=False)}"
    is_time = key in {key_of(name) for name in ENGINE_CONSTANTS}
    return f'{key} = "{1e3 * value:.6g} ms"' if is_time else f"{key} = {value:.4f}"


@contextmanager
def calibrated(calibrations: Sequence[ServingCalibration]) -> Iterator[None]:
    """Engines and kernels that are loaded within have the constants of these."""
    token = _CALIBRATIONS.set(tuple(calibrations))
    try:
        yield
    finally:
        _CALIBRATIONS.reset(token)


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
    own = {one.model: one for one in known if (one.engine, one.device) == (engine, device)}
    if lacking := [name for name in models if name not in own]:
        fact = f"has no entry for {lacking[0]} under {engine} on {device}"
        remedy = f"it has {'; '.join(map(_of, known))}"
        raise RequestError([_problem(known, fact, remedy)])
    if len(set(models)) > 1:
        fact = f"is of one model each, and the request has {', '.join(models)}"
        raise RequestError([_problem(known, fact, "ask for one model")])
    return own[models[0]]


def _problem(known: Sequence[ServingCalibration], fact: str, remedy: str) -> Problem:
    value = known[0].file
    return Problem(where="--calibration", value=value, fact=fact, remedy=remedy)


def _of(one: ServingCalibration) -> str:
    return f"{one.model} under {one.engine} on {one.device}"
