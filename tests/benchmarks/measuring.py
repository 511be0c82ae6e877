"""A command in a process of its own: its exit code, its seconds, and the memory at its peak."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PLAN = Path(sys.executable).with_name("plan")


@dataclass(frozen=True)
class Measured:
    """What a process took: wall time and CPU time with its children's [s], peak memory [MB]."""

    code: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    stdout: str
    stderr: str


def measured(words: list[str], *, cwd: Path | None = None) -> Measured:
    """`plan` with these words, as a user would run it.

    The peak is of the resident set of the largest process, as the system counts it.
    """
    began_s = time.perf_counter()
    process = subprocess.Popen(
        [PLAN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    stdout, stderr = process.stdout.read(), process.stderr.read()
    _, status, use = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(
        code=process.returncode,
        wall_s=wall_s,
        cpu_s=use.ru_utime + use.ru_stime,
        peak_mb=use.ru_maxrss * 1024 / 1e6,
        stdout=stdout,
        stderr=stderr,
    )
