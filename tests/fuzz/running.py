"""A command line in a folder of its own: in this process, quickly, or in a fresh one."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from planner.commands.cli import main

ROOT = Path(__file__).parents[2]
PATIENCE_S = 20.0
"""Of processor time, which a machine under load does not prolong."""

HANGS_S = 120.0
"""Of wall time: who waits so long waits for ever."""

Files = Mapping[str, str | bytes]


class TooLongError(BaseException):
    """A case took longer than it may; nothing in between may take it for a fault of its own."""


@dataclass(frozen=True)
class Ran:
    """How a command line ended.

    Args:
        left: names of files that stand in its folder afterwards and did not before.
    """

    code: int
    out: str
    err: str
    cpu_s: float
    left: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def in_process(line: list[str], files: Files, environment: Mapping[str, str] = {}) -> Ran:
    """Run a command line here.

    Args:
        files: name and content of each file in its folder.
        environment: variables that are set for it.
    """
    out, err = io.StringIO(), io.StringIO()
    with _folder(files) as folder, _set(environment):
        before = _names(folder)
        began_s = time.process_time()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                with _limited():
                    code = main(list(line))
            except TooLongError:
                code = 124
        cpu_s = time.process_time() - began_s
        left = tuple(sorted(_names(folder) - before))
    return Ran(code, out.getvalue(), err.getvalue(), cpu_s, left, environment)


def in_a_fresh_process(line: list[str], files: Files, environment: Mapping[str, str] = {}) -> Ran:
    """Run a command line as a user does."""
    with _folder(files) as folder:
        before = _names(folder)
        began_s = _cpu_of_children_s()
        try:
            ran = subprocess.run(
                [sys.executable, "-m", "planner.__main__", *line],
                capture_output=True,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                timeout=HANGS_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            code, out, err = ran.returncode, ran.stdout, ran.stderr
        except subprocess.TimeoutExpired as error:
            code, out, err = 124, error.stdout or b"", error.stderr or b""
        cpu_s = _cpu_of_children_s() - began_s
        left = tuple(sorted(_names(folder) - before))
    texts = (data.decode("utf-8", "backslashreplace") for data in (out, err))
    return Ran(code, *texts, cpu_s, left, environment)


@contextlib.contextmanager
def _folder(files: Files) -> Iterator[Path]:
    """A folder with these files as the working folder; a name that ends in `/` is a folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for path, content in files.items():
            write(folder / path, content)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


SPECIAL = "special: "
"""Opens a content that is no content: a pipe, a folder, a link."""


def write(path: Path, content: str | bytes) -> None:
    """A file, or something else of that name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str) and content.startswith(SPECIAL):
        how, _, target = content.removeprefix(SPECIAL).partition(" ")
        if how == "pipe":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir(exist_ok=True)
        elif how == "link":
            path.symlink_to(target)
        elif how == "sparse":
            with path.open("wb") as stream:
                stream.truncate(int(target))
        else:
            raise ValueError(content)
    else:
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        path.write_bytes(data)


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@contextlib.contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise `TooLongError` after a while; code that is not Python's ends first."""

    def ring(number: int, frame: object) -> None:
        raise TooLongError

    usual = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, 2 * PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, usual)


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
