"""Signals at random instants; `python -m tests.benchmarks.interrupts` sends two hundred."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import cache

import pytest

from tests.benchmarks.interrupts import COMMANDS, LINE, Ended, drawn, faults, hear_ctrl_c, run

LONG = ("audit", "pareto", "layers", "--latency-target 5ms")
QUICK = tuple(one for one in COMMANDS if not one.startswith(LONG) and one != COMMANDS[2])
"""Without those that take long, and without a plan in words: its search is that of the JSON."""


@cache
def whole(line: str) -> Ended:
    return run(line, after_s=None)


@pytest.mark.parametrize(("line", "share"), drawn(7, len(QUICK), QUICK))
def test_ctrl_c_at_a_random_instant_ends_in_one_line_or_in_the_answer(line, share):
    ended = run(line, after_s=share * whole(line).wall_s)
    assert faults(line, ended, whole(line)) == []


@pytest.mark.parametrize(("line", "share"), drawn(8, 2, QUICK[-4:-1:2]))
def test_a_request_to_end_ends_at_once_and_leaves_no_fragment(line, share):
    ended = run(line, after_s=min(share, 0.9) * whole(line).wall_s, number=signal.SIGTERM)
    assert ended.code in (-signal.SIGTERM, 0)
    assert "Traceback" not in ended.err
    left = [word for word in faults(line, ended, whole(line)) if "file" in word or "half" in word]
    assert ended.code == 0 or left == []


_AT_AN_IMPORT = """\
import os, signal, sys
from planner.__main__ import main

class Panic(BaseException):
    pass

def hook(event, args):
    if event == "import" and args[0] == {module!r}:
        os.kill(os.getpid(), signal.SIGINT)

def panics(event, args):
    try:
        hook(event, args)
    except KeyboardInterrupt as error:
        raise Panic from error

sys.addaudithook(panics if {panics} else hook)
main()
"""


@pytest.mark.parametrize(
    ("module", "panics"), [("datetime", False), ("pydantic_core._pydantic_core", True)]
)
def test_ctrl_c_while_a_library_in_rust_is_loaded_ends_in_one_line(module, panics):
    """It may raise what is no `Exception`: a panic, of which it tells on stderr by itself."""
    code = _AT_AN_IMPORT.format(module=module, panics=panics)
    words = [sys.executable, "-c", code, "--latency-target", "30ms"]
    ended = subprocess.run(
        words, capture_output=True, text=True, check=False, preexec_fn=hear_ctrl_c
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", LINE)


def test_a_job_in_the_background_is_not_interrupted():
    """`plan &` of a shell without job control ignores Ctrl-C, and so does what it starts."""
    line = "--latency-target 30ms --quiet"
    ended = run(line, after_s=0.3, prepare=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert ended.signalled
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("64 devices")


def test_the_faults_of_an_ending_can_be_seen():
    line = "audit --html a.html --json"
    fine = Ended(0, '{"schema": "x"}\n', "", 1.0, True, {"a.html": "x" * 99 + "</html>"})
    assert faults(line, fine, fine) == []

    def wrong(**changed):
        return faults(line, Ended(**{**vars(fine), **changed}), fine)

    assert wrong(code=-2) == ["exit -2: ''"]
    assert wrong(err="Traceback (most recent call last)") == ["a traceback"]
    assert wrong(out='{"schema": "x"}\n{"schema": "y"}\n') != []
    assert wrong(files={"a.html": "<html>" + "x" * 99}) != []
    assert wrong(files={**fine.files, ".plan-1.tmp": ""}) != []
    assert wrong(code=130, out="", err="error: interrupted before a plan was found\n") == []
    assert wrong(code=130, out="", err="") == ["stderr is ''"]
