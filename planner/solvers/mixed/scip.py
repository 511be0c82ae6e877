"""Mixed programs by SCIP, as OR-Tools carries it, in a process of its own (`scip_worker`)."""

import json
import math
import os
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from planner.equations.arrays import FloatArray
from planner.programs.mixed import MixedProgram
from planner.programs.mps import as_mps
from planner.programs.proofs import refusal
from planner.solvers.mixed import RawAnswer, checked
from planner.solvers.recording import recorded
from planner.solvers.solution import Clock, Effort, Word

WORKER = Path(__file__).with_name("scip_worker.py")
GRACE_S = 1.0
"""Beyond the time limit, until the process is ended: to start and to hand over takes so long."""
_IDLE: list[subprocess.Popen[bytes]] = []
"""Workers that wait for another program: to start one takes longer than most programs."""
os.register_at_fork(after_in_child=_IDLE.clear)


@recorded
def solve(program: MixedProgram, effort: Effort) -> Word[FloatArray]:
    """What SCIP says; that it failed, or could not be started, is said as a refusal.

    Raises:
        KeyboardInterrupt: interrupted; the process is ended before.
    """
    clock = Clock()
    prover = f"scip (ortools {version('ortools')})"
    try:
        said = _ask(program, effort)
    except (OSError, ValueError) as error:
        return Word(answer=None, proof=refusal(prover, str(error), clock.elapsed_s()))
    if said is None:
        raw = RawAnswer(outcome="stopped", values=None, bound=-math.inf, stopped_by="time limit")
    elif "failure" in said:
        return Word(answer=None, proof=refusal(prover, said["failure"], clock.elapsed_s()))
    else:
        values = said["values"]
        raw = RawAnswer(
            outcome=said["outcome"],
            values=None if values is None else np.array(values),
            bound=math.inf if said["bound"] is None else _finite(said["bound"]),
            stopped_by="time limit" if said["outcome"] == "stopped" else "",
        )
    return checked(program, raw, prover=prover, wall_s=clock.elapsed_s())


def _finite(bound: float) -> float:
    """SCIP's infinity is 1e20."""
    return bound if bound > -1e20 else -math.inf


def _ask(program: MixedProgram, effort: Effort) -> dict[str, Any] | None:
    """The worker's word; None if time ran out before it said any.

    Raises:
        OSError: it could not be started.
        ValueError: it ended without a word.
    """
    text = as_mps(program).encode()
    limit_s = effort.seconds()
    parameters = {
        "limits/gap": effort.gap,
        "randomization/randomseedshift": effort.seed,
        # its usual 1e-6 is what answers were seen to differ by
        "numerics/feastol": 1e-9,
        **program.hints.get("scip", {}),
    }
    head = {"time_limit_s": limit_s, "parameters": parameters, "n_bytes": len(text)}
    worker, said = _worker(), None
    try:
        said = _hear(worker, json.dumps(head).encode() + b"\n" + text, limit_s)
    finally:
        if said is None:
            with worker:
                worker.kill()
        else:
            _IDLE.append(worker)
    return said


def _worker() -> subprocess.Popen[bytes]:
    with suppress(IndexError):  # nobody waits
        while (worker := _IDLE.pop()).poll() is not None:
            with worker:  # somebody ended it: its pipes are closed
                pass
        return worker
    # -P: what lies beside the worker is not imported in place of what it means;
    # a session of its own: Ctrl-C in a terminal goes to its foreground group
    return subprocess.Popen(
        [sys.executable, "-P", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _hear(
    worker: subprocess.Popen[bytes], request: bytes, limit_s: float | None
) -> dict[str, Any] | None:
    """Hand the request over, and wait for the answer while Ctrl-C can be heard."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    heard: list[bytes] = []
    stdout = worker.stdout
    # it does not close stdin, by which the worker knows that somebody waits
    reader = threading.Thread(target=lambda: heard.append(stdout.readline()), daemon=True)
    clock = Clock()
    worker.stdin.write(request)
    worker.stdin.flush()
    reader.start()
    while reader.is_alive():
        reader.join(0.1)
        if limit_s is not None and clock.elapsed_s() > limit_s + GRACE_S:
            return None
    if not heard or not heard[0]:
        raise ValueError(f"scip's process ended with {worker.wait()} and without a word")
    said: dict[str, Any] = json.loads(heard[0])
    return said
