"""Commands that start engines, read by the flags that the engines' own parsers list."""

from __future__ import annotations

import re

from planner.report.launch.flags import commands_of, n_devices_of as of_command
from planner.results.predictions import Launch


def flags_of(engine: str, launch: Launch) -> dict[str, str | bool]:
    """Flags and values of a command, every one of them known and every choice one of its own."""
    command = commands_of(launch.command)[0]
    assert command.program == engine
    assert command.problems == ()
    if engine != "sglang":
        assert command.model, "the model comes first"
    used = set(re.findall(r"\b(?:CHECKPOINT|DRAFTER|NODE_RANK|HEAD)\b", launch.command))
    assert used == launch.variables.keys()
    return command.flags


def n_devices_of(engine: str, launch: Launch) -> int:
    """Devices that the command takes, on all servers."""
    assert flags_of(engine, launch)
    return launch.n_servers * of_command(commands_of(launch.command)[0])
