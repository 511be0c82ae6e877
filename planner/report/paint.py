"""Text onto a stream: in colour on a terminal, plain elsewhere, in ASCII where it must be.

All text is composed without colour and reads so. Colour is laid over it by what it says.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EAGAIN
from typing import IO, TYPE_CHECKING

from planner.specs.files.texts import visible

if TYPE_CHECKING:
    from rich.text import Text

NARROWEST, USUAL, WIDEST = 60, 100, 120
SCREEN = 24
"""Lines of a screen."""

_STYLES = (
    (r"\A.+", "bold"),  # the first line says it all
    (r"(?m)^[a-z][a-z ]*$", "bold"),  # titles of sections
    (r"(?m)^error:", "bold red"),
    (r"(?m)^warning:", "bold yellow"),
    (r"(?m)^(hint|note):", "bold cyan"),
    (r"`[^`\n]+`", "cyan"),
    (r"[█▏▎▍▌▋▊▉]+", "blue"),
    (r"\bbinds\b", "bold yellow"),
    (r"\bassumed\b", "yellow"),
    (r"\boptimal\b", "green"),
)
_IN_ASCII = str.maketrans(
    {
        "×": "x", "≤": "<=", "≥": ">=", "·": "-", "–": "-", "−": "-", "…": "...", "█": "#",
        "▏": " ", "▎": " ", "▍": " ", "▌": "#", "▋": "#", "▊": "#", "▉": "#", "µ": "u", "→": "->",
        "░": ".", "▒": "+", "▓": "%",
    }
)  # fmt: skip


def width() -> int:
    """Columns to write: those of the terminal or of $COLUMNS, within what reads well."""
    return min(max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


def write(text: str, stream: IO[str]) -> None:
    """Write text and a line end; what a name brings along that does not print is escaped."""
    text = visible(text, keeps="\n\u00a0")
    if is_coloured(stream):
        from rich.console import Console

        Console(file=stream, highlight=False, soft_wrap=True).print(painted(text))
    else:
        _put(_encodable(text, getattr(stream, "encoding", None)) + "\n", stream)
    stream.flush()


def painted(text: str) -> Text:
    """Text with its colours, for a rich console."""
    from rich.text import Text

    coloured = Text(text)
    for pattern, style in _STYLES:
        coloured.highlight_regex(pattern, style)
    return coloured


def write_data(text: str, stream: IO[str]) -> None:
    """Write what another program reads, unchanged, and a line end."""
    encoding = getattr(stream, "encoding", None)
    if text.isascii() or _encodable(text, encoding) == text:
        _put(text + "\n", stream)
    else:  # a stream of fewer characters than the data has: they are UTF-8, as in a file
        _put(text + "\n", stream, "utf-8")


def _put(text: str, stream: IO[str], encoding: str | None = None) -> None:
    """Write all of a text: a stream without a buffer may take a part of it without a word.

    Raises:
        OSError: it did not take all.
    """
    raw = getattr(stream, "buffer", None)
    if raw is None:
        stream.write(text)
        stream.flush()
        return
    stream.flush()
    errors = getattr(stream, "errors", None) or "strict"
    left = memoryview(text.encode(encoding or getattr(stream, "encoding", None) or "utf-8", errors))
    while left:
        taken = raw.write(left)
        if not taken:
            raise BlockingIOError(EAGAIN, "the stream takes no more")
        left = left[taken:]
    raw.flush()


def open_closed_streams() -> None:
    """Let streams that the caller closed go nowhere: libraries write to them unasked.

    But an answer that goes nowhere is none: a closed stdout refuses what is written to it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            takes = os.O_RDONLY if name == "stdout" else os.O_RDWR
            setattr(sys, name, os.fdopen(os.open(os.devnull, takes), mode))


@contextmanager
def unlogged() -> Iterator[None]:
    """Let libraries log nothing: what is said is the answer, and messages about it."""
    import logging

    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def drop_unwritten(stream: IO[str]) -> None:
    """Drop what a stream cannot write, so that it does not fail again when Python ends."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_coloured(stream: IO[str]) -> bool:
    """Whether a stream is a terminal that wants colour (see no-color.org)."""
    is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
    return is_terminal and not os.environ.get("NO_COLOR")


def _encodable(text: str, encoding: str | None) -> str:
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        ascii_only = text.translate(_IN_ASCII).encode("ascii", "replace").decode("ascii")
        return re.sub(r" +$", "", ascii_only, flags=re.MULTILINE)  # of bars too short for a `#`
    return text
