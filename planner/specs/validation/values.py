"""What one value of a file may be: quantities, counts, words; each fault with its remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated

from planner.specs.validation.numbers import (
    MOST_COUNT,
    FaultError,
    dimension_of,
    is_below_one,
    may_be_zero,
)
from planner.specs.validation.problems import did_you_mean
from planner.units import parse, show

MOST_TEXT = 300


@dataclass(frozen=True, slots=True)
class Reader:
    """A note of a type: what its values are read by, in place of what their names say.

    Args:
        read: a value of a file as it is to be used; raises `FaultError`, or another with a fact.
        of_all: it holds for what callers pass too.
    """

    read: Callable[[object], object]
    of_all: bool = False


@dataclass(frozen=True, slots=True)
class NotEmpty:
    """A note of a list or a mapping, which has to hold something."""

    def read(self, value: Collection[object]) -> Collection[object]:
        if not value:
            raise FaultError("is empty")
        return value


NOT_EMPTY = NotEmpty()


def quantity(raw: object, dimension: str, *, allow_zero: bool = False, example: str = "") -> float:
    """A number with a unit of a dimension, in SI; one without a dimension needs no unit."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise FaultError("is not a quantity", f"write it like `{example or show(1, dimension)}`")
    return parse(_text(raw), dimension, allow_zero=allow_zero, example=example or None)


def amount(name: str) -> Callable[[object], float]:
    """What reads a number by its name."""
    if is_below_one(name):
        return _loss
    if name.endswith("_fraction"):
        return _share(allow_zero=may_be_zero(name))
    return lambda raw: quantity(raw, dimension_of(name), allow_zero=may_be_zero(name))


def between(low: float, high: float) -> Callable[[object], float]:
    """What reads a number without a unit in a range."""

    def read(raw: object) -> float:
        value = quantity(raw, "1", example=f"{low:g}")
        if not low <= value <= high:
            side = f"is below {low:g}" if value < low else f"is above {high:g}"
            raise FaultError(side, f"write a number from {low:g} to {high:g}")
        return value

    return read


def _share(*, allow_zero: bool) -> Callable[[object], float]:
    def read(raw: object) -> float:
        value = quantity(raw, "1", allow_zero=allow_zero)
        if value > 1:
            raise FaultError("is above 1", "write `0.8` or `80%`")
        return value

    return read


def _loss(raw: object) -> float:
    value = quantity(raw, "1", allow_zero=True, example="0.8%")
    if value >= 1:
        raise FaultError("is not below 1", "write `0.8%` or `0.008`")
    return value


def _text(raw: str | float) -> str:
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int):
        # Python refuses to print integers of thousands of digits; none of them is meant.
        return str(raw) if abs(raw) < 10**300 else "1e301"
    if math.isnan(raw):
        raise FaultError("is not a number")
    return f"{raw:.15g}" if math.isfinite(raw) else "1e999"


LONGEST_S = 60.0
"""No engine spends more on anything that its file says; it is then a slip of the unit [s]."""


def _duration(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, str):
        raise FaultError("is not a duration", "write it like `2 ms`")
    value = parse(raw, "s", allow_zero=True)
    if value > LONGEST_S:
        raise FaultError(f"is above {show(LONGEST_S, 's')}", "write it like `2 ms`")
    return value


def number(most: float, unit: str) -> Callable[[object], float]:
    """What reads a number without a unit, from 0, where its name says the unit."""

    def read(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float):
            raise FaultError("is not a number", f"write it in {unit}")
        if not 0 <= raw <= most:  # compared first: some integers are no floats
            fact = "is negative" if raw < 0 else f"is above {most:g}"
            raise FaultError(fact if raw == raw else "is not a number", f"write it in {unit}")
        return float(raw)

    return read


def count(raw: object, *, allow_zero: bool = False) -> int:
    """A whole number."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        as_int = isinstance(raw, float) and raw.is_integer() and abs(raw) < MOST_COUNT
        remedy = f"write `{raw:.0f}`" if as_int else ""
        raise FaultError("is not a whole number", remedy)
    if raw < 0 or (raw == 0 and not allow_zero):
        raise FaultError("is negative" if raw else "is zero", "write a positive whole number")
    if raw > MOST_COUNT:
        raise FaultError("is beyond anything real")
    return raw


def line(raw: object) -> str:
    """A text of one line."""
    if not isinstance(raw, str):
        raise FaultError("is not text", "write it in quotes")
    if not raw.strip():
        raise FaultError("is empty")
    if len(raw) > MOST_TEXT or not raw.isprintable():
        raise FaultError(f"is not one line of at most {MOST_TEXT} characters")
    return raw


def one_of(what: str, known: Collection[str]) -> Reader:
    """One of a few words."""

    def read(raw: object) -> str:
        if not isinstance(raw, str) or raw not in known:
            otherwise = f"there are {', '.join(f'`{word}`' for word in known)}"
            raise FaultError(f"unknown {what}", did_you_mean(str(raw), known, otherwise=otherwise))
        return raw

    return Reader(read, of_all=True)


def _date(raw: object) -> str:
    text = str(raw)  # TOML dates and texts alike
    year, *rest = text.split("-")
    digits = all(part.isdecimal() and len(part) == 2 for part in rest)
    if text != "undated" and not (year.isdecimal() and len(year) == 4 and digits and len(rest) < 3):
        raise FaultError("is not a date", 'write it like "2026-05" or "undated"')
    return text


def _gating(raw: object) -> int:
    n_matrices = count(raw)
    if n_matrices not in (2, 3):
        raise FaultError("is neither 2 nor 3", "write 3 for a gated FFN, 2 for a plain one")
    return n_matrices


Date = Annotated[str, Reader(_date)]
Duration = Annotated[float, Reader(_duration)]
FfnMatrices = Annotated[int, Reader(_gating, of_all=True)]
Positive = Annotated[int, Reader(count, of_all=True)]
Loss = Annotated[float, Reader(_loss, of_all=True)]
Share = Annotated[float, Reader(_share(allow_zero=False), of_all=True)]
Number = Annotated[float, Reader(lambda raw: quantity(raw, "1", example="7e9"), of_all=True)]
