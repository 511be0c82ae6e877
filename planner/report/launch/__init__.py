"""The command that starts a deployment of a serving engine; one file an engine.

    words      what is started, and words of a command line
    vllm  sglang  trtllm

Flags are those of the version that the rules of the engine name; tests hold them against its own
list.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from planner.report.launch import sglang, trtllm, vllm
from planner.report.launch.words import Started
from planner.results.predictions import Launch

ENGINES: Mapping[str, ModuleType] = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}


def launch_of(engine: str, started: Started) -> Launch | None:
    """How an engine is started; None if it is one of a user's file."""
    module = ENGINES.get(engine)
    if module is None:
        return None
    launch: Launch = module.launch(started)
    return launch
