"""TOML files as dictionaries; whatever cannot be read becomes a problem, not a traceback."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from planner.errors import Problem
from planner.specs.ledger import Use, enter
from planner.specs.visible import visible

Table = dict[str, Any]

_MAX_BYTES = 16 * 2**20
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
    content, fact = _read_bytes(path)
    text, fact = ("", fact) if fact else _decoded(content)
    if fact:
        return {}, (Problem(where=shown, fact=fact),)
    if use is not None:
        enter(use, path, content)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return {}, (_syntax_problem(str(error), text, shown),)
    except (RecursionError, ValueError):  # brackets without end; numbers of thousands of digits
        return {}, (Problem(where=shown, fact="holds nothing that can be read as TOML"),)
    return table, () if table else (Problem(where=shown, fact="is empty"),)


def value_at(table: Table, section: str, key: str, *, default: object = None) -> Any:  # noqa: ANN401 as TOML has it
    """A value, whether it stands alone or with its source."""
    inner = table.get(section)
    found = inner.get(key, default) if isinstance(inner, dict) else default
    return found.get("value", default) if isinstance(found, dict) else found


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


def _read_bytes(path: Path) -> tuple[bytes, str]:
    """What a file holds and nothing, or nothing and why not."""
    try:
        if path.is_dir():
            return b"", "is a folder, not a file"
        if not path.exists():
            return b"", "no such file"
        if not path.is_file():
            return b"", "is not a regular file"
        if path.stat().st_size > _MAX_BYTES:
            return b"", f"is larger than {_MAX_BYTES // 2**20} MiB"
        return path.read_bytes(), ""
    except OSError as error:
        return b"", f"cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError:  # a null character in the name
        return b"", "no such file"


def _decoded(content: bytes) -> tuple[str, str]:
    """Bytes as text and nothing, or nothing and why not."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "is not text (UTF-8)"
    return (text, "") if text.strip() else ("", "is empty")


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
