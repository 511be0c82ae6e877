"""Requests of a page that are answered, each in a process of its own: to cancel is to kill it.

A process answers by the same function as the command, and is forked from one in which libraries
are loaded: an answer takes no longer than its search.
"""

import os
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from threading import Timer
from typing import Any

from planner.commands.cli import answer_to
from planner.commands.options.commands import called, options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.commands.sweeping.crews import begin, begun_loaded
from planner.errors import RequestError
from planner.report import progress
from planner.report.words import escape
from planner_workshop.exploring.form import TABLE, Json, fields_of, line_of, state_of

MOST_KEPT = 50
"""Answers of a page that can be gone back to."""
MOST_S = 900.0
"""Seconds after which a process ends, whatever its request says."""
_TOO_LONG = 9
"""Exit code of a process that ends so."""
_BEGUN = {"state": "running", "progress": "", "answer": "", "message": "", "code": 0}
_COMMAND = re.compile(r"`(plan [^`]+|--[a-z][^`]*)`|(?<=^  )(plan --.+)", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Job:
    """A request that is answered.

    Args:
        number: of the page, from 1.
        target: of launch files, where these are what is wanted.
        news: what its process told last: `_BEGUN` before it does.
        files: name and text of what can be had of the answer.
    """

    number: int
    said: Said
    process: BaseProcess
    pipe: Connection
    target: str = ""
    news: Json = field(default_factory=lambda: dict(_BEGUN))
    files: dict[str, str] = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    at: str = field(default_factory=lambda: time.strftime("%H:%M:%S"))

    @property
    def is_running(self) -> bool:
        return bool(self.news["state"] == "running")

    def look(self) -> None:
        """Take what the process has sent; it may have gone without an answer."""
        if not self.is_running:
            return
        self.seconds = round(time.monotonic() - self.began_s, 1)
        try:
            while self.is_running and self.pipe.poll():
                news = self.pipe.recv()
                self.files = news.pop("files", {})
                self.news |= news
        except (EOFError, OSError):
            self.process.join()
            is_late = self.process.exitcode == _TOO_LONG
            self.end(TABLE["too_long" if is_late else "gone"].format(self.seconds))

    def end(self, message: str = "cancelled") -> None:
        """Kill the process, where it is at work."""
        if self.is_running:
            self.news |= {"state": "ended", "message": message, "code": 3}
            self.process.kill()
            self.process.join()

    def json(self) -> Json:
        """What the page shows of it."""
        message = self.news["message"]
        parts = {"message": [*_parts(message, self.said)], "files": [*self.files]}
        faulty = re.findall(r"^  `(--[\w.-]+)", message, re.MULTILINE)
        request = {"command": self.said.command, "options": self.said.texts, "faulty": faulty}
        own = {name: getattr(self, name) for name in ("number", "target", "seconds", "at")}
        answer = self.news["answer"] or message.partition("\n")[0]
        line = line_of(self.said)
        return {**self.news, **own, **request, **parts, "answer": answer, "line": line}


class Jobs:
    """The requests of a page: one is answered at a time, a new one ends that before it."""

    def __init__(self) -> None:
        self._context = begun_loaded(*TABLE["loaded"].split())
        self._numbers = count(1)
        self._kept: deque[Job] = deque(maxlen=MOST_KEPT)

    def start(self, said: Said, *, columns: int, target: str = "") -> Job:
        """Begin to answer a request, in place of one that is at work."""
        self.close()
        ours, theirs = self._context.Pipe(duplex=False)
        about = (said.words, columns, target, theirs, MOST_S)
        process = self._context.Process(target=work, args=about)
        process.start()
        theirs.close()
        job = Job(number=next(self._numbers), said=said, process=process, pipe=ours, target=target)
        self._kept.append(job)
        return job

    def all(self) -> list[Job]:
        """Those that are kept, as they are now, the newest first."""
        for job in self._kept:
            job.look()
        return [*reversed(self._kept)]

    def close(self) -> None:
        """End what is at work."""
        for job in self.all():
            job.end()


@dataclass(slots=True)
class _Line:
    """What the planner writes of its progress, sent on."""

    pipe: Connection

    def write(self, text: str) -> None:
        if text.strip():
            self.pipe.send({"progress": text.strip()})

    def flush(self) -> None:
        """Nothing waits."""


def work(words: Sequence[str], columns: int, target: str, pipe: Connection, most_s: float) -> None:
    """Answer a command line, and send the answer in all its shapes.

    Args:
        columns: of messages.
        target: of launch files, where these are what is wanted.
        most_s: after which the process ends, whether or not a page still looks at it.
    """
    begin()
    watch = Timer(most_s, os._exit, [_TOO_LONG])
    watch.daemon = True
    watch.start()
    os.environ["COLUMNS"] = str(columns)
    line: Any = _Line(pipe)
    sys.stdout = sys.stderr = StringIO()  # a terminal would get less of a message
    prefix = f"{gettempdir()}/plan-{token_hex(8)}-"  # of files that are named, and never written
    named = TABLE["launched"] if target else TABLE["shown"]
    known = options_of(parse(words).command)
    outputs = [it.format(prefix, target) for name, it in named.items() if name in known]
    with progress.shown(line):
        answer = answer_to([*words, *outputs], began_s=time.perf_counter())
    with suppress(OSError):
        Path(f"{prefix}launch").rmdir()
    added = f" {shlex.join(outputs)}"

    def plain(text: str) -> str:
        return text.replace(added, "").replace(escape(added), "").replace(prefix, "")

    files = {plain(name): plain(text) for name, text in answer.files}
    if answer.record is not None and not target:
        from planner.report.as_json import answer_json, dumps

        files["answer.json"] = dumps(answer_json(answer.record)) + "\n"
    told = {"answer": answer.text, "message": plain(answer.message), "code": answer.code}
    pipe.send({"state": "done", **told, "files": files})


def _parts(message: str, said: Said) -> Iterator[Json]:
    """A message in parts; what it says to type has the form that it fills."""
    end = 0
    for match in _COMMAND.finditer(message):
        yield {"text": message[end : match.start()]}
        yield {"text": match[0], "fills": _filled(match[1] or match[2], said)}
        end = match.end()
    yield {"text": message[end:]}


def _filled(text: str, said: Said) -> Json | None:
    """The form that a command fills, or options beside those of a request; None where none is."""
    is_whole = text.startswith("plan ")
    try:
        state = state_of(text if is_whole else f"{called(said.command)} {text}")
    except RequestError:
        return None
    if is_whole and state["options"]:
        return state
    known = {name: it for name, it in said.texts.items() if name in fields_of(state["command"])}
    return {**state, "options": known | state["options"]}
