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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import App, CycloptsError, Parameter

from planner.commands.kept import Kept
from planner.commands.options.arguments import STANDING, Arguments, tidy
from planner.commands.options.offered import COMMANDS as LISTS
from planner.commands.options.offered import OUTPUTS, written_of
from planner.commands.options.remade import option
from planner.commands.options.written import WrittenOne
from planner.commands.plan import plan
from planner.errors import (
    NoPlanError,
    OutOfTimeError,
    PlannerError,
    Problem,
    RequestError,
    SolverError,
)
from planner.report.delivery import EXHAUSTED, Answer, deliver
from planner.report.files import STDOUT, unwritable
from planner.report.helptext import HelpText
from planner.report.paint import open_closed_streams, unlogged, width
from planner.running.deadlines import counted_from
from planner.running.endings import cause_of, check_room, was_heard
from planner.specs.ledger import Ledger, recording

if TYPE_CHECKING:
    from planner.commands.options.reading import Asked
    from planner.results import Conflict
    from planner.results.placements import PlacementConflict
    from planner.results.staging import StagingConflict
    from planner.specs.records import ClusterSpec, ModelSpec

    AnyConflict = Conflict | PlacementConflict | StagingConflict

_Request = tuple["ModelSpec", "ClusterSpec", "Asked", "tuple[ModelSpec, ...]"]

DEFECT, INTERRUPTED = 4, 130  # the other codes belong to the errors
TRACEBACK = "PLANNER_TRACEBACK"
ROOM_BYTES = 100 * 2**20
"""Address space that a command needs: without it OpenBLAS ends the process, with 1."""

UNSOLVED = ("experts", "layers", "audit", "predict", "measure", "calibrate", "sweep", "verify")
"""Commands without `--solver`."""

_USAGE = """\
usage: plan [OPTIONS]
       plan pareto [OPTIONS]
       plan compare [OPTIONS]
       plan audit [OPTIONS]
       plan predict [OPTIONS]
       plan stages --groups GROUPS [OPTIONS]
       plan layers FILE [OPTIONS]
       plan fleet [FILE] [OPTIONS]
       plan place --model NAME [OPTIONS]
       plan repair FILE --state FILE [OPTIONS]
       plan sweep FILE [OPTIONS]
       plan verify FILE [OPTIONS]
       plan measure [OPTIONS]
       plan calibrate TABLE... [OPTIONS]
       plan experts [OPTIONS]
       plan models [NAME]
       plan topologies [NAME]
       plan devices [NAME] [--json]
       plan engines [NAME] [--json]"""
_NOTHING_ASKED = WrittenOne()

_Said = Annotated[Arguments, Parameter(parse=False)]


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
                answer = _run(words, kept)
        except (Exception, KeyboardInterrupt) as raised:
            answer = _failed(raised, words)
        return kept.beside(_remarked(answer, ledger))


def _remarked(answer: Answer, ledger: Ledger) -> Answer:
    """An answer with what its files are to be said of: which replace others, what has no effect."""
    if not ledger.remarks and not any(file.replaces for file in ledger.files):
        return answer
    from planner.report.remarks import remarks_text

    message = "\n".join(filter(None, (remarks_text(ledger, width()), answer.message)))
    return replace(answer, message=message)


def install_completion() -> Answer:
    """Install completion for the shell in use."""
    return Answer(text=f"installed in {_app().install_completion()}")


COMMANDS = {
    "pareto": "surveys",
    "compare": "surveys",
    "audit": "audit",
    "predict": "predict",
    "stages": "stages",
    "layers": "stages",
    "fleet": "fleet",
    "place": "placements",
    "repair": "repairs",
    "sweep": "sweep",
    "verify": "verify",
    "measure": "measure",
    "calibrate": "calibrate",
    "experts": "experts",
    "models": "catalogue",
    "topologies": "catalogue",
    "devices": "catalogue",
    "engines": "catalogue",
}
"""Commands beside `plan` itself, and their modules, which are imported when they are asked for."""


