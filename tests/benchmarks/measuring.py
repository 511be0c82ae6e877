"""A command in a process of its own: its exit code, its seconds, and the memory at its peak."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile

PLAN = Path(sys.executable).with_name("plan")


@dataclass(frozen=True)
class Measured:
    """What a process took: wall time and CPU time with its children's [s], peak memory [MB].

    Args:
        user_s: of the CPU time, without the system's.
    """

    code: int
    wall_s: float
    cpu_s: float
    user_s: float
    peak_mb: float
    stdout: str
    stderr: str


def measured(words: list[str], *, cwd: Path | None = None, program: Path = PLAN) -> Measured:
    """A program with these words, `plan` as a user would run it, whose byte code is kept.

    The peak is of the resident set of the largest process, as the system counts it. It counts
    the process that another is forked from as well, and this one may be large: so a small one,
    which is this file, stands between them.
    """
    between = [sys.executable, __file__, str(program), *words]
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(between, stdout=subprocess.PIPE, check=True, text=True, cwd=cwd, env=kept)
    said = ran.stdout
    return Measured(**json.loads(said))


def _measured(words: list[str]) -> Measured:
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        began_s = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=err)
        _, status, use = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = [(file.seek(0), file.read())[1] for file in (out, err)]
    return Measured(
        code=process.returncode,
        wall_s=wall_s,
        cpu_s=use.ru_utime + use.ru_stime,
        user_s=use.ru_utime,
        peak_mb=use.ru_maxrss * 1024 / 1e6,
        stdout=texts[0],
        stderr=texts[1],
    )


if __name__ == "__main__":
    print(json.dumps(asdict(_measured(sys.argv[1:]))))
