"""argv to a call of the library, a result to text and an exit code.

    0  a plan            2  the request cannot be read        4  a failed verification, a defect
    1  no plan exists    3  out of time, memory or disk       130  interrupted without a plan

stdout carries plans and lists only; messages and progress go to stderr. A command composes its
answer, and only then is a byte of it written. Everything heavy is imported where it is used, so
that `plan --help` is quick.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from planner.commands.options.commands import COMMANDS, options_of
from planner.commands.options.parsing import files_of, parse
from planner.commands.options.said import Said, settings
from planner.errors import NoPlanError, OutOfTimeError, PlannerError, RequestError, SolverError
from planner.report.files import EXHAUSTED, Answer, deliver, unwritable
from planner.report.paint import open_closed_streams, unlogged, width
from planner.running.deadlines import counted_from
from planner.running.endings import cause_of, check_room, was_heard
from planner.specs.files.ledger import Ledger, recording

if TYPE_CHECKING:
    from planner.results.conflicts import Conflict, PlacementConflict
    from planner.results.staging import StagingConflict

    AnyConflict = Conflict | PlacementConflict | StagingConflict

DEFECT, INTERRUPTED = 4, 130  # the other codes belong to the errors
TRACEBACK = "PLANNER_TRACEBACK"
COMPLETE = "--complete"
"""What scripts of completion call the command with, and the words so far: no option of a user's."""

ROOM_BYTES = 100 * 2**20
"""Address space that a command needs: without it OpenBLAS ends the process, with 1."""


