"""With less memory than it takes a command says so; `tests.benchmarks.memory_limits` tries more."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.benchmarks.interrupts import ROOT
from tests.benchmarks.memory_limits import COMMANDS, fault, run

QUICK = COMMANDS[2:3] + COMMANDS[6:7]


@pytest.mark.parametrize("limit_mib", [600, 350])
@pytest.mark.parametrize("line", QUICK)
def test_a_command_ends_with_an_answer_or_with_a_sentence(line, limit_mib):
    assert fault(run(line, limit_mib)) == ""


_IN_LITTLE_ROOM = """\
import resource
from planner.solvers.answers import ROOM_BYTES, run_interruptibly
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + ROOM_BYTES // 2
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    run_interruptibly(lambda: print("begun"), lambda: None)
except MemoryError:
    print("no room")
"""


def test_a_solver_without_room_for_its_threads_is_not_begun():
    """CP-SAT would wait for ever for a thread that the system refuses."""
    ran = subprocess.run(
        [sys.executable, "-c", _IN_LITTLE_ROOM],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert ran.stdout == "no room\n"


def test_the_faults_of_an_ending_can_be_seen():
    ran = run("models", None)
    assert fault(ran) == ""
    ran.returncode, ran.stderr = -6, "terminate called after throwing"
    assert fault(ran) == "exit -6: 'terminate called after throwing'"
    ran.returncode, ran.stderr = 3, "Killed"
    assert fault(ran) == "no sentence: 'Killed'"
