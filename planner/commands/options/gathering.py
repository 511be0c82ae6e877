"""Options that may be given again, or that list several: all their texts to one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planner.commands.options.option import Gather, Read
from planner.commands.options.readers import word_of
from planner.units import UnitError


def each(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
    """Texts of an option that may be given again, as they are."""
    return tuple(texts)


def listed(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
    """Names that commas, or the option given again, divide; each once."""
    words = (word.strip() for text in texts for word in text.split(","))
    return tuple(dict.fromkeys(words))


def words_of(what: str, known: str) -> Gather:
    """A reader of a list of words, each one that a constant of the planner lists."""
    one = word_of(what, known)

    def gather(texts: Sequence[str], read: Callable[[str, Read], Any]) -> tuple[str, ...]:
        values = (read(word, one) for word in listed(texts, read))
        return tuple(word for word in values if word)

    return gather


def by_name(reads: Read, *, what: str, divided: bool = False) -> Gather:
    """A reader of NAME=VALUE given again for other names; `""` where a text has no name.

    Args:
        what: it is that has a name, for people.
        divided: whether commas divide several in one text.
    """

    def gather(texts: Sequence[str], read: Callable[[str, Read], Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        parts = [part for text in texts for part in text.split(",")] if divided else texts
        for text in parts:
            name, equals, value = text.rpartition("=")
            key = name.strip() if equals else ""
            if key in values:
                fact = "is given twice" if key else f"is given twice: write {what}=VALUE"
                read(text, _refusing(fact))
                continue
            number = read(value, reads)
            if number is not None:
                values[key] = number
        return values

    return gather


def _refusing(fact: str) -> Read:
    def read(text: str) -> None:
        raise UnitError(text, fact)

    return read