def main(argv: list[str] | None = None, *, began_s: float | None = None) -> int:
    """Run a command line.

    Args:
        argv: words after `plan`; those of the process if None.
        began_s: when the command began, by `time.perf_counter`; now if None.

    Returns:
        The exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    open_closed_streams()
    with _progress():
        answer = answer_to(words, began_s=time.perf_counter() if began_s is None else began_s)
    return deliver(answer)


def _progress() -> AbstractContextManager[None]:
    """A line on a terminal that says what is being done; nothing elsewhere."""
    if not sys.stderr.isatty():
        return nullcontext()
    from planner.report.progress import shown

    return shown(sys.stderr)


def answer_to(words: list[str], *, began_s: float) -> Answer:
    """The answer to a command line, or what to say of an error."""
    with recording() as ledger:
        kept = Kept()
        try:
            with counted_from(began_s):
                if words[:1] == ["run"]:
                    from planner.commands.requests import as_typed

                    words = as_typed(words)
                answer = _run(words, kept)
        except (Exception, KeyboardInterrupt) as raised:
            answer = _failed(raised, words)
        return kept.beside(_remarked(answer, ledger))


def envelope_of(words: Sequence[str], *, began_s: float) -> tuple[Answer, dict[str, Any]]:
    """The answer to a command line, and what of it programs read; empty if there is nothing."""
    import json

    answer = answer_to([*words, "--json"], began_s=began_s)
    return answer, json.loads(answer.text) if answer.text else {}


def _remarked(answer: Answer, ledger: Ledger) -> Answer:
    """An answer with what its files are to be said of: which replace others, what has no effect."""
    if not ledger.remarks and not any(file.replaces for file in ledger.files):
        return answer
    from planner.report.messages import remarks_text

    message = "\n".join(filter(None, (remarks_text(ledger, width()), answer.message)))
    return replace(answer, message=message)


def _run(words: list[str], kept: Kept) -> Answer:
    if words[:1] == [COMPLETE]:
        from planner.commands.options.helping import completions

        return Answer(text="\n".join(completions(words[1:])))
    said = parse(words)
    if said.standing:
        return _answer_alone(said)
    check_room(ROOM_BYTES)
    said.problems += unwritable(files_of(said))
    kept.note_request(said)
    if said.values.get("flags") is not None:
        from planner.commands.deployed import read_flags

        read_flags(said)
    module = import_module(f"planner.commands.{COMMANDS[said.command].module}")
    function: Callable[[Said], Answer] = getattr(module, said.command.replace("-", "_"))
    with unlogged(), kept.listening(said), settings(said):
        answer = _with_page(said, function(said))
        if not said.values.get("emit"):
            return answer
        from planner.commands.emitting import with_launch_files

        return with_launch_files(said, answer)


def _with_page(said: Said, made: Answer) -> Answer:
    """An answer and the page that `--html` names, of why there is no plan too."""
    if (name := said.values.get("html")) is None:
        return made
    from planner.commands.paging import with_page
    from planner.commands.reporting import origin

    return with_page(made, str(name), origin(said))


def _answer_alone(said: Said) -> Answer:
    """The answer to a word that needs no other, even beside options that cannot be read."""
    if said.standing == "--version":
        from importlib.metadata import version

        return Answer(text=version("llm-serving-planner"))
    if said.standing == "--install-completion":
        from planner.commands.options.helping import install

        return Answer(text=install())
    from planner.commands.options.helping import help_page

    return Answer(text=help_page(said.command))


def _failed(raised: BaseException, words: list[str]) -> Answer:
    """What to say of an error, or of a Ctrl-C, in whatever shape a library left it."""
    error = raised
    if was_heard() or _code(raised) in (DEFECT, EXHAUSTED):
        error = cause_of(raised) or raised
    text, message, conflict = "", _message(error, words), _conflict(error)
    if "--json" in words:
        from planner.report.as_json import answer_json, dumps, failure_of

        text = dumps(answer_json(conflict or failure_of(error, exit_code=_code(error))))
    if os.environ.get(TRACEBACK):
        import traceback

        message += "\n" + "".join(traceback.format_exception(raised)).rstrip()
    made = Answer(text=text, is_data=True, message=message, code=_code(error))
    if not conflict:
        return made
    from planner.report.answer_kinds import document_of

    return _with_page(parse(words), replace(made, document=lambda: document_of(conflict)))


def _code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MemoryError | OSError):
        return EXHAUSTED
    return error.exit_code if isinstance(error, PlannerError) else DEFECT


def _conflict(error: BaseException) -> AnyConflict | None:
    return cast("AnyConflict", error.conflict) if isinstance(error, NoPlanError) else None


def _message(error: BaseException, words: list[str]) -> str:
    from planner.report import messages

    if isinstance(error, RequestError):
        return messages.request_text(error, width())
    conflict = _conflict(error)
    if conflict:
        from planner.commands.reporting import screen_text
        from planner.report.answer_kinds import document_of

        return screen_text(parse(words), document_of(conflict), sys.stderr)
    if isinstance(error, OutOfTimeError):
        said = parse(words)
        objective = said.text("--objective") or "cost"
        left_out = ("--time-limit=", "--save-request=")
        rest = [word for word in said.words if not word.startswith(left_out)]
        command = shlex.join(["plan", *rest, f"--time-limit={4 * error.time_limit_s:g}s"])
        return messages.out_of_time_text(error, objective=objective, command=command)
    if isinstance(error, SolverError):
        has_solvers = "--solver" in options_of(parse(words).command)
        return messages.solver_text(error, width(), has_solvers=has_solvers)
    if isinstance(error, KeyboardInterrupt):
        return messages.INTERRUPTED
    if isinstance(error, MemoryError):
        return messages.OUT_OF_MEMORY
    if isinstance(error, OSError):
        return messages.refused_text(error)
    command = f"{TRACEBACK}=1 {shlex.join(['plan', *words])}"
    return messages.defect_text(error, command=command, width=width())


@dataclass(slots=True)
class Kept:
    """The request of a command, and what was solved for it; none but where wanted."""

    with_solved: Callable[[Answer], Answer] | None = None
    request: tuple[tuple[str, str], ...] = ()

    def note_request(self, said: Said) -> None:
        """Keep the request of a command as `--save-request` has it: path and text of a file."""
        path = said.values.get("save_request")
        if path is not None and not said.problems:
            from planner.commands.requests import request_text

            text = request_text(said, path)
            self.request = ((path, text),)
            if not text.isascii() and text != text.encode(errors="replace").decode():
                said.refuse("--save-request", "cannot hold a name that is not UTF-8")
            del said.texts["--save-request"]  # where it is saved is no part of it

    @contextmanager
    def listening(self, said: Said) -> Iterator[None]:
        """Record what is solved in here, where an option asks for it."""
        is_reported = "solver_report" in said.values
        if not is_reported and "keep_program" not in said.values:
            yield
            return
        from planner.commands.reporting import with_solved
        from planner.solvers.recording import recording

        with recording(is_reported=is_reported) as log:
            self.with_solved = partial(with_solved, said, log)
            yield

    def beside(self, answer: Answer) -> Answer:
        """An answer, and beside its files the request, the program and the solver report."""
        if answer.code == RequestError.exit_code:
            return answer
        answer = replace(answer, files=(*answer.files, *self.request))
        return answer if self.with_solved is None else self.with_solved(answer)
