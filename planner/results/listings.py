"""Answers that no search found: what there is to plan with, and why there is no answer."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import Problem
from planner.specs.kernels import EngineSpec
from planner.specs.records import DeviceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Devices that there are to plan with."""

    devices: tuple[DeviceSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """Serving engines that there are to plan with, and what they start."""

    engines: tuple[EngineSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no answer, other than a conflict.

    Args:
        error: its name: `RequestError`, `OutOfTimeError`, …; `InternalError` of a defect.
        exit_code: of the command.
        message: in a sentence.
        problems: of a request that cannot be read.
        hint: what to do instead, if anybody knows.
    """

    error: str
    exit_code: int
    message: str
    problems: tuple[Problem, ...]
    hint: str