def _command(name: str) -> Callable[..., Answer]:
    command: Callable[..., Answer] = getattr(
        import_module(f"planner.commands.{COMMANDS[name]}"), name
    )
    return command


def _listed(command: Callable[..., object]) -> App:
    """A command by its name and the first paragraph of what it says: all that a list shows.

    The parser would read every option of each of them, which takes as long as the rest of help.
    """
    summary, _, _ = (command.__doc__ or "").partition("\n\n")
    return App(name=command.__name__, help=" ".join(summary.split()))


def _app(only: Sequence[str] = (), *, is_listing: bool = False) -> App:
    """The parser; of some commands by their names, as each takes time to read, or of all."""
    app = App(
        name="plan",
        help="Find the deployment of a language model that is provably best, and its proof.",
        usage=_USAGE,
        version=_version,
        help_format="plaintext",
        help_formatter=HelpText(),
    )
    app.default(plan)
    for command in (_command(name) for name in COMMANDS if not only or name in only):
        app.command(_listed(command) if is_listing else command)
    app.command(install_completion, name="--install-completion")
    return app


def _version() -> str:
    from importlib.metadata import version

    return version("llm-serving-planner")


def _run(words: list[str], kept: Kept) -> Answer:
    said = tidy(words)
    standing = [token for token in said.tokens if token in STANDING]
    command = [token for token in said.tokens[:1] if not token.startswith("-")]
    if standing:  # help is given even beside options that cannot be read
        return _standing(standing[0], command, said)
    check_room(ROOM_BYTES)
    if command and command[0] in LISTS:
        return _parsed(said.tokens, said)
    function = plan if said.command == "plan" else _command(said.command)
    written = written_of(said.command, said.tokens)
    path = getattr(written, "keep_program", None)
    said.problems += unwritable(_outputs([written]))
    with unlogged(), kept.listening(path), settings([written], said):
        answer: Answer = function(written, said=said)
    return answer


def _standing(word: str, command: list[str], said: Arguments) -> Answer:
    """The answer to a word that needs no other."""
    if word in ("--help", "-h"):  # to parse the words first would take twice as long
        return _help(command)
    if word == "--version":
        return Answer(text=_version())
    check_room(ROOM_BYTES)
    return _parsed([*command, word], said)


def _parsed(tokens: list[str], said: Arguments) -> Answer:
    """The answer of a command that has no record of options."""
    try:
        function, bound, injected = _app(tokens[:1]).parse_args(
            tokens, exit_on_error=False, print_error=False
        )
    except CycloptsError as error:  # `tidy` has left nothing that could be wrong
        raise RequestError([*said.problems, Problem(where="plan", fact=str(error))]) from error
    with unlogged():
        answer: Answer = function(*bound.args, **bound.kwargs, **dict.fromkeys(injected, said))
    return answer


@contextmanager
def settings(written: Sequence[object], said: Arguments) -> Iterator[None]:
    """What options change of engines, while a request is read and answered."""
    with _memory(written, said), _rules(written, said):
        yield


def _memory(written: Iterable[object], said: Arguments) -> AbstractContextManager[None]:
    """What engines may take of a device, where options say so."""
    names = ("memory_fraction", "workspace")
    texts = [getattr(one, name, None) for one in written for name in names]
    if not any(texts):
        return nullcontext()
    from planner.commands.options.reading import Faults, share_of, size_of
    from planner.specs.engines.files import engine_memory

    faults = Faults()
    fraction = faults.read("--memory-fraction", texts[0], share_of)
    workspace = faults.read("--workspace", texts[1], size_of)
    said.problems += faults.problems
    return engine_memory(fraction=fraction, workspace_bytes=workspace)


