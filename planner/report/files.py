"""Answers delivered whole, and files that options name: what keeps them from being written.

A file is written beside the one that it replaces, flushed to the disk, then renamed: whatever
happens, what stands there is the old file or the new one. A link keeps pointing where it did, a
file keeps its mode.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import OutOfTimeError, Problem
from planner.report.paint import drop_unwritten, write, write_data
from planner.running.endings import CTRL_C, ENDINGS, deafen, signals_held

STDOUT = "-"
_NEW_MODE = 0o666  # less what the user's umask takes
_LONGEST_NAME = 255


def unwritable(named: Mapping[str, str | None]) -> list[Problem]:
    """Why files cannot be written, as far as one can know before.

    Args:
        named: file of each option; None where none is asked for.
    """
    files = {option: text for option, text in named.items() if text is not None}
    problems = []
    taken: dict[str, str] = {}
    for option, text in files.items():
        fact, remedy = _obstacle(text)
        other = "" if fact else taken.setdefault(os.path.realpath(text), option)
        if other not in ("", option):
            fact, remedy = f"is the file of `{other}` too", "name another one"
        if fact:
            problems.append(Problem(where=option, value=text, fact=fact, remedy=remedy))
    return problems


def _obstacle(text: str) -> tuple[str, str]:
    """What keeps a file from being written, and what to do; empty if nothing is known to."""
    if not text.strip() or text == STDOUT:
        return "is no file", ""
    try:
        path = Path(os.path.realpath(text))
        is_there = path.exists()
    except (OSError, ValueError):  # a null character, or a name too long to ask about
        return "is no name that a file can have", ""
    is_long, folder = len(os.fsencode(path.name)) > _LONGEST_NAME, Path(text).parent
    reported = any(_is_same(path, stream) for stream in (sys.stdout, sys.stderr) if is_there)
    writable = [os.access(place, os.W_OK) for place in (path.parent, path) if place.exists()]
    other = "name another one"
    obstacles = (
        (is_long, "is no name that a file can have", "take a shorter one"),
        (path.is_symlink(), "is a link that leads nowhere", ""),
        (path.is_dir(), "is a folder", f"name a file in it, like `{Path(text) / 'answer'}`"),
        (not path.parent.is_dir(), "its folder does not exist", f"make it: `mkdir -p {folder}`"),
        (
            is_there and not path.is_file(),
            "is not a regular file, and files are replaced whole",
            other,
        ),
        (reported, "is where the report goes", other),
        (not all(writable), "permission denied", ""),
    )
    return next(((fact, remedy) for stands, fact, remedy in obstacles if stands), ("", ""))


def _is_same(path: Path, stream: object) -> bool:
    """Whether a stream of the process is redirected into a file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(stream.fileno()))  # type: ignore[attr-defined]
    except (OSError, ValueError, AttributeError):  # it has no file, as in a test
        return False


def replace_file(name: str, text: str) -> None:
    """Write a file whole, or leave what was there.

    Raises:
        OSError: the system did not let it; nothing is left of the attempt.
    """
    target = Path(os.path.realpath(name))
    beside = target.with_name(f".plan-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    with signals_held(ENDINGS):
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
            with os.fdopen(os.open(beside, flags, _NEW_MODE), "wb") as stream:
                _be_like(target, stream.fileno())
                stream.write(text.encode("utf-8", "backslashreplace"))  # a name may be no text
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(target)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
    _flush_folder(target.parent)


def _be_like(target: Path, descriptor: int) -> None:
    """Give a new file the owner and the mode of the one that it will replace."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return
    with suppress(OSError):  # only the superuser may give files away
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _flush_folder(folder: Path) -> None:
    """Let the new name outlast a loss of power, where the system can promise that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
        record: what is answered, where it has one.
        document: what is said of it.
    """

    text: str = ""
    is_data: bool = False
    files: tuple[tuple[str, str], ...] = ()
    message: str = ""
    code: int = FOUND
    record: object = None
    document: Callable[[], Any] | None = None


def deliver(answer: Answer) -> int:
    """Write an answer.

    Nothing is half said: a record is printed once, a file is replaced whole, and a Ctrl-C that
    comes when the answer is there lets it out. A second one does not wait.

    Returns:
        The exit code: that of the answer, unless the system did not let all of it out.
    """
    with signals_held(CTRL_C) as came:
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
