"""Which options the commands have, and how often, with which values, they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from typing import Any

from planner.commands.options.remade import option
from planner.commands.options.written import WrittenOne

COMMANDS: dict[str, tuple[str, ...]] = {
    "models": (),
    "topologies": (),
    "devices": ("--json",),
    "engines": ("--json",),
}
"""Commands that take a name, and their options, which take no value."""

SURVEYS: dict[str, str] = {
    "pareto": "written_surveys.WrittenPareto",
    "compare": "written_surveys.WrittenComparison",
    "audit": "written_surveys.WrittenAudit",
    "calibrate": "written_measurements.WrittenCalibration",
    "predict": "written_predictions.WrittenPrediction",
    "experts": "written_experts.WrittenExperts",
    "measure": "written_measurements.WrittenMeasurement",
    "stages": "written_stages.WrittenStages",
    "layers": "written_stages.WrittenLayers",
    "fleet": "written_fleets.WrittenFleet",
    "place": "written_placements.WrittenPlacement",
    "repair": "written_placements.WrittenRepair",
    "sweep": "written_sweeps.WrittenSweep",
    "verify": "written_verifications.WrittenVerification",
}
"""Commands that take options, their own or those of `plan` and more: see `record_of`."""

WORDS = {
    "calibrate": "--table",
    "fleet": "--traffic",
    "layers": "--machines",
    "repair": "--placement",
    "sweep": "--sweep",
    "verify": "--answer",
}
"""Options of commands whose words may stand alone."""

OUTPUTS = ("html", "svg", "csv", "output", "network", "plot", "keep_program")
"""Options that name a file to write."""

REPEATED = frozenset(
    {"--weights", "--kv", "--allow-formats", "--table", "--variants", "--overlap", "--price"}
)
_OF_MODELS = frozenset({"--model", "--demand", "--replicas"})
REPEATED_BY = {
    "fleet": frozenset({"--model", "--engine", "--count"}),
    "place": _OF_MODELS,
    "repair": _OF_MODELS,
}
"""Options that only some commands take more than once."""


def record_of(command: str) -> type:
    """The record of a command's options, imported when it is asked for; `plan`'s where empty."""
    if command not in SURVEYS:
        return WrittenOne
    module, name = SURVEYS[command].split(".")
    record: type = getattr(import_module(f"planner.commands.options.{module}"), name)
    return record


def flags(written: type) -> tuple[str, ...]:
    """The options of a command that take no value."""
    return tuple(option(f.name) for f in fields(written) if isinstance(f.default, bool))


def valued(written: type) -> tuple[str, ...]:
    """The options of a command that take a value."""
    return tuple(option(f.name) for f in fields(written) if not isinstance(f.default, bool))


def written_of(command: str, tokens: Iterable[str]) -> Any:  # noqa: ANN401 one record a command
    """The record of options that words say, of which `arguments.tidy` has left no wrong one.

    Args:
        command: empty for `plan` itself.
        tokens: options, each with its value behind `=`.
    """
    record = record_of(command)
    said: dict[str, list[str]] = {}
    for token in tokens:
        name, _, value = token.partition("=")
        said.setdefault(name, []).append(value)
    values: dict[str, object] = {}
    for one in fields(record):
        texts = said.get(option(one.name))
        if texts is not None:
            is_flag, is_several = isinstance(one.default, bool), isinstance(one.default, tuple)
            values[one.name] = is_flag or (tuple(texts) if is_several else texts[-1])
    return record(**values)
