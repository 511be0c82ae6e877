"""Pieces of text: labels, wrapped words, bars; and text inside HTML and SVG."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from html import escape as escape_marks

from planner.specs.texts import visible

LABEL = 14  # columns of a label, indent included

TIED = "\u00a0"  # a space at which no line breaks
_UNITS = re.compile(r"(?<=\d) (?=[a-zA-Z%])|(?<=[≤≥×]) (?=\S)")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def labelled(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Lines of a label and a text that wraps beside it; rows without text are left out."""
    lines: list[str] = []
    for label, text in rows:
        if text:
            room = max(20, width - LABEL - 2)
            first, *rest = wrapped(text, room)
            lines += [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of at most `width`, broken at spaces, never between a number and its unit."""
    tied = _UNITS.sub(TIED, text)
    lines = textwrap.wrap(tied, width, break_long_words=False, break_on_hyphens=False)
    return [line.replace(TIED, " ") for line in lines] or [""]


def bar(fraction: float, width: int) -> str:
    """A bar of `width` columns for a fraction of 1, to an eighth of a column.

    >>> bar(0.5, 8), bar(0.0, 8)
    ('████', '')
    """
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def escape(text: str) -> str:
    """Text as an element or an attribute holds it: marks, and what does not print, are shown."""
    return escape_marks(visible(text, keeps="\n\u00a0"))
