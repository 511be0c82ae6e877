"""What a command answers, whole before a byte of it is written; then its files, then its text.

Nothing is half said: a record is printed once, a file is replaced whole, and a Ctrl-C that comes
when the answer is there lets it out. A second one does not wait.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from planner.errors import OutOfTimeError
from planner.report.files import replace_file
from planner.report.paint import drop_unwritten, write, write_data
from planner.running.endings import CTRL_C, deafen, held

FOUND, EXHAUSTED = 0, OutOfTimeError.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command has to say.

    Args:
        text: for stdout; nothing if empty.
        is_data: another program reads the text, so it is written unchanged.
        files: name and text of each file that was asked for.
        message: for stderr; nothing if empty.
        code: the exit code.
    """

    text: str = ""
    is_data: bool = False
    files: tuple[tuple[str, str], ...] = ()
    message: str = ""
    code: int = FOUND


def deliver(answer: Answer) -> int:
    """Write an answer.

    Returns:
        The exit code: that of the answer, unless the system did not let all of it out.
    """
    with held(CTRL_C) as came:
        messages, failures = _saved(answer.files)
        try:
            if answer.text:
                (write_data if answer.is_data else write)(answer.text, sys.stdout)
        except BrokenPipeError:  # the reader has seen enough
            drop_unwritten(sys.stdout)
        except OSError as error:
            drop_unwritten(sys.stdout)
            failures.append(("", error))
        if failures:
            from planner.report.messages import unwritten_text

            messages += [unwritten_text(name, error) for name, error in failures]
        try:
            for message in filter(None, (*messages, answer.message)):
                write(message, sys.stderr)
        except OSError:
            drop_unwritten(sys.stderr)
        deafen()
        came.clear()
    return max(answer.code, EXHAUSTED) if failures else answer.code


def _saved(files: Iterable[tuple[str, str]]) -> tuple[list[str], list[tuple[str, OSError]]]:
    """Write files; a line for each that is written, the reason for each that is not."""
    messages, failures = [], []
    for name, text in files:
        try:
            replace_file(name, text)
        except OSError as error:
            failures.append((name, error))
        else:
            from planner.report.messages import shown

            messages.append(f"wrote {shown(name)}")
    return messages, failures
