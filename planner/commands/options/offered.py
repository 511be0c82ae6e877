"""Which options the commands have, and how often, with which values, they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from planner.commands.options.remade import option
from planner.commands.options.written import WrittenOne
from planner.commands.options.written_experts import WrittenExperts
from planner.commands.options.written_fleets import WrittenFleet
from planner.commands.options.written_measurements import WrittenCalibration, WrittenMeasurement
from planner.commands.options.written_placements import WrittenPlacement, WrittenRepair
from planner.commands.options.written_predictions import WrittenPrediction
from planner.commands.options.written_stages import WrittenLayers, WrittenStages
from planner.commands.options.written_surveys import WrittenAudit, WrittenComparison, WrittenPareto
from planner.commands.options.written_sweeps import WrittenSweep
from planner.commands.options.written_verifications import WrittenVerification

COMMANDS: dict[str, tuple[str, ...]] = {
    "models": (),
    "topologies": (),
    "devices": ("--json",),
    "engines": ("--json",),
}
"""Commands that take a name, and their options, which take no value."""

SURVEYS: dict[str, type] = {
    "pareto": WrittenPareto,
    "compare": WrittenComparison,
    "audit": WrittenAudit,
    "calibrate": WrittenCalibration,
    "predict": WrittenPrediction,
    "experts": WrittenExperts,
    "measure": WrittenMeasurement,
    "stages": WrittenStages,
    "layers": WrittenLayers,
    "fleet": WrittenFleet,
    "place": WrittenPlacement,
    "repair": WrittenRepair,
    "sweep": WrittenSweep,
    "verify": WrittenVerification,
}
"""Commands that take options, their own or those of `plan` and more."""

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
    record = SURVEYS.get(command, WrittenOne)
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
