"""SCIP runs in a process of its own: whatever ends the one that asked, nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.interrupts import hear_ctrl_c

ROOT = Path(__file__).parents[2]
PROCESSES = Path("/proc")

ASKS = """
import numpy as np
from planner.programs.mixed import MixedProgram
from planner.solvers.mixed.scip import solve
from planner.solvers.solution import Effort

n, m = 60, 6  # a market to be split exactly: nobody proves that within minutes
value = np.random.default_rng(1).integers(1, 100, (m, n)).astype(float)
half = np.floor(value.sum(axis=1) / 2) + 0.5
solve(
    MixedProgram(
        name="market",
        cost=np.ones(n),
        row=np.repeat(np.arange(m), n),
        column=np.tile(np.arange(n), m),
        value=value.ravel(),
        low=half - 0.6,
        high=half + 0.4,
        lower=np.zeros(n),
        upper=np.ones(n),
        is_whole=np.ones(n, dtype=bool),
        columns=tuple(f"x{j}" for j in range(n)),
        rows=tuple(f"r{i}" for i in range(m)),
    ),
    Effort(time_limit_s=60.0),
)
"""


def workers(of: int) -> list[int]:
    """Processes that a process has started, and that run SCIP."""
    text = (PROCESSES / f"{of}/task/{of}/children").read_text()
    return [int(pid) for pid in text.split() if b"scip_worker" in _words(int(pid))]


def _words(pid: int) -> bytes:
    try:
        return (PROCESSES / str(pid) / "cmdline").read_bytes()
    except OSError:  # it is gone
        return b""


def until(seconds: float, condition) -> bool:
    ends_s = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends_s:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(not PROCESSES.is_dir(), reason="the system does not list processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("after_s", [0.0, 1.5], ids=["while it starts", "while it searches"])
def test_nothing_is_left_running(number, after_s):
    asker = subprocess.Popen(
        [sys.executable, "-c", ASKS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        preexec_fn=hear_ctrl_c,
    )
    try:
        assert until(30.0, lambda: workers(asker.pid))
        (worker,) = workers(asker.pid)
        time.sleep(after_s)
        assert b"scip_worker" in _words(worker)
        asker.send_signal(number)
        assert asker.wait(30.0) != 0
        assert until(15.0, lambda: b"scip_worker" not in _words(worker))
    finally:
        asker.kill()
