"""With less memory than it takes a command says so; `tests.benchmarks.memory_limits` tries more."""

from __future__ import annotations

import pytest

from tests.benchmarks.memory_limits import COMMANDS, fault, run

QUICK = COMMANDS[2:3] + COMMANDS[6:7]


@pytest.mark.parametrize("limit_mib", [600, 350])
@pytest.mark.parametrize("line", QUICK)
def test_a_command_ends_with_an_answer_or_with_a_sentence(line, limit_mib):
    assert fault(run(line, limit_mib)) == ""


def test_the_faults_of_an_ending_can_be_seen():
    ran = run("models", None)
    assert fault(ran) == ""
    ran.returncode, ran.stderr = -6, "terminate called after throwing"
    assert fault(ran) == "exit -6: 'terminate called after throwing'"
    ran.returncode, ran.stderr = 3, "Killed"
    assert fault(ran) == "no sentence: 'Killed'"
