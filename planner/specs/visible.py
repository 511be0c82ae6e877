r"""Text from outside as it can be shown: what cannot be seen, or turns lines around, is escaped.

A name may hold an escape that a terminal obeys, or a sign that has letters run the other way.

>>> print(visible("a\x1b[31mb\u202ec"))
a\x1b[31mb\u202ec
"""

from __future__ import annotations


def visible(text: str, *, keeps: str = "") -> str:
    """Text whose every character prints as itself.

    Args:
        text: from wherever.
        keeps: characters that stay although they do not print, like line ends.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keeps else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    r"""As a string of Python or JSON writes it: `\x1b`, `\u202e`."""
    return character.encode("unicode_escape").decode("ascii")
