"""The command that starts a deployment of a serving engine; one file an engine.

    words      what is started, and words of a command line
    vllm  sglang  trtllm

Flags are those of the version that the rules of the engine name; tests hold them against its own
list.
"""

from importlib import import_module

from planner.report.launch.words import Started
from planner.results.predictions import Launch
from planner.specs.records.runtimes import ENGINES


def launch_of(engine: str, started: Started) -> Launch | None:
    """How an engine is started; None if it is one of a user's file."""
    if engine not in ENGINES:
        return None
    launch: Launch = import_module(f"{__name__}.{engine}").launch(started)
    return launch
