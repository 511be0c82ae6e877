"""Messages that no option can mend."""

from __future__ import annotations

import math

import pytest

from planner.errors import OutOfTimeError, SolverError
from planner.report.messages import (
    defect_text,
    out_of_time_text,
    refused_text,
    solver_text,
    unwritten_text,
)

COMMAND = "plan --time-limit=8s"


def test_out_of_time_says_how_long_how_good_and_what_to_do():
    error = OutOfTimeError(time_limit_s=2.0, bound=40e-6)
    assert out_of_time_text(error, objective="cost", command=COMMAND) == (
        "error: no plan was found within 2 s\n\n"
        "  No plan can be better than $40/Mtoken.\n\n"
        "hint: give it more time: `plan --time-limit=8s`"
    )


@pytest.mark.parametrize("bound", [-math.inf, math.inf, math.nan, 0.0])
def test_a_bound_that_says_nothing_is_not_said(bound):
    error = OutOfTimeError(time_limit_s=2.0, bound=bound)
    assert "better" not in out_of_time_text(error, objective="cost", command=COMMAND)


def test_a_failed_verification_offers_another_solver():
    text = solver_text(SolverError("objective 1 is 2"), 80)
    assert text.startswith("error: the answer failed its verification\n\n  objective 1 is 2\n")
    assert "hint: `--solver cpsat`" in text


def test_what_the_system_refuses_is_no_defect():
    assert refused_text(OSError(28, "No space left on device")) == "error: no space left on device"
    missing = FileNotFoundError(2, "No such file or directory", "/proc/me")
    assert refused_text(missing) == "error: no such file or directory: `/proc/me`"
    assert refused_text(OSError("odd")) == "error: odd"


def test_what_is_not_written_is_named_as_far_as_it_has_a_name():
    full = OSError(28, "No space left on device")
    assert unwritten_text("", full) == "error: the answer was not written: no space left on device"
    said = "error: `a\\x1b.html` was not written, and is as it was: no space left on device"
    assert unwritten_text("a\x1b.html", full) == said


def test_a_defect_names_itself_and_how_to_see_more():
    text = defect_text(ValueError("x" * 10), command="PLANNER_TRACEBACK=1 plan", width=80)
    assert "ValueError: xxxxxxxxxx" in text
    assert text.endswith("hint: `PLANNER_TRACEBACK=1 plan` shows where it happened")
