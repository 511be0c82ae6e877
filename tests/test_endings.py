"""Ctrl-C and its like: heard, counted, and held back where something must be whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.running.endings import ENDINGS, cause_of, signals_held

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.usefixtures("hears_ctrl_c")


def interrupt(*then: Callable[[], object]) -> None:
    """Ctrl-C, held back, and what comes after it in the block."""
    with signals_held((signal.SIGINT,)):
        signal.raise_signal(signal.SIGINT)
        for call in then:
            call()


def test_a_signal_that_is_held_comes_after_the_block():
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt(lambda: done.append("the block"))
    assert done == ["the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_no_longer_matters_is_forgotten():
    with signals_held((signal.SIGINT,)) as came:
        signal.raise_signal(signal.SIGINT)
        came.clear()


def test_a_second_ctrl_c_is_not_held():
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt(lambda: signal.raise_signal(signal.SIGINT), lambda: done.append("never"))
    assert not done


def test_other_signals_are_held_however_often_they_come():
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with signals_held((signal.SIGTERM, signal.SIGINT)) as came:
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                signal.raise_signal(number)
            assert heard == []
            assert came == [signal.SIGTERM, signal.SIGTERM, signal.SIGINT]
            came.remove(signal.SIGINT)
        assert heard == [signal.SIGTERM, signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_blocks_within_blocks_hand_on_what_they_held():
    done: list[str] = []

    def outer() -> None:
        with signals_held(ENDINGS):
            interrupt()
            done.append("inner")

    with pytest.raises(KeyboardInterrupt):
        outer()
    assert done == ["inner"]


def test_a_signal_that_was_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with signals_held((signal.SIGINT,)) as came:
        signal.raise_signal(signal.SIGINT)
    assert came == []
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_another_thread_holds_nothing_and_fails_nothing():
    seen = []
    thread = threading.Thread(
        target=lambda: [seen.append(c) for c in [signals_held(ENDINGS).__enter__()]]
    )
    thread.start()
    thread.join()
    assert seen == [[]]


LOADING = ImportError("numpy: the C-extensions failed")
LOADING.__context__ = KeyboardInterrupt()
STARVED = RuntimeError("a solver failed")
STARVED.__cause__ = MemoryError()
ROUND = ValueError("round")
ROUND.__context__ = LookupError("and round")
ROUND.__context__.__context__ = ROUND


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (LOADING, KeyboardInterrupt),
        (STARVED, MemoryError),
        (ImportError("libhighs.so: failed to map segment from shared object"), MemoryError),
        (RuntimeError("can't start new thread"), MemoryError),
        (OSError(12, "Cannot allocate memory"), MemoryError),
        (ValueError("cannot allocate memory"), type(None)),
        (ROUND, type(None)),
    ],
    ids=str,
)
def test_what_a_library_made_of_an_ending_is_seen_through(error, cause):
    assert type(cause_of(error)) is cause


_IN_A_DESTRUCTOR = """\
import signal, sys, time
from planner.running.endings import listen, was_heard
listen()
class Gone:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
Gone()
try:
    for _ in range(100):
        time.sleep(0.01)
except KeyboardInterrupt:
    print("heard", was_heard())
"""
_AFTER_THE_ANSWER = """\
import signal, time
from planner.running.endings import deafen, listen
listen()
deafen()
signal.raise_signal(signal.SIGINT)
print("whole")
"""
_IN_THE_BACKGROUND = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
from planner.running.endings import deafen, listen
listen()
signal.raise_signal(signal.SIGINT)
deafen()
print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""


@pytest.mark.parametrize(
    ("code", "out"),
    [
        (_IN_A_DESTRUCTOR, "heard True\n"),
        (_AFTER_THE_ANSWER, "whole\n"),
        (_IN_THE_BACKGROUND, "True\n"),
    ],
    ids=["in a destructor", "after the answer", "in the background"],
)
def test_a_process_that_listens(code, out):
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, out, "")
