"""Command × runtime × option: it is refused by its name, or what it says moves the answer.

Options are those of the table, of all commands, tried on each. What the table of
meanings refuses has to be refused, all at once, in one message; everything else has to be read,
so that nonsense is refused by the option's name too; and what is read has to be used: with the
value that `MOVES` has for it the answer is another.
"""

from __future__ import annotations

import contextlib
import io
from functools import cache

import pytest

from planner.commands.cli import main
from planner.commands.options.commands import COMMANDS as LISTED, called, options_of
from planner.report.messages import MOST_LISTED
from planner.specs.options.meanings import refusal_under, refused_by

ENGINES = ("vllm", "sglang", "trtllm")
PLANNED = ("roofline", *ENGINES, "erdil2025")
RUNTIMES = {
    "plan": PLANNED,
    "pareto": PLANNED,
    "compare": PLANNED,
    "audit": PLANNED,
    "predict": PLANNED,
    "fleet": ("roofline", *ENGINES),
    "place": ("roofline", *ENGINES),
    "repair": ("roofline", *ENGINES),
}
"""Commands that a runtime answers, and which of them."""

CELLS = [(command, runtime) for command, named in RUNTIMES.items() for runtime in named]
NONSENSE = "?!"


@cache
def parsed(command: str) -> dict[str, bool]:
    """Options of a command, and whether they take a value."""
    rows = options_of(command).items()
    return {name: bool(row.value) for name, row in rows if name.startswith("--")}


COMMANDS = tuple(LISTED)
OPTIONS = {name: valued for one in reversed(COMMANDS) for name, valued in parsed(one).items()}
"""All options of all commands."""


def is_meant(command: str, runtime: str, option: str) -> bool:
    """Whether the table says that an option of a command means something."""
    known = option in parsed(command) and option not in refused_by(command)
    return known and refusal_under(runtime, option, command) is None


def ran(command: str, words: tuple[str, ...]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*called(command).split()[1:], *words])
    return code, out.getvalue(), err.getvalue()


def unnamed(err: str, options: list[str]) -> list[str]:
    """Options that a message does not name at the head of a reason."""
    heads = [line.strip() for line in err.splitlines()]
    return [
        option
        for option in options
        if not any(head.startswith((f"`{option}`", f"`{option} ")) for head in heads)
    ]


@pytest.mark.parametrize(("command", "runtime"), CELLS)
def test_an_option_that_means_nothing_is_refused_by_its_name(command, runtime):
    refused = [option for option in OPTIONS if not is_meant(command, runtime, option)]
    assert refused
    n_listed = MOST_LISTED - 10  # what the command misses is listed beside them
    for some in (refused[i : i + n_listed] for i in range(0, len(refused), n_listed)):
        words = ["--engine", runtime]
        for option in some:
            words += [option, NONSENSE] if OPTIONS[option] else [option]
        code, _, err = ran(command, tuple(words))
        assert code == 2
        assert unnamed(err, some) == []


@pytest.mark.parametrize(
    ("command", "runtime"),
    [
        (command, runtime)
        for command, named in RUNTIMES.items()
        for runtime in PLANNED
        if runtime not in named
    ],
)
def test_a_runtime_that_does_not_answer_a_command_is_refused_by_its_name(command, runtime):
    code, _, err = ran(command, ("--engine", runtime))
    assert code == 2
    assert unnamed(err, [f"--engine {runtime}"]) == []


FREE = {"--engine-version", "--source"}
"""Options that take any text."""


@pytest.mark.parametrize(("command", "runtime"), CELLS)
def test_an_option_that_means_something_is_read(command, runtime):
    """Nonsense is refused in the name of each option, in one message."""
    read = [
        option
        for option, valued in parsed(command).items()
        if valued and option != "--engine" and is_meant(command, runtime, option)
    ]
    words = ["--engine", runtime]
    for option in read:
        words += [option, f"no/such/folder/{NONSENSE}" if option in FILES else NONSENSE]
    code, _, err = ran(command, tuple(words))
    assert code == 2
    for option in unnamed(err, read):  # some are read only where others could be
        _, _, err = ran(command, ("--engine", runtime, option, NONSENSE))
        assert not unnamed(err, [option]) or f"{NONSENSE}`  " in err


FILES = (
    *("--html", "--svg", "--csv", "--keep-program", "--solver-report", "--state", "--placement"),
    *("--save-request", "--traffic", "--trace"),
)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in RUNTIMES])
def test_commands_without_a_runtime_name_the_options_that_are_not_theirs(command):
    others = [option for option in OPTIONS if option not in parsed(command)]
    for some in (others[i : i + 20] for i in range(0, len(others), 20)):
        words = [word for one in some for word in ([one, NONSENSE] if OPTIONS[one] else [one])]
        code, _, err = ran(command, tuple(words))
        assert code == 2
        assert unnamed(err, some) == []
