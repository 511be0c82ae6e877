"""Answers to requests of a page, each in a process of its own: to cancel is to kill it.

A process answers as the command does, by the same function, and is forked from one in which
libraries are loaded: its answer takes no longer than its search.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import Any

from planner.commands.cli import answer_to
from planner.commands.options.commands import options_of
from planner.commands.options.parsing import parse
from planner.commands.options.said import Said
from planner.commands.sweeping.crews import begin, begun_loaded
from planner.errors import RequestError
from planner.report import progress
from planner.report.words import escape
from planner_workshop.exploring.form import fields_of, line_of, state_of

Json = dict[str, Any]

MOST_KEPT = 50
"""Answers of a page that can be gone back to."""
MOST_S = 900.0
"""Seconds after which a process is ended, whatever its request says."""

RUNNING, DONE, ENDED = "running", "done", "ended"
_LOADED = (
    *("planner_workshop.exploring.jobs", "planner.planning.mixing", "planner.planning.comparing"),
    *("planner.commands.plan", "planner.commands.placements", "planner.commands.predict"),
    *(
        "planner.runtimes.simulation",
        "planner.report.documents.as_html",
        "planner.commands.emitting",
    ),
)
_FILES = {"--html": "answer.html", "--csv": "answer.csv", "--svg": "map.svg"}
_COMMAND = re.compile(r"`(plan [^`]+|--[a-z][^`]*)`")


@dataclass(slots=True, kw_only=True)
class Job:
    """A request that is answered.

    Args:
        number: of the page, from 1.
        said: its command line.
        target: of launch files, where these are what is wanted.
        files: name and text of what can be had of the answer.
        line: the answer in a line.
        message: what is said beside it.
    """

    number: int
    said: Said
    process: BaseProcess
    pipe: Connection
    target: str = ""
    state: str = RUNNING
    progress: str = ""
    line: str = ""
    message: str = ""
    code: int = 0
    files: dict[str, str] = field(default_factory=dict)
    began_s: float = field(default_factory=time.monotonic)
    elapsed_s: float = 0.0
    at: str = field(default_factory=lambda: time.strftime("%H:%M:%S"))

    def look(self) -> None:
        """Take what the process has sent; end it where it takes too long."""
        if self.state != RUNNING:
            return
        self.elapsed_s = time.monotonic() - self.began_s
        try:
            while self.state == RUNNING and self.pipe.poll():
                self._take(self.pipe.recv())
        except (EOFError, OSError):
            self.end("error: the process that answered is gone")
        if self.elapsed_s > MOST_S:
            limit = "write a `--time-limit 60s`, or answer it from the command line"
            self.end(f"error: ended after {MOST_S:.0f} s\n\nhint: {limit}")

    def _take(self, news: Any) -> None:  # noqa: ANN401 what `work` sends
        if isinstance(news, str):
            self.progress = news
            return
        self.line, self.message, self.code, self.files = news
        self.state = DONE
        self.pipe.close()

    def end(self, message: str = "cancelled") -> None:
        """Kill the process, where it is at work."""
        if self.state == RUNNING:
            self.state, self.message, self.code = ENDED, message, 3
            self.process.kill()
            self.process.join()
            self.pipe.close()

    def json(self) -> Json:
        """What the page shows of it."""
        return {
            "number": self.number,
            "state": self.state,
            "command": self.said.command,
            "options": self.said.texts,
            "line": line_of(self.said),
            "target": self.target,
            "progress": self.progress,
            "answer": self.line or self.message.partition("\n")[0],
            "code": self.code,
            "message": list(_parts(self.message, self.said)),
            "faulty": re.findall(r"^  `(--[\w.-]+)", self.message, re.MULTILINE),
            "files": [*self.files],
            "seconds": round(self.elapsed_s, 1),
            "at": self.at,
        }


class Jobs:
    """The requests of a page: one is answered at a time, a new one ends that before it."""

    def __init__(self) -> None:
        self._context = begun_loaded(*_LOADED)
        self._numbers = count(1)
        self.kept: deque[Job] = deque(maxlen=MOST_KEPT)

    def start(self, said: Said, *, columns: int, target: str = "") -> Job:
        """Begin to answer a request, in place of one that is at work."""
        self.close()
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=work, args=(said.words, columns, target, theirs), daemon=True
        )
        process.start()
        theirs.close()
        job = Job(number=next(self._numbers), said=said, process=process, pipe=ours, target=target)
        self.kept.append(job)
        return job

    def job(self, number: int) -> Job | None:
        """One by its number, as it is now; None where it is not kept."""
        job = next((it for it in self.kept if it.number == number), None)
        if job is not None:
            job.look()
        return job

    def history(self) -> list[Json]:
        """Answers that there are, the newest first."""
        kept = [it for it in reversed(self.kept) if it.state == DONE and not it.target]
        return [it.json() for it in kept]

    def close(self) -> None:
        """End what is at work."""
        for job in self.kept:
            job.look()
            job.end()


@dataclass(slots=True)
class _Terminal:
    """What the planner writes of its progress, sent on."""

    pipe: Connection

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text.strip():
            self.pipe.send(text.strip())
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""


def work(words: Sequence[str], columns: int, target: str, pipe: Connection) -> None:
    """Answer a command line, and send its line, message, code and files.

    Args:
        columns: of messages.
        target: of launch files, where these are what is wanted.
    """
    begin()
    os.environ["COLUMNS"] = str(columns)
    terminal: Any = _Terminal(pipe)
    sys.stderr = terminal
    prefix = f"{gettempdir()}/plan-{token_hex(8)}-"  # of files that are named, and never written
    outputs = [*_outputs(parse(words), prefix, target), "--quiet"]
    with progress.shown(terminal):
        answer = answer_to([*words, *outputs], began_s=time.perf_counter())
    with suppress(OSError):
        Path(f"{prefix}launch").rmdir()
    added = shlex.join(["plan", *outputs]).removeprefix("plan")

    def plain(text: str) -> str:
        for it in (added, escape(added), prefix):
            text = text.replace(it, "")
        return text

    files = {plain(name): plain(text) for name, text in answer.files}
    if answer.record is not None and not target:
        from planner.report.as_json import answer_json, dumps

        files["answer.json"] = dumps(answer_json(answer.record)) + "\n"
    pipe.send((answer.text, plain(answer.message), answer.code, files))


def _outputs(said: Said, prefix: str, target: str) -> Iterator[str]:
    """Options that have an answer written in all its shapes, or what starts it."""
    if target:
        yield f"--emit={target} {prefix}launch"
        return
    for name in _FILES.keys() & options_of(said.command).keys():
        yield f"{name}={prefix}{_FILES[name]}"


def _parts(message: str, said: Said) -> Iterator[Json]:
    """A message in parts; what it says to type has the form that it fills."""
    end = 0
    for match in _COMMAND.finditer(message):
        yield {"text": message[end : match.start()]}
        yield {"text": match[0], "fills": _filled(match[1], said)}
        end = match.end()
    yield {"text": message[end:]}


def _filled(text: str, said: Said) -> Json | None:
    """The form that a command fills, or options beside those of a request; None where none is."""
    try:
        typed = shlex.split(text)
        begins = typed[0] == "plan"
        state = state_of(typed[1:] if begins else [*Said(command=said.command).words, *typed])
        if begins and state["options"]:
            return state
        known = {name: it for name, it in said.texts.items() if name in fields_of(state["command"])}
        return {**state, "options": known | state["options"]}
    except (RequestError, ValueError):
        return None
