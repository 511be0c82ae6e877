"""Options that say a value for each of several names: models, or kinds of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from planner.commands.options.reading import Faults, price_of
from planner.errors import Problem

_T = TypeVar("_T")


def by_name(
    option: str,
    texts: Sequence[str],
    read: Callable[[str], _T],
    faults: Faults,
    *,
    what: str = "MODEL",
) -> dict[str, _T]:
    """Values by name, `""` where a text names none; each name once.

    Args:
        what: it is that has a name, for people.
    """
    values: dict[str, _T] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        key = name.strip() if equals else ""
        if key in values:
            fact = "is given twice" if key else f"is given twice: write {what}=VALUE"
            faults.problems.append(Problem(where=option, value=text, fact=fact))
            continue
        found = faults.read(option, value, read)
        if found is not None:
            values[key] = found
    return values


def read_prices(texts: Sequence[str], faults: Faults) -> dict[str, float]:
    """Rents of a device by kind [USD/h]; `ALL` is for those that are not named."""
    words = [word for text in texts for word in text.split(",")]
    return by_name("--price", words, price_of, faults, what="KIND")
