"""Commands, and the names of their options: `commands.toml`; what these are `options.toml` says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from planner.quantities.table import placed
from planner.quantities.tables import packaged_table
from planner.specs.options.meanings import refused_by
from planner.specs.options.option import Option
from planner.specs.options.table import HEADINGS, named, option_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command.

    Args:
        module: of `planner.commands` that has the function of this name.
        usage: what follows its name, for help.
        words: what it does, for help.
        names: of its options.
        word: the option whose value may stand alone.
        lists: the kind of files of which its word names one, for completion.
        keeps: options that are as they were before where they are left out, whatever is usual.
    """

    module: str
    usage: str
    words: str
    names: tuple[str, ...]
    word: str = ""
    lists: str = ""
    keeps: tuple[str, ...] = ()


_TABLE = packaged_table("commands/options/commands.toml")
_LISTS: Mapping[str, str] = _TABLE["lists"]


def _names(said: str) -> Iterator[str]:
    """Options by what names them: themselves, a list of the file, limits, a group of options."""
    for name in said.split():
        if name in _LISTS:
            yield from _names(_LISTS[name])
        elif name in ("each", "all"):
            yield from (quantity.option for quantity in placed(name))
        else:
            yield from [name] if name.startswith("--") or name.isupper() else named(name)


def _command(row: Mapping[str, Any]) -> Command:
    names = {key: tuple(_names(row[key])) for key in ("names", "keeps") if key in row}
    return Command(**{**row, **names})


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {name: _command(row) for name, row in _TABLE["commands"].items()}
)
"""By name; of a command of two words, with a dash between them."""

RUN_OPTIONS = tuple(_names("of_runs"))
"""What serving runs may leave to options, as `plan predict` has them, in the order of commands."""

ALONE = frozenset(_names("alone"))
"""Options that say where one answer goes, or how it looks."""

OF_ONE_CLASS = tuple(dict.fromkeys(_names("of_one_class")))
"""Options that say what one class of traffic is."""


@cache
def options_of(command: str) -> Mapping[str, Option]:
    """The options that a command has, by name, in the order of help."""
    refused = refused_by(command)
    names = {name for name in COMMANDS[command].names if name not in refused}
    order = dict.fromkeys(row.name for rows in HEADINGS.values() for row in rows)
    return {name: option_of(command, name) for name in order if name in names}


def called(command: str) -> str:
    return "plan" if command == "plan" else f"plan {command.replace('-', ' ')}"


@cache
def owners() -> Mapping[str, str]:
    """The options of all commands, each with the first command that has it."""
    last_first = [*COMMANDS][::-1]
    return {name: called(command) for command in last_first for name in options_of(command)}


def typed(argument: str) -> str:
    """An option by its name in Python, or without dashes, as it is typed.

    >>> typed("max_cost"), typed("max-cost"), typed("ttft_p99_9")
    ('--max-cost', '--max-cost', '--ttft-p99.9')
    """
    name = argument.replace("_", "-")
    return next((one for one in owners() if one[2:].replace(".", "-") == name), f"--{name}")
