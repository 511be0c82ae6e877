"""Which options mean something where: one table of options × commands × runtimes.

An option that a command has means what its help says, under every runtime, unless a row of
`refusals.toml` says otherwise: then it is refused by its name, with these words, before anything is
searched. Arguments of the library that no option sets stand in it by their own names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.errors import Problem
from planner.quantities.tables import packaged_table
from planner.specs.options.table import named
from planner.specs.records.runtimes import LAYOUT_RUNTIMES, TABLE, is_table

ENGINES = "engines"
"""The family of all runtimes that are serving engines."""

LEAVE_OUT = "leave it out"
_TEXTS = ("fact", "remedy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Options that mean nothing to a command, or under a runtime.

    Args:
        options: as they are typed.
        fact, remedy: why, and what to do instead.
        commands: that refuse them; all that have them where empty.
        families: of runtimes under which they are refused; whatever the runtime where empty.
    """

    options: tuple[str, ...]
    fact: str
    remedy: str = LEAVE_OUT
    commands: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


def _refusal(row: Mapping[str, Any]) -> Refusal:
    """A row of `refusals.toml`: options by name and by groups, without those of `but`."""
    said: dict[str, Any] = {
        key: text if key in _TEXTS else tuple(text.split()) for key, text in row.items()
    }
    options = (*said.pop("options", ()), *named(" ".join(said.pop("groups", ()))))
    without = said.pop("but", ())
    return Refusal(options=tuple(name for name in options if name not in without), **said)


REFUSALS = tuple(map(_refusal, packaged_table("specs/options/refusals.toml")["refusal"]))
"""Options that a command has, or that one may look for there, and that mean nothing to it."""


def family_of(runtime: str) -> str:
    """A runtime's family: its own name, `table`, or `engines`."""
    if is_table(runtime):
        return TABLE
    return runtime if runtime in LAYOUT_RUNTIMES else ENGINES


def refused_by(command: str) -> dict[str, Refusal]:
    """Options that a command refuses whatever the runtime."""
    rows = (row for row in REFUSALS if command in row.commands and not row.families)
    return {option: row for row in rows for option in row.options}


def refusal_under(runtime: str, option: str, command: str = "plan") -> Refusal | None:
    """Why an option means nothing under a runtime, to a command that has it; None where it does."""
    family = family_of(runtime)
    for row in REFUSALS:
        is_of_command = not row.commands or command in row.commands
        if option in row.options and family in row.families and is_of_command:
            return row
    return None


def misplaced(
    said: Mapping[str, str], runtimes: Sequence[str], command: str = "plan"
) -> Iterator[Problem]:
    """Options that are said and mean nothing under one of the runtimes, each once.

    Args:
        said: options and what they were given, as text.
    """
    for option, value in said.items():
        rows = (refusal_under(runtime, option, command) for runtime in runtimes)
        row = next(filter(None, rows), None)
        if row is not None:
            yield problem_of(row, option, value)


def problem_of(row: Refusal, option: str, value: str = "") -> Problem:
    remedy = row.remedy.format(value=value or "WHAT")
    return Problem(where=option, value=value, fact=row.fact, remedy=remedy)
