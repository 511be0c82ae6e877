"""Pages of help, and what shells complete, from the table of options.

Shells ask `plan --complete WORDS`: names are those of the moment, of the user's own folders too.
"""

import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain, product
from pathlib import Path

from planner.commands.options.commands import COMMANDS, Command, called, options_of
from planner.commands.options.parsing import STANDING, command_of, is_option
from planner.errors import Problem, RequestError
from planner.quantities.tables import packaged_table
from planner.report.paint import width
from planner.report.words import wrapped
from planner.specs.files.listing import list_files
from planner.specs.files.patterns import patterns
from planner.specs.files.places import Kind
from planner.specs.options.option import Option
from planner.specs.options.table import HEADINGS
from planner.specs.traffic.percentiles import DEFINITIONS, GOODPUT

_COLUMN = 28  # where words begin; `--prefill-batch BATCHES` fits before it

NOTES = {"Targets by percentile": (*DEFINITIONS.values(), GOODPUT)}
"""What is said below a heading."""


def help_page(name: str) -> str:
    """What a command does, and its options; of `plan` itself the other commands too."""
    return "\n\n".join("\n".join(part) for part in _parts(name, COMMANDS[name]))


def _parts(name: str, command: Command) -> Iterator[list[str]]:
    yield _usage(list(COMMANDS) if name == "plan" else [name])
    yield wrapped(command.words, width())
    if name == "plan":
        others = {called(one)[5:]: other.words for one, other in COMMANDS.items() if one != name}
        yield ["commands", *_columns(others)]
        yield ["standing alone", *_columns(_STANDING)]
    for heading, rows in HEADINGS.items():
        own = [row for row in rows if options_of(name).get(row.name) is row]
        if own:
            labels = {row.usage: _words(row, command) for row in own}
            yield [heading.lower(), *_notes(heading), *_columns(labels)]


def _usage(commands: Sequence[str]) -> list[str]:
    calls = (f"{called(name)} {COMMANDS[name].usage}" for name in commands)
    return [f"{'' if i else 'usage:':6} {call}" for i, call in enumerate(calls)]


_STANDING = {
    "--help, -h": "Print this page; of a command, behind its name.",
    "--version": "Print the version.",
    "--install-completion": "Install completion for the shell in use.",
}


def _words(row: Option, command: Command) -> str:
    """What help says of an option, with what is usual."""
    if row.name in command.keeps:
        words, _, _ = row.words.removesuffix(".").partition("; default: ")
        return f"{words}; default: as before."
    return f"{row.words} [{row.usual}]" if row.usual else row.words


def _notes(heading: str) -> Iterator[str]:
    for sentence in NOTES.get(heading, ()):
        first, *rest = wrapped(sentence, width() - 4)
        yield f"  {first}"
        yield from (f"    {line}" for line in rest)


def _columns(labels: dict[str, str]) -> Iterator[str]:
    for label, words in labels.items():
        first, *rest = wrapped(words, width() - _COLUMN)
        yield f"  {label:<{_COLUMN - 4}}  {first}".rstrip()
        yield from (" " * _COLUMN + line for line in rest)


_SCRIPTS = "commands/options/completion.toml"
_FEW = (1, 2, 4, 8)
"""Numbers in names of patterns that are offered, ascending."""


def install() -> str:
    """Write the script of the shell in use where that looks for it, and say so.

    Raises:
        RequestError: the shell is not known.
    """
    shell, scripts = Path(os.environ.get("SHELL", "")).name, packaged_table(_SCRIPTS)
    if shell not in scripts:
        fact, remedy = f"the shell `{shell}` is not known", "start it from bash, zsh or fish"
        raise RequestError([Problem(where="--install-completion", fact=fact, remedy=remedy)])
    path = Path.home() / scripts[shell]["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scripts[shell]["script"], encoding="utf-8")
    return f"installed in {path}{scripts[shell]['note']}"


def completions(argv: Sequence[str]) -> list[str]:
    """What the last word of a command line may be; nothing where it is a file or a number.

    Args:
        argv: words after `plan`, the last as far as it is typed; `=` may be a word of its own,
            as bash has it.

    >>> completions(["predict", "--role", "pre"]), completions(["--objective=lat"])
    (['prefill'], ['--objective=latency'])
    """
    *before, last = re.sub("\0?=\0?", "=", "\0".join([*argv] or [""])).split("\0")
    command, words = command_of(before)
    rows = options_of(command)
    name, equals, typed = last.partition("=")
    row = rows.get(words[-1]) if words else None
    if row and is_option(row.name) and row.value:
        return _values(row.values, last)
    if equals and name in rows:
        return [f"{name}={value}" for value in _values(rows[name].values, typed)]
    if last.startswith("-"):
        standing = STANDING if command == "plan" else STANDING[:1]
        return _starting(last, [*filter(is_option, rows), *standing])
    return _starting(last, _commands(before)) + _values(COMMANDS[command].lists.split(), last)


def _starting(typed: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def _commands(before: Sequence[str]) -> list[str]:
    """Words of commands that may come next."""
    n_before, names = len(before), (called(name).split()[1:] for name in COMMANDS)
    rest = (name[n_before:][:1] for name in names if name[:n_before] == [*before])
    return list(dict.fromkeys(chain.from_iterable(rest)))


def _values(items: Sequence[str], typed: str) -> list[str]:
    """Values that begin as is typed, behind those before a comma."""
    before, comma, last = typed.rpartition(",")
    offered = [text for item in items for text in _offered(item)]
    return [f"{before}{comma}{text}" for text in _starting(last, list(dict.fromkeys(offered)))]


def _offered(item: str) -> Iterator[str]:
    """What an item of `Option.values` stands for: itself, a constant's texts, names of files."""
    name, equals = item.removesuffix("="), "=" * item.endswith("=")
    module, dot, constant = name.rpartition(".")
    if name.isupper():
        yield from _names(Kind[name])
    elif dot:
        values = getattr(import_module(module), constant)
        yield from (f"{text}{equals}" for text in (values() if callable(values) else values))
    else:
        yield item


def _names(kind: Kind) -> Iterator[str]:
    """Names that files of a kind have; of patterns its examples, and those of few numbers."""
    for listing in list_files(kind):
        yield from listing.examples or [listing.name]
    for _, pattern in patterns(kind):
        few = product(*(filter(_FEW.__contains__, allowed) for allowed in pattern.allowed.values()))
        ascending = (numbers for numbers in few if list(numbers) == sorted(numbers))
        yield from (pattern.fill(dict(zip(pattern.allowed, n, strict=True))) for n in ascending)
