"""TOML files as dictionaries; whatever cannot be read becomes a problem, not a traceback."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Problem
from planner.specs.files.ledger import Use
from planner.specs.files.texts import UnreadError, read_text, toml_of, visible

Table = dict[str, Any]

_MAX_SHOWN = 60
_PLACE = re.compile(
    r"(?P<what>.*?)\s*\(at (?:line (?P<line>\d+), column (?P<column>\d+)|.*)\)", re.S
)


def read_table(
    path: Path, shown: str, *, use: Use | None = None
) -> tuple[Table, tuple[Problem, ...]]:
    """Read a TOML file.

    Args:
        path: the file.
        shown: the file as the user knows it, for messages.
        use: what the request uses it for; a file that is only looked through is not entered
            among those used.

    Returns:
        The table and no problem, or an empty table and what is wrong.
    """
    try:
        text = read_text(path, use=use)
    except UnreadError as error:
        return {}, (error.problem(shown),)
    return table_of(text, shown)


def table_of(text: str, shown: str) -> tuple[Table, tuple[Problem, ...]]:
    """The table that a text is, or an empty one and what is wrong."""
    try:
        table = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        return {}, (_syntax_problem(str(error), text, shown),)
    except UnreadError as error:
        return {}, (error.problem(shown),)
    return table, () if table else (Problem(where=shown, fact="is empty"),)


def at(value: object, *keys: str) -> Any:  # noqa: ANN401 as a file has it
    """What stands below keys, each in the former; None where nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def value_at(table: Table, section: str, key: str, *, default: object = None) -> Any:  # noqa: ANN401 as TOML has it
    """A value, whether it stands alone or with its source; sections within others have a dot."""
    inner = at(table, *section.split("."))
    value = inner.get(key, default) if isinstance(inner, dict) else default
    return value.get("value", default) if isinstance(value, dict) else value


def is_count(value: object) -> bool:
    """Whether it is a positive whole number, of a size that a count may have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10**9


def literal(value: object, *, longest: int = _MAX_SHOWN) -> str:
    """A value as TOML writes it, cut short for a message; empty for a table."""
    if isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, list):
        text = f"[{', '.join(literal(item) or '{…}' for item in value[:20])}]"
    elif isinstance(value, int):
        # Python refuses to print integers of thousands of digits.
        text = str(value) if value.bit_length() < 1_000 else "an integer of hundreds of digits"
    else:
        text = str(value)
    text = visible(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _syntax_problem(message: str, text: str, shown: str) -> Problem:
    """One problem at line and column, in words for those who do not know the parser."""
    match = _PLACE.fullmatch(message)
    what = match["what"] if match else message
    if match is None or match["line"] is None:
        return Problem(where=shown, fact=f"is not TOML: {_lower(what)}, at the end")
    line, column = int(match["line"]), match["column"]
    lines = text.splitlines()
    value = literal(lines[line - 1].strip()) if line <= len(lines) else ""
    fact, remedy = f"is not TOML: {_lower(what)}", ""
    if "overwrite" in what or "uplicate" in what:
        fact, remedy = "gives a key that was given before", "keep one of them"
    elif "twice" in what:
        fact, remedy = "begins a table that was begun before", "join the two"
    elif "Cannot mutate immutable" in what or "Cannot redefine" in what:
        fact, remedy = "adds to a table that is complete", "keep its keys in one place"
    return Problem(where=f"{shown}:{line}:{column}", value=value, fact=fact, remedy=remedy)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


ASSUMED = "assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where one value of a file comes from: a source, or `assumed`."""

    key: str
    source: str

    @property
    def is_assumed(self) -> bool:
        return self.source == ASSUMED
