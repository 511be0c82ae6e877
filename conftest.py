"""Settings of all tests: no deadline for one example, because machines are noisy.

The gate draws the same examples each time, so that it judges a change and not a draw;
`pytest --hypothesis-profile=search` draws new ones.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from planner.__main__ import FEW_COLLECTIONS
from planner.planning import mixing

settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("gate")

# What Python compiles is kept: tests start hundreds of processes, each of which would compile the
# planner again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# As in the command: what imports make stays, and to look for rubbish in it is idle.
gc.set_threshold(FEW_COLLECTIONS)

TOGETHER = ("research/", "tests/verifier/")
"""Folders whose modules ask for the same answers, which a process that runs them all makes once."""

# A search for replicas of several sorts ends at its proof, however busy the machine is.
mixing.SEARCH_S = 600.0


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background, which ignores it."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, usual)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file, or of a folder whose answers are shared, run in one process."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((one for one in TOGETHER if nodeid.startswith(one)), nodeid.split("::")[0])

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """What is loaded by now stays: collections of garbage need not look through it each time."""
    gc.collect()
    gc.freeze()
