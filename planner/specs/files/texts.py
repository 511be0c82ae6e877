"""Files as text, JSON, TOML and CSV: read once, and never for long, whatever a user points at.

A file is regular, of a size that such files have, UTF-8, and nested no deeper than any of ours.
What stands in the way is a fact for a message; who asked knows the rest of it.
"""

import csv
import io
import json
import os
import pickle
import re
import stat
import tomllib
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.errors import FactError
from planner.specs.files.ledger import Use, enter
from planner.specs.validation.values import FaultError, fault_of

MOST_BYTES = 8 * 2**20
MOST_DEPTH = 64

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_DEEP_KEY = rf"(?<![\w.-])(?:{_PART}){{{MOST_DEPTH}}}"
"""A dotted key, for each part of which the parser takes time and memory of all those before."""


class UnreadError(FactError):
    """A file cannot be read; `fact` says why, behind the name of the file and the `key` in it."""

    def __init__(self, fact: str, key: str = "") -> None:
        self.fact, self.key = fact, key
        super().__init__(f"{key} {fact}".lstrip())


def read_text(path: str | Path, *, most_bytes: int = MOST_BYTES, use: Use | None = None) -> str:
    """The text of a file.

    Args:
        path: the file.
        most_bytes: more are not read.
        use: what the request uses it for; a file that is only looked through is not entered
            among those used.

    Raises:
        UnreadError: it is no such file.
    """
    content = read_bytes(path, most_bytes=most_bytes)
    text = text_of(content)
    if use is not None:
        enter(use, Path(path), content)
    return text


def text_of(content: bytes) -> str:
    """What a file holds, as text.

    Raises:
        UnreadError: it is not UTF-8, or only white space.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadError("is not text (UTF-8)") from None
    if not text.strip():
        raise UnreadError("is empty")
    return text


def read_bytes(path: str | Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """What a regular file holds; a pipe or a device, which may never end, is not opened.

    Raises:
        UnreadError: it is no such file.
    """
    try:
        _check_regular(Path(path).stat().st_mode)
        # It may have become a pipe meanwhile, whose opening would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(path, flags), "rb") as stream:
            _check_regular(os.fstat(stream.fileno()).st_mode)
            content: bytes | None = stream.read(most_bytes + 1)
    except FileNotFoundError:
        raise UnreadError("no such file") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UnreadError(f"cannot be read: {reason}") from None
    except UnreadError:
        raise
    except ValueError:  # a null character in the name
        raise UnreadError("no such file") from None
    if content is None:  # of a file of the system that has nothing to say yet
        raise UnreadError("cannot be read: nothing comes")
    if len(content) > most_bytes:
        raise UnreadError(f"is larger than {most_bytes / 2**20:g} MiB")
    return content


def json_of(text: str, *, has_infinity: bool = False) -> Any:  # noqa: ANN401 as the text has it
    """A text that is JSON.

    Args:
        has_infinity: it may say `NaN` and `Infinity`, as Python writes them.

    Raises:
        UnreadError: it is not, says a key twice, or is nested too deep.
    """
    constants = None if has_infinity else _no_constant
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=constants)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        what = f"{error.msg[:1].lower()}{error.msg[1:]}"
        raise UnreadError(f"is not JSON: {what} at {place}") from None
    except UnreadError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _too_long() from None
    _check_depth(value)
    return value


def toml_of(text: str) -> dict[str, Any]:
    """A text that is TOML.

    Raises:
        tomllib.TOMLDecodeError: it is not, with the line.
        UnreadError: it is nested too deep, or has a number that is too long.
    """
    table: dict[str, Any] = pickle.loads(_read_toml(text))
    return table


@lru_cache(maxsize=256)
def _read_toml(text: str) -> bytes:
    """The table of a text, so that each who asks gets one of its own: names are looked for in
    the same files again and again, and the parser takes most of that time.
    """
    if text.count(".") >= MOST_DEPTH and re.search(_DEEP_KEY, text):
        raise _too_deep()
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _too_long() from None
    _check_depth(table)
    return pickle.dumps(table)


def csv_of(text: str) -> list[list[str]]:
    """The cells of each line of a text that is CSV.

    Raises:
        UnreadError: it is not, or has a cell that is too long.
    """
    try:
        return list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise UnreadError(f"is not CSV: {error}") from None


def is_number(text: str) -> bool:
    """Whether a text is a number as Python writes them, if only one that means nothing."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def cell_text(cell: str) -> str:
    """What a cell says.

    Raises:
        FaultError: it is empty.
    """
    if not cell:
        raise FaultError("is empty", "say it of every row")
    return cell


def cell_number(name: str, *, scale: float = 1.0) -> Callable[[str], float]:
    """What reads a number by its name, of a cell without a unit.

    Args:
        scale: of the column's unit, in SI.
    """

    def read(cell: str) -> float:
        text = cell_text(cell)
        try:
            value = float(text) * scale
        except ValueError:
            remedy = "write it plainly, like `12.5`: its unit is in the header"
            raise FaultError("is no number", remedy) from None
        if fact := fault_of(name, value):
            raise FaultError(fact)
        return value

    return read


def cell_count(cell: str) -> int:
    """A whole number above zero."""
    value = cell_number("n")(cell)
    if not value.is_integer():
        raise FaultError("is no whole number")
    if fact := fault_of("n", int(value)):
        raise FaultError(fact)
    return int(value)


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise UnreadError("is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise UnreadError("is not a regular file")


def _no_constant(name: str) -> object:
    raise UnreadError(f"is not JSON: `{name}` is no number of it")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise UnreadError("is said twice", key=key)
        table[key] = value
    return table


def _check_depth(value: object) -> None:
    """Walk level by level: what walks it later does so by recursion.

    Raises:
        UnreadError: tables and lists are nested deeper than `MOST_DEPTH`.
    """
    level: list[object] = [[value]]
    depth = 0
    while level := [inner for one in level for inner in _inside(one)]:
        depth += 1
        if depth > MOST_DEPTH:
            raise _too_deep()


def _inside(node: object) -> Iterable[object]:
    """The tables and lists in one."""
    held = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (one for one in held if isinstance(one, dict | list))


def _too_deep() -> UnreadError:
    return UnreadError(f"is nested deeper than {MOST_DEPTH} levels")


def _too_long() -> UnreadError:
    return UnreadError("has a number of thousands of digits")


def visible(text: str, *, keeps: str = "") -> str:
    """Text whose every character prints as itself.

    Args:
        text: from wherever.
        keeps: characters that stay although they do not print, like line ends.
    """
    if text.isprintable():
        return text
    return "".join(
        # as a string of Python or JSON writes it: `\x1b`, `\u202e`
        c if c.isprintable() or c in keeps else c.encode("unicode_escape").decode("ascii")
        for c in text
    )