def _rules(written: Iterable[object], said: Arguments) -> AbstractContextManager[None]:
    """What a file changes of the rules of an engine, where an option names one.

    A file that cannot be read, or that is of an engine that is not asked, is a problem among
    those of the other options.
    """
    named = ((getattr(one, "rules", None), getattr(one, "engine", None)) for one in written)
    path, engine = next((one for one in named if one[0]), (None, None))
    if path is None:
        return nullcontext()
    from planner.specs.engines.rule_files import changed_rules

    asked = tuple(word.strip() for word in engine.split(",")) if isinstance(engine, str) else ()
    return said.collect(lambda: changed_rules(path, engines=asked)) or nullcontext()


def _outputs(written: Iterable[object]) -> dict[str, str | None]:
    """Files that options name, to be written."""
    found = {option(name): getattr(one, name, None) for one in written for name in OUTPUTS}
    return {name: text for name, text in found.items() if (name, text) != ("--csv", STDOUT)}


def _help(command: list[str]) -> Answer:
    from io import StringIO

    from rich.console import Console

    page = StringIO()
    _app(command, is_listing=not command).help_print(command, console=Console(file=page))
    return Answer(text=page.getvalue().removesuffix("\n"))


def _failed(raised: BaseException, words: list[str]) -> Answer:
    """What to say of an error, or of a Ctrl-C, in whatever shape a library left it."""
    error = raised
    if was_heard() or _code(raised) in (DEFECT, EXHAUSTED):
        error = cause_of(raised) or raised
    text, message = "", _message(error, words)
    if "--json" in words:
        text = _record(error)
    if os.environ.get(TRACEBACK):
        import traceback

        message += "\n" + "".join(traceback.format_exception(raised)).rstrip()
    return Answer(text=text, is_data=True, message=message, code=_code(error))


def _code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MemoryError | OSError):
        return EXHAUSTED
    return error.exit_code if isinstance(error, PlannerError) else DEFECT


def _record(error: BaseException) -> str:
    """An error for a program."""
    from planner.report.as_json import answer_json, dumps, failure_of

    return dumps(answer_json(_conflict(error) or failure_of(error, exit_code=_code(error))))


def _conflict(error: BaseException) -> AnyConflict | None:
    return cast("AnyConflict", error.conflict) if isinstance(error, NoPlanError) else None


def _conflict_text(conflict: AnyConflict) -> str:
    from planner.report.conflict import conflict_text
    from planner.report.placement import placement_conflict_text
    from planner.results.placements import PlacementConflict
    from planner.results.staging import StagingConflict

    if isinstance(conflict, StagingConflict):
        from planner.report.stages import staging_conflict_text

        return staging_conflict_text(conflict, width())
    if isinstance(conflict, PlacementConflict):
        return placement_conflict_text(conflict, width())
    return conflict_text(conflict, width())


def _message(error: BaseException, words: list[str]) -> str:
    from planner.report import failures

    if isinstance(error, RequestError):
        from planner.report.problems import request_text

        return request_text(error, width())
    conflict = _conflict(error)
    if conflict:
        return _conflict_text(conflict)
    if isinstance(error, OutOfTimeError):
        tokens = [token for token in tidy(words).tokens if not token.startswith("--time-limit")]
        objective = next((t[12:] for t in tokens if t.startswith("--objective=")), "cost")
        command = shlex.join(["plan", *tokens, f"--time-limit={4 * error.time_limit_s:g}s"])
        return failures.out_of_time_text(error, objective=objective, command=command)
    if isinstance(error, SolverError):
        return failures.solver_text(error, width(), has_solvers="".join(words[:1]) not in UNSOLVED)
    if isinstance(error, KeyboardInterrupt):
        return failures.INTERRUPTED
    if isinstance(error, MemoryError):
        return failures.OUT_OF_MEMORY
    if isinstance(error, OSError):
        return failures.refused_text(error)
    command = f"{TRACEBACK}=1 {shlex.join(['plan', *words])}"
    return failures.defect_text(error, command=command, width=width())
